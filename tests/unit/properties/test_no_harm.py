"""Laws of PlacementGuard over random sequences of events, in the real loop on a fake API server.

A model of Karmada plays its controllers: it stamps eviction tasks and ends them by health, as
karmada v1.18.2 pkg/controllers/gracefuleviction does, and it keeps a copy of the workload where a target or a task is.
"""

from __future__ import annotations

import asyncio
import json
from datetime import datetime
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from karmada_scheduler.api.binding import Binding
from karmada_scheduler.binding_cycle import status_writer
from karmada_scheduler.testing import cluster, make
from karmada_scheduler_plugins.placement_guard import PlacementGuard
from tests import manifests
from tests.conftest import EXAMPLES
from tests.unit.fakes import CONFLICT, FakeApiServer
from tests.unit.framework.scheduler_harness import SchedulerHarness

CLUSTERS = ("m1", "m2", "m3")
NAMES = ("w0", "w1", "w2")
WINDOW = 60.0
LIMIT = 2
REPLICAS = 2
EVICTION_TIMEOUT = 600.0
"""Seconds after which Karmada ends a task that names no time of its own."""
LAST_MOVE = "pyscheduler.karmada.io/last-move"
ARGS: dict[str, Any] = {
    "graceful": {"enabled": True, "gracePeriodSeconds": 86400},
    "budgets": [{"scope": "namespace", "window": "60s", "bindings": LIMIT}],
}


def placement(names: frozenset[str], *, duplicated: bool) -> dict[str, Any]:
    kind = "Duplicated" if duplicated else "Divided"
    return {
        "clusterAffinity": {"clusterNames": sorted(names) or ["nowhere"]},
        "replicaScheduling": {"replicaSchedulingType": kind, "replicaDivisionPreference": "Aggregated"},
        "spreadConstraints": [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}],
    }


class SimulatedPlane:
    """Bindings on an API server, the scheduler that leads, Karmada's controllers, and the copies in the clusters."""

    def __init__(self, *, duplicated: bool) -> None:
        self.duplicated = duplicated
        self.server = FakeApiServer()
        self.ready: dict[tuple[str, str], int] = {}
        self.deleting: set[str] = set()
        self.evicted: set[str] = set()
        self.stamped: dict[tuple[str, str], float] = {}
        self.version = 1
        self.seconds = 0.0
        self.checked = 0
        self.moves: list[float] = []
        self.leader = self._new_leader()
        for name in NAMES:
            self.server.stored[name] = manifests.binding(
                name, placement=placement(frozenset({"m1"}), duplicated=duplicated), replicas=REPLICAS
            )
        self._list()

    def _new_leader(self) -> SchedulerHarness:
        made = SchedulerHarness(
            server=self.server, made=lambda handle: [make(PlacementGuard, ARGS, handle=handle)]
        )
        made.sleep(self.seconds)
        for name in CLUSTERS:
            metadata = {"deletionTimestamp": "2026-01-01T00:00:00Z"} if name in self.deleting else {}
            manifest = cluster(name).manifest()
            manifest["metadata"] |= {"resourceVersion": str(self.version + 1), **metadata}
            made.handlers.on_event("Cluster", "MODIFIED", manifest)
        return made

    def _list(self) -> None:
        for manifest in list(self.server.stored.values()):
            self.leader.handlers.on_event("ResourceBinding", "ADDED", manifest)

    # --- events ---

    def change_leader(self) -> None:
        self.server.event = lambda _: None
        self.leader = self._new_leader()
        self._list()

    def edit(self, name: str, names: frozenset[str]) -> None:
        self.server.change(name, placement=placement(names, duplicated=self.duplicated))

    def evict(self, name: str) -> None:
        """Evict a binding from its cluster as the taint manager does."""
        spec = self.server.stored[name]["spec"]
        targets, tasks = spec.get("clusters") or [], spec.get("gracefulEvictionTasks") or []
        if targets and all(task["fromCluster"] != targets[0]["name"] for task in tasks):
            task = {
                "fromCluster": targets[0]["name"],
                "producer": "TaintManager",
                "reason": "TaintUntolerated",
            }
            self.evicted.add(name)
            self.server.change(name, clusters=targets[1:], gracefulEvictionTasks=[*tasks, task])

    def conflict(self) -> None:
        """Refuse the next write."""
        self.server.failures.setdefault("spec", []).append(CONFLICT)

    def become_ready(self, where: str, replicas: int = REPLICAS) -> None:
        """Let the copies on a cluster have so many ready replicas, unless they have more."""
        for name in NAMES:
            if (name, where) in self.ready:
                self.ready[name, where] = max(replicas, self.ready[name, where])
        self.report()

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds
        self.leader.sleep(seconds)

    # --- Karmada ---

    def control(self) -> None:
        """Let Karmada's controllers act once: keep and delete copies, report them, stamp and end tasks."""
        for name in NAMES:
            spec = self.server.stored[name]["spec"]
            wanted = {each["name"] for each in spec.get("clusters") or ()}
            wanted |= {task["fromCluster"] for task in spec.get("gracefulEvictionTasks") or ()}
            for key in [key for key in self.ready if key[0] == name and key[1] not in wanted]:
                del self.ready[key]
            for where in wanted:
                self.ready.setdefault((name, where), 0)
        self.report()
        for name in NAMES:
            self._judge(name)

    def _judge(self, name: str) -> None:
        manifest = self.server.stored[name]
        spec, status = manifest["spec"], manifest.get("status", {})
        tasks = spec.get("gracefulEvictionTasks") or []
        healthy = {
            each["clusterName"] for each in status.get("aggregatedStatus", ()) if each["health"] == "Healthy"
        }
        is_observed = status.get("schedulerObservedGeneration") == manifest["metadata"]["generation"]
        is_ready = is_observed and all(each["name"] in healthy for each in spec.get("clusters") or ())
        left = []
        for task in tasks:
            since = self.stamped.setdefault((name, task["fromCluster"]), self.seconds)
            is_late = self.seconds - since > task.get("gracePeriodSeconds", EVICTION_TIMEOUT)
            if "creationTimestamp" not in task or not (is_ready or is_late):
                left.append({"creationTimestamp": "2026-01-02T00:00:00Z", **task})
            else:
                del self.stamped[name, task["fromCluster"]]
        if left != tasks:
            self.server.change(name, gracefulEvictionTasks=left)

    def report(self) -> None:
        for name in NAMES:
            items = [
                {
                    "clusterName": where,
                    "applied": True,
                    "health": "Healthy" if count else "Unhealthy",
                    "status": {"readyReplicas": count},
                }
                for (what, where), count in sorted(self.ready.items())
                if what == name
            ]
            if self.server.stored[name].get("status", {}).get("aggregatedStatus", []) != items:
                self.server.change(name, status=True, aggregatedStatus=items)

    # --- laws ---

    async def settle(self) -> None:
        """Let the scheduler and Karmada act until neither changes anything, and check each write."""
        for _ in range(12):
            before = {name: self.server.stored[name] for name in NAMES}
            await self.leader.run()
            self.check_writes()
            # The eviction controller ends a task of the taint manager by a report that may be older than the decision.
            ready = {name: self.total(name) for name in NAMES if name not in self.evicted}
            self.control()
            for name, count in ready.items():
                assert self.total(name) >= min(REPLICAS, count), f"{name} is below what it was"
            if all(before[name] is self.server.stored[name] for name in NAMES):
                self.evicted = {name for name in self.evicted if self._is_evicted(name)}
                return

    def _is_evicted(self, name: str) -> bool:
        """Return whether another program evicts a binding."""
        tasks = self.server.stored[name]["spec"].get("gracefulEvictionTasks") or []
        return any(task["producer"] != "ours" for task in tasks)

    def total(self, name: str) -> int:
        return sum(count for (what, _), count in self.ready.items() if what == name)

    def check_writes(self) -> None:
        for kind, name, body in self.server.requests[self.checked :]:
            if kind == "spec":
                self._check_write(name, body)
        self.checked = len(self.server.requests)

    def _check_write(self, name: str, body: dict[str, Any]) -> None:
        if body["clusters"] is not None:
            assert body["clusters"] or not self._had_living(name), f"{name} was emptied"
        tasks = body.get("gracefulEvictionTasks") or []
        sources = [task["fromCluster"] for task in tasks]
        assert len(sources) == len(set(sources)), "two tasks for a cluster"
        assert not set(sources) & {each["name"] for each in body["clusters"] or ()}, "a task for a target"
        producers = [task["producer"] == "ours" for task in tasks if "creationTimestamp" not in task]
        assert producers == sorted(producers, reverse=True), "a new task of ours is behind others"
        text = body["annotations"].get(LAST_MOVE)
        if text:
            self.moves.append(datetime.fromisoformat(json.loads(text)["moves"][-1]["at"]).timestamp())
            latest = self.moves[-1]
            assert sum(latest - WINDOW < at <= latest for at in self.moves) <= LIMIT, "over budget"

    def _had_living(self, name: str) -> bool:
        return any(what == name and where not in self.deleting for what, where in self.ready)

    async def check_end(self) -> None:
        """Let all waits end, and check that every decision is written and nothing is left to do."""
        for name in NAMES:
            self.edit(name, frozenset(CLUSTERS))
        for _ in range(30):
            await self.settle()
            for where in CLUSTERS:
                self.become_ready(where)
            self.sleep(61)
        await self.settle()
        for name in NAMES:
            manifest = self.server.stored[name]
            assert manifest["spec"]["clusters"], f"{name} is lost"
            assert not manifest["spec"].get("gracefulEvictionTasks"), f"{name} still leaves a cluster"
            applied = Binding.from_manifest(manifest).applied_placement_json
            wanted = Binding.from_manifest(manifest).spec.placement
            assert wanted is not None
            assert applied == wanted.to_json(), f"the decision about {name} was not written"
            assert manifest["status"]["conditions"][0]["status"] == "True"
            assert manifest["status"]["schedulerObservedGeneration"] == manifest["metadata"]["generation"]
        assert len(self.leader.queue) == self.leader.queue.delayed == 0


@pytest.fixture(autouse=True, scope="module")
def _no_pauses() -> Any:
    before = status_writer._RETRY_DELAYS
    status_writer._RETRY_DELAYS = (0.0,) * 8  # type: ignore[misc]
    yield
    status_writer._RETRY_DELAYS = before  # type: ignore[misc]


name_of = st.sampled_from(NAMES)
EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("edit"), name_of, st.frozensets(st.sampled_from(CLUSTERS), max_size=3)),
        st.tuples(st.just("edit"), name_of, st.frozensets(st.sampled_from(CLUSTERS), min_size=1, max_size=1)),
        st.tuples(st.just("evict"), name_of),
        st.tuples(st.just("conflict")),
        st.tuples(st.just("become_ready"), st.sampled_from(CLUSTERS)),
        st.tuples(st.just("become_ready"), st.sampled_from(CLUSTERS), st.just(1)),
        st.tuples(st.just("sleep"), st.sampled_from((1.0, 31.0, 61.0))),
        st.tuples(st.just("change_leader")),
    ),
    max_size=14,
)


@settings(max_examples=EXAMPLES or 40)
@given(events=EVENTS, duplicated=st.booleans())
@example([("edit", "w2", frozenset(CLUSTERS)), *3 * [("evict", "w2")]], False)
@example([("edit", "w0", frozenset({"m1", "m2"})), ("evict", "w0"), ("become_ready", "m2", 1)], False)
def test_never_emptied_never_below_never_over_budget_and_never_lost(
    events: list[tuple[Any, ...]], duplicated: bool
) -> None:
    async def run() -> None:
        plane = SimulatedPlane(duplicated=duplicated)
        await plane.settle()
        plane.become_ready("m1")
        for event, *arguments in events:
            getattr(plane, event)(*arguments)
            await plane.settle()
        await plane.check_end()

    asyncio.run(run())
