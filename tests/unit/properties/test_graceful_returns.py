"""A workload that FailBack returns gracefully never has fewer ready replicas, over random sequences of events."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from karmada_scheduler.binding_cycle import status_writer
from karmada_scheduler.testing import cluster, make
from karmada_scheduler_plugins.fail_back import FailBack
from karmada_scheduler_plugins.placement_guard import PlacementGuard
from tests.conftest import EXAMPLES
from tests.unit.framework.scheduler_harness import SchedulerHarness
from tests.unit.plugins.fail_back_fleet import TAINT, terms
from tests.unit.properties.test_no_harm import ARGS, CLUSTERS, NAMES, REPLICAS, SimulatedPlane

WAIT = 60
STEP = 31.0
RETURNS = {"stabilizationSeconds": WAIT, "checkSeconds": 10, "maxSeconds": 2 * WAIT, "atOnce": 2}


class ReturningPlane(SimulatedPlane):
    """Bindings that prefer m1, then m2, then m3, with PlacementGuard and FailBack."""

    def __init__(self, *, duplicated: bool) -> None:
        self.down: set[str] = set()
        super().__init__(duplicated=duplicated)
        for name in NAMES:
            kind = "Duplicated" if duplicated else "Divided"
            self.server.change(name, placement=terms(*CLUSTERS, kind=kind))

    def _new_leader(self) -> SchedulerHarness:
        made = SchedulerHarness(
            server=self.server,
            made=lambda handle: [
                make(PlacementGuard, ARGS, handle=handle),
                make(FailBack, RETURNS, handle=handle),
            ],
        )
        made.sleep(self.seconds)
        made.reconsiderations.start()
        for name in CLUSTERS:
            self._send(made, name)
        return made

    def _send(self, leader: SchedulerHarness, name: str) -> None:
        self.version += 1
        manifest = cluster(name).manifest()
        manifest["metadata"] |= {"resourceVersion": str(self.version), "generation": self.version}
        if name in self.down:
            manifest["spec"] |= {"taints": TAINT}
        leader.handlers.on_event("Cluster", "MODIFIED", manifest)

    def fail(self, name: str) -> None:
        """Let a cluster take nothing more."""
        self.down.add(name)
        self._send(self.leader, name)

    def recover(self, name: str) -> None:
        self.down.discard(name)
        self._send(self.leader, name)

    def fail_over(self, name: str) -> None:
        """Evict a binding because its cluster fails."""
        for each in self.server.stored[name]["spec"].get("clusters") or ():
            self.fail(each["name"])
        self.evict(name)

    async def settle(self) -> None:
        await self.leader.reconsiderations.look()
        await super().settle()

    async def check_end(self) -> None:
        """Let all failures end, and check that all bindings are back in their first term."""
        for name in CLUSTERS:
            self.recover(name)
        for _ in range(40):
            await self.settle()
            for name in CLUSTERS:
                self.become_ready(name)
            self.sleep(STEP)
        for name in NAMES:
            manifest = self.server.stored[name]
            assert [each["name"] for each in manifest["spec"]["clusters"]] == ["m1"], f"{name} did not return"
            assert not manifest["spec"].get("gracefulEvictionTasks"), f"{name} still leaves a cluster"
            assert manifest["status"]["schedulerObservingAffinityName"] == "on-m1"
            assert manifest["status"]["conditions"][0]["status"] == "True"
            assert self.total(name) == REPLICAS


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
        st.tuples(st.just("fail_over"), name_of),
        st.tuples(st.just("evict"), name_of),
        st.tuples(st.just("conflict")),
        st.tuples(st.just("become_ready"), cluster_of),
        st.tuples(st.just("become_ready"), cluster_of, st.just(1)),
        st.tuples(st.just("sleep"), st.just(STEP)),
        st.tuples(st.just("change_leader")),
    ),
    max_size=14,
)
RETURN: list[tuple[Any, ...]] = [
    ("fail_over", "w0"),
    ("become_ready", "m2"),
    ("recover", "m1"),
    *4 * [("sleep", STEP)],
]


@settings(max_examples=EXAMPLES or 40)
@given(events=EVENTS, duplicated=st.booleans())
@example([*RETURN, ("become_ready", "m1", 1), ("sleep", STEP), ("become_ready", "m1")], False)
@example([*RETURN, ("change_leader",), ("become_ready", "m1")], True)
@example([*RETURN, ("fail_over", "w0"), ("become_ready", "m1"), ("sleep", STEP)], False)
def test_never_below_within_the_budget_and_back_in_the_end(
    events: list[tuple[Any, ...]], duplicated: bool
) -> None:
    async def run() -> None:
        plane = ReturningPlane(duplicated=duplicated)
        await plane.settle()
        plane.become_ready("m1")
        for event, *arguments in events:
            getattr(plane, event)(*arguments)
            await plane.settle()
        await plane.check_end()

    asyncio.run(run())
