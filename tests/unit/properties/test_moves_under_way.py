"""Budgets hold, and become free again, when answers are slow or lost, watches lag, and leaders change in the middle.

What moves is judged by the history of the writes that the API server has carried out, and by what it stores.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from datetime import datetime
from typing import Any, NamedTuple

from hypothesis import example, given, settings
from hypothesis import strategies as st

from karmada_scheduler.api.binding import Binding
from karmada_scheduler.framework import SUCCESS, Result
from karmada_scheduler.testing import make
from karmada_scheduler_plugins._moves_under_way import LOST_SECONDS
from karmada_scheduler_plugins.placement_guard import PlacementGuard
from tests import manifests
from tests.conftest import EXAMPLES
from tests.unit.framework.scheduler_harness import SchedulerHarness
from tests.unit.lossy_api_server import LossyApiServer, Request

NAMES = tuple(f"w{number}" for number in range(5))
LIMIT = 2
REPLICAS = 2
WINDOW = 30.0
LAST_MOVE = "pyscheduler.karmada.io/last-move"
APPLIED = "policy.karmada.io/applied-placement"
LATEST = 60.0
"""Seconds after which the API server does not carry out a request any more, and a watch has delivered an event."""
BUDGETS = ({"bindings": LIMIT}, {"replicas": LIMIT * REPLICAS}, {"atOnce": LIMIT})


class Steps:
    """A plugin whose coroutines wait for some turns of the event loop, and that refuses as long as ``refuses`` is set."""

    name = "Steps"

    def __init__(self) -> None:
        self.turns = 0
        self.refuses = False

    async def pre_score(self, context: Any, /) -> Result:
        return await self._wait()

    async def permit(self, context: Any, /) -> Result:
        return await self._wait()

    async def pre_bind(self, context: Any, /) -> Result:
        await self._wait()
        return Result.error("not now") if self.refuses else SUCCESS

    async def _wait(self) -> Result:
        for _ in range(self.turns):
            await asyncio.sleep(0)
        return SUCCESS


class Move(NamedTuple):
    """A move that was stored: when it was decided, and when it was stored."""

    name: str
    decided: float
    stored: float


def placement(cluster: str) -> dict[str, Any]:
    return {
        "clusterAffinity": {"clusterNames": [cluster]},
        "replicaScheduling": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"},
    }


class Plane:
    """Bindings that are healthy on m1, and the scheduler that leads."""

    def __init__(self, budget: dict[str, Any], *, graceful: bool) -> None:
        self.args = {
            "lastHealthyCopy": {"enabled": False},
            "graceful": {"enabled": graceful},
            "budgets": [{"scope": "profile", "window": f"{WINDOW:g}s", **budget}],
        }
        self.by_window = "atOnce" not in budget
        self.server = LossyApiServer()
        self.server.on_stored = self.check
        self.steps = Steps()
        self.moves: list[Move] = []
        for name in NAMES:
            self._add(name)
        self.leader = self._new_leader()

    def _add(self, name: str) -> None:
        spec: dict[str, Any] = {
            "placement": placement("m1"),
            "clusters": [{"name": "m1", "replicas": REPLICAS}],
        }
        manifest = manifests.binding(name, replicas=REPLICAS, **spec)
        self.server.stored[name] = manifest
        rules = Binding.from_manifest(manifest).spec.placement
        assert rules is not None
        self.server.change(name, annotations={APPLIED: rules.to_json()})
        generation = manifest["metadata"]["generation"]
        condition = {"type": "Scheduled", "status": "True", "reason": "Success"}
        self.server.change(
            name,
            status=True,
            schedulerObservedGeneration=generation,
            lastScheduledTime="2026-01-01T00:00:00Z",
            conditions=[condition],
        )
        self._report(name)

    def _report(self, name: str) -> None:
        """Report a binding as healthy wherever it is."""
        items = [
            {
                "clusterName": each["name"],
                "applied": True,
                "health": "Healthy",
                "status": {"readyReplicas": 9},
            }
            for each in self.server.stored[name]["spec"]["clusters"]
        ]
        self.server.change(name, status=True, aggregatedStatus=items)

    def _new_leader(self) -> SchedulerHarness:
        made = SchedulerHarness(
            self.steps,
            server=self.server,
            made=lambda handle: [make(PlacementGuard, self.args, handle=handle)],
        )
        made.sleep(self.server.now)
        self.server.event = lambda manifest: self.server.events.append((self.server.now, manifest))
        self.server.deliver = lambda each: made.handlers.on_event("ResourceBinding", "MODIFIED", each)
        self.server.events.clear()
        for manifest in list(self.server.stored.values()):
            made.handlers.on_event("ResourceBinding", "ADDED", manifest)
        return made

    # --- events ---

    def edit(self, name: str, cluster: str) -> None:
        self.server.change(name, placement=placement(cluster))
        self.server.watch()

    def edit_others(self, cluster: str) -> None:
        """Edit all bindings of which nothing is under way."""
        busy = {each.name for each in (*self.server.sent, *self.server.processed)}
        busy |= {manifest["metadata"]["name"] for _, manifest in self.server.events}
        for name in NAMES:
            if name not in busy:
                self.edit(name, cluster)

    def silent_edit(self, name: str, cluster: str) -> None:
        """Edit a binding; the watch is late."""
        self.server.change(name, placement=placement(cluster))

    def process(self, number: int) -> None:
        self._with(self.server.sent, number, self.server.process)

    def answer(self, number: int) -> None:
        self._with([*self.server.processed, *self.server.sent], number, self.server.answer)

    def lose(self, number: int) -> None:
        self._with([*self.server.processed, *self.server.sent], number, self.server.lose)

    def drop(self, number: int) -> None:
        self._with(self.server.sent, number, self.server.drop)

    def _with(self, requests: list[Request], number: int, act: Callable[[Request], None]) -> None:
        if requests:
            act(requests[number % len(requests)])

    def watch(self, count: int) -> None:
        self.server.watch(count)

    def control(self, name: str) -> None:
        """Let Karmada report a binding, and stamp or end its tasks."""
        self._report(name)
        tasks = self.server.stored[name]["spec"].get("gracefulEvictionTasks") or []
        stamped = [{**task, "creationTimestamp": "2026-01-02T00:00:00Z"} for task in tasks]
        if tasks:
            self.server.change(name, gracefulEvictionTasks=[] if tasks == stamped else stamped)

    def turns(self, count: int) -> None:
        self.steps.turns = count

    def refuse(self, refuses: bool) -> None:
        self.steps.refuses = refuses

    def sleep(self, seconds: float) -> None:
        self.server.now += seconds
        self.leader.sleep(seconds)
        for request in list(self.server.sent):
            if self.server.now - request.sent > LATEST:
                self.server.drop(request)
        while self.server.events and self.server.now - self.server.events[0][0] > LATEST:
            self.server.watch(1)

    def change_leader(self, is_processed: bool) -> None:
        """Let another process lead; requests under way are carried out before it lists, or never."""
        self.leader.leads = False
        for request in list(self.server.sent):
            if is_processed:
                self.server.process(request)
            self.server.drop(request)
        self.leader = self._new_leader()

    # --- laws ---

    def check(self, request: Request) -> None:
        """Check the budget after a patch was stored."""
        text = request.body["annotations"].get(LAST_MOVE)
        if not text:
            return
        start = datetime.fromisoformat("2026-01-02T00:00:00Z").timestamp()
        decided = datetime.fromisoformat(json.loads(text)["moves"][-1]["at"]).timestamp() - start
        self.moves.append(Move(request.name, decided, self.server.now))
        if not self.by_window:
            assert len(self.leaving()) <= LIMIT, self.leaving()
            return
        for move in self.moves:
            before = [
                each
                for each in self.moves
                if each.decided <= move.decided
                and (each.decided > move.decided - WINDOW or each.stored > move.decided)
            ]
            assert len(before) <= LIMIT, before

    def leaving(self) -> list[str]:
        return [name for name in NAMES if self.server.stored[name]["spec"].get("gracefulEvictionTasks")]

    async def settle(self) -> None:
        """Let everything that is under way end."""
        self.refuse(False)
        self.turns(0)
        for _ in range(4):
            await self.leader.run()
            for request in [*self.server.processed, *self.server.sent]:
                self.server.answer(request)
            await self.leader.run()
            self.server.watch()
            for name in NAMES:
                self.control(name)
            self.server.watch()

    async def check_end(self) -> None:
        """Check that nothing counts when nothing moves, and that all bindings move in the end."""
        await self.settle()
        self.sleep(LOST_SECONDS + WINDOW + 1)
        await self.settle()
        for _ in range(4 * len(NAMES)):
            self.sleep(WINDOW + 1)
            await self.settle()
        moved = len(self.moves)
        away = {name: "m2" if self._is_on(name, "m1") else "m1" for name in NAMES}
        for name, cluster in away.items():
            self.edit(name, cluster)
        await self.leader.run()
        assert len(self.server.sent) == LIMIT, "a budget is used up although nothing moves"
        for _ in range(2 * len(NAMES)):
            await self.settle()
            self.sleep(WINDOW + 1)
        assert all(self._is_on(name, cluster) for name, cluster in away.items())
        assert len(self.moves) == moved + len(NAMES)

    def _is_on(self, name: str, cluster: str) -> bool:
        return [each["name"] for each in self.server.stored[name]["spec"]["clusters"]] == [cluster]


number = st.integers(0, 4)
name_of, cluster_of = st.sampled_from(NAMES), st.sampled_from(("m1", "m2"))
REQUESTS = st.one_of(
    st.tuples(st.just("process"), number),
    st.tuples(st.just("answer"), number),
    st.tuples(st.sampled_from(("lose", "lose", "drop")), number),
)
EDITS = st.one_of(
    st.tuples(st.just("edit_others"), st.sampled_from(("m1", "m2", "m2"))),
    st.tuples(st.sampled_from(("edit", "silent_edit")), name_of, cluster_of),
)
OTHERS = st.one_of(
    st.tuples(st.just("watch"), st.integers(1, 4)),
    st.tuples(st.just("control"), name_of),
    st.tuples(st.just("turns"), st.integers(0, 5)),
    st.tuples(st.just("refuse"), st.booleans()),
    st.tuples(st.just("sleep"), st.sampled_from((0.1, 5.0, WINDOW + 1, 59.0))),
    st.tuples(st.just("change_leader"), st.booleans()),
)
EVENTS = st.lists(st.one_of(REQUESTS, EDITS, REQUESTS, OTHERS), min_size=5, max_size=30)


LATE = [("lose", 0), ("edit_others", "m2"), *3 * [("process", 0)]]
"""A request is carried out after the client has given up and other bindings were decided."""
SLOW = [("sleep", WINDOW + 1), ("edit_others", "m2"), ("sleep", 1.0), *3 * [("process", 0)]]
"""Requests take longer than the window."""
GIVEN_UP = [("lose", 0), ("edit", "w0", "m1"), ("drop", 0)]
"""A move is not wanted any more after its answer was lost."""


@settings(max_examples=EXAMPLES or 40)
@example(LATE, {"bindings": LIMIT}, False)
@example(LATE, {"atOnce": LIMIT}, True)
@example(SLOW, {"bindings": LIMIT}, False)
@example(GIVEN_UP, {"bindings": LIMIT}, False)
@example(GIVEN_UP, {"atOnce": LIMIT}, True)
@given(events=EVENTS, budget=st.sampled_from(BUDGETS), graceful=st.booleans())
def test_no_more_than_the_budget_moves_and_a_budget_becomes_free_when_nothing_moves(
    events: list[tuple[Any, ...]], budget: dict[str, Any], graceful: bool
) -> None:
    async def run() -> None:
        plane = Plane(budget, graceful=graceful or "atOnce" in budget)
        await plane.leader.run()
        plane.edit_others("m2")
        await plane.leader.run()
        for event, *arguments in events:
            getattr(plane, event)(*arguments)
            await plane.leader.run()
        await plane.check_end()

    asyncio.run(run())
