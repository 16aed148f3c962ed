"""FairShare: tenants take turns by what they use, up to their limits."""

from __future__ import annotations

import logging
from pathlib import Path
from time import process_time
from typing import Any

import pytest

from karmada_scheduler.api_error import ApiError
from karmada_scheduler.config.problems import ConfigError
from karmada_scheduler.testing import FakeHandle, cluster, framework, make, profiles, snapshot
from karmada_scheduler_plugins.fair_share import FairShare
from karmada_scheduler_plugins.strict_priority import StrictPriority
from tests.unit.plugins.tenants_fleet import Fleet, job, tenant

GPU = "nvidia.com/gpu"
RESEARCH = tenant("research", "r1", "r2", nominalQuota={GPU: 8}, borrowingLimit={GPU: 4})


def gpus(path: str, count: int, **more: Any) -> Any:
    return job(path, count, **{GPU: 1, "cpu": 1}, **more)


# --- order ---


def test_tenants_take_turns_by_what_they_use() -> None:
    fleet = Fleet()
    fleet.add(*(job(f"{name}/{number}") for name in "ab" for number in range(3)))
    assert fleet.take(6) == ["a/0", "b/0", "a/1", "b/1", "a/2", "b/2"]


def test_a_share_counts_by_the_weight_of_its_tenant() -> None:
    fleet = Fleet({"tenants": [tenant("c", weight=2)]})
    fleet.add(*(job(f"{name}/{number}") for name in "abc" for number in range(8)))
    placed = [each[0] for each in fleet.take(12)]
    assert [placed.count(name) for name in "abc"] == [3, 3, 6]


def test_the_namespaces_that_no_tenant_names_have_the_weight_of_the_default() -> None:
    fleet = Fleet({"default": {"weight": 0.5}, "tenants": [tenant("c")]})
    fleet.add(*(job(f"{name}/{number}") for name in "abc" for number in range(8)))
    placed = [each[0] for each in fleet.take(8)]
    assert [placed.count(name) for name in "abc"] == [2, 2, 4]


def test_the_namespaces_of_a_tenant_share_its_turn() -> None:
    fleet = Fleet({"tenants": [tenant("one", "a", "b")]})
    fleet.add(*(job(f"{name}/{number}") for name in "abc" for number in range(2)))
    assert fleet.take(4) == ["c/0", "a/0", "c/1", "a/1"]


def test_a_tenant_with_the_name_of_a_namespace_is_another_one() -> None:
    fleet = Fleet({"tenants": [tenant("b", "a")]})
    fleet.add(job("a/0"), job("a/1"), job("b/0"))
    assert fleet.take(3) == ["a/0", "b/0", "a/1"]


def test_inside_a_tenant_the_order_is_by_priority_and_then_by_age() -> None:
    fleet = Fleet()
    fleet.add(job("a/new", created=9), job("a/old", created=1), job("a/first", priority=1, created=10))
    assert fleet.take(3) == ["a/first", "a/old", "a/new"]


def test_priorities_of_the_whole_fleet_go_before_all_tenants() -> None:
    fleet = Fleet({"globalPriorityFrom": 1000, "tenants": [RESEARCH]}, **{GPU: 8})
    fleet.store(job("a/placed", 50).on(m1=50))
    fleet.add(gpus("r1/nominal", 1), job("b/0", priority=999), job("a/0", priority=1000))
    assert fleet.take(3) == ["a/0", "r1/nominal", "b/0"]


def test_who_stays_within_the_nominal_quota_goes_before_shares() -> None:
    fleet = Fleet({"tenants": [RESEARCH], "resources": ["cpu"]}, **{GPU: 16})
    fleet.store(gpus("r1/placed", 6).on(m1=6))
    fleet.add(gpus("r1/large", 3, priority=1), gpus("r2/small", 2), job("b/0"))
    assert fleet.pop() == "b/0"  # the head of research would borrow
    assert fleet.pop() == "r1/large"  # not decided
    fleet.add(job("b/1"))
    assert [fleet.pop(), fleet.pop()] == ["r2/small", "b/1"]


def test_who_asks_for_nothing_of_the_nominal_quota_has_no_better_turn() -> None:
    fleet = Fleet({"tenants": [RESEARCH]}, **{GPU: 16})
    fleet.store(job("r1/placed", 2).on(m1=2))
    fleet.add(job("r1/0"), job("b/0"))
    assert fleet.take(2) == ["b/0", "r1/0"]


def test_the_nominal_quota_does_not_count_in_the_share() -> None:
    fleet = Fleet({"tenants": [tenant("r1", nominalQuota={"cpu": 10})]})
    fleet.store(job("r1/placed", 12).on(m1=12), job("b/placed", 3).on(m1=3))
    fleet.add(job("r1/0"), job("r1/1"), job("b/0"))
    assert fleet.take(3) == ["r1/0", "b/0", "r1/1"]


def test_the_largest_share_of_a_resource_counts() -> None:
    fleet = Fleet({"resources": ["cpu", GPU]}, **{GPU: 8})
    fleet.store(job("a/placed", 30).on(m1=30), gpus("b/placed", 3).on(m1=3))
    fleet.add(job("a/0"), job("b/0"))
    assert fleet.take(2) == ["a/0", "b/0"]


def test_a_share_is_read_when_a_binding_is_taken() -> None:
    fleet = Fleet()
    fleet.store(job("a/placed", 30).on(m1=30), job("b/placed", 20).on(m1=20))
    fleet.add(job("a/0"), job("b/0"), job("b/1"))
    assert fleet.pop() == "b/0"
    fleet.delete("a/placed")
    assert fleet.pop() == "a/0"


def test_what_is_decided_counts_before_it_is_written() -> None:
    fleet = Fleet()
    fleet.add(job("a/0", 5), job("a/1", 5), job("b/0"))
    assert fleet.take(3, write_fails=RuntimeError("lost")) == ["a/0", "b/0", "a/1"]
    assert fleet.used("a/") == {"cpu": 10}


@pytest.mark.parametrize(
    ("problem", "left"),
    [(ApiError("changed", code=409, reason="Conflict"), {}), (RuntimeError("lost"), {"cpu": 5})],
)
def test_what_was_not_written_does_not_count_and_what_may_be_stored_does(
    problem: Exception, left: dict[str, float]
) -> None:
    fleet = Fleet()
    fleet.store(job("a/0", 5))
    fleet.schedule("a/0", write_fails=problem)
    assert fleet.used("a/") == left
    fleet.store(job("a/0", 5))  # the next version of the binding tells
    assert fleet.used("a/") == {}


def test_a_status_that_comes_before_the_write_does_not_hide_a_decision() -> None:
    fleet = Fleet()
    fleet.store(job("a/0", 5))
    tenants, found = fleet.plugin._tenants, job("a/0", 5).on(m1=5).build()
    stored = fleet.handle.binding(found.key)
    assert stored is not None
    tenants.decide(stored, found.spec.clusters)
    fleet.store(job("a/0", 5).reports(m1=0))
    assert fleet.used("a/") == {"cpu": 5}
    fleet.store(job("a/0", 5).generation(2).on(m1=3))  # somebody else has written
    assert fleet.used("a/") == {"cpu": 3}


# --- what counts ---


def test_all_bindings_of_the_profiles_count_and_others_do_not() -> None:
    fleet = Fleet()
    fleet.store(job("a/0", 5).on(m1=5), job("a/1", 5).on(m1=5).scheduler("other"), job("a/2", 5))
    assert fleet.used("a/") == {"cpu": 5}
    fleet.store(job("a/0", 5).on(m1=5).scheduler("other"))
    assert fleet.used("a/") == {}


def test_each_copy_and_each_set_of_components_counts() -> None:
    fleet = Fleet()
    pair = job("a/1", 0).component("driver", 1, cpu=2).component("workers", 3, cpu=1)
    fleet.store(job("a/0", 5).duplicated().on(m1=5, m2=5), pair.on(m1=1))
    assert fleet.used("a/") == {"cpu": 15}


def test_requests_that_are_missing_count_nothing() -> None:
    fleet = Fleet({"resources": ["cpu", "pods"], "tenants": [tenant("t", "a", borrowingLimit={"cpu": 1})]})
    fleet.store(job("a/0", 5, memory="1Gi").on(m1=5), job("a/1", 5, memory="1Gi"))
    assert fleet.used("t") == {"pods": 5}
    assert fleet.gate("a/1").is_success


def test_changed_requests_count_as_they_are() -> None:
    fleet = Fleet()
    fleet.store(job("a/0", 2))
    fleet.schedule("a/0")
    fleet.store(job("a/0", 2, cpu=3).generation(3).on(m1=2))
    assert fleet.used("a/") == {"cpu": 6}


def test_clusters_that_vanish_have_no_capacity_and_without_any_all_shares_are_equal() -> None:
    fleet = Fleet()
    fleet.store(job("a/0", 5).on(m1=5), job("b/0", 10).on(m1=10))
    share = fleet.plugin._tenants.share
    assert [share("a/"), share("b/")] == [0.05, 0.1]
    fleet.handle.show(snapshot(fleet.cluster, cluster("m2").capacity(cpu=100)))
    assert share("b/") == 0.05
    fleet.handle.show(snapshot(cluster("m3").without_summary()))
    assert [share("a/"), share("b/"), share("new/")] == [0, 0, 0]
    fleet.add(job("b/1"), job("a/1"))
    assert fleet.pop() == "a/1"


def test_namespaces_that_move_between_tenants_count_for_the_new_one_after_a_restart() -> None:
    fleet = Fleet({"tenants": [tenant("one", "a"), tenant("two", "b")]})
    fleet.store(job("a/0", 5).on(m1=5))
    assert fleet.used("one") == {"cpu": 5}
    fleet.handle.shared.clear()
    args = {"tenants": [tenant("one", "b"), tenant("two", "a")]}
    fleet.plugin = make(FairShare, args, handle=fleet.handle)
    assert [fleet.used("one"), fleet.used("two")] == [{}, {"cpu": 5}]


def test_after_all_objects_were_replaced_everything_counts_once() -> None:
    fleet = Fleet()
    fleet.store(job("a/0", 5).on(m1=5))
    fleet.plugin.fallen_groups.clear()
    fleet.plugin.observe(None, None)
    assert fleet.plugin.fallen_groups == {"a/"}
    for _ in range(2):
        fleet.plugin.observe(None, fleet.cluster.build())
        fleet.plugin.observe(None, job("a/0", 5).on(m1=5).build())
    assert fleet.plugin._tenants.share("a/") == 0.05


def test_what_is_gone_leaves_nothing() -> None:
    fleet = Fleet({"tenants": [RESEARCH]})
    fleet.store(gpus("r1/0", 12).on(m1=12), gpus("r1/1", 1), job("x/0").on(m1=1))
    assert not fleet.gate("r1/1").is_success
    for path in ("r1/1", "r1/0", "x/0"):
        fleet.delete(path)
    tenants = fleet.plugin._tenants
    assert not any((tenants.used, tenants._counted, tenants._gated, tenants._ranks, tenants._reported))


def test_an_event_costs_the_same_in_a_large_fleet() -> None:
    """100,000 bindings; the time of an event is that of a few objects."""
    fleet = Fleet()
    placed = job("a/0", 2).on(m1=2).build()
    keys = [placed.key._replace(namespace=f"n{number % 500}", name=str(number)) for number in range(100_000)]
    for key in keys:
        fleet.plugin._tenants.follow(key, placed)
    begun = process_time()
    for key in keys[:1000]:
        fleet.plugin._tenants.follow(key, None)
        fleet.plugin._tenants.follow(key, placed)
    assert (process_time() - begun) / 2000 < 500e-6
    assert len(fleet.plugin._tenants.used) == 500


# --- limits ---


def test_a_binding_beyond_the_limit_waits_until_its_tenant_uses_less() -> None:
    fleet = Fleet({"tenants": [RESEARCH]}, **{GPU: 100})
    fleet.store(gpus("r1/large", 10).on(m1=10), gpus("r2/last", 2).on(m1=2), gpus("r2/new", 2))
    assert fleet.gate("r2/new").message == f"tenant research has 12 of 12 {GPU}"
    assert fleet.enqueued == []
    fleet.delete("r2/last")
    assert fleet.enqueued == ["r2/new"]
    assert fleet.gate("r2/new").is_success


def test_the_event_of_a_binding_beyond_the_limit_is_recorded_once() -> None:
    fleet = Fleet({"tenants": [RESEARCH]})
    fleet.store(gpus("r1/large", 11).on(m1=11), gpus("r2/new", 2))
    for _ in range(3):
        fleet.gate("r2/new")
    assert fleet.events == [f"tenant research has 11 of 12 {GPU}"]
    fleet.delete("r1/large")
    fleet.gate("r2/new")
    fleet.store(gpus("r1/large", 11).on(m1=11))
    fleet.gate("r2/new")
    assert len(fleet.events) == 2


def test_others_and_other_resources_have_no_limit() -> None:
    fleet = Fleet({"tenants": [RESEARCH]})
    fleet.store(gpus("r1/large", 12).on(m1=12), job("r2/cpu", 99), gpus("b/other", 99))
    assert fleet.gate("r2/cpu").is_success
    assert fleet.gate("b/other").is_success


def test_a_limit_without_nominal_quota_and_a_quota_without_limit() -> None:
    fleet = Fleet(
        {"tenants": [tenant("a", borrowingLimit={"cpu": "1500m"}), tenant("b", nominalQuota={"cpu": 1})]}
    )
    fleet.store(job("a/0", 2), job("a/1", 1), job("b/0", 50))
    assert fleet.gate("a/0").message == "tenant a has 0 of 1500m cpu"
    assert fleet.gate("a/1").is_success
    assert fleet.gate("b/0").is_success


def test_who_waits_is_enqueued_in_rank_order_as_far_as_the_limit_goes() -> None:
    fleet = Fleet({"tenants": [RESEARCH]})
    fleet.store(gpus("r1/large", 12).on(m1=12))
    fleet.store(
        gpus("r1/young", 4, created=3), gpus("r1/old", 4, created=1), gpus("r1/huge", 6, priority=-1),
        gpus("r2/first", 4, priority=1, created=9), gpus("r2/tiny", 1, priority=-2),
    )  # fmt: skip
    for path in ("r1/young", "r1/old", "r1/huge", "r2/first", "r2/tiny"):
        assert not fleet.gate(path).is_success
    fleet.store(gpus("r1/large", 12).on(m1=3))
    assert fleet.enqueued == ["r2/first", "r1/old", "r2/tiny"]


def test_a_scale_up_counts_by_what_is_missing_and_what_shrinks_is_never_held() -> None:
    fleet = Fleet({"tenants": [RESEARCH]})
    fleet.store(gpus("r1/a", 11).on(m1=10), gpus("r2/b", 2).on(m1=2), gpus("r2/c", 3).on(m1=4))
    assert not fleet.gate("r1/a").is_success
    assert fleet.gate("r2/b").is_success
    assert fleet.gate("r2/c").is_success


def test_reserve_refuses_what_only_the_decision_shows_and_the_condition_says_why() -> None:
    fleet = Fleet({"tenants": [tenant("a", borrowingLimit={"cpu": 3})]})
    fleet.store(job("a/copies", 2).duplicated())
    assert fleet.gate("a/copies").is_success  # on how many clusters is decided later
    run = fleet.schedule("a/copies", cluster("m2").capacity(cpu=9))
    assert "refused at Reserve by FairShare: tenant a has 0 of 3 cpu" in run.condition.message
    assert fleet.used("a") == {}


def test_a_dry_run_knows_of_no_use_and_keeps_no_limit() -> None:
    fleet = Fleet({"tenants": [tenant("a", borrowingLimit={"cpu": 3})]})
    fleet.handle.is_dry_run = True
    fleet.store(job("a/0", 9))
    assert fleet.gate("a/0").is_success
    assert fleet.schedule("a/0").placed == {"m1": 9}


def test_strict_priority_takes_back_what_a_limit_refuses() -> None:
    fleet = Fleet({"tenants": [tenant("a", borrowingLimit={"cpu": 3})]}, cpu=10)
    strict = make(StrictPriority, handle=fleet.handle)
    fleet.framework = framework(strict, fleet.plugin, handle=fleet.handle)
    fleet.store(job("a/copies", 2, priority=9).duplicated(), job("b/1", 10))
    assert fleet.schedule("a/copies", cluster("m2").capacity(cpu=9)).condition.status == "False"
    assert not strict._ledger.decided
    assert fleet.schedule("b/1").placed == {"m1": 10}


def test_amounts_are_shown_as_quantities() -> None:
    fleet = Fleet({"tenants": [tenant("a", nominalQuota={"memory": "64Gi"}, borrowingLimit={"memory": "0"})]})
    fleet.store(job("a/0", 2, memory="32Gi").on(m1=2), job("a/1", memory="1"))
    assert fleet.gate("a/1").message == "tenant a has 64Gi of 64Gi memory"


def test_more_nominal_quota_than_capacity_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    fleet = Fleet({"tenants": [tenant("a", nominalQuota={"cpu": 60}), tenant("b", nominalQuota={"cpu": 41})]})
    fleet.store(job("a/0"))
    with caplog.at_level(logging.WARNING):
        for number in range(3):
            fleet.gate("a/0")
            fleet.handle.show(snapshot(cluster("m1").capacity(cpu=90 - number)))
    assert [each.getMessage() for each in caplog.records] == [
        "The tenants of FairShare have more nominalQuota than the clusters: 101 of 100 cpu"
    ]


def test_enough_capacity_is_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    fleet = Fleet({"tenants": [tenant("a", nominalQuota={"cpu": 100})]})
    fleet.store(job("a/0"))
    fleet.gate("a/0")
    assert not caplog.records


# --- args ---


@pytest.mark.parametrize(
    ("args", "problems"),
    [
        (
            {
                "globalPriorityFrom": "high",
                "default": {"weight": 0},
                "tenants": [
                    tenant("a", weight=-1, nominalQuota={"cpu": "many", GPU: -1}),
                    tenant("b", borrowingLimit={"cpu": None}),
                    tenant("c", weight=float("nan")),
                    tenant("d/e"),
                    {"name": "f"},
                ],
            },
            [
                "args.globalPriorityFrom: expected an integer",
                "args.default.weight: must be a number above 0",
                "args.tenants[0].weight: ",
                "args.tenants[0].nominalQuota: cpu: expected a quantity like 500m or 2Gi",
                f"args.tenants[0].nominalQuota: {GPU}: must not be negative",
                "args.tenants[1].borrowingLimit: cpu: ",
                "args.tenants[2].weight: ",
                "args.tenants[3]: name must be a text without a slash",
                "args.tenants[4].namespaces: is required",
            ],
        ),
        (
            {"tenants": [tenant("a"), tenant("a", "x", "a"), tenant("b", "b", "b", "x")]},
            [
                'args: tenants[1].name: there are two tenants "a"',
                'args: tenants[1].namespaces[1]: "a" is in tenants[0] already',
                'args: tenants[2].namespaces[2]: "x" is in tenants[1] already',
            ],
        ),
        ({"tenants": [tenant("a", nominalQuota=[])]}, ["nominalQuota: expected quantities by resource"]),
        ({"reclaim": "off"}, ["args.reclaim: unknown field"]),
    ],
)
def test_invalid_args_are_refused_all_at_once_with_their_paths(
    args: dict[str, Any], problems: list[str]
) -> None:
    with pytest.raises(ConfigError) as raised:
        make(FairShare, args)
    assert [problem for problem in problems if problem not in str(raised.value)] == []


def test_resources_that_no_cluster_has_are_no_problem() -> None:
    fleet = Fleet({"resources": ["example.com/none"]})
    fleet.add(job("b/0"), job("a/0"))
    assert fleet.take(2) == ["a/0", "b/0"]


CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
"""


def profile(name: str, args: str) -> str:
    return f"""- schedulerName: {name}
  plugins:
    multiPoint: {{enabled: [{{name: FairShare}}]}}
    queueSort: {{disabled: [{{name: PrioritySort}}]}}
  pluginConfig: [{{name: FairShare, args: {args}}}]
"""


def test_profiles_count_together_and_must_have_equal_args(tmp_path: Path) -> None:
    file, handle = tmp_path / "config.yaml", FakeHandle()
    file.write_text(CONFIG + profile("a", "{default: {weight: 2}}") + profile("b", "{default: {weight: 2}}"))
    built = profiles(file, handle=handle)
    plugins = [each.binding.queue_sort for each in built.values()]
    assert len({id(each._tenants) for each in plugins if isinstance(each, FairShare)}) == 1
    file.write_text(CONFIG + profile("a", "{default: {weight: 2}}") + profile("b", "{}"))
    with pytest.raises(
        ConfigError, match=r"profiles\[1\].pluginConfig\[0\].*args must be those of the profile"
    ):
        profiles(file, handle=FakeHandle())


def test_the_queue_has_one_order(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(CONFIG + "- plugins: {multiPoint: {enabled: [{name: FairShare}]}}\n")
    with pytest.raises(ConfigError, match="only one queue sort plugin"):
        profiles(file, handle=FakeHandle())
