"""Laws of FailBack over random sequences of events, in the real loop on a fake API server."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from karmada_scheduler.binding_cycle import status_writer
from karmada_scheduler.client.api_error import ApiError
from tests.conftest import EXAMPLES
from tests.unit.fakes import CONFLICT, FakeApiServer
from tests.unit.plugins.fail_back_fleet import CHECK, FAIL_BACK, WAIT, Fleet, terms

CLUSTERS = ("m1", "m2", "m3")
NAMES = ("w0", "w1")
MOST = 4 * WAIT
STEP = 30
"""Seconds between two looks, so that some checks fall out."""
FIRST = "on-m1"


class Outages:
    """Bindings that prefer m1, clusters that fail, and the scheduler that leads."""

    def __init__(self, *, duplicated: bool) -> None:
        self.server = FakeApiServer()
        self.kind = "Duplicated" if duplicated else "Divided"
        self.down: set[str] = set()
        self.up_since = dict.fromkeys(CLUSTERS, 0.0)
        self.versions = 1
        self.seconds = 0.0
        self.checked = 0
        self.entries: dict[str, list[float]] = {name: [] for name in NAMES}
        self.leader = self._new_leader()

    def _new_leader(self) -> Fleet:
        made = Fleet(server=self.server, maxSeconds=MOST, forgetSeconds=30 * 86400)
        made.versions = self.versions + 1
        made.sleep(self.seconds)
        for name in CLUSTERS:
            made.change(name, down=name in self.down)
        for manifest in list(self.server.stored.values()):
            made.handlers.on_event("ResourceBinding", "ADDED", manifest)
        return made

    async def start(self) -> None:
        for name in NAMES:
            self.leader.put(name, placement=terms(*CLUSTERS, kind=self.kind))
        await self.settle()

    # --- events ---

    def fail(self, name: str) -> None:
        self.down.add(name)
        self.leader.change(name, down=True)

    def recover(self, name: str) -> None:
        if name in self.down:
            self.down.discard(name)
            self.up_since[name] = self.leader.now
        self.leader.change(name)

    def evict(self, name: str) -> None:
        """Evict a binding from its clusters as the taint manager does."""
        spec = self.server.stored[name]["spec"]
        tasks = spec.get("gracefulEvictionTasks") or []
        known = {task["fromCluster"] for task in tasks}
        for each in spec.get("clusters") or ():
            if each["name"] not in known:
                tasks = [*tasks, {"fromCluster": each["name"], "producer": "TaintManager", "reason": "x"}]
        self.server.change(name, clusters=[], gracefulEvictionTasks=tasks)

    def end_evictions(self) -> None:
        for name in NAMES:
            if self.server.stored[name]["spec"].get("gracefulEvictionTasks"):
                self.server.change(name, gracefulEvictionTasks=[])

    def fail_over(self, name: str) -> None:
        """Evict a binding because its cluster fails."""
        for each in self.server.stored[name]["spec"].get("clusters") or ():
            self.fail(each["name"])
        self.evict(name)

    def report(self) -> None:
        """Report all copies as healthy."""
        for name in NAMES:
            targets = self.server.stored[name]["spec"].get("clusters") or ()
            items = [{"clusterName": each["name"], "applied": True, "health": "Healthy"} for each in targets]
            if self.server.stored[name].get("status", {}).get("aggregatedStatus", []) != items:
                self.server.change(name, status=True, aggregatedStatus=items)

    def conflict(self) -> None:
        self.server.failures.setdefault("spec", []).append(CONFLICT)

    def lose_statuses(self) -> None:
        """Let the next statuses get lost, until the leader changes."""
        self.server.failures["status"] = [ApiError("gone")] * 1000

    def change_leader(self) -> None:
        self.server.event = lambda _: None
        self.versions, self.seconds = self.leader.versions, self.leader.now
        self.server.failures.clear()
        self.leader = self._new_leader()

    async def wait(self, seconds: float) -> None:
        end = self.leader.now + seconds
        while self.leader.now < end:
            self.leader.sleep(min(STEP, end - self.leader.now))
            await self.settle()

    # --- laws ---

    async def settle(self) -> None:
        """Let the scheduler act, with a check, and verify each write."""
        for _ in range(2):
            await self.leader.reconsiderations.look()
            await self.leader.run()
        for kind, name, body in self.server.requests[self.checked :]:
            text = body["annotations"].get(FAIL_BACK) if kind == "spec" else None
            if text and "left" not in json.loads(text):
                self._check_return(name, json.loads(text), body["clusters"])
        self.checked = len(self.server.requests)

    def _check_return(self, name: str, record: dict[str, Any], clusters: list[dict[str, Any]]) -> None:
        targets = {each["name"] for each in clusters}
        assert targets == {record["to"].removeprefix("on-")}, "the term was not the one of the clusters"
        assert not targets & self.down, "a term was entered that cannot take the binding"
        now, entries = self.leader.now, self.entries[name]
        assert all(now - self.up_since[each] >= WAIT for each in targets), (
            "a miss did not begin the wait again"
        )
        if record["to"] == FIRST:
            if entries:
                assert now - entries[-1] >= min(WAIT << len(entries), MOST), "it flaps"
            entries.append(now)

    async def check_end(self) -> None:
        """Let all failures end, and check that all bindings return and nothing moves afterwards."""
        self.change_leader()
        for name in CLUSTERS:
            self.recover(name)
        self.end_evictions()
        for _ in range(len(NAMES)):
            self.report()
            await self.wait(MOST + WAIT)
        for name in NAMES:
            status = self.server.stored[name]["status"]
            assert self.leader.placed(name) == ["m1"], f"{name} did not return"
            assert status["schedulerObservingAffinityName"] == FIRST
            assert status["conditions"][0]["status"] == "True"
        writes = len(self.server.requests)
        await self.wait(MOST + WAIT)
        assert len(self.server.requests) == writes, "a binding that has returned is written"


@pytest.fixture(autouse=True, scope="module")
def _no_pauses() -> Any:
    before = status_writer._RETRY_DELAYS
    status_writer._RETRY_DELAYS = (0.0,) * 8  # type: ignore[misc]
    yield
    status_writer._RETRY_DELAYS = before  # type: ignore[misc]


name_of = st.sampled_from(NAMES)
cluster_of = st.sampled_from(CLUSTERS)
EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("fail"), cluster_of),
        st.tuples(st.just("recover"), cluster_of),
        st.tuples(st.just("recover"), st.just("m1")),
        st.tuples(st.just("evict"), name_of),
        st.tuples(st.just("fail_over"), name_of),
        st.tuples(st.just("end_evictions")),
        st.tuples(st.just("report")),
        st.tuples(st.just("conflict")),
        st.tuples(st.just("lose_statuses")),
        st.tuples(st.just("change_leader")),
        st.tuples(st.just("wait"), st.sampled_from((CHECK, WAIT, MOST))),
    ),
    max_size=16,
)
OUTAGE: list[tuple[Any, ...]] = [
    ("fail_over", "w0"),
    ("wait", CHECK),
    ("end_evictions",),
    ("recover", "m1"),
    ("wait", MOST),
    ("report",),
]


@settings(max_examples=EXAMPLES or 40)
@given(events=EVENTS, duplicated=st.booleans())
@example(4 * OUTAGE, False)
@example(4 * OUTAGE, True)
@example([*OUTAGE[:4], ("lose_statuses",), ("wait", WAIT), ("change_leader",), *OUTAGE], True)
@example([*OUTAGE[:4], ("wait", STEP), ("fail", "m1"), ("recover", "m1"), ("wait", STEP)], False)
def test_no_flapping_no_term_that_cannot_take_it_and_a_return_in_the_end(
    events: list[tuple[Any, ...]], duplicated: bool
) -> None:
    async def run() -> None:
        outages = Outages(duplicated=duplicated)
        await outages.start()
        for event, *arguments in events:
            result = getattr(outages, event)(*arguments)
            if result is not None:
                await result
            await outages.settle()
        await outages.check_end()

    asyncio.run(run())
