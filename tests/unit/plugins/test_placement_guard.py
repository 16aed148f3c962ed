"""PlacementGuard: what it holds, keeps and writes, in the real loop on a fake API server."""

from __future__ import annotations

import json
from typing import Any

import pytest

from karmada_pyscheduler.scheduler.resync import SETTLE_SECONDS
from karmada_scheduler.api.binding import Binding
from karmada_scheduler.config.problems import ConfigError
from karmada_scheduler.framework import SUCCESS, GuardContext, Result
from karmada_scheduler.testing import BindingBuilder, binding, cluster, decide, make
from karmada_scheduler_plugins._guard_moves import Move, move_of, unready_target
from karmada_scheduler_plugins.placement_guard import PlacementGuard
from tests import manifests
from tests.unit.fakes import FakeApiServer
from tests.unit.framework.plugins import plugin, with_in_tree
from tests.unit.framework.scheduler_harness import SchedulerHarness

LAST_MOVE = "pyscheduler.karmada.io/last-move"
APPLIED = "policy.karmada.io/applied-placement"
HELD = "pyscheduler.karmada.io/held"
DIVIDED = {
    "replicaScheduling": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"}
}
HEALTHY = {"applied": True, "health": "Healthy"}


def to(*names: str, **more: Any) -> dict[str, Any]:
    return {"clusterAffinity": {"clusterNames": list(names)}, **DIVIDED, **more}


class Guarded(SchedulerHarness):
    """A scheduler with PlacementGuard, and bindings that are scheduled on m1 and healthy there."""

    _version = 100
    """The last resourceVersion of a cluster."""

    def __init__(self, server: FakeApiServer | None = None, **args: Any) -> None:
        super().__init__(made=lambda handle: [make(PlacementGuard, args, handle=handle)], server=server)

    def on_m1(self, name: str = "web", *, healthy: bool = True, **spec: Any) -> None:
        """Add a binding that is scheduled on m1 by its applied placement."""
        spec = {"placement": to("m1"), "clusters": [{"name": "m1", "replicas": 2}], **spec}
        self.put(name, **spec)
        placement = Binding.from_manifest(self.server.stored[name]).spec.placement
        assert placement is not None
        self.server.change(name, annotations={APPLIED: placement.to_json()})
        status = {
            "schedulerObservedGeneration": self.manifest(name)["metadata"]["generation"],
            "lastScheduledTime": "2026-01-01T00:00:00Z",
            "conditions": [{"type": "Scheduled", "status": "True", "reason": "Success"}],
        }
        self.server.change(name, status=True, **status)
        if healthy:
            self.report(name, m1=2)

    def report(self, name: str = "web", **ready: int) -> None:
        """Report a workload as healthy on clusters, with its ready replicas."""
        items = [
            {"clusterName": cluster, **HEALTHY, "status": {"readyReplicas": count}}
            for cluster, count in ready.items()
        ]
        self.server.change(name, status=True, aggregatedStatus=items)

    def ready(self, name: str, status: str, *, taint: str = "") -> None:
        """Let a cluster report whether it is Ready, at a time long ago, and taint it."""
        manifest = cluster(name).manifest()
        self._version += 1
        manifest["metadata"] |= {"resourceVersion": str(self._version), "generation": self._version}
        manifest["spec"]["taints"] = [{"key": taint, "effect": "NoSchedule"}] if taint else []
        condition = {"type": "Ready", "status": status, "lastTransitionTime": "2026-01-01T00:00:00Z"}
        manifest["status"]["conditions"] = [condition]
        self.handlers.on_event("Cluster", "MODIFIED", manifest)

    async def on_m1_and_edit(self, **spec: Any) -> None:
        """Add a binding that is scheduled on m1 and healthy there, and change its spec."""
        self.on_m1()
        await self.edit(**spec)

    async def edit(self, name: str = "web", **spec: Any) -> None:
        self.server.change(name, **spec)
        await self.run()

    def manifest(self, name: str = "web") -> dict[str, Any]:
        return self.server.stored[name]

    def annotation(self, key: str, name: str = "web") -> Any:
        text = self.manifest(name)["metadata"].get("annotations", {}).get(key)
        return None if text is None else json.loads(text)

    def tasks(self, name: str = "web") -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.manifest(name)["spec"].get("gracefulEvictionTasks") or []
        return found


# --- nothing fits ---


@pytest.mark.parametrize(
    ("rule", "edited", "kept"),
    [
        ("keep", True, True),
        ("keep", False, True),
        ("keepUnlessPlacementChanged", True, False),
        ("keepUnlessPlacementChanged", False, True),
        ("clear", True, False),
        ("clear", False, False),
    ],
)
async def test_if_nothing_fits_the_rule_decides(rule: str, *, edited: bool, kept: bool) -> None:
    harness = Guarded(nothingFits=rule)
    harness.on_m1(placement=to("m1"))
    await harness.run()
    if edited:
        await harness.edit(placement=to("m9"))
    else:  # a rescheduling that finds the only cluster with a taint that a cluster which is new must tolerate
        task = {"fromCluster": "m1", "producer": "x", "reason": "y"}
        await harness.edit(replicas=3, gracefulEvictionTasks=[task])
    assert harness.placed() == (["m1"] if kept else [])
    assert harness.condition()[0] == "NoClusterFit"
    assert ("nothingFits is keep" in harness.condition()[1]) is kept


async def test_a_kept_binding_reports_how_many_replicas_it_has() -> None:
    harness = Guarded()
    await harness.on_m1_and_edit(placement=to("m9"), replicas=6)
    text = (
        "Kept at Guard by PlacementGuard: nothingFits is keep; it wants 6 replicas and has 2; stays on m1:2"
    )
    assert harness.condition()[1].endswith(text)


async def test_a_kept_binding_is_scheduled_when_a_cluster_fits_again() -> None:
    harness = Guarded(lastHealthyCopy={"enabled": False})
    await harness.on_m1_and_edit(placement=to("m3"))
    assert harness.placed() == ["m1"]
    harness.cluster("m3")
    await harness.run(after=400)
    assert harness.placed() == ["m3"]
    assert harness.condition()[0] == "Success"


# --- the last healthy copy ---


async def test_a_move_off_the_last_healthy_copy_waits_until_its_time_is_over() -> None:
    harness = Guarded(lastHealthyCopy={"maxWaitSeconds": 50})
    await harness.on_m1_and_edit(placement=to("m2"))
    assert harness.placed() == ["m1"]
    text = "m1 has the last healthy copy; held until it is healthy elsewhere, at most until 2026-01-02T00:00:50.000Z"
    assert harness.condition() == ("Unschedulable", f"held at Guard by PlacementGuard: {text}")
    assert harness.annotation(HELD) == {"since": "2026-01-02T00:00:00.000Z", "cause": "LastHealthyCopy"}
    await harness.run(after=31)
    assert harness.placed() == ["m1"]
    await harness.run(after=19)
    assert harness.placed() == ["m2"]
    assert harness.annotation(HELD) is None


async def test_a_wait_whose_record_cannot_be_read_begins_again() -> None:
    harness = Guarded(lastHealthyCopy={"maxWaitSeconds": 50})
    harness.on_m1()
    harness.server.change("web", annotations={HELD: "["})
    await harness.edit(placement=to("m2"))
    assert harness.annotation(HELD) == {"since": "2026-01-02T00:00:00.000Z", "cause": "LastHealthyCopy"}


async def test_a_new_leader_continues_the_wait() -> None:
    harness = Guarded(lastHealthyCopy={"maxWaitSeconds": 50})
    await harness.on_m1_and_edit(placement=to("m2"))
    later = Guarded(server=harness.server, lastHealthyCopy={"maxWaitSeconds": 50})
    later.sleep(51)
    later.handlers.on_event("ResourceBinding", "ADDED", harness.manifest())
    await later.run()
    assert later.placed() == ["m2"]


@pytest.mark.parametrize(
    "why", ["unhealthy", "another is healthy", "exclusive", "gone", "not ready", "tainted"]
)
async def test_a_move_that_loses_no_healthy_copy_does_not_wait(why: str) -> None:
    harness = Guarded()
    spec: dict[str, Any] = {}
    if why == "another is healthy":
        spec = {"clusters": [{"name": "m1", "replicas": 1}, {"name": "m2", "replicas": 1}]}
    if why == "exclusive":
        spec = {"failover": {"application": {"purgeMode": "Directly"}}}
    harness.on_m1(healthy=why != "unhealthy", **spec)
    if why == "another is healthy":
        harness.report(m1=1, m2=1)
    if why == "gone":
        harness.cluster("m1", version=2, deletionTimestamp="2026-01-01T00:00:00Z")
    if why == "not ready":
        harness.ready("m1", "Unknown")
        harness.sleep(60)
    if why == "tainted":
        harness.ready("m1", "False", taint="cluster.karmada.io/not-ready")
    await harness.edit(placement=to("m2"))
    assert harness.placed() == ["m2"]


# --- budgets ---


def budgeted(server: FakeApiServer | None = None, **budget: Any) -> Guarded:
    scope = {"scope": "namespace", "window": "10m", **budget}
    return Guarded(server, lastHealthyCopy={"enabled": False}, budgets=[scope])


async def move_all(harness: Guarded, count: int, **spec: Any) -> list[str]:
    names = [f"w{number}" for number in range(count)]
    for name in names:
        harness.on_m1(name, **spec)
    await harness.run()
    for name in names:
        harness.server.change(name, placement=to("m2"))
    await harness.run()
    return names


def moved(harness: Guarded) -> int:
    return sum(harness.placed(name) == ["m2"] for name in harness.server.stored)


async def test_at_most_so_many_bindings_move_in_a_window_and_all_in_the_end() -> None:
    harness = budgeted(bindings=2)
    await move_all(harness, 5)
    seen = [moved(harness)]
    for _ in range(6):
        await harness.run(after=301)
        seen.append(moved(harness))
    assert seen == [2, 2, 4, 4, 5, 5, 5]
    assert len(harness.queue) == harness.queue.delayed == 0


async def test_a_held_move_names_the_budget_and_comes_back_after_the_window() -> None:
    harness = budgeted(bindings=1)
    await move_all(harness, 2)
    text = "moving 2 of 2 replicas is held by the budget namespace demo (1 bindings in 10m)"
    assert harness.condition("w1") == ("Unschedulable", f"held at Guard by PlacementGuard: {text}")
    assert harness.queue.seconds_to_next() == 600.0


async def test_of_several_budgets_the_one_with_the_longest_wait_counts() -> None:
    budgets = [
        {"scope": "profile", "bindings": 1, "window": "5m"},
        {"scope": "namespace", "bindings": 1, "window": "20m"},
    ]
    harness = Guarded(lastHealthyCopy={"enabled": False}, budgets=budgets)
    await move_all(harness, 2)
    assert "held by the budget namespace demo (1 bindings in 20m)" in harness.condition("w1")[1]
    assert harness.queue.seconds_to_next() == 1200.0


async def test_a_move_that_is_almost_within_the_budget_waits_for_a_second() -> None:
    harness = budgeted(bindings=1)
    await move_all(harness, 1)
    harness.on_m1()
    harness.sleep(599.5)
    await harness.edit(placement=to("m2"))
    assert harness.placed() == ["m1"]
    assert harness.queue.seconds_to_next() == 1.0


ONE_REPLICA: dict[str, Any] = {"replicas": 1, "clusters": [{"name": "m1", "replicas": 1}]}


@pytest.mark.parametrize(
    ("budget", "count", "spec", "expected"),
    [
        pytest.param({"replicas": 5}, 4, {}, 2, id="replicas have a budget of their own"),
        pytest.param({"replicas": 1}, 2, {}, 1, id="a move larger than the budget is let through alone"),
        pytest.param({"percent": 50}, 4, {}, 2, id="percent is of all replicas of the scope"),
        pytest.param({"percent": 20}, 9, ONE_REPLICA, 1, id="of 10 replicas it would be 2"),
    ],
)
async def test_a_budget_of_replicas_counts_those_that_move(
    budget: dict[str, Any], count: int, spec: dict[str, Any], expected: int
) -> None:
    harness = budgeted(**budget)
    await move_all(harness, count, **spec)
    assert moved(harness) == expected


async def test_a_binding_that_left_and_was_deleted_does_not_count() -> None:
    harness = Guarded(graceful={"enabled": True}, budgets=[{"scope": "namespace", "atOnce": 1}])
    await move_all(harness, 2)
    assert [moved(harness), len(harness.tasks("w0"))] == [1, 1]
    manifest = harness.manifest("w0")
    manifest["metadata"]["resourceVersion"] = str(int(manifest["metadata"]["resourceVersion"]) + 1)
    harness.handlers.on_event("ResourceBinding", "DELETED", manifest)
    await harness.run(after=31)
    assert harness.placed("w1") == ["m2"]


async def test_a_new_leader_has_the_same_books() -> None:
    harness = budgeted(bindings=1)
    await move_all(harness, 3)
    later = budgeted(harness.server, bindings=1)
    later.sleep(300)
    for manifest in list(harness.server.stored.values()):
        later.handlers.on_event("ResourceBinding", "ADDED", manifest)
    await later.run()
    assert moved(later) == 1
    await later.run(after=301)
    assert moved(later) == 2


@pytest.mark.parametrize("why", ["scale down", "scale up", "first", "evicted", "gone", "unhealthy", "urgent"])
async def test_what_is_no_move_or_exempt_needs_no_budget(why: str) -> None:
    budget = {"scope": "profile", "bindings": 1}
    harness = Guarded(lastHealthyCopy={"enabled": False}, budgets=[budget], exemptPriorityAbove=5)
    harness.on_m1("other")
    await harness.edit("other", placement=to("m2"))
    assert harness.placed("other") == ["m2"]  # the budget is spent
    if why == "first":
        await harness.put_and_run(placement=to("m2"))
    else:
        spec: dict[str, Any] = {"schedulePriority": {"priority": 6}} if why == "urgent" else {}
        harness.on_m1(healthy=why != "unhealthy", **spec)
        await harness.run()
    if why == "scale down":
        await harness.edit(replicas=1)
        assert harness.manifest()["spec"]["clusters"] == [{"name": "m1", "replicas": 1}]
        return
    if why == "scale up":
        await harness.edit(replicas=5)
        assert harness.manifest()["spec"]["clusters"] == [{"name": "m1", "replicas": 5}]
        return
    if why == "evicted":
        task = {"fromCluster": "m1", "producer": "TaintManager", "reason": "TaintUntolerated"}
        await harness.edit(clusters=[], gracefulEvictionTasks=[task], placement=to("m1", "m2"))
    if why == "gone":
        harness.cluster("m1", version=2, deletionTimestamp="2026-01-01T00:00:00Z")
        await harness.edit(placement=to("m2"))
    if why in ("unhealthy", "urgent"):
        await harness.edit(placement=to("m2"))
    assert harness.placed() == ["m2"]


async def test_a_binding_with_the_priority_of_the_exemption_is_not_exempt() -> None:
    budget = {"scope": "profile", "bindings": 1}
    harness = Guarded(lastHealthyCopy={"enabled": False}, budgets=[budget], exemptPriorityAbove=5)
    await move_all(harness, 2, schedulePriority={"priority": 5})
    assert moved(harness) == 1


UNREADABLE = (
    "[" * 100_000,
    '{"moves":' + "[" * 10_000,
    '{"moves":[{"at":"2026-01-02T00:00:00Z","replicas":1e999}]}',
    '{"moves":[{"at":"2026-01-02T00:00:00Z","replicas":-1000000}]}',
    '{"moves":[{"at":"2026-01-02T00:00:00Z","replicas":2147483648}]}',
    '{"moves":[{"at":"2026-01-02T00:00:00","replicas":1}]}',
    '{"moves":[{"at":"2026-01-02T00:00:00Z","replicas":true}]}',
    '{"moves":[' + ",".join(21 * ['{"at":"2026-01-02T00:00:00Z","replicas":0}']) + "]}",
    '{"moves":[],"x":"' + 16_384 * "x" + '"}',
    "{}",
    "null",
)


@pytest.mark.parametrize("text", UNREADABLE)
@pytest.mark.parametrize("budget", [{"bindings": 2}, {"replicas": 4}, {"atOnce": 2}])
async def test_a_record_that_cannot_be_read_changes_nothing_for_other_bindings(
    text: str, budget: dict[str, int]
) -> None:
    harness = Guarded(graceful={"enabled": True}, budgets=[{"scope": "namespace", **budget}])
    harness.put("odd", placement=to("m9"), clusters=[{"name": "m9", "replicas": 2}], replicas=2)
    harness.server.change("odd", annotations={LAST_MOVE: text, HELD: text})
    await move_all(harness, 4)
    assert moved(harness) == 2


async def test_a_binding_whose_record_cannot_be_read_waits_for_one_window() -> None:
    harness = budgeted(bindings=1)
    harness.on_m1()
    harness.server.change("web", annotations={LAST_MOVE: "?", HELD: "?"})
    await harness.edit(placement=to("m2"))
    assert harness.placed() == ["m1"]
    await harness.run(after=601)
    assert harness.placed() == ["m2"]
    assert [each["replicas"] for each in harness.annotation(LAST_MOVE)["moves"]] == [2]


@pytest.mark.parametrize("at", ["9999-12-31T00:00:00Z", "2026-01-03T00:00:00Z"])
async def test_a_move_in_the_future_counts_for_one_window_from_when_it_was_first_seen(at: str) -> None:
    harness = budgeted(bindings=1)
    harness.on_m1("skewed")
    record = {"moves": [{"at": at, "replicas": 2}], "from": ["m9"], "cause": "x"}
    harness.server.change("skewed", annotations={LAST_MOVE: json.dumps(record)})
    await move_all(harness, 1)
    await harness.run(after=599)
    assert moved(harness) == 0
    await harness.run(after=2)
    assert moved(harness) == 1


async def test_a_move_off_many_clusters_has_a_record_of_bounded_length() -> None:
    names = [f"cluster-with-a-long-name-{number:022}" for number in range(400)]
    harness = budgeted(bindings=1)
    for name in names:
        harness.cluster(name)
    harness.on_m1(
        placement={"clusterAffinity": {"clusterNames": names}},
        clusters=[{"name": name, "replicas": 2} for name in names],
    )
    harness.report("web", **dict.fromkeys(names, 2))
    await harness.edit(placement={"clusterAffinity": {"clusterNames": ["m2"]}})
    assert harness.placed() == ["m2"]
    assert len(harness.annotation(LAST_MOVE)["from"]) == 100


async def test_the_moves_of_a_binding_within_the_window_are_all_recorded() -> None:
    harness = budgeted(bindings=5)
    await harness.on_m1_and_edit(placement=to("m2"))
    harness.report(m2=2)
    harness.sleep(60)
    await harness.edit(placement=to("m1"))
    assert harness.annotation(LAST_MOVE) == {
        "moves": [
            {"at": "2026-01-02T00:00:00.000Z", "replicas": 2},
            {"at": "2026-01-02T00:01:00.000Z", "replicas": 2},
        ],
        "from": ["m2"],
        "cause": "PlacementChanged",
    }


# --- graceful moves ---


def graceful(**fields: Any) -> Guarded:
    return Guarded(graceful={"enabled": True, **fields})


async def test_a_move_is_graceful_and_does_not_wait_for_a_healthy_copy() -> None:
    harness = graceful(gracePeriodSeconds=60)
    await harness.on_m1_and_edit(placement=to("m2"))
    assert harness.placed() == ["m2"]
    assert harness.tasks() == [
        {
            "fromCluster": "m1",
            "purgeMode": "Gracefully",
            "reason": "PlacementChanged",
            "message": "moved to m2 by PlacementGuard of the profile ours",
            "producer": "ours",
            "replicas": 2,
            "gracePeriodSeconds": 600,  # the wait of the last healthy copy is longer
        }
    ]
    assert harness.condition()[0] == "Success"


async def test_the_generation_is_observed_when_all_replicas_are_ready() -> None:
    harness = graceful()
    await harness.on_m1_and_edit(placement=to("m2"))
    before = harness.manifest()["status"]["schedulerObservedGeneration"]
    assert before < harness.manifest()["metadata"]["generation"]
    stamped = [{**harness.tasks()[0], "creationTimestamp": "2026-01-02T00:00:00Z"}]
    await harness.edit(gracefulEvictionTasks=stamped)
    for ready in (0, 1):
        harness.report(m1=2, m2=ready)
        await harness.run()
        assert harness.manifest()["status"]["schedulerObservedGeneration"] == before
    harness.report(m1=2, m2=2)
    await harness.run()
    now = harness.manifest()
    assert now["status"]["schedulerObservedGeneration"] == now["metadata"]["generation"]


async def test_the_generation_is_observed_when_the_task_has_ended() -> None:
    harness = graceful()
    await harness.on_m1_and_edit(placement=to("m2"))
    await harness.edit(gracefulEvictionTasks=[])
    now = harness.manifest()
    assert now["status"]["schedulerObservedGeneration"] == now["metadata"]["generation"]


@pytest.mark.parametrize(
    ("why", "args", "modes"),
    [
        ("a failover that must not run two copies", {}, []),
        ("the same, with exclusive", {"exclusive": "Directly"}, ["Directly"]),
        ("a scale-down that empties a cluster", {}, []),
        ("the same, with onScaleDown", {"onScaleDown": "graceful"}, ["Gracefully"]),
        ("an unhealthy copy", {}, ["Gracefully"]),
        ("the same, with onlyHealthy", {"onlyHealthy": True}, []),
        ("a cluster that is being deleted", {}, []),
    ],
)
async def test_when_a_task_is_written(why: str, args: dict[str, Any], modes: list[str]) -> None:
    case = why
    if "same" in why:
        case = {"exclusive": "failover", "onScaleDown": "scale-down", "onlyHealthy": "unhealthy"}[
            next(iter(args))
        ]
    harness = graceful(**args)
    spec: dict[str, Any] = (
        {"failover": {"cluster": {"purgeMode": "Immediately"}}} if "failover" in case else {}
    )
    if "scale-down" in case:
        spec = {
            "clusters": [{"name": "m1", "replicas": 1}, {"name": "m2", "replicas": 1}],
            "placement": to("m1", "m2"),
        }
    harness.on_m1(healthy="unhealthy" not in case, **spec)
    await harness.run()
    if "deleted" in case:
        harness.cluster("m1", version=2, deletionTimestamp="2026-01-01T00:00:00Z")
    if "scale-down" in case:
        await harness.edit(replicas=1)
        assert len(harness.placed()) == 1
    else:
        await harness.edit(placement=to("m2"))
        assert harness.placed() == ["m2"]
    assert [task["purgeMode"] for task in harness.tasks()] == modes


async def test_a_partial_move_is_immediate_unless_it_is_held() -> None:
    weights = {
        "weightPreference": {
            "staticWeightList": [
                {"targetCluster": {"clusterNames": ["m1"]}, "weight": 1},
                {"targetCluster": {"clusterNames": ["m2"]}, "weight": 3},
            ]
        }
    }
    weighted = {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted", **weights}
    even: dict[str, Any] = {
        "replicas": 4,
        "clusters": [{"name": "m1", "replicas": 2}, {"name": "m2", "replicas": 2}],
    }
    for partial in ("immediate", "hold"):
        harness = graceful(partial=partial, maxHoldSeconds=40)
        harness.on_m1(placement=to("m1", "m2"), **even)
        harness.report(m1=2, m2=2)
        await harness.edit(placement=to("m1", "m2", replicaScheduling=weighted))
        counts = {each["name"]: each["replicas"] for each in harness.manifest()["spec"]["clusters"]}
        assert counts == ({"m1": 1, "m2": 3} if partial == "immediate" else {"m1": 2, "m2": 2})
        assert harness.tasks() == []
        await harness.run(after=31)
        await harness.run(after=31)
        counts = {each["name"]: each["replicas"] for each in harness.manifest()["spec"]["clusters"]}
        assert counts == {"m1": 1, "m2": 3}


async def test_the_replicas_of_a_partial_move_are_those_that_another_cluster_gets() -> None:
    harness = graceful(partial="hold")
    harness.on_m1(replicas=4, clusters=[{"name": "m1", "replicas": 4}])
    harness.report(m1=4)
    even = {
        "replicaSchedulingType": "Divided",
        "replicaDivisionPreference": "Weighted",
        "weightPreference": {
            "staticWeightList": [
                {"targetCluster": {"clusterNames": [name]}, "weight": 1} for name in ("m1", "m2")
            ]
        },
    }
    await harness.edit(replicas=2, placement=to("m1", "m2", replicaScheduling=even))
    assert "1 replicas would leave clusters that stay" in harness.condition()[1]


@pytest.mark.parametrize("kind", ["duplicated", "without replicas"])
async def test_a_workload_that_leaves_whole_clusters_is_not_held_as_a_partial_move(kind: str) -> None:
    harness = graceful(partial="hold")
    spec: dict[str, Any] = {"placement": {"clusterAffinity": {"clusterNames": ["m1"]}}}
    if kind == "without replicas":
        spec |= {"replicas": 0, "replicaRequirements": None, "clusters": [{"name": "m1"}]}
    harness.on_m1(**spec)
    await harness.edit(placement={"clusterAffinity": {"clusterNames": ["m2"]}})
    assert harness.placed() == ["m2"]
    assert [task["fromCluster"] for task in harness.tasks()] == ["m1"]
    record = harness.annotation(LAST_MOVE)
    assert (record["from"], record["moves"][0]["replicas"]) == (["m1"], 2 if kind == "duplicated" else 0)


@pytest.mark.parametrize("status", [{"generation": 3}, {"observedGeneration": 2}])
async def test_a_status_with_one_of_two_generations_is_ready(status: dict[str, int]) -> None:
    harness = graceful()
    await harness.on_m1_and_edit(placement=to("m2"))
    item = {"clusterName": "m2", **HEALTHY, "status": {"readyReplicas": 2, **status}}
    stamped = [{**harness.tasks()[0], "creationTimestamp": "2026-01-02T00:00:00Z"}]
    await harness.edit(gracefulEvictionTasks=stamped)
    now = harness.manifest()
    assert now["status"]["schedulerObservedGeneration"] < now["metadata"]["generation"]
    harness.server.change("web", status=True, aggregatedStatus=[item])
    await harness.run()
    now = harness.manifest()
    assert now["status"]["schedulerObservedGeneration"] == now["metadata"]["generation"]


async def test_tasks_that_may_still_be_stamped_stop_no_graceful_move() -> None:
    harness = graceful()
    for name in ("first", "second", "third"):
        harness.on_m1(name)
        await harness.edit(name, placement=to("m2"))
        assert [task["fromCluster"] for task in harness.tasks(name)] == ["m1"]


async def test_tasks_that_were_not_stamped_count_if_an_earlier_one_was() -> None:
    harness = graceful()
    harness.on_m1("earlier")
    stamp = {"fromCluster": "m9", "producer": "ours", "reason": "x"}
    stamp["creationTimestamp"] = "2026-01-01T23:59:30Z"
    await harness.edit("earlier", gracefulEvictionTasks=[stamp])
    for name in ("first", "second"):
        harness.on_m1(name)
        await harness.edit(name, placement=to("m2"))
    harness.sleep(61)
    await harness.on_m1_and_edit(placement=to("m2"))
    assert harness.tasks() == []


async def left_unstamped(*names: str) -> Guarded:
    """Return a scheduler whose bindings have moved, and whose eviction tasks nobody has stamped in time."""
    harness = graceful()
    for name in names:
        harness.on_m1(name)
        await harness.edit(name, placement=to("m2"))
    harness.sleep(61)
    harness.on_m1()
    return harness


async def test_without_the_controller_that_ends_tasks_no_more_are_written() -> None:
    harness = await left_unstamped("first", "second")
    await harness.edit(placement=to("m2"))
    assert harness.tasks() == []
    assert "last healthy copy" in harness.condition()[1]
    stamped = [{**harness.tasks("first")[0], "creationTimestamp": "2026-01-02T00:01:00Z"}]
    await harness.edit("first", gracefulEvictionTasks=stamped)
    await harness.run(after=31)
    assert [task["fromCluster"] for task in harness.tasks()] == ["m1"]


async def test_one_binding_with_a_task_that_is_not_stamped_does_not_stop_graceful_moves() -> None:
    harness = await left_unstamped("first")
    await harness.edit(placement=to("m2"))
    assert [task["fromCluster"] for task in harness.tasks()] == ["m1"]


async def test_tasks_that_were_not_stamped_do_not_count_if_later_ones_were() -> None:
    harness = await left_unstamped("first", "second")
    harness.on_m1("later")
    stamped = {
        "fromCluster": "m9",
        "producer": "ours",
        "reason": "x",
        "creationTimestamp": "2026-01-02T00:01:01Z",
    }
    await harness.edit("later", gracefulEvictionTasks=[stamped])
    harness.sleep(61)
    await harness.edit(placement=to("m2"))
    assert [task["fromCluster"] for task in harness.tasks()] == ["m1"]


async def evicted_from_its_new_home(harness: Guarded, *, healthy: bool = True) -> None:
    await harness.on_m1_and_edit(placement=to("m2"))
    await harness.edit(placement=to("m1", "m2"))
    ready = {"m1": 2} if healthy else {}
    harness.report("web", **ready)
    harness.sleep(SETTLE_SECONDS)
    foreign = {"fromCluster": "m2", "producer": "TaintManager", "reason": "TaintUntolerated"}
    await harness.edit(clusters=[], gracefulEvictionTasks=[*harness.tasks(), foreign])


async def test_a_move_whose_new_home_is_evicted_is_cancelled_if_nothing_else_fits() -> None:
    harness = graceful()
    await evicted_from_its_new_home(harness)
    assert harness.placed() == ["m1"]
    assert [(task["fromCluster"], task["producer"]) for task in harness.tasks()] == [("m2", "TaintManager")]
    assert harness.condition()[0] == "Success"
    assert ("MoveCancelled", "returns to m1, because no other cluster fits") in harness.events


@pytest.mark.parametrize("why", ["off", "unhealthy"])
async def test_a_move_is_not_cancelled(why: str) -> None:
    harness = graceful(cancelMoves=why != "off")
    await evicted_from_its_new_home(harness, healthy=why != "unhealthy")
    assert harness.placed() == []
    assert len(harness.tasks()) == 2
    assert harness.condition()[0] == "NoClusterFit"


async def test_a_move_is_not_cancelled_while_the_workload_has_a_cluster() -> None:
    harness = graceful()
    await harness.on_m1_and_edit(placement=to("m2"))
    await harness.edit(placement=to("m9"))
    assert harness.placed() == ["m2"]
    assert [task["fromCluster"] for task in harness.tasks()] == ["m1"]


@pytest.mark.parametrize("count", [10, 11])
async def test_a_task_names_ten_targets(count: int) -> None:
    harness = graceful()
    names = [f"t{number:02}" for number in range(count)]
    for name in names:
        harness.cluster(name)
    harness.on_m1(placement={"clusterAffinity": {"clusterNames": ["m1"]}})
    await harness.edit(placement={"clusterAffinity": {"clusterNames": names}})
    shown = ", ".join(names[:10]) + (" and 1 more" if count > 10 else "")
    assert harness.tasks()[0]["message"].startswith(f"moved to {shown} by PlacementGuard")


async def test_the_eviction_of_others_is_never_cancelled() -> None:
    harness = graceful()
    harness.on_m1()
    foreign = {"fromCluster": "m1", "producer": "TaintManager", "reason": "TaintUntolerated"}
    await harness.edit(clusters=[], gracefulEvictionTasks=[foreign])
    assert harness.placed() == []
    assert harness.tasks() == [foreign]


# --- args ---


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        ({"nothingFits": "maybe"}, "args.nothingFits: expected one of"),
        (
            {"lastHealthyCopy": {"maxWaitSeconds": 0}},
            "args.lastHealthyCopy: maxWaitSeconds must be 1 to 86400, got 0",
        ),
        ({"graceful": {"gracePeriodSeconds": 86401}}, "args.graceful: gracePeriodSeconds must be 1 to 86400"),
        ({"budgets": [{"scope": "namespace"}]}, "args.budgets[0]: at least one limit is needed"),
        ({"budgets": [{"scope": "cluster", "bindings": 1}]}, "args.budgets[0].scope: expected one of"),
        (
            {"budgets": [{"scope": "profile", "bindings": 0}]},
            "args.budgets[0]: bindings must be at least 1, got 0",
        ),
        (
            {"budgets": [{"scope": "profile", "percent": 101}]},
            "args.budgets[0]: percent must be 1 to 100, got 101",
        ),
        (
            {"budgets": [{"scope": "profile", "bindings": 1, "window": "9s"}]},
            "args.budgets[0]: window must be 10s to 24h",
        ),
        (
            {"budgets": [{"scope": "profile", "bindings": 1}] * 2},
            "args: budgets: the scope profile occurs more than once",
        ),
        ({"holdEvictions": True}, "args.holdEvictions: unknown field"),
    ],
)
def test_invalid_args_are_refused_with_their_path(args: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError) as raised:
        make(PlacementGuard, args)
    assert problem in str(raised.value)


def test_args_at_the_ends_of_their_ranges_are_accepted() -> None:
    for seconds in (1, 86_400):
        make(
            PlacementGuard,
            {
                "lastHealthyCopy": {"maxWaitSeconds": seconds},
                "graceful": {"gracePeriodSeconds": seconds, "maxHoldSeconds": seconds},
            },
        )
    for window, percent in (("10s", 1), ("24h", 100)):
        limits = {"bindings": 1, "replicas": 1, "percent": percent, "atOnce": 1}
        make(PlacementGuard, {"budgets": [{"scope": "policy", "window": window, **limits}]})


# --- what moves ---


def moves(before: BindingBuilder, *clusters: str) -> Move:
    """Return what a decision about a binding moves, with these clusters."""
    seen: list[GuardContext] = []

    def guard(context: GuardContext) -> Result:
        seen.append(context)
        return SUCCESS

    decide(before, *map(cluster, clusters), plugins=with_in_tree(plugin("G", guard=guard)))
    (context,) = seen
    return move_of(context)


def test_replicas_of_a_cluster_that_is_gone_do_not_move() -> None:
    before = binding("web").replicas(4).static_weights().on(m1=2, m2=2)
    assert moves(before, "m2", "m3").is_move is False


def test_replicas_that_leave_with_their_cluster_are_no_partial_move() -> None:
    before = binding("web").names("m2", "m3").replicas(4).static_weights().on(m1=2, m2=2)
    move = moves(before, "m1", "m2", "m3")
    assert (move.replicas, move.partial) == (2, 0)


@pytest.mark.parametrize(
    ("status", "problem"),
    [({"readyReplicas": 1}, "m1 has 1 of 2 ready replicas"), ({"phase": "Running"}, "")],
)
def test_replicas_are_compared_for_kinds_whose_status_has_them(status: dict[str, Any], problem: str) -> None:
    task = {"fromCluster": "m2", "producer": "ours"}
    manifest = manifests.binding(clusters=[{"name": "m1", "replicas": 2}], gracefulEvictionTasks=[task])
    manifest["spec"]["resource"] |= {"apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet"}
    manifest["status"] = {"aggregatedStatus": [{"clusterName": "m1", **HEALTHY, "status": status}]}
    assert unready_target(Binding.from_manifest(manifest)) == problem
