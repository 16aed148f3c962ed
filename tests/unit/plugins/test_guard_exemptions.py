"""What PlacementGuard exempts, each time together with an ordinary move: the rest of the decision is held as without it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from karmada_pyscheduler.scheduler.resync import SETTLE_SECONDS
from karmada_scheduler.framework import SUCCESS, GuardContext, Result
from karmada_scheduler.testing import binding, cluster, decide
from karmada_scheduler_plugins._cluster_outages import LOST_SECONDS
from karmada_scheduler_plugins._guard_moves import move_of
from tests.unit.framework.plugins import plugin, with_in_tree
from tests.unit.plugins.test_placement_guard import LAST_MOVE, Guarded, to

DUPLICATED = {"replicaScheduling": {"replicaSchedulingType": "Duplicated"}}
BOTH: list[dict[str, Any]] = [{"name": "m1", "replicas": 2}, {"name": "m4", "replicas": 2}]
ONE = {"lastHealthyCopy": {"enabled": False}, "budgets": [{"scope": "profile", "bindings": 1}]}
HOLD = {"graceful": {"enabled": True, "partial": "hold"}}


def at(*names: str, **more: Any) -> dict[str, Any]:
    return {"clusterAffinity": {"clusterNames": list(names)}, **DUPLICATED, **more}


class Fleet(Guarded):
    """A scheduler with PlacementGuard, and Duplicated bindings that are healthy on m1 and m4."""

    def __init__(self, **args: Any) -> None:
        super().__init__(**args)
        for name in ("m3", "m4"):
            self.cluster(name)

    def on_both(self, name: str, *, healthy: tuple[str, ...] = ("m1", "m4"), **spec: Any) -> None:
        self.on_m1(name, placement=at("m1", "m4"), clusters=BOTH, **spec)
        self.report(name, **dict.fromkeys(healthy, 2))

    async def run(self, *, after: float = 0.0) -> None:
        """Let the loop run, and the search for the bindings that changed clusters concern."""
        search = asyncio.create_task(self.handlers.run())
        await super().run(after=after)
        search.cancel()

    def unjoin(self, name: str) -> None:
        self.cluster(name, version=9, deletionTimestamp="2026-01-01T00:00:00Z")


async def left(harness: Fleet, *names: str, **placement: Any) -> list[str]:
    """Edit the policy of bindings, so that they have to leave m1, and return those that have left it."""
    for name in names:
        harness.server.change(name, placement=placement or at("m2"))
    await harness.run()
    return [name for name in names if "m1" not in harness.placed(name)]


NAMES = ("w0", "w1", "w2", "w3")


async def settled(add: Callable[[Fleet, str], None]) -> Fleet:
    """Return a fleet with four bindings and a budget of one move."""
    harness = Fleet(**ONE)
    for name in NAMES:
        add(harness, name)
    await harness.run()
    return harness


@pytest.mark.parametrize("how", ["is being deleted", "is gone"])
async def test_a_cluster_that_goes_lifts_no_budget_for_what_leaves_others(how: str) -> None:
    harness = await settled(Fleet.on_both)
    harness.unjoin("m4")
    if how == "is gone":
        harness.handlers.on_event(
            "Cluster",
            "DELETED",
            {**cluster("m4").manifest(), "metadata": {"name": "m4", "resourceVersion": "10"}},
        )
    await harness.run()
    assert await left(harness, *NAMES) == ["w0"]
    assert [harness.placed(name) for name in NAMES[1:]] == [["m1"]] * 3  # without the cluster that goes
    assert "held by the budget profile (1 bindings in 10m)" in harness.condition("w1")[1]


async def test_a_cluster_that_goes_in_the_middle_of_moves_takes_nobody_along() -> None:
    harness = await settled(Fleet.on_both)
    assert await left(harness, *NAMES) == ["w0"]
    harness.unjoin("m4")
    await harness.run()
    assert [harness.placed(name) for name in NAMES[1:]] == [["m1"]] * 3
    for moved in (2, 3, 4):
        await harness.run(after=601)
        assert sum(harness.placed(name) == ["m2"] for name in NAMES) == moved


async def test_a_cluster_that_goes_does_not_end_the_wait_for_the_last_healthy_copy() -> None:
    harness = Fleet()
    harness.on_both("web", healthy=("m1",))
    await harness.run()
    harness.unjoin("m4")
    await harness.run()
    assert await left(harness, "web") == []
    assert harness.placed() == ["m1"]
    assert "m1 has the last healthy copy" in harness.condition()[1]


async def test_a_cluster_that_goes_does_not_let_a_partial_move_through() -> None:
    harness = Fleet(**HOLD)
    halves = [{"targetCluster": {"clusterNames": [name]}, "weight": 1} for name in ("m1", "m2")]
    weighted = {
        "replicaSchedulingType": "Divided",
        "replicaDivisionPreference": "Weighted",
        "weightPreference": {"staticWeightList": halves},
    }
    harness.on_m1(placement=to("m1", "m4"), replicas=6, clusters=[{"name": "m1", "replicas": 4}, BOTH[1]])
    harness.report(m1=4, m4=2)
    await harness.run()
    harness.unjoin("m4")
    await harness.edit(placement=to("m1", "m2", replicaScheduling=weighted))
    assert harness.manifest()["spec"]["clusters"] == [{"name": "m1", "replicas": 4}]
    assert "1 replicas would leave clusters that stay" in harness.condition()[1]


async def test_what_only_leaves_a_cluster_that_goes_needs_no_budget_and_uses_none_up() -> None:
    harness = Fleet(**ONE)
    for name in NAMES:
        harness.on_both(name)
    harness.on_m1("web")
    await harness.run()
    harness.unjoin("m4")
    for name in NAMES:
        harness.server.change(name, placement=at("m1", "m2"))
    await harness.run()
    assert [harness.placed(name) for name in NAMES] == [["m1", "m2"]] * 4
    assert not any(harness.annotation(LAST_MOVE, name) for name in NAMES)
    await harness.edit(placement=to("m2"))
    assert harness.placed() == ["m2"]


def test_replicas_that_are_fewer_because_a_cluster_goes_hide_no_move() -> None:
    seen: list[GuardContext] = []

    def guard(context: GuardContext) -> Result:
        seen.append(context)
        return SUCCESS

    before = binding("web").names("m2").replicas(2).static_weights().on(m1=2, m4=2)
    fleet = [cluster("m1"), cluster("m2"), cluster("m4").deleting()]
    decide(before, *fleet, plugins=with_in_tree(plugin("G", guard=guard)))
    (context,) = seen
    assert context.gone == {"m4"}
    assert move_of(context).replicas == 2


# --- a state of one moment ---


@pytest.mark.parametrize("status", ["Unknown", "False"])
async def test_a_cluster_that_is_not_ready_for_a_moment_lifts_no_budget(status: str) -> None:
    harness = await settled(Fleet.on_m1)
    harness.ready("m1", status)
    assert await left(harness, *NAMES, **to("m2")) == ["w0"]


async def test_several_short_outages_are_no_long_one() -> None:
    harness = await settled(Fleet.on_m1)
    harness.ready("m1", "Unknown")
    assert await left(harness, *NAMES, **to("m2")) == ["w0"]
    harness.sleep(LOST_SECONDS - 1)
    harness.ready("m1", "True")
    harness.ready("m1", "Unknown")
    harness.sleep(LOST_SECONDS - 1)
    assert await left(harness, *NAMES, **to("m2", "m9")) == ["w0"]


@pytest.mark.parametrize("how", ["for a minute", "with a taint of Karmada"])
async def test_what_is_healthy_on_lost_clusters_only_moves_at_once_and_uses_up_no_budget(how: str) -> None:
    harness = Fleet(**ONE)
    for name in NAMES:
        harness.on_m1(name)
    harness.on_m1("web", clusters=[{"name": "m3", "replicas": 2}], placement=to("m3"))
    harness.report("web", m3=2)
    await harness.run()
    if how == "for a minute":
        for status in ("False", "Unknown"):  # each report changes the cluster
            harness.ready("m1", status)
            harness.sleep(LOST_SECONDS / 2)
    else:
        harness.ready("m1", "False", taint="cluster.karmada.io/unreachable")
    assert await left(harness, *NAMES, **to("m2")) == list(NAMES)
    await harness.edit(placement=to("m2"))
    assert harness.placed() == ["m2"]


async def test_a_cluster_is_lost_a_minute_after_the_clock_was_set_back() -> None:
    harness = await settled(Fleet.on_m1)
    harness.ready("m1", "Unknown")
    harness.time_of_day -= timedelta(days=1)
    assert await left(harness, *NAMES, **to("m2")) == ["w0"]
    harness.sleep(LOST_SECONDS)
    assert await left(harness, *NAMES, **to("m2", "m9")) == list(NAMES)


async def test_a_taint_of_a_person_does_not_make_a_cluster_lost() -> None:
    harness = await settled(Fleet.on_m1)
    harness.ready("m1", "True", taint="maintenance")
    assert await left(harness, *NAMES, **to("m2")) == ["w0"]


async def test_a_cluster_that_is_not_ready_for_a_moment_is_left_gracefully() -> None:
    harness = Fleet(graceful={"enabled": True, "onlyHealthy": True})
    harness.on_m1()
    await harness.run()
    harness.ready("m1", "Unknown")
    await harness.edit(placement=to("m2"))
    assert [task["fromCluster"] for task in harness.tasks()] == ["m1"]


async def test_a_cluster_that_stays_and_is_not_ready_for_a_moment_is_no_healthy_copy() -> None:
    harness = Fleet()
    harness.on_both("web")
    await harness.run()
    harness.ready("m4", "Unknown")
    assert await left(harness, "web", **at("m2", "m4")) == []


async def test_a_workload_returns_to_a_cluster_that_is_not_ready_for_a_moment_if_nothing_else_fits() -> None:
    harness = Guarded(graceful={"enabled": True})
    await harness.on_m1_and_edit(placement=to("m2"))
    await harness.edit(placement=to("m1", "m2"))
    harness.report(m1=2)
    harness.ready("m1", "Unknown")
    harness.sleep(SETTLE_SECONDS)
    foreign = {"fromCluster": "m2", "producer": "TaintManager", "reason": "TaintUntolerated"}
    await harness.edit(clusters=[], gracefulEvictionTasks=[*harness.tasks(), foreign])
    assert harness.placed() == ["m1"]


# --- what is exempt uses up nothing ---


@pytest.mark.parametrize("limit", [{"bindings": 1}, {"replicas": 2}, {"atOnce": 1}])
@pytest.mark.parametrize("why", ["unhealthy", "urgent"])
async def test_an_exempt_move_uses_up_no_budget_of_others(why: str, limit: dict[str, int]) -> None:
    harness = Fleet(
        graceful={"enabled": True}, budgets=[{"scope": "profile", **limit}], exemptPriorityAbove=5
    )
    for name in NAMES:
        spec: dict[str, Any] = {"schedulePriority": {"priority": 6}} if why == "urgent" else {}
        harness.on_m1(name, healthy=why != "unhealthy", **spec)
    harness.on_m1("web")
    harness.on_m1("other")
    await harness.run()
    assert await left(harness, *NAMES, **to("m2")) == list(NAMES)
    assert [len(harness.tasks(name)) for name in NAMES] == [1] * 4
    assert len(await left(harness, "web", "other", **to("m2"))) == 1


async def test_an_exempt_move_keeps_the_record_of_those_that_count() -> None:
    harness = Fleet(**ONE)
    harness.on_m1()
    harness.on_m1("other")
    await harness.edit(placement=to("m2"))
    harness.report()  # healthy nowhere
    await harness.edit(placement=to("m3"))
    assert harness.placed() == ["m3"]
    assert len(harness.annotation(LAST_MOVE)["moves"]) == 1
    assert await left(harness, "other", **to("m2")) == []


async def test_the_record_of_old_moves_goes_with_the_next_write() -> None:
    harness = Fleet(**ONE)
    await harness.on_m1_and_edit(placement=to("m2"))
    harness.report(m2=2)
    harness.sleep(599)
    await harness.edit(replicas=3)
    assert len(harness.annotation(LAST_MOVE)["moves"]) == 1
    harness.sleep(2)
    await harness.edit(replicas=4)
    assert harness.annotation(LAST_MOVE) is None


async def test_the_record_of_a_move_stays_as_long_as_its_eviction_task() -> None:
    harness = Fleet(graceful={"enabled": True}, budgets=[{"scope": "profile", "atOnce": 1, "window": "10s"}])
    harness.on_m1()
    harness.on_m1("other")
    await harness.edit(placement=to("m2"))
    harness.report(m2=2)
    harness.sleep(11)
    await harness.edit(replicas=3)
    assert harness.annotation(LAST_MOVE) is not None
    assert await left(harness, "other", **to("m2")) == []
    await harness.edit(gracefulEvictionTasks=[], replicas=4)
    assert harness.annotation(LAST_MOVE) is None


async def test_a_binding_in_deletion_does_not_count_as_one_that_leaves_clusters_now() -> None:
    harness = Fleet(graceful={"enabled": True}, budgets=[{"scope": "profile", "atOnce": 1}])
    harness.on_m1("dying")
    harness.on_m1()
    await harness.edit("dying", placement=to("m2"))
    assert await left(harness, "web", **to("m2")) == []
    harness.manifest("dying")["metadata"]["deletionTimestamp"] = "2026-01-02T00:00:00Z"
    harness.server.change("dying", annotations={"x": "y"})
    await harness.run(after=31)
    assert harness.placed() == ["m2"]
