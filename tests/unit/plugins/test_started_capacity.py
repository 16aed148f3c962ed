"""StartedCapacity: what is evidence, and what moves, in the real loop on a fake API server."""

from __future__ import annotations

import logging
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from karmada_pyscheduler.scheduler.resync import SETTLE_SECONDS
from karmada_scheduler.api.binding import BindingKey
from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.config.problems import ConfigError
from karmada_scheduler.testing import make
from karmada_scheduler_plugins.started_capacity import MOST_AT_ONCE, StartedCapacity
from tests.unit.framework.plugins import plugin
from tests.unit.plugins.started_fleet import AGGREGATED, COOL_DOWN, DYNAMIC, START, TRIAL, Fleet
from tools.simulation.members import Member

STATIC = {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted"}
DUPLICATED = {"replicaSchedulingType": "Duplicated"}
SOON = 15
"""Proposals are looked for every five seconds, and a move may need a second one."""


def overstated(**args: Any) -> Fleet:
    """Return a fleet in which m1 has 4 cpu that Pods can use of 100, and m2 has 20."""
    return Fleet({"m1": Member([4], closed=96), "m2": Member([20])}, **args)


def full(**args: Any) -> Fleet:
    """Return a fleet in which each of two clusters has 4 cpu that Pods can use of 100."""
    return Fleet({name: Member([4], closed=96) for name in ("m1", "m2")}, **args)


async def waiting_on_m1(**args: Any) -> Fleet:
    """Return a fleet with evidence that m1 has no capacity for 8 cpu; one replica waits there, and m2 cannot take it."""
    fleet = Fleet({"m1": Member([4], closed=96), "m2": Member([1])}, **args)
    fleet.deploy("large", replicas=1, cpu=8)
    await fleet.pass_(START)
    assert fleet.shares("large") == {"m1": 1}
    fleet.members["m2"].closed = 99
    return fleet


# --- moves ---


@pytest.mark.parametrize("scheduling", [DYNAMIC, AGGREGATED])
async def test_what_waits_moves_in_one_write_and_what_runs_stays(scheduling: Any) -> None:
    fleet = overstated()
    fleet.deploy(replicas=12, scheduling=scheduling)
    await fleet.pass_(START - 5)
    assert fleet.running() < 12
    assert fleet.moves() == 0
    await fleet.pass_(SOON)
    assert fleet.shares() == {"m1": 4, "m2": 8}
    assert (fleet.running(), fleet.moves()) == (12, 1)
    texts = [text for reason, text in fleet.events if reason == "NotStarted"]
    assert [text.partition(" ")[2] for text in texts] == [
        "replicas that have not started leave their clusters"
    ]
    await fleet.pass_(2000)
    assert fleet.moves() == 1


async def test_without_the_plugin_what_waits_stays() -> None:
    fleet = overstated(startSeconds=86_400, moveAfterSeconds=86_400)
    fleet.deploy(replicas=12)
    await fleet.pass_(1000)
    assert (fleet.running() < 12, fleet.moves()) == (True, 0)


@pytest.mark.parametrize("scheduling", [STATIC, DUPLICATED])
async def test_what_is_not_divided_by_available_replicas_is_no_evidence_and_does_not_move(
    scheduling: Any,
) -> None:
    fleet = overstated()
    fleet.deploy(replicas=12, scheduling=scheduling)
    await fleet.pass_(300)
    assert (fleet.moves(), len(fleet.plugin._evidence.known)) == (0, 0)


async def test_a_binding_of_another_scheduler_is_no_evidence() -> None:
    fleet = overstated()
    fleet.deploy(replicas=12, clusters=[{"name": "m1", "replicas": 12}], schedulerName="theirs")
    await fleet.pass_(300)
    assert len(fleet.plugin._evidence.known) == 0


async def test_where_not_all_fit_half_as_many_move_and_later_more() -> None:
    fleet = Fleet({"m1": Member([4], closed=96), "m2": Member([6])})
    fleet.deploy(replicas=12, scheduling=AGGREGATED)
    await fleet.pass_(START + SOON)
    assert fleet.shares() == {"m1": 8, "m2": 4}
    await fleet.pass_(COOL_DOWN + SOON)
    assert fleet.shares() == {"m1": 6, "m2": 6}
    assert fleet.running() == 10
    await fleet.pass_(2000)
    assert fleet.moves() == 2


async def test_a_binding_moves_at_most_once_per_cool_down() -> None:
    fleet = Fleet({name: Member([2], closed=98) for name in ("m1", "m2", "m3", "m4")})
    fleet.members["m4"] = Member([20])
    fleet.deploy(replicas=12, scheduling=AGGREGATED)
    times, moves = list[float](), 0
    for _ in range(200):
        await fleet.pass_(5)
        if fleet.moves() > moves:
            moves = fleet.moves()
            times.append(fleet.now)
    assert fleet.running() == 12
    assert all(later - earlier >= COOL_DOWN for earlier, later in pairwise(times))
    assert 1 <= len(times) <= 3


async def test_a_move_that_has_to_wait_for_karmadas_cache_is_made_right_after_that() -> None:
    fleet = Fleet({"m1": Member([4], closed=96), "m2": Member([20]), "m3": Member([3])})
    shares = {"m1": 8, "m2": 2, "m3": 2}
    fleet.deploy(replicas=12, clusters=[{"name": name, "replicas": share} for name, share in shares.items()])
    await fleet.pass_(START - 5)
    fleet.sleep(5)
    shares |= {"m2": 1, "m3": 3}
    fleet.server.change("web", clusters=[{"name": name, "replicas": each} for name, each in shares.items()])
    await fleet.pass_()
    assert fleet.shares() == shares
    await fleet.run(after=SETTLE_SECONDS)
    assert fleet.shares() == {"m1": 4, "m2": 5, "m3": 3}


async def test_nothing_moves_to_and_fro_between_full_clusters() -> None:
    fleet = full()
    fleet.deploy(replicas=12)
    await fleet.pass_(START + 5)
    assert fleet.running() == 8
    await fleet.pass_(3 * 3600)
    assert fleet.running() == 8
    assert fleet.moves() <= 1


async def test_replicas_that_wait_find_out_about_another_cluster_once_and_then_try_one_at_a_time() -> None:
    fleet = full()
    fleet.deploy(replicas=12, scheduling=AGGREGATED)
    await fleet.pass_(START + 5)
    assert fleet.running() == 8
    moved = fleet.moves()
    assert moved == 1
    await fleet.pass_(3 * 3600)
    assert fleet.running() == 8
    assert fleet.moves() <= 2


async def moved_as_a_trial() -> Fleet:
    """Return a fleet in which a replica of 4 cpu, for which no cluster has capacity, has just come back to the first one."""
    fleet = Fleet({name: Member([8], closed=92) for name in ("m1", "m2", "m3")})
    for name in fleet.members:
        fleet.put(
            f"full-{name}",
            replicas=8,
            replicaRequirements={"resourceRequest": {"cpu": "1"}},
            placement={"clusterAffinity": {"clusterNames": [name]}, "replicaScheduling": DYNAMIC},
        )
    await fleet.pass_()
    fleet.deploy(replicas=1, cpu=4, scheduling=AGGREGATED)
    while fleet.moves() < 3:
        await fleet.pass_(5)
    return fleet


async def test_a_binding_that_has_moved_as_a_trial_stays_although_another_one_is_due() -> None:
    fleet = await moved_as_a_trial()
    await fleet.pass_(TRIAL - 10)
    assert fleet.moves() == 3
    await fleet.pass_(SOON)
    assert fleet.moves() == 4


async def test_a_binding_that_has_moved_as_a_trial_moves_after_the_cool_down_if_pods_have_ended() -> None:
    fleet = await moved_as_a_trial()
    freed = next(name for name in fleet.members if name not in fleet.shares())
    fleet.server.change(f"full-{freed}", replicas=4)
    await fleet.pass_(COOL_DOWN + SOON)
    assert fleet.running() == 1


async def test_pauses_between_trials_grow_although_evidence_ends_meanwhile() -> None:
    fleet = full()
    fleet.deploy(replicas=12, scheduling=AGGREGATED)
    await fleet.pass_(START + 5)
    begun = fleet.moves()
    moves = []
    for _ in range(4):
        await fleet.pass_(3000)
        moves.append(fleet.moves() - begun)
    assert moves[-1] - moves[0] <= 6


async def test_budgets_of_placement_guard_count_moves() -> None:
    budgets = [{"scope": "profile", "window": "10m", "bindings": 1}]
    fleet = Fleet({"m1": Member([4], closed=96), "m2": Member([40])}, guard={"budgets": budgets})
    for name in ("one", "two"):
        fleet.deploy(name, replicas=8)
    await fleet.pass_(START + 60)
    assert fleet.moves("one") + fleet.moves("two") == 1
    assert fleet.reconsiderations.waiting == 1
    await fleet.pass_(600)
    assert fleet.moves("one") + fleet.moves("two") == 2
    assert fleet.running("one") + fleet.running("two") == 16


@pytest.mark.parametrize("protects", [True, False])
async def test_with_overcommit_protection_two_bindings_do_not_move_to_the_same_capacity(
    *, protects: bool
) -> None:
    gates = FeatureGates({"SchedulingOvercommitProtection": protects})
    fleet = Fleet({"m1": Member([4], closed=96), "m2": Member([9]), "m3": Member([8])}, gates=gates)
    for name in ("one", "two"):
        fleet.deploy(name, replicas=8, scheduling=AGGREGATED)
    await fleet.pass_(START - 5)
    assert fleet.shares("one") == fleet.shares("two") == {"m1": 8}
    await fleet.pass_(SOON)
    assert [fleet.moves(name) for name in ("one", "two")] == [1, 1]
    assert (fleet.running("one") + fleet.running("two") == 16) == protects


# --- where moves go ---


@pytest.mark.parametrize(("cpu", "target"), [(2, "m3"), (1, "m1")])
async def test_what_waits_avoids_clusters_on_which_requests_up_to_four_times_as_large_wait(
    cpu: int, target: str
) -> None:
    fleet = Fleet({"m1": Member([7], closed=200), "m2": Member([4], closed=96), "m3": Member([40])})
    fleet.deploy(replicas=6, cpu=cpu, scheduling=AGGREGATED, clusters=[{"name": "m2", "replicas": 6}])
    only_m1 = {"clusterAffinity": {"clusterNames": ["m1"]}, "replicaScheduling": AGGREGATED}
    requirements = {"resourceRequest": {"cpu": "8"}}
    fleet.put("large", replicas=1, replicaRequirements=requirements, placement=only_m1)
    await fleet.pass_(START + SOON)
    assert fleet.shares("large") == {"m1": 1}
    assert fleet.shares() == {"m2": 4 // cpu, target: 6 - 4 // cpu}


async def test_what_waits_goes_there_if_no_other_cluster_takes_it() -> None:
    fleet = Fleet({"m1": Member([3], closed=200), "m2": Member([1])})
    fleet.deploy("large", replicas=1, cpu=4, scheduling=AGGREGATED)
    fleet.deploy("web", replicas=1, cpu=3, scheduling=AGGREGATED, clusters=[{"name": "m2", "replicas": 1}])
    await fleet.pass_(START + SOON)
    assert (fleet.shares(), fleet.running()) == ({"m1": 1}, 1)


# --- what is evidence ---


async def test_a_slow_image_is_no_evidence() -> None:
    fleet = overstated()
    fleet.members["m1"].nodes = [100]
    fleet.members["m1"].pulls = True
    fleet.deploy(replicas=12)
    await fleet.pass_(1000)
    assert (fleet.moves(), len(fleet.plugin._evidence.known)) == (0, 0)


@pytest.mark.parametrize(("seconds", "goes"), [(START - 5, True), (START, False)])
async def test_waiting_is_evidence_after_start_seconds(seconds: int, *, goes: bool) -> None:
    fleet = full()
    fleet.members["m2"].closed = 0
    fleet.deploy("large", replicas=1, cpu=8)
    await fleet.pass_(seconds)
    fleet.members["m2"].nodes = [99]
    fleet.deploy("second", replicas=4, cpu=8)
    await fleet.run()
    fleet.report()
    await fleet.run()
    assert ("m1" in fleet.shares("second")) == goes


async def test_a_roll_out_that_progresses_is_no_evidence() -> None:
    fleet = overstated()
    fleet.deploy(replicas=30, scheduling=AGGREGATED)
    for _ in range(10):
        await fleet.pass_(START - 15)
        fleet.members["m1"].nodes[0] += 1
    assert (fleet.moves(), len(fleet.plugin._evidence.known)) == (0, 0)


@pytest.mark.parametrize(
    ("cpu", "spec", "goes"),
    [
        pytest.param(8, {}, False, id="the same"),
        pytest.param(16, {}, False, id="larger"),
        pytest.param(7, {}, True, id="smaller"),
        pytest.param(8, {"nodeClaim": {"nodeSelector": {"gpu": "yes"}}}, True, id="other nodes"),
        pytest.param(8, {"priorityClassName": "high"}, True, id="another priority class"),
    ],
)
async def test_evidence_holds_for_the_same_request_and_larger_ones(
    cpu: int, spec: dict[str, Any], *, goes: bool
) -> None:
    fleet = await waiting_on_m1()
    requirements = {"resourceRequest": {"cpu": str(cpu), "memory": "1Gi"}, **spec}
    fleet.put(
        "second",
        replicas=2,
        replicaRequirements=requirements,
        placement={"clusterAffinity": {"clusterNames": ["m1"]}, "replicaScheduling": DYNAMIC},
    )
    await fleet.run()
    assert (fleet.shares("second") == {"m1": 2}) == goes
    if not goes:
        assert fleet.condition("second")[0] == "Unschedulable"


NONSENSE = [
    pytest.param({"observedGeneration": 1, "replicas": 12, "readyReplicas": -1}, id="negative"),
    pytest.param({"observedGeneration": 1, "replicas": -12}, id="a negative total"),
    pytest.param({"observedGeneration": 1, "replicas": 12, "readyReplicas": 13}, id="more than there are"),
    pytest.param({"observedGeneration": 1, "replicas": 13, "readyReplicas": 1}, id="more than the share"),
    pytest.param({"observedGeneration": 1, "generation": 2, "replicas": 12}, id="an older generation"),
    pytest.param({"observedGeneration": 1, "replicas": 12, "updatedReplicas": 3}, id="a roll-out"),
    pytest.param({"observedGeneration": 1, "replicas": 12, "readyReplicas": "1"}, id="a text"),
    pytest.param({}, id="nothing"),
    pytest.param([], id="a list"),
]


@pytest.mark.parametrize("status", NONSENSE)
async def test_reports_that_cannot_be_right_are_no_evidence(status: Any) -> None:
    fleet = overstated()
    fleet.members["m1"].nonsense = status
    fleet.deploy(replicas=12, scheduling=AGGREGATED)
    await fleet.pass_(300)
    assert fleet.shares() == {"m1": 12}
    assert len(fleet.plugin._evidence.known) == 0


async def test_replicas_that_no_pod_waits_for_are_no_evidence() -> None:
    fleet = overstated()
    fleet.deploy(replicas=12, scheduling=AGGREGATED)
    fleet.members["m1"].nodes = [100]
    fleet.members["m1"].nonsense = {"observedGeneration": 1, "replicas": 4, "readyReplicas": 4}
    await fleet.pass_(300)
    assert (fleet.moves(), len(fleet.plugin._evidence.known)) == (0, 0)


async def test_only_as_many_replicas_move_as_wait_for_a_node() -> None:
    fleet = Fleet({"m1": Member([10], closed=90), "m2": Member([20])})
    fleet.members["m1"].nonsense = {"observedGeneration": 1, "replicas": 12, "readyReplicas": 4}
    fleet.deploy(replicas=12, scheduling=AGGREGATED)
    await fleet.pass_(START + SOON)
    assert fleet.shares() == {"m1": 10, "m2": 2}, "six of eight have a node, and their image may be slow"


async def test_all_that_waits_is_known_before_the_first_of_it_moves() -> None:
    fleet = full()
    for name, cluster_name in (("one", "m1"), ("two", "m2")):
        clusters = [{"name": cluster_name, "replicas": 8}]
        fleet.deploy(name, replicas=8, scheduling=AGGREGATED, clusters=clusters)
    await fleet.pass_(START - 5)
    fleet.sleep(10)
    found = fleet.handle.binding(BindingKey("ResourceBinding", "demo", "two"))
    assert found is not None
    fleet.plugin.propose(found)
    assert {*fleet.plugin._evidence.known} == {"m1", "m2"}


async def test_one_call_looks_at_so_many_bindings_of_those_that_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    fleet = full()
    fleet.deploy(replicas=8, scheduling=AGGREGATED)
    await fleet.pass_(START - 5)
    known, looked_at = fleet.plugin._waits[BindingKey("ResourceBinding", "demo", "web")], list[BindingKey]()
    for number in range(2 * MOST_AT_ONCE):
        fleet.plugin._waits[BindingKey("ResourceBinding", "demo", f"b{number}")] = known
    found = fleet.handle.binding(BindingKey("ResourceBinding", "demo", "web"))
    assert found is not None
    monkeypatch.setattr(fleet.handle.known, "get", looked_at.append)
    fleet.sleep(10)
    fleet.plugin.propose(found)
    assert len(looked_at) == MOST_AT_ONCE


async def test_what_is_known_is_reported_with_its_age_until_the_next_move_may_be_made() -> None:
    fleet = await waiting_on_m1()
    await fleet.pass_(60)
    refusal = fleet.reconsiderations.refusal(BindingKey("ResourceBinding", "demo", "large"))
    assert refusal is not None
    plugin_name, reason, due_in = refusal
    assert (plugin_name, due_in) == ("StartedCapacity", COOL_DOWN - 60)
    assert "Clusters available replicas 0 are not enough" in reason
    assert reason.endswith("; such replicas waited for a node on m1 0 s ago")
    await fleet.pass_(COOL_DOWN)
    fleet.server.change("large", clusters=[])
    assert fleet.reconsiderations.refusal(BindingKey("ResourceBinding", "demo", "large")) is None


# --- the end of evidence ---


async def test_evidence_ends_when_a_replica_starts() -> None:
    fleet = await waiting_on_m1()
    await fleet.pass_(10)
    assert len(fleet.plugin._evidence.known) >= 1
    fleet.members["m1"].nodes, fleet.members["m1"].closed = [40], 60
    await fleet.pass_(5)
    assert fleet.running("large") == 1
    assert len(fleet.plugin._evidence.known) == 0


async def test_a_replica_that_was_ready_before_is_no_start() -> None:
    fleet = overstated()
    fleet.deploy("steady", replicas=4, scheduling=AGGREGATED)
    await fleet.pass_(5)
    fleet.deploy(replicas=10, scheduling=AGGREGATED)
    fleet.members["m2"].nodes = [0]
    await fleet.pass_(START + SOON)
    assert len(fleet.plugin._evidence.known) == 1
    for ready in (3, 4):
        status = {"observedGeneration": 1, "replicas": 4, "readyReplicas": ready}
        item = {"clusterName": "m1", "applied": True, "status": status}
        fleet.server.change("steady", status=True, aggregatedStatus=[item])
        assert len(fleet.plugin._evidence.known) == 1


@pytest.mark.parametrize("change", ["allocatable", "ready"])
async def test_evidence_ends_and_the_wait_begins_again_when_the_nodes_change(change: str) -> None:
    fleet = await waiting_on_m1()
    assert len(fleet.plugin._evidence.known) == 1
    if change == "ready":
        fleet.members["m1"].nodes, fleet.members["m1"].closed = [4, 1], 95
    else:
        fleet.members["m1"].closed += 10
    fleet.members["m2"].closed = 0
    await fleet.pass_(START - 5)
    assert len(fleet.plugin._evidence.known) == 0
    await fleet.pass_(5)
    assert len(fleet.plugin._evidence.known) == 1


async def test_evidence_stays_when_nodes_are_lost() -> None:
    fleet = await waiting_on_m1()
    fleet.members["m1"].nodes, fleet.members["m1"].closed = [4], 80
    fleet.members["m2"].nodes, fleet.members["m2"].closed = [20], 0
    await fleet.pass_(5)
    assert len(fleet.plugin._evidence.known) == 1
    fleet.deploy("second", replicas=1, cpu=8, scheduling=AGGREGATED)
    await fleet.run()
    assert fleet.shares("second") == {"m2": 1}


async def test_what_evicted_pods_leave_on_lost_nodes_is_not_given_again() -> None:
    fleet = Fleet({"m1": Member([8, 4], closed=96), "m2": Member([4]), "m3": Member([20], closed=0)})
    for name, replicas in (("first", 2), ("second", 1)):
        fleet.deploy(name, replicas=replicas, cpu=8, clusters=[{"name": "m1", "replicas": replicas}])
    fleet.server.change(
        "second", placement={"clusterAffinity": {"clusterNames": ["m1"]}, "replicaScheduling": DYNAMIC}
    )
    await fleet.pass_(START)
    for pod in fleet.members["m1"].pods:
        pod.node = None
    fleet.members["m1"].nodes, fleet.members["m1"].closed = [4], 104
    fleet.members["m3"].nodes = [8]
    await fleet.pass_(5)
    fleet.deploy("third", replicas=1, cpu=8, scheduling=AGGREGATED)
    await fleet.pass_(5)
    assert fleet.shares("third") == {}


async def test_a_cluster_gets_one_replica_after_a_pause_and_then_after_twice_the_pause() -> None:
    fleet = overstated()
    fleet.deploy(replicas=12, scheduling=AGGREGATED)
    await fleet.pass_(START + SOON)
    assert fleet.shares() == {"m1": 4, "m2": 8}
    fleet.members["m2"].nodes = [8]
    begun = fleet.now
    await fleet.pass_(TRIAL - 30)
    fleet.deploy("second", replicas=1, scheduling=AGGREGATED)
    await fleet.pass_(0)
    assert fleet.shares("second") == {}, "no cluster has capacity as far as is known"
    await fleet.pass_(begun + TRIAL - fleet.now)
    fleet.deploy("third", replicas=1, scheduling=AGGREGATED)
    fleet.deploy("fourth", replicas=1, scheduling=AGGREGATED)
    await fleet.run()
    given = [fleet.shares(name) for name in ("second", "third", "fourth")]
    assert sorted(map(len, given)) == [0, 0, 1]
    assert {"m1": 1} in given


async def test_what_pods_that_ended_have_left_is_given_again() -> None:
    fleet = overstated()
    fleet.deploy(replicas=12, scheduling=AGGREGATED)
    await fleet.pass_(START + SOON)
    fleet.members["m2"].nodes = [8]
    fleet.server.change("web", replicas=9)
    await fleet.pass_(5)
    freed = 4 - fleet.shares()["m1"]
    assert freed > 0
    fleet.members["m2"].nodes = [fleet.shares()["m2"]]
    await fleet.pass_(5)
    fleet.deploy("second", replicas=freed, scheduling=AGGREGATED)
    fleet.deploy("third", replicas=freed + 1, scheduling=AGGREGATED)
    await fleet.pass_(5)
    assert fleet.running("second") == freed
    assert fleet.shares("third") == {}


async def test_what_is_known_of_a_cluster_or_a_binding_ends_with_it(caplog: pytest.LogCaptureFixture) -> None:
    fleet = await waiting_on_m1()
    assert [*fleet.plugin._waits] == [BindingKey("ResourceBinding", "demo", "large")]
    await fleet.pass_(10)
    assert fleet.plugin._moves
    manifest = fleet.server.stored["large"]
    with caplog.at_level(logging.ERROR):
        fleet.handlers.on_event("ResourceBinding", "DELETED", manifest)
        assert not fleet.plugin._waits
        assert not fleet.plugin._moves
        assert len(fleet.plugin._evidence.known) >= 1, "it outlives the replicas that waited"
        fleet.handlers.on_event("Cluster", "DELETED", fleet.members["m1"].manifest("m1", 1000))
        fleet.handlers.on_event("Cluster", "DELETED", fleet.members["m2"].manifest("m2", 1000))
    assert len(fleet.plugin._evidence.known) == 0
    assert caplog.text == ""


async def test_a_binding_that_another_scheduler_gets_is_forgotten() -> None:
    fleet = await waiting_on_m1()
    fleet.server.change("large", schedulerName="theirs")
    assert not fleet.plugin._waits


async def test_after_a_restart_the_waits_begin_again_and_lead_to_the_same() -> None:
    before = overstated()
    before.deploy(replicas=12, scheduling=AGGREGATED)
    await before.pass_(START - 5)
    after = Fleet(before.members, server=before.server)
    for manifest in list(before.server.stored.values()):
        after.handlers.on_event("ResourceBinding", "ADDED", manifest)
    await after.pass_(START - 5)
    assert (after.moves(), len(after.plugin._evidence.known)) == (0, 0)
    await after.pass_(SOON)
    assert after.shares() == {"m1": 4, "m2": 8}


async def test_a_clock_that_is_set_back_begins_the_waits_again() -> None:
    fleet = overstated()
    fleet.deploy(replicas=12, scheduling=AGGREGATED)
    await fleet.pass_(START - 5)
    fleet.sleep(-3600)
    fleet.now += 3600
    await fleet.pass_(START - 5)
    assert fleet.moves() == 0
    await fleet.pass_(SOON)
    assert fleet.shares() == {"m1": 4, "m2": 8}


# --- decisions of others ---


@pytest.mark.parametrize(
    ("targets", "moves"),
    [
        pytest.param({"m1": 3, "m2": 9}, False, id="one that runs would move"),
        pytest.param({"m1": 12}, False, id="all would stay"),
        pytest.param({"m1": 5, "m2": 7}, False, id="one would stay where it waits"),
        pytest.param({"m1": 4, "m2": 8}, True, id="all that wait move"),
    ],
)
async def test_a_decision_that_moves_anything_else_is_declined(
    targets: dict[str, int], *, moves: bool
) -> None:
    assigns = plugin("A", assign=lambda _: targets if "m2" in fleet.placed() or fleet.now else {"m1": 12})
    fleet = overstated(more=(assigns,))
    fleet.deploy(replicas=12, scheduling=AGGREGATED)
    await fleet.pass_(START + 5)
    assert (fleet.shares() == targets and fleet.moves() == 1) == moves
    assert fleet.running() == (12 if moves else 4)


# --- args ---


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        ({"startSeconds": 0}, "args: startSeconds must be 1 to 86400, got 0"),
        ({"coolDownSeconds": 86_401}, "coolDownSeconds must be 1 to 86400, got 86401"),
        ({"trialSeconds": 0}, "trialSeconds must be 1 to 86400, got 0"),
        ({"startSeconds": 61}, "moveAfterSeconds must not be less than startSeconds"),
        ({"every": 1}, "args.every: unknown field"),
    ],
)
def test_invalid_args_are_refused_with_their_path(args: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError) as raised:
        make(StartedCapacity, args)
    assert problem in str(raised.value)


# --- laws ---


@pytest.mark.parametrize("seed", range(8))
async def test_in_any_fleet_no_move_costs_a_running_replica_and_moves_end(seed: int) -> None:
    random = Random(seed)
    fleet = Fleet(
        {
            f"m{number}": Member(
                [random.choice((2, 4, 8)) for _ in range(random.randint(1, 4))], random.choice((0, 20, 60))
            )
            for number in range(1, random.randint(3, 5))
        }
    )
    names = [f"d{number}" for number in range(random.randint(2, 6))]
    for name in names:
        scheduling = random.choice((DYNAMIC, AGGREGATED))
        fleet.deploy(
            name, replicas=random.randint(1, 12), cpu=random.choice((1, 2, 4)), scheduling=scheduling
        )
    await fleet.pass_(START - 5)
    before = sum(map(fleet.running, names))
    for _ in range(120):
        await fleet.pass_(5)
        assert sum(map(fleet.running, names)) >= before
        before = sum(map(fleet.running, names))
    moves = {name: fleet.moves(name) for name in names}
    assert max(moves.values()) <= 600 / COOL_DOWN
    await fleet.pass_(2 * 3600)
    later = {name: fleet.moves(name) - moves[name] for name in names}
    assert max(later.values()) <= len(fleet.members), "some try another cluster once more"
