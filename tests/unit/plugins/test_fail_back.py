"""FailBack: when a binding returns to an earlier affinity term, in the real loop on a fake API server."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from karmada_pyscheduler.scheduler.resync import SETTLE_SECONDS
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api_error import ApiError
from karmada_scheduler.config.problems import ConfigError
from karmada_scheduler.framework import SUCCESS, Result
from karmada_scheduler.testing import make
from karmada_scheduler_plugins._returns import FailBackArgs
from karmada_scheduler_plugins.fail_back import FailBack
from tests import manifests
from tests.unit.fakes import CONFLICT
from tests.unit.framework.plugins import coroutine, plugin
from tests.unit.framework.scheduler_harness import SchedulerHarness
from tests.unit.plugins.fail_back_fleet import CHECK, FAIL_BACK, LAST_MOVE, WAIT, Fleet, terms


async def on_backup(*more: Any, kind: str = "Divided", checked: float = 0.0, **options: Any) -> Fleet:
    """Return a fleet with a binding that has left m1, which is back and was checked for some seconds."""
    fleet = Fleet(*more, **options)
    await fleet.start(kind=kind)
    await fleet.fail_over()
    assert (fleet.placed(), fleet.term()) == (["m2"], "on-m2")
    fleet.change("m1")
    await fleet.run()
    if checked:
        await fleet.check(checked)
    return fleet


async def successor_of(fleet: Fleet) -> Fleet:
    """Return a fleet with a new leader on the same API server."""
    fleet.server.event = lambda _: None
    new = Fleet(server=fleet.server)
    new.sleep(fleet.now)
    for manifest in list(fleet.server.stored.values()):
        new.handlers.on_event("ResourceBinding", "ADDED", manifest)
    await new.run()
    return new


# --- the wait ---


@pytest.mark.parametrize("kind", ["Divided", "Duplicated"])
async def test_a_binding_returns_after_the_wait(kind: str) -> None:
    fleet = await on_backup(kind=kind)
    assert await fleet.placed_after(WAIT - CHECK) == ["m2"]
    assert ("FailBackWaits", "the earlier term on-m1 could take it; returns after 60s without a miss") in (
        fleet.events
    )
    await fleet.check(CHECK)
    assert (fleet.placed(), fleet.term()) == (["m1"], "on-m1")
    assert fleet.condition()[0] == "Success"
    assert fleet.record_of() == {"n": 1, "at": "2026-01-02T00:01:00.000Z", "from": "on-m2", "to": "on-m1"}
    assert ("FailedBack", "returns from on-m2 to on-m1: m1:2") in fleet.events


@pytest.mark.parametrize(("seconds", "returned"), [(30, False), (None, True)])
async def test_a_cluster_whose_taint_is_tolerated_for_a_while_is_no_place_to_return_to(
    seconds: int | None, returned: bool
) -> None:
    toleration = {"operator": "Exists", "tolerationSeconds": seconds}
    fleet = Fleet()
    await fleet.put_and_run("web", placement={**terms("m1", "m2"), "clusterTolerations": [toleration]})
    await fleet.fail_over()
    fleet.change("m1", down=True, effect="NoExecute")
    await fleet.check(2 * WAIT)
    assert (fleet.placed() == ["m1"]) == returned
    fleet.change("m1")
    assert await fleet.placed_after(2 * WAIT) == ["m1"]


async def test_a_miss_begins_the_wait_again() -> None:
    fleet = await on_backup(checked=WAIT - CHECK)
    fleet.change("m1", down=True)
    await fleet.check(CHECK)
    fleet.change("m1")
    assert await fleet.placed_after(WAIT - CHECK) == ["m2"]
    assert await fleet.placed_after(2 * CHECK) == ["m1"]


async def test_a_miss_between_two_checks_is_seen_when_the_cluster_changes() -> None:
    fleet = await on_backup(checked=WAIT - CHECK)
    fleet.change("m1", down=True)
    await fleet.reconsiderations.look()
    await fleet.run()
    fleet.change("m1")
    assert await fleet.placed_after(CHECK) == ["m2"]


async def test_a_time_without_checks_does_not_count() -> None:
    fleet = await on_backup()
    await fleet.check()
    fleet.sleep(10 * WAIT)
    assert await fleet.placed_after(WAIT - CHECK) == ["m2"]


@pytest.mark.parametrize("seconds", [2 * CHECK, 86_400])
async def test_a_clock_that_is_set_back_begins_the_wait_again(seconds: int) -> None:
    fleet = await on_backup(checked=WAIT - CHECK)
    fleet.time_of_day -= timedelta(seconds=seconds)
    assert await fleet.placed_after(WAIT) == ["m2"]
    assert await fleet.placed_after(CHECK) == ["m1"]


async def test_a_second_check_at_the_same_time_does_not_begin_the_wait_again() -> None:
    fleet = await on_backup(checked=WAIT - CHECK)
    fleet.change("m1", cpu=999)
    await fleet.check()
    assert await fleet.placed_after(CHECK) == ["m1"]


async def test_a_new_leader_begins_the_wait_again() -> None:
    fleet = await on_backup(checked=WAIT - CHECK)
    fleet = await successor_of(fleet)
    assert await fleet.placed_after(WAIT - CHECK) == ["m2"]
    assert await fleet.placed_after(CHECK) == ["m1"]


# --- which term ---


async def test_a_binding_returns_to_the_first_term_that_can_take_it_and_later_to_the_one_before() -> None:
    fleet = await on_backup()
    fleet.change("m1", down=True)
    await fleet.fail_over()
    assert fleet.term() == "on-m3"
    fleet.change("m2")
    await fleet.check(WAIT)
    assert (fleet.placed(), fleet.record_of()["n"]) == (["m2"], 1)
    fleet.change("m1")
    await fleet.check(WAIT)
    assert (fleet.placed(), fleet.record_of()["n"]) == (["m1"], 1)


async def test_a_better_term_begins_a_wait_of_its_own() -> None:
    fleet = await on_backup()
    fleet.change("m1", down=True)
    await fleet.fail_over()
    fleet.change("m2")
    await fleet.check(WAIT - CHECK)
    fleet.change("m1")
    assert await fleet.placed_after(CHECK) == ["m3"]
    assert await fleet.placed_after(WAIT) == ["m1"]


async def test_terms_that_fail_are_no_failures_of_the_binding() -> None:
    fleet = await on_backup()
    fleet.change("m1", down=True)
    await fleet.fail_over()
    fleet.change("m2")
    fleet.events.clear()
    assert await fleet.placed_after(WAIT) == ["m2"]
    assert "ScheduleBindingFailed" not in fleet.reasons()


# --- never to and fro ---


async def test_the_wait_is_doubled_when_a_binding_leaves_the_term_again() -> None:
    fleet = await on_backup(maxSeconds=3 * WAIT)
    waits = []
    for _ in range(4):
        start = fleet.now
        while fleet.placed() == ["m2"]:
            await fleet.check(CHECK)
        waits.append(fleet.now - start)
        fleet.sleep(SETTLE_SECONDS)
        await fleet.fail_over()
        fleet.change("m1")
    assert [wait // WAIT for wait in waits] == [1, 2, 3, 3]
    assert fleet.record_of()["n"] == 4


async def test_a_binding_that_stayed_long_enough_waits_as_at_first() -> None:
    fleet = await on_backup(forgetSeconds=1000, checked=WAIT)
    fleet.sleep(1000)
    await fleet.fail_over()
    fleet.change("m1")
    await fleet.check(WAIT)
    assert (fleet.placed(), fleet.record_of()["n"]) == (["m1"], 1)


async def test_a_new_leader_doubles_the_wait_as_well() -> None:
    fleet = await on_backup(checked=WAIT)
    fleet.sleep(SETTLE_SECONDS)
    await fleet.fail_over()
    fleet.change("m1")
    fleet = await successor_of(fleet)
    assert await fleet.placed_after(2 * WAIT - CHECK) == ["m2"]
    assert await fleet.placed_after(CHECK) == ["m1"]


async def test_a_binding_whose_record_cannot_be_read_waits_for_the_longest_time() -> None:
    fleet = await on_backup(maxSeconds=3 * WAIT)
    fleet.server.change("web", annotations={FAIL_BACK: '{"n": "x"}'})
    assert await fleet.placed_after(3 * WAIT - CHECK) == ["m2"]
    assert await fleet.placed_after(CHECK) == ["m1"]


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"n":1e999,"at":"2026-01-02T00:00:00Z","from":"a","to":"b"}',
        "{}",
        '{"n":1,"at":"9999-12-31T00:00:00Z","from":"a","to":"b"}',
    ],
)
async def test_the_record_of_another_binding_stops_no_return_for_longer_than_ten_minutes(text: str) -> None:
    fleet = await on_backup(maxSeconds=600)
    fleet.put("other", placement=terms("m1"), clusters=[{"name": "m2", "replicas": 2}])
    fleet.server.change("other", annotations={FAIL_BACK: text})
    assert await fleet.placed_after(WAIT) == ["m2"] if "9999" in text else ["m1"]
    assert await fleet.placed_after(600) == ["m1"]


async def test_a_return_whose_answer_is_lost_counts_until_it_is_known() -> None:
    fleet = Fleet(guard={"graceful": {"enabled": False}, "lastHealthyCopy": {"enabled": False}})
    for name in ("one", "two"):
        await fleet.start(name)
        await fleet.fail_over(name)
        fleet.change("m1")
    fleet.server.event = lambda _: None  # the watch is late
    fleet.server.torn = [ApiError("the connection was lost")]
    await fleet.check(WAIT + 3 * CHECK)
    assert sorted([*fleet.placed("one"), *fleet.placed("two")]) == ["m1", "m2"]


# --- which bindings ---


@pytest.mark.parametrize(
    "spec",
    [
        {"suspension": {"scheduling": True}},
        {"gracefulEvictionTasks": [{"fromCluster": "m9", "producer": "x", "reason": "y"}]},
        {"schedulerName": "another"},
    ],
)
async def test_a_binding_that_is_suspended_evicted_or_not_ours_stays(spec: dict[str, Any]) -> None:
    fleet = await on_backup()
    fleet.server.change("web", **spec)
    await fleet.run()
    assert await fleet.placed_after(3 * WAIT) == ["m2"]


async def test_a_binding_whose_cluster_is_being_deleted_is_decided_without_its_proposal() -> None:
    fleet = await on_backup(kind="Duplicated", checked=WAIT - CHECK)
    fleet.sleep(CHECK)
    fleet.cluster("m2", version=9, deletionTimestamp="2026-01-01T00:00:00Z")
    assert await fleet.placed_after() == ["m3"]


async def test_an_eviction_begins_the_wait_again() -> None:
    fleet = await on_backup(checked=WAIT - CHECK)
    fleet.server.change("web", gracefulEvictionTasks=[{"fromCluster": "m9", "producer": "x", "reason": "y"}])
    await fleet.run()
    fleet.server.change("web", gracefulEvictionTasks=[])
    await fleet.run()
    assert await fleet.placed_after(WAIT - CHECK) == ["m2"]


async def test_only_so_many_return_at_once_until_they_are_healthy() -> None:
    fleet = Fleet(guard={"graceful": {"enabled": False}, "lastHealthyCopy": {"enabled": False}})
    for name in ("one", "two"):
        await fleet.start(name)
        await fleet.fail_over(name)
        fleet.change("m1")
    await fleet.check(WAIT + 3 * CHECK)
    assert sorted([*fleet.placed("one"), *fleet.placed("two")]) == ["m1", "m2"]
    texts = [text for _, text in fleet.events]
    assert "the earlier term on-m1 could take it; 1 returns are under way" in texts
    name = "one" if fleet.placed("one") == ["m1"] else "two"
    item = {"clusterName": "m1", "applied": True, "health": "Healthy"}
    fleet.server.change(name, status=True, aggregatedStatus=[item])
    await fleet.check(CHECK)
    assert (fleet.placed("one"), fleet.placed("two")) == (["m1"], ["m1"])


async def test_without_the_plugin_a_binding_stays() -> None:
    fleet = SchedulerHarness()
    await fleet.put_and_run(placement=terms("m1", "m2"), clusters=[{"name": "m2", "replicas": 2}])
    writes = len(fleet.server.requests)
    fleet.sleep(10**6)
    await fleet.reconsiderations.look()
    await fleet.run()
    assert len(fleet.server.requests) == writes


def under_way(fleet: Fleet, **spec: Any) -> None:
    """Add a binding that has returned now and is not healthy yet."""
    at = fleet.time_of_day.isoformat().replace("+00:00", "Z")
    record = {"n": 1, "at": at, "from": "on-m2", "to": "on-m1"}
    fleet.put("other", clusters=[{"name": "m1", "replicas": 2}], placement=terms("m1", "m2"), **spec)
    fleet.server.change("other", annotations={FAIL_BACK: json.dumps(record)})


@pytest.mark.parametrize(("scheduler", "placed"), [("ours", ["m2"]), ("theirs", ["m1"])])
async def test_only_returns_of_the_own_profile_are_under_way(scheduler: str, placed: list[str]) -> None:
    fleet = await on_backup()
    under_way(fleet, schedulerName=scheduler)
    assert await fleet.placed_after(WAIT) == placed


async def test_a_return_counts_for_ten_minutes_more_when_the_clock_is_set_back() -> None:
    fleet = await on_backup()
    under_way(fleet)
    await fleet.check(WAIT)
    fleet.time_of_day -= timedelta(days=1)
    assert await fleet.placed_after(600) == ["m2"]
    assert await fleet.placed_after(WAIT + 2 * CHECK) == ["m1"]


@pytest.mark.parametrize("begun", [True, False])
async def test_returns_that_others_have_begun_are_found_at_the_next_check(*, begun: bool) -> None:
    fleet = await on_backup()
    assert await fleet.placed_after(WAIT) == ["m1"]
    item = {"clusterName": "m1", "applied": True, "health": "Healthy"}
    fleet.server.change("web", status=True, aggregatedStatus=[item])
    await fleet.start("second")
    await fleet.fail_over("second")
    fleet.change("m1")
    await fleet.check(WAIT)
    if begun:
        under_way(fleet)
    await fleet.check(CHECK)
    assert fleet.placed("second") == (["m2"] if begun else ["m1"])


async def test_the_time_at_which_a_binding_left_stays_when_it_moves_on() -> None:
    fleet = await on_backup(checked=WAIT)
    returned = fleet.record_of()["at"]
    fleet.sleep(30)
    await fleet.fail_over()
    left = fleet.record_of()["left"]
    assert (fleet.term(), fleet.record_of()["at"]) == ("on-m2", returned)
    fleet.sleep(30)
    await fleet.fail_over()
    assert fleet.term() == "on-m3"
    assert fleet.record_of() == {"n": 1, "at": returned, "from": "on-m2", "to": "on-m3", "left": left}


# --- with Guard ---


async def test_a_graceful_return_keeps_the_old_copy_and_is_counted_as_a_move() -> None:
    fleet = await on_backup(guard={"graceful": {"enabled": True}})
    healthy = {"clusterName": "m2", "applied": True, "health": "Healthy"}
    fleet.server.change("web", status=True, aggregatedStatus=[healthy])
    await fleet.check(WAIT)
    spec = fleet.server.stored["web"]["spec"]
    (task,) = spec["gracefulEvictionTasks"]
    assert (task["fromCluster"], task["reason"], task["producer"]) == ("m2", "FailedBack", "ours")
    record = json.loads(fleet.server.stored["web"]["metadata"]["annotations"][LAST_MOVE])
    assert (record["cause"], record["term"]) == ("FailedBack", "on-m1")


async def test_a_return_waits_for_the_budget_and_is_no_failure_meanwhile() -> None:
    guard = {"lastHealthyCopy": {"enabled": False}, "budgets": [{"scope": "profile", "bindings": 1}]}
    fleet = await on_backup(guard=guard)
    fleet.server.change(
        "web", status=True, aggregatedStatus=[{"clusterName": "m2", "applied": True, "health": "Healthy"}]
    )
    moved = {"moves": [{"at": "2026-01-02T00:00:00.000Z", "replicas": 2}], "from": ["m9"], "cause": "x"}
    fleet.put("other", clusters=[{"name": "m2", "replicas": 2}], placement=terms("m2"))
    fleet.server.change("other", annotations={LAST_MOVE: json.dumps(moved)})
    await fleet.run()
    writes = len(fleet.server.requests)
    assert await fleet.placed_after(2 * WAIT) == ["m2"]
    assert fleet.condition()[0] == "Success"
    assert len(fleet.server.requests) == writes
    assert any("held at Guard by PlacementGuard" in text for reason, text in fleet.events)
    assert fleet.reconsiderations.waiting == 1
    assert await fleet.placed_after(600) == ["m1"]
    assert fleet.reconsiderations.waiting == 0


async def test_the_last_healthy_copy_is_not_left_ungracefully() -> None:
    fleet = await on_backup(guard={"lastHealthyCopy": {"maxWaitSeconds": 1}})
    fleet.server.change(
        "web", status=True, aggregatedStatus=[{"clusterName": "m2", "applied": True, "health": "Healthy"}]
    )
    assert await fleet.placed_after(3 * WAIT) == ["m2"]
    texts = [text for reason, text in fleet.events if reason == "FailBackWaits"]
    assert texts[-1].endswith("m2 has the last healthy copy, and it does not move gracefully")


# --- crashes and conflicts ---


@pytest.mark.parametrize("kind", ["Divided", "Duplicated"])
async def test_a_crash_between_the_two_patches_is_repaired_by_the_next_leader(kind: str) -> None:
    fleet = await on_backup(kind=kind)
    fleet.server.failures["status"] = [ApiError("gone")] * 100
    await fleet.check(WAIT)
    assert (fleet.placed(), fleet.term()) == (["m1"], "on-m2")
    fleet.server.failures.clear()
    fleet = await successor_of(fleet)
    assert (fleet.placed(), fleet.term()) == (["m1"], "on-m1")
    assert fleet.condition()[0] == "Success"
    status, metadata = fleet.server.stored["web"]["status"], fleet.server.stored["web"]["metadata"]
    assert status["schedulerObservedGeneration"] == metadata["generation"]


async def test_a_conflict_leaves_the_binding_as_it_is_until_the_next_check() -> None:
    fleet = await on_backup(checked=WAIT - CHECK)
    fleet.server.failures["spec"] = [CONFLICT]
    await fleet.check(CHECK)
    assert (fleet.placed(), fleet.condition()[0]) == (["m2"], "Success")
    fleet.sleep(CHECK)
    assert await fleet.placed_after() == ["m1"]


async def test_a_refusal_at_permit_is_no_failure_of_the_binding() -> None:
    refusals = [Result.unschedulable("not now")]

    async def permit(context: Any) -> Result:
        is_return = context.binding.status.scheduler_observing_affinity_name == "on-m2"
        return refusals.pop() if is_return and refusals else SUCCESS

    fleet = await on_backup(plugin("Gate", permit=permit), checked=WAIT)
    assert (fleet.placed(), fleet.condition()[0], refusals) == (["m2"], "Success", [])
    fleet.sleep(CHECK)
    assert await fleet.placed_after() == ["m1"]


async def test_a_decision_that_waits_returns_as_well() -> None:
    fleet = await on_backup(plugin("Slow", pre_score=coroutine(SUCCESS)), checked=WAIT + CHECK)
    assert (fleet.placed(), fleet.term()) == (["m1"], "on-m1")


# --- a rebalance ---


@pytest.mark.parametrize(("from_first", "cluster_name"), [(False, "m2"), (True, "m1")])
async def test_a_rebalance_begins_with_the_first_term_if_that_is_asked_for(
    from_first: bool, cluster_name: str
) -> None:
    fleet = await on_backup(rebalanceFromFirst=from_first)
    fleet.server.change("web", rescheduleTriggeredAt="2026-01-03T00:00:00Z")
    await fleet.run(after=SETTLE_SECONDS)
    assert (fleet.placed(), fleet.term()) == ([cluster_name], f"on-{cluster_name}")


# --- overflow tiers ---


async def overflowing(**args: Any) -> Fleet:
    """Return a fleet with a binding of which 2 replicas are on m1 and 2 in the overflow tier m2; m1 can then take all."""
    fleet = Fleet(**args)
    fleet.change("m1", cpu=2)
    term = {"affinityName": "t", "clusterNames": ["m1"], "overflowAffinities": [{"clusterNames": ["m2"]}]}
    strategy = terms()["replicaScheduling"]
    await fleet.put_and_run(
        replicas=4,
        replicaRequirements={"resourceRequest": {"cpu": "1"}},
        placement={"clusterAffinities": [term], "replicaScheduling": strategy},
    )
    assert sorted(fleet.placed()) == ["m1", "m2"]
    return fleet


async def test_replicas_return_from_an_overflow_tier() -> None:
    fleet = await overflowing(overflow=True)
    fleet.change("m1", cpu=10)
    assert await fleet.placed_after(WAIT) == ["m1"]
    assert fleet.record_of()["from"] == "overflow"
    assert "SpreadBack" in fleet.reasons()


@pytest.mark.parametrize(("at", "wait"), [("2026-01-01T23:59:00Z", 2 * WAIT), ("2025-12-01T00:00:00Z", WAIT)])
async def test_the_wait_is_doubled_after_a_return_from_an_overflow_tier_until_it_is_old(
    at: str, wait: int
) -> None:
    fleet = await overflowing(overflow=True)
    record = {"n": 1, "at": at, "from": "overflow", "to": "t"}
    fleet.server.change("web", annotations={FAIL_BACK: json.dumps(record)})
    fleet.change("m1", cpu=10)
    await fleet.check(wait - CHECK)
    assert len(fleet.placed()) == 2
    assert await fleet.placed_after(CHECK) == ["m1"]


async def test_nothing_returns_to_the_tier_where_all_replicas_are() -> None:
    fleet = await overflowing(overflow=True)
    fleet.change("m1", cpu=10)
    assert await fleet.placed_after(WAIT) == ["m1"]
    await fleet.check(2 * WAIT)
    assert fleet.reconsiderations.waiting == 0


async def test_replicas_stay_in_an_overflow_tier_unless_that_is_asked_for() -> None:
    fleet = await overflowing()
    fleet.change("m1", cpu=10)
    await fleet.check(3 * WAIT)
    assert len(fleet.placed()) == 2


async def test_a_cluster_of_an_overflow_tier_that_could_only_shrink_keeps_its_replicas() -> None:
    fleet = await overflowing(overflow=True)
    fleet.change("m1", cpu=1)
    await fleet.check(3 * WAIT)
    assert fleet.server.stored["web"]["spec"]["clusters"] == [
        {"name": "m1", "replicas": 2},
        {"name": "m2", "replicas": 2},
    ]


# --- args ---


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        ({"atOnce": 0}, "args: atOnce must be 1 to 10000, got 0"),
        (
            {"stabilizationSeconds": 10, "maxSeconds": 5},
            "args: checkSeconds must not be greater than stabilizationSeconds; maxSeconds must not be less than",
        ),
        (
            {"forgetSeconds": 0, "checkSeconds": 0},
            "checkSeconds must be 1 to 3600, got 0; forgetSeconds must",
        ),
        ({"every": 1}, "args.every: unknown field"),
    ],
)
def test_invalid_args_are_refused_with_their_path(args: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError) as raised:
        make(FailBack, args)
    assert problem in str(raised.value)


LEAST = dict.fromkeys(("stabilizationSeconds", "checkSeconds", "maxSeconds", "forgetSeconds", "atOnce"), 1)
MOST = {
    "stabilizationSeconds": 86_400,
    "checkSeconds": 3_600,
    "maxSeconds": 604_800,
    "forgetSeconds": 2_592_000,
    "atOnce": 10_000,
}


def test_args_have_the_ranges_of_the_documentation() -> None:
    make(FailBack, LEAST)
    make(FailBack, MOST)
    for name in LEAST:
        for value in (0, MOST[name] + 1):
            with pytest.raises(ConfigError, match=rf"{name} must be 1 to {MOST[name]}, got {value}"):
                make(FailBack, {**MOST, name: value})


async def test_without_overflow_affinities_nothing_is_proposed_in_the_first_term() -> None:
    fleet = Fleet(overflow=True)
    await fleet.start()
    await fleet.check(2 * CHECK)
    assert fleet.term() == "on-m1"
    assert fleet.reconsiderations.refusal(BindingKey("ResourceBinding", "demo", "web")) is None
    without = Binding.from_manifest(manifests.binding(placement=None))
    assert FailBack(FailBackArgs(), fleet.handle)._proposal(without) is None
