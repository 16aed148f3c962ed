"""StrictPriority: free capacity is held for who waits, and the first of the ranking is enqueued and placed first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from karmada_scheduler.api_error import ApiError
from karmada_scheduler.config.problems import ConfigError
from karmada_scheduler.framework.handle import PluginHandle
from karmada_scheduler.testing import FakeHandle, framework, gates, make, profiles, schedule
from karmada_scheduler_plugins.strict_priority import StrictPriority
from tests.unit.plugins.waiting_fleet import Fleet, job, key_of

FIRST, LOW = job("first", 8, priority=10), job("low", 2)


# --- holds ---


def test_a_lower_rank_does_not_take_what_is_free_for_who_waits_and_without_the_plugin_it_does() -> None:
    fleet = Fleet(m1=4)
    assert not fleet.fits(FIRST)
    assert not fleet.fits(LOW)
    assert schedule(LOW, *fleet.clusters()).placed == {"m1": 2}


def test_a_hold_grows_as_capacity_returns_and_who_waits_is_enqueued_once_when_all_of_it_fits() -> None:
    fleet = Fleet(m1=4)
    fleet.fits(FIRST)
    assert fleet.report(m1=7) == []
    assert not fleet.fits(LOW)
    assert fleet.report(m1=9) == ["first"]
    assert fleet.report(m1=10) == ["low"]
    assert fleet.try_(LOW).placed == {"m1": 2}
    assert fleet.try_(FIRST).placed == {"m1": 8}


def test_a_hold_grows_on_all_clusters_together() -> None:
    fleet = Fleet(m1=3, m2=0)
    fleet.fits(FIRST)
    assert fleet.report(m2=4) == []
    assert not fleet.fits(LOW)
    assert fleet.report(m2=5) == ["first"]


def test_a_better_rank_sees_no_hold_and_takes_the_capacity() -> None:
    fleet = Fleet(m1=4)
    fleet.fits(FIRST)
    assert fleet.try_(job("best", 3, priority=11)).placed == {"m1": 3}
    assert fleet.held(FIRST) == {"m1": 1}


def test_of_equal_priorities_the_older_one_is_before_the_younger_one() -> None:
    fleet = Fleet(m1=4)
    young, old = job("young", 8, 10, created=30), job("old", 8, 10, created=20)
    fleet.fits(young)
    fleet.fits(old)
    assert fleet.held(old) == {"m1": 4}
    assert fleet.held(young) == {}
    assert fleet.report(m1=16) == ["old", "young"]


def test_what_who_waits_cannot_use_stays_open() -> None:
    fleet = Fleet(m1=7, m2=7)
    fleet.fits(job("large", 3, 10, cpu=5))
    assert fleet.held(job("large", 3)) == {"m1": 1, "m2": 1}
    assert fleet.try_(job("small", 4)).placed == {"m1": 2, "m2": 2}


def test_other_clusters_stay_open() -> None:
    fleet = Fleet(m1=4, m2=4)
    fleet.fits(job("first", 8, 10).names("m1"))
    assert fleet.try_(LOW).placed == {"m2": 2}


def test_a_deleted_binding_holds_nothing_and_who_fits_now_is_enqueued() -> None:
    fleet = Fleet(m1=4)
    fleet.fits(FIRST)
    fleet.fits(LOW)
    fleet.handle.enqueued.clear()
    fleet.plugin.observe(FIRST.build(), None)
    assert fleet.enqueued == ["low"]
    assert fleet.fits(LOW)


def test_an_edited_binding_holds_nothing_until_it_is_tried_again() -> None:
    fleet = Fleet(m1=4)
    fleet.fits(FIRST)
    fleet.handle.put(job("first", 8, priority=10).generation(2).build())
    assert fleet.fits(LOW)


def test_what_would_not_fit_empty_clusters_holds_nothing_and_is_reported_as_without_the_plugin() -> None:
    fleet, huge = Fleet(m1=4), job("huge", 101, priority=10)
    text = fleet.try_(huge).condition.message
    assert text == schedule(huge, *fleet.clusters()).condition.message
    assert fleet.fits(LOW)


def test_clusters_that_report_nothing_and_duplicated_workloads_are_no_problem() -> None:
    fleet = Fleet(m1=4)
    fleet.built["m2"] = fleet.built["m1"].__class__("m2").without_summary()
    assert not fleet.fits(FIRST)
    assert fleet.fits(job("everywhere", 50).duplicated())


def test_a_resource_that_no_cluster_has_holds_nothing() -> None:
    fleet = Fleet(m1=4)
    assert not fleet.fits(job("gpu", 1, 10).replicas(1, cpu=1, **{"nvidia.com/gpu": 1}))
    assert fleet.fits(LOW)


def test_of_a_cluster_that_reports_nodes_a_small_replica_takes_a_whole_place() -> None:
    fleet = Fleet(m1=40)
    fleet.has_nodes("m1", 3, cpu=8)
    fleet.fits(job("first", 30, 10))
    assert fleet.plugin._ledger.less_for((0, 0.0, key_of(LOW)), (("cpu", 8000), ("pods", 1000))) == {"m1": 30}


# --- constraints ---


def test_what_needs_one_cluster_holds_the_one_with_the_most_capacity_and_keeps_it() -> None:
    fleet, big = Fleet(m1=5, m2=6), job("big", 8, 10).spread("cluster", 1, 1)
    fleet.fits(big)
    assert fleet.held(big) == {"m2": 6}
    assert fleet.try_(LOW).placed == {"m1": 2}
    fleet.report(m1=7, m2=4)
    fleet.fits(big)
    assert fleet.held(big) == {"m2": 4}
    assert fleet.report(m1=10) == ["big"]


def test_what_needs_one_cluster_chooses_one_that_it_would_fit_empty() -> None:
    fleet, big = Fleet(m1=5, m2=6), job("big", 99, 10).spread("cluster", 1, 1)
    fleet.free["m2"] = 6
    fleet.built["m2"].capacity(cpu=50)
    schedule(
        big,
        fleet.built["m1"].capacity(cpu=100).allocated({"cpu": 95}),
        fleet.built["m2"].capacity(cpu=50).allocated({"cpu": 44}),
        plugins=fleet.framework,
        handle=fleet.handle,
    )
    assert fleet.held(big) == {"m1": 5}


def test_what_needs_two_clusters_holds_two() -> None:
    fleet, two = Fleet(m1=2, m2=4, m3=3), job("two", 12, 10).spread("cluster", 1, 2)
    fleet.fits(two)
    assert fleet.held(two) == {"m2": 4, "m3": 3}
    assert fleet.report(m2=9) == ["two"]


def test_within_region_constraints_only_the_selected_regions_are_held() -> None:
    fleet = Fleet(m1=4, m2=2)
    fleet.built["m1"].region("eu")
    fleet.built["m2"].region("us")
    one = job("one", 8, 10).spread("region", 1, 1).spread("cluster", 1, 1)
    assert not fleet.fits(one)
    assert fleet.held(one) == {"m1": 4}
    assert fleet.try_(LOW).placed == {"m2": 2}


def test_sets_of_components_hold_one_cluster_where_a_set_would_fit() -> None:
    fleet = Fleet(m1=4, m2=3)
    pair = (
        job("pair", 0, 10)
        .component("driver", 1, cpu=2)
        .component("workers", 3, cpu=2)
        .spread("cluster", 1, 1)
    )
    switched = gates(MultiplePodTemplatesScheduling=True)
    assert not fleet.fits(pair, gates=switched)
    assert fleet.report(m2=7) == []
    assert fleet.report(m2=8) == ["pair"]
    assert fleet.fits(pair, gates=switched)


def test_a_scale_up_keeps_what_it_has_and_waits_with_the_rest() -> None:
    fleet = Fleet(m1=2)
    grown = job("grown", 8, 10).on(m1=4)
    run = fleet.try_(grown)
    assert run.error is not None
    assert fleet.held(grown) == {"m1": 2}
    assert "2 of 4 replicas are held" in run.condition.message
    assert fleet.report(m1=4) == ["grown"]
    assert fleet.try_(grown).placed == {"m1": 8}


def test_of_two_affinity_terms_the_first_that_would_fit_empty_is_held() -> None:
    fleet = Fleet(m1=4, m2=4)
    terms = job("terms", 120, 10).term("small", "m1").term("both", "m1", "m2")
    assert not fleet.fits(terms)
    assert fleet.held(terms) == {"m1": 4, "m2": 4}


# --- bounds ---


def test_of_low_priorities_the_first_holds_and_the_others_to_the_limit() -> None:
    fleet = Fleet(m1=20)
    big, small, large = (
        job("big", 30, created=1),
        job("small", 21, cpu=1, created=2),
        job("large", 40, created=3),
    )
    for each in (large, big):
        fleet.fits(each)
    assert fleet.held(big) == {"m1": 20}
    fleet.report(m1=29)
    assert fleet.held(large) == {}
    assert not fleet.fits(small)


def test_low_priorities_hold_five_percent_besides_the_first() -> None:
    fleet = Fleet(m1=0, m2=0)
    jobs = [job(f"j{number}", 4, created=number) for number in range(5)]
    for each in jobs:
        fleet.fits(each)
    fleet.plugin._ledger.tick()
    assert [fleet.plugin._ledger.waiting[key_of(each)].holds for each in jobs] == [
        True,
        True,
        True,
        False,
        False,
    ]
    fleet.plugin.observe(jobs[0].build(), None)
    assert [fleet.plugin._ledger.waiting[key_of(each)].holds for each in jobs[1:]] == [
        True,
        True,
        True,
        False,
    ]


def test_hold_from_says_which_priorities_hold_all_that_they_need() -> None:
    fleet = Fleet({"holdFrom": 100, "maxHeldPercent": 0}, m1=4)
    fleet.fits(job("a", 8, 50, created=1))
    fleet.fits(job("b", 8, 50, created=2))
    assert [each.holds for each in fleet.plugin._ledger.ranked] == [True, False]


def test_best_effort_namespaces_hold_nothing_and_are_enqueued() -> None:
    fleet = Fleet({"bestEffortNamespaces": ["default"]}, m1=4)
    run = fleet.try_(FIRST)
    assert "Waits for capacity: 1st of 1 by priority; no capacity is held for it" in run.condition.message
    assert fleet.fits(LOW)
    assert fleet.report(m1=10) == ["first"]


def test_a_hold_ends_after_its_time_rests_as_long_and_begins_again() -> None:
    fleet = Fleet({"holdSeconds": 100}, m1=4)
    fleet.fits(FIRST)
    fleet.pass_(99)
    assert not fleet.fits(LOW)
    fleet.pass_(1)
    assert [key for key, _ in fleet.events("HoldEnded")] == [key_of(FIRST)]
    fleet.pass_(50)
    fleet.fits(FIRST)
    assert fleet.fits(job("other", 1))
    fleet.pass_(51)
    fleet.fits(FIRST)
    assert not fleet.fits(LOW)
    assert fleet.held(FIRST) == {"m1": 3}


def test_without_an_end_a_hold_stays() -> None:
    fleet = Fleet({"holdSeconds": 0}, m1=4)
    fleet.fits(FIRST)
    fleet.pass_(10_000_000)
    assert not fleet.fits(LOW)


def test_at_most_fifty_are_enqueued_by_a_change_the_first_of_the_ranking_first() -> None:
    fleet = Fleet(m1=0)
    for number in range(60):
        fleet.fits(job(f"j{number:02}", 1, 60 - number))
    assert fleet.report(m1=60) == [f"j{number:02}" for number in range(50)]
    assert fleet.report(m1=61) == [f"j{number:02}" for number in range(50, 60)]


# --- what is decided and not reported ---


def test_the_capacity_that_who_waited_has_got_is_not_given_away_before_clusters_report_it() -> None:
    fleet = Fleet(m1=4)
    fleet.fits(FIRST)
    fleet.report(m1=8)
    placed = fleet.try_(FIRST)
    assert placed.placed == {"m1": 8}
    assert not fleet.fits(LOW)
    fleet.handle.put(job("first", 8, 10).on(m1=8).reports(m1=8).build())
    assert not fleet.fits(LOW)
    fleet.report(m1=2)
    assert fleet.fits(LOW)


def test_a_decision_that_is_never_reported_is_deducted_for_five_minutes() -> None:
    fleet = Fleet(m1=4)
    fleet.fits(FIRST)
    fleet.report(m1=8)
    fleet.fits(FIRST)
    fleet.pass_(299)
    assert not fleet.fits(LOW)
    fleet.pass_(1)
    assert fleet.fits(LOW)


def test_what_is_held_on_a_cluster_that_a_decision_does_not_know_is_no_error() -> None:
    fleet = Fleet(m1=4, m2=3)
    fleet.fits(FIRST)
    del fleet.free["m2"]
    assert fleet.plugin._ledger.named == {"m1", "m2"}
    assert "0 are not enough" in str(fleet.try_(LOW).error)


def test_a_decision_that_is_not_written_holds_again() -> None:
    fleet = Fleet(m1=4)
    fleet.fits(FIRST)
    fleet.report(m1=8)
    assert not fleet.fits(FIRST, write_fails=ApiError("changed", code=409, reason="Conflict"))
    assert fleet.held(FIRST) == {"m1": 8}
    assert not fleet.fits(LOW)


def test_after_a_lost_answer_who_waited_is_placed_if_it_was_not_written() -> None:
    fleet = Fleet(m1=4)
    fleet.fits(FIRST)
    fleet.report(m1=8)
    assert not fleet.fits(FIRST, write_fails=RuntimeError("gone"))
    assert not fleet.fits(LOW)
    assert fleet.try_(FIRST).placed == {"m1": 8}


def test_what_is_decided_for_others_is_not_counted_as_capacity_of_who_waits() -> None:
    fleet = Fleet(m1=6)
    fleet.fits(job("large", 2, 10, cpu=5))
    assert fleet.fits(job("rest", 1))
    assert fleet.report(m1=10) == []
    assert fleet.report(m1=11) == ["large"]


def test_with_the_gate_that_deducts_decisions_the_plugin_does_not_deduct_them_again() -> None:
    handle = FakeHandle()
    plugin = StrictPriority(make(StrictPriority)._args, handle, deducts=False)
    fleet = Fleet(m1=4)
    fleet.plugin, fleet.handle = plugin, handle
    fleet.framework = framework(plugin, handle=handle)
    fleet.fits(FIRST)
    fleet.report(m1=8)
    fleet.fits(FIRST)
    assert plugin._ledger.less_for((0, 0.0, key_of(LOW)), (("cpu", 1000), ("pods", 1000))) == {}


# --- who goes first ---


def refused(replicas: int = 2, **condition: str) -> Any:
    text = "FederatedResourceQuota(default/all) exceeded for resource cpu: requested sum 9, limit 8."
    return job("refused", replicas, 10).condition(
        type="Scheduled", status="False", reason="QuotaExceeded", message=text, **condition
    )


def test_while_a_quota_refuses_a_binding_those_of_lower_rank_stay_out_of_the_queue() -> None:
    fleet = Fleet(m1=4)
    context = framework(fleet.plugin, handle=fleet.handle).binding.run_pre_enqueue
    fleet.handle.put(refused().build())
    assert context(LOW.build()).message == "default/refused-deployment goes first"
    assert context(job("higher", 1, 11).build()).is_success
    assert context(job("placed", 1).on(m1=1).build()).is_success
    assert context(job("other", 1).replicas(1, memory="1Gi").build()).is_success
    fleet.handle.put(job("refused", 2, 10).on(m1=2).build())
    assert fleet.enqueued == ["low"]
    assert context(LOW.build()).is_success


@pytest.mark.parametrize("is_deleted", [False, True])
def test_a_binding_that_is_deleted_while_a_better_one_goes_first_is_forgotten(is_deleted: bool) -> None:
    fleet = Fleet(m1=4)
    fleet.handle.put(refused().build())
    assert not fleet.framework.binding.run_pre_enqueue(LOW.build()).is_success
    fleet.plugin.observe(LOW.build(), None if is_deleted else LOW.build())
    fleet.handle.put(job("refused", 2, 10).on(m1=2).build())
    assert fleet.enqueued == ([] if is_deleted else ["low"])


def test_a_refusal_by_a_quota_lets_lower_ranks_wait_for_a_time_only() -> None:
    fleet = Fleet({"holdSeconds": 100}, m1=4)
    fleet.handle.put(refused().build())
    fleet.pass_(100)
    assert fleet.framework.binding.run_pre_enqueue(LOW.build()).is_success


def test_after_a_start_who_waited_for_capacity_goes_before_lower_ranks() -> None:
    before = Fleet(m1=4)
    waited = before.try_(FIRST)
    condition = {"type": "Scheduled", "status": "False", "reason": "Unschedulable"}
    stored = job("first", 8, priority=10).condition(message=waited.condition.message, **condition)
    after = Fleet(m1=4)
    gate = after.framework.binding.run_pre_enqueue
    after.plugin.observe(None, stored.build())
    assert after.enqueued == ["first"]
    assert not gate(LOW.build()).is_success
    assert gate(stored.build()).is_success
    after.fits(stored)
    assert gate(LOW.build()).is_success
    assert not after.fits(LOW)
    assert [key for key, _ in after.events("WaitsForCapacity")] == [key_of(LOW)]


def test_one_whose_priority_is_lowered_does_not_wait_for_itself_after_a_start() -> None:
    fleet = Fleet(m1=4)
    gate = fleet.framework.binding.run_pre_enqueue
    waits = {"type": "Scheduled", "status": "False", "message": "Waits for capacity: 1st of 1 by priority"}
    high, middle, lowered = (
        job(name, 8, priority).condition(**waits).build()
        for name, priority in (("lowered", 20), ("middle", 10), ("lowered", 5))
    )
    fleet.plugin.observe(None, high)
    fleet.plugin.observe(None, middle)
    assert gate(middle).message == "default/lowered-deployment goes first"
    fleet.plugin.observe(high, lowered)
    assert gate(middle).is_success
    assert gate(lowered).message == "default/middle-deployment goes first"


def test_who_waited_and_is_never_tried_is_let_go_first_for_a_minute() -> None:
    fleet = Fleet(m1=4)
    waited = job("waited", 8, 10).condition(
        type="Scheduled", status="False", reason="Unschedulable", message="Waits for capacity: 1st of 1"
    )
    fleet.plugin.observe(None, waited.build())
    gate = fleet.framework.binding.run_pre_enqueue
    fleet.pass_(1000)
    assert not gate(LOW.build()).is_success
    fleet.pass_(60)
    assert gate(LOW.build()).is_success


# --- what is seen ---


def test_the_condition_says_the_place_what_is_held_and_who_is_first() -> None:
    fleet = Fleet(m1=4, m2=3)
    fleet.fits(FIRST)
    text = "failed to assign replicas: failed to scale up: Clusters available replicas {} are not enough to schedule. "
    fleet.pass_(120)
    again = fleet.try_(FIRST)
    assert again.condition.reason == "Unschedulable"
    assert again.condition.message == text.format(7) + (
        "Waits for capacity: 1st of 1 by priority; 7 of 8 replicas are held on m1, m2 since 10:00 UTC"
    )
    assert fleet.try_(LOW).condition.message == text.format(0) + (
        "Waits for capacity: 2nd of 2 by priority; no capacity is held for it; first is default/first-deployment"
    )
    one = fleet.try_(job("one", 9, 5).spread("cluster", 1, 1)).condition
    assert one.reason == "SchedulerError"
    assert "no enough resource when selecting 1 clusters. Waits for capacity: 2nd of 3" in one.message


def test_the_event_that_a_binding_waits_is_recorded_once() -> None:
    fleet = Fleet(m1=4)
    for _ in range(3):
        fleet.fits(FIRST)
    assert [text for _, text in fleet.events("WaitsForCapacity")] == [
        "Waits for capacity: 1st of 1 by priority; 4 of 8 replicas are held on m1 since 10:00 UTC"
    ]


def test_who_waits_is_tried_again_after_five_minutes_and_soon_if_only_the_decision_says_no() -> None:
    fleet = Fleet({"retrySeconds": 7}, m1=4, m2=40)
    assert fleet.try_(FIRST.names("m1")).retry_after == 300
    fleet.has_nodes("m2", 2, cpu=2)
    nodes = job("nodes", 20, 20, cpu=2).names("m2")
    assert fleet.try_(nodes).retry_after == 7
    assert fleet.report(m2=41) == []
    fleet.pass_(7)
    assert fleet.report(m2=42) == ["nodes"]


def test_a_dry_run_holds_nothing_and_says_nothing_about_a_ranking() -> None:
    fleet = Fleet(m1=4)
    fleet.handle.is_dry_run = PluginHandle().is_dry_run
    run = fleet.try_(FIRST)
    assert run.condition.message.endswith("are not enough to schedule.")
    assert fleet.fits(LOW)


# --- args ---


@pytest.mark.parametrize(
    ("args", "problems"),
    [
        ({"holdSeconds": -1}, ["args.holdSeconds: must be a whole number from 0 to 604800, got -1"]),
        (
            {"holdFrom": 2**31, "maxHeldPercent": 101, "retrySeconds": 0, "bestEffortNamespaces": "adhoc"},
            [
                "args.holdFrom: ",
                "args.maxHeldPercent: ",
                "args.retrySeconds: ",
                "args.bestEffortNamespaces: ",
            ],
        ),
        ({"holdSeconds": True, "retrySeconds": 1e400}, ["args.holdSeconds: ", "args.retrySeconds: "]),
        ({"backfill": True}, ["args.backfill: unknown field"]),
    ],
)
def test_invalid_args_are_refused_all_at_once_with_their_paths(
    args: dict[str, Any], problems: list[str]
) -> None:
    with pytest.raises(ConfigError) as raised:
        make(StrictPriority, args)
    assert all(problem in str(raised.value) for problem in problems)


CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
"""


def profile(name: str, args: str) -> str:
    return f"""- schedulerName: {name}
  plugins: {{multiPoint: {{enabled: [{{name: StrictPriority}}]}}}}
  pluginConfig: [{{name: StrictPriority, args: {args}}}]
"""


def test_profiles_share_one_ranking_and_must_have_equal_args(tmp_path: Path) -> None:
    file, handle = tmp_path / "config.yaml", FakeHandle()
    file.write_text(CONFIG + profile("a", "{holdFrom: 3}") + profile("b", "{holdFrom: 3}"))
    built = profiles(file, handle=handle)
    plugins = [each.plugins.post_filter[0] for each in built.values()]
    assert len({id(each._ledger) for each in plugins if isinstance(each, StrictPriority)}) == 1
    file.write_text(CONFIG + profile("a", "{holdFrom: 3}") + profile("b", "{holdFrom: 4}"))
    with pytest.raises(
        ConfigError, match=r"profiles\[1\].pluginConfig\[0\].*args must be those of the profile"
    ):
        profiles(file, handle=FakeHandle())
