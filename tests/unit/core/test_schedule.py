"""Whole decisions: affinity terms, errors, and stable results."""

from __future__ import annotations

from itertools import product

import pytest

from karmada_scheduler.api.binding import TargetCluster
from karmada_scheduler.core.available_replicas import with_footprint
from karmada_scheduler.core.budget import run_sync
from karmada_scheduler.core.decision import Decision, TermAttempt
from karmada_scheduler.core.schedule import SchedulingAlgorithm
from karmada_scheduler.estimator.general import GeneralEstimator
from karmada_scheduler.framework import (
    SUCCESS,
    FilterContext,
    FitError,
    PluginError,
    Result,
    SchedulingError,
    ScoreContext,
    Snapshot,
    UnschedulableError,
)
from karmada_scheduler.framework.snapshot import UnknownClusters
from karmada_scheduler.structs import replace
from karmada_scheduler.testing import (
    BindingBuilder,
    ClusterBuilder,
    binding,
    cluster,
    decide,
    framework,
    gates,
    placed,
    snapshot,
)
from tests.unit.framework.plugins import plugin, with_in_tree

NO_MATCH = "cluster(s) did not match the placement cluster affinity constraint"


def test_a_cluster_being_deleted_is_removed_from_the_targets() -> None:
    decision = decide(
        binding("w").replicas(2).dynamic_weight().on(m1=2), cluster("m1").deleting(), cluster("m2")
    )
    assert placed(decision) == {"m2": 2}


@pytest.mark.parametrize(
    ("clusters", "text"),
    [
        pytest.param(
            [cluster(name).deleting() for name in ("m1", "m2", "m3")],
            "0/3 clusters are available: no cluster exists.",
            id="all-being-deleted",
        ),
        pytest.param(
            [
                cluster("m1").taint("x:NoSchedule"),
                cluster("m2").serves({}),
                cluster("m3").serves({}),
            ],
            "0/3 clusters are available: 1 cluster(s) had untolerated taint {x:NoSchedule}, "
            "2 cluster(s) did not have the API resource.",
            id="reasons-counted",
        ),
    ],
)
def test_without_a_fitting_cluster_the_placement_is_cleared(
    clusters: list[ClusterBuilder], text: str
) -> None:
    decision = decide(binding("w").replicas(1).dynamic_weight().on(gone=1), *clusters)
    assert isinstance(decision.error, FitError)
    assert str(decision.error) == text
    assert (decision.targets, decision.affinity_name) == ((), None)
    assert decision.applied_placement is not None


def test_an_unplaced_binding_fits_nowhere_if_no_cluster_is_known() -> None:
    decision = decide(binding("w").replicas(1).dynamic_weight())
    assert isinstance(decision.error, FitError)
    assert str(decision.error) == "0/0 clusters are available: no cluster exists."


@pytest.mark.parametrize(
    ("clusters", "unknown", "text"),
    [
        pytest.param([], UnknownClusters(), "no cluster is known", id="none-known"),
        pytest.param(
            ["m1"],
            UnknownClusters({"m2": "spec.taints: expected a list"}),
            "cluster m2 cannot be read (spec.taints: expected a list)",
            id="unreadable",
        ),
        pytest.param(
            [],
            UnknownClusters({"m2": "spec.taints: expected a list"}),
            "cluster m2 cannot be read (spec.taints: expected a list)",
            id="none-but-an-unreadable",
        ),
        pytest.param(
            ["m1"],
            UnknownClusters(incomplete=True),
            "cluster m2 is not known again since all were missing from a list",
            id="not-listed-again",
        ),
    ],
)
def test_a_placement_stays_while_its_clusters_are_unknown(
    clusters: list[str], unknown: UnknownClusters, text: str
) -> None:
    builder = binding("w").replicas(2).duplicated().on(m1=1, m2=1)
    found = Snapshot.of([cluster(name).build() for name in clusters], unknown=unknown)
    decision = decide_on(builder, found)
    assert type(decision.error) is SchedulingError
    assert str(decision.error) == f"{text}; the placement stays as it is"
    assert (decision.targets, decision.applied_placement, decision.failed_terms) == (None, None, ())


def test_no_placement_is_cleared_while_clusters_are_not_known_again() -> None:
    builder = binding("w").replicas(2).dynamic_weight().names("m2").on(m1=2)
    known = [cluster("m1").build()]
    decision = decide_on(builder, Snapshot.of(known, unknown=UnknownClusters(incomplete=True)))
    assert type(decision.error) is SchedulingError
    assert "all were missing from a list" in str(decision.error)
    assert decision.targets is None
    assert decide_on(builder, Snapshot.of(known)).targets == ()


def test_an_unknown_cluster_affects_only_bindings_on_it() -> None:
    unknown = UnknownClusters({"m2": "spec.taints: expected a list"}, incomplete=True)
    found = Snapshot.of([cluster("m1").build(), cluster("m3").build()], unknown=unknown)
    placed_now = decide_on(binding("w").replicas(1).duplicated().on(m1=1), found)
    assert placed(placed_now) == {"m1": 1, "m3": 1}


def decide_on(builder: BindingBuilder, found: Snapshot) -> Decision:
    return run_sync(
        SchedulingAlgorithm(gates(), [GeneralEstimator(gates())]).decide(builder.build(), found, framework())
    )


def test_a_cluster_that_is_not_ready_but_has_no_taint_fits() -> None:
    unready = cluster("m1")
    unready.manifest()["status"]["conditions"][0]["status"] = "False"
    assert placed(decide(binding("w"), unready)) == {"m1": 0}


def test_a_snapshot_is_sorted_by_name() -> None:
    taken = snapshot(cluster("m2"), cluster("m10"), cluster("m1"))
    assert [each.name for each in taken] == ["m1", "m10", "m2"]
    assert len(taken) == 3
    assert taken.get("m2") is taken.clusters[2]
    assert taken.get("m3") is None


def test_a_decision_contains_its_attempts() -> None:
    decision = decide(
        binding("w").replicas(3).dynamic_weight().spread("cluster", 1, 2).on(m3=1),
        cluster("m1").capacity(pods=2),
        cluster("m2").capacity(pods=9),
        cluster("m3").capacity(pods=1),
        cluster("m4").taint("x:NoSchedule"),
    )
    (attempt,) = decision.attempts
    assert list(attempt.diagnosis.result_by_cluster) == ["m4"]
    assert attempt.diagnosis.result_by_cluster["m4"].plugin == "TaintToleration"
    assert attempt.scores == {"ClusterAffinity": [0, 0, 0], "ClusterLocality": [0, 0, 100]}
    assert [(each.name, each.score, each.available, each.allocatable) for each in attempt.candidates] == [
        ("m3", 100, 2, 1),
        ("m2", 0, 9, 9),
        ("m1", 0, 2, 2),
    ]
    assert [each.name for each in attempt.selected] == ["m3", "m2"]
    assert attempt.targets == decision.targets


def test_a_binding_without_placement_is_an_error_and_keeps_its_clusters() -> None:
    decision = decide(binding("w").placement(None).on(m1=1), cluster("m1"))
    assert str(decision.error) == "failed to get placement from resourceBinding(default/w-deployment)"
    assert decision.targets is None


@pytest.mark.parametrize(
    ("builder", "text", "unschedulable"),
    [
        pytest.param(
            binding("w").replicas(9).dynamic_weight(),
            "failed to assign replicas: failed to scale up: "
            "Clusters available replicas 4 are not enough to schedule.",
            True,
            id="no-capacity-in-assignment",
        ),
        pytest.param(
            binding("w").replicas(9).dynamic_weight().spread("cluster", 1, 1),
            "failed to select clusters: no enough resource when selecting 1 clusters",
            False,
            id="no-capacity-in-selection",
        ),
        pytest.param(
            binding("w").replicas(9).duplicated().spread("cluster", 1),
            "failed to assign replicas: no clusters available to schedule",
            False,
            id="nothing-selected",
        ),
    ],
)
def test_any_other_failure_keeps_the_placement(
    builder: BindingBuilder, text: str, unschedulable: bool
) -> None:
    decision = decide(
        builder.on(m1=1),
        cluster("m1").capacity(pods=2),
        cluster("m2").capacity(pods=1),
        cluster("m3").capacity(pods=1),
    )
    assert str(decision.error) == text
    assert isinstance(decision.error, UnschedulableError) is unschedulable
    assert (decision.targets, decision.applied_placement) == (None, None)


def test_clusters_without_replicas_become_targets_if_the_option_is_set() -> None:
    builder = binding("w").replicas(2).static_weights(m1=1)
    assert placed(decide(builder, cluster("m1"), cluster("m2"))) == {"m1": 2}
    assert placed(decide(builder, cluster("m1"), cluster("m2"), empty_workload_propagation=True)) == {
        "m1": 2,
        "m2": 0,
    }


def test_a_workload_scaled_to_zero_is_removed_from_its_clusters() -> None:
    builder = binding("w").replicas(0, cpu=1).dynamic_weight().on(m1=3)
    decision = decide(builder, cluster("m1"))
    assert decision.error is None
    assert decision.targets == ()


# --- affinity terms ---


def terms(observing: str = "") -> BindingBuilder:
    builder = binding("w").replicas(3).dynamic_weight()
    return builder.term("group1", "m1").term("group2", "m2").term("group3", "m3").observing(observing)


LARGE_CLUSTERS = [cluster("m1"), cluster("m2"), cluster("m3")]


@pytest.mark.parametrize(
    ("observing", "term", "where"),
    [
        pytest.param("", "group1", "m1", id="none-in-force"),
        pytest.param("group0", "group1", "m1", id="unknown-in-force"),
        pytest.param("group3", "group3", "m3", id="stays-on-the-one-in-force"),
    ],
)
def test_terms_are_tried_from_the_one_in_use(observing: str, term: str, where: str) -> None:
    decision = decide(terms(observing), *LARGE_CLUSTERS)
    assert (decision.affinity_name, placed(decision), decision.failed_terms) == (term, {where: 3}, ())


def test_the_next_term_is_used_and_the_failure_is_reported() -> None:
    decision = decide(terms(), cluster("m1").capacity(pods=1), *LARGE_CLUSTERS[1:])
    assert decision.affinity_name == "group2"
    assert placed(decision) == {"m2": 3}
    (failed,) = decision.failed_terms
    assert (failed.index, failed.name) == (0, "group1")
    assert str(failed.error) == (
        "failed to assign replicas: failed to scale up: Clusters available replicas 1 are not enough to schedule."
    )


def test_earlier_terms_are_not_tried_again() -> None:
    decision = decide(
        terms("group2").on(m1=3),
        cluster("m1"),
        cluster("m2").capacity(pods=1),
        cluster("m3").capacity(pods=2),
    )
    assert [failed.name for failed in decision.failed_terms] == ["group2", "group3"]
    assert isinstance(decision.error, UnschedulableError)
    assert "replicas 1 are" in str(decision.error)


@pytest.mark.parametrize(
    ("clusters", "cleared"),
    [
        pytest.param([cluster("m1").capacity(pods=1)], False, id="first-has-no-capacity"),
        pytest.param([cluster("m2").capacity(pods=1)], True, id="first-does-not-fit"),
    ],
)
def test_the_error_of_the_first_term_decides(clusters: list[ClusterBuilder], cleared: bool) -> None:
    decision = decide(terms().on(m9=3), *clusters)
    assert len(decision.failed_terms) >= 3
    assert decision.affinity_name is None
    assert isinstance(decision.error, FitError) is cleared
    assert decision.targets == (() if cleared else None)


def test_an_empty_list_of_terms_counts_as_no_terms() -> None:
    builder = binding("w").replicas(1).dynamic_weight()
    builder.manifest()["spec"]["placement"]["clusterAffinities"] = []
    decision = decide(builder, cluster("m1"))
    assert (placed(decision), decision.affinity_name) == ({"m1": 1}, None)


class BreaksOnM2:
    name = "BreaksOnM2"

    def filter(self, context: FilterContext, /) -> Result:
        if context.cycle.affinity_name == "group2":
            raise RuntimeError("boom")
        return SUCCESS


def test_a_broken_plugin_in_a_later_term_does_not_clear_the_placement() -> None:
    builder = terms().on(m9=3)
    decision = decide(builder, cluster("m2"), plugins=framework(BreaksOnM2()))
    assert isinstance(decision.failed_terms[0].error, FitError)
    # The third term, which would be tried next, does not fit either.
    assert isinstance(decision.error, PluginError)
    assert decision.targets is None


# --- stable decisions ---


def test_duplicated_targets_are_in_their_stable_order() -> None:
    # At first m1 has the most capacity. Its new replicas count as available on both clusters, so both keep
    # their order; m3 is a current cluster and comes first.
    builder = binding("w").replicas(5).duplicated().on(m3=1)
    decision = decide(
        builder,
        cluster("m1").capacity(pods=9),
        cluster("m2").capacity(pods=8),
        cluster("m3").capacity(pods=10),
    )
    again = builder.on(**{target.name: target.replicas for target in decision.targets or ()}).applied()
    repeated = decide(
        again, cluster("m1").capacity(pods=9), cluster("m2").capacity(pods=8), cluster("m3").capacity(pods=10)
    )
    assert repeated.targets == decision.targets
    assert list(placed(decision)) == ["m3", "m1", "m2"]


def test_targets_without_replicas_are_in_the_order_of_names() -> None:
    decision = decide(binding("w").on("m2", "m3"), cluster("m1"), cluster("m2"), cluster("m3"))
    assert decision.targets == tuple(TargetCluster(name) for name in ("m1", "m2", "m3"))
    assert len(decision.attempts) > 1


def test_an_unclaimed_binding_is_decided_in_one_pass() -> None:
    # m1 would come first in a second pass, in which the new replicas of both count as available.
    fleet = cluster("m1").capacity(pods=9), cluster("m2").capacity(pods=8), cluster("m3").capacity(pods=1)
    builder = binding("w").replicas(5).duplicated().on(m2=5, m3=5)
    assert order(decide(builder, *fleet)) == ["m1", "m2", "m3"]
    assert order(decide(builder, *fleet, until_stable=False)) == ["m2", "m3", "m1"]


def test_a_divided_binding_is_decided_in_one_pass() -> None:
    decision = decide(binding("w").replicas(5).dynamic_weight().on(m2=1), cluster("m1"), cluster("m2"))
    assert len(decision.attempts) == 1


def test_an_unchanged_result_ends_the_decision() -> None:
    decision = decide(binding("w").replicas(5).duplicated().on(m1=5).applied(), cluster("m1"))
    assert len(decision.attempts) == 1
    assert decision.targets == (TargetCluster("m1", 5),)


class Alternates:
    """A score plugin that prefers other clusters to the current ones."""

    name = "Alternates"

    def score(self, context: ScoreContext, /) -> int:
        return 0 if context.cluster.name in context.cycle.current_clusters else 100


MOVES_ON = framework(Alternates(), select=["*", "-ClusterLocality"])


def test_a_decision_that_is_never_stable_keeps_the_current_clusters() -> None:
    builder = binding("w").replicas(1).duplicated().spread("cluster", 1, 1).on(m1=1)
    decision = decide(builder, cluster("m1"), cluster("m2"), plugins=MOVES_ON)
    assert placed(decision) == {"m1": 1}
    assert 1 < len(decision.attempts) < 20
    assert decision.attempts[-1].targets == decision.targets


WITHOUT_PLUGINS = framework(select=())
"""Without plugins all clusters have the same score, so capacity decides and current clusters do not."""

OVERCOMMIT = gates(SchedulingOvercommitProtection=True)


def order(decision: Decision) -> list[str]:
    return list(placed(decision))


def order_of(attempt: TermAttempt) -> list[str]:
    return [target.name for target in attempt.targets or ()]


def test_a_binding_that_returns_to_a_cluster_has_a_footprint_there() -> None:
    # Without a footprint m2 has one more available replica than m1 and comes first; with it, neither has any.
    # So the first order returns, and this time it stays.
    builder = binding("w").replicas(9).duplicated().on(m1=9, m2=9).applied()
    decision = decide(
        builder, cluster("m1").without_summary(), cluster("m2").capacity(pods=1), gates=OVERCOMMIT
    )
    assert [order_of(each) for each in decision.attempts] == [["m2", "m1"], ["m1", "m2"], ["m1", "m2"]]
    assert decision.targets == decision.attempts[-1].targets


@pytest.mark.parametrize("where", ["m1", "m2"])
def test_a_binding_stays_on_a_cluster_that_its_own_footprint_makes_unsuitable(where: str) -> None:
    # Its pods count four times as assumed on its cluster and do not count as available there, so the other
    # cluster is better in every pass.
    builder = binding("w").component("a", 3).component("b", 1).spread("cluster", 1, 1).on(where).applied()
    clusters = [cluster("m1").capacity(pods=110), cluster("m2").capacity(pods=110)]
    assumed = with_footprint({}, builder.build(), builder.build().spec.clusters)
    decision = decide(builder, *clusters, gates=OVERCOMMIT, assumed=assumed, plugins=WITHOUT_PLUGINS)
    assert order(decision) == [where]
    assert [order_of(each) for each in decision.attempts] == [["m2" if where == "m1" else "m1"], [where]]


def test_a_cycle_of_placements_ends_at_the_first_repeated_one() -> None:
    # m3 has the least capacity and is not chosen again; the binding alternates between m1 and m2.
    builder = binding("w").component("a", 3).component("b", 1).spread("cluster", 1, 1).on("m3").applied()
    clusters = [
        cluster("m1").capacity(pods=110),
        cluster("m2").capacity(pods=110),
        cluster("m3").capacity(pods=1),
    ]
    decision = decide(builder, *clusters, gates=OVERCOMMIT, plugins=WITHOUT_PLUGINS)
    assert [order_of(each) for each in decision.attempts] == [["m1"], ["m2"], ["m1"]]
    assert order(decision) == ["m1"]


@pytest.mark.parametrize("spread", [1, 2, 3])
def test_the_next_decision_with_the_footprint_changes_nothing(spread: int) -> None:
    for capacities in product((1, 4, 5, 9), repeat=3):
        clusters = [cluster(f"m{number}").capacity(pods=pods) for number, pods in enumerate(capacities, 1)]
        builder = binding("w").replicas(4).duplicated().spread("cluster", 1, spread).on(m3=1, m1=4).applied()
        first = decide(builder, *clusters, gates=OVERCOMMIT, plugins=WITHOUT_PLUGINS)
        if first.targets is None:
            continue
        assumed = with_footprint({}, builder.build(), first.targets)
        again = builder.on(**placed(first))
        second = decide(again, *clusters, gates=OVERCOMMIT, plugins=WITHOUT_PLUGINS, assumed=assumed)
        assert second.targets == first.targets, capacities


def test_a_cluster_without_assumed_workloads_has_no_entry() -> None:
    built = binding("w").replicas(2).on(m1=2).build()
    once = with_footprint({}, built, built.spec.clusters)
    away = with_footprint(once, built, (TargetCluster("m2", 2),))
    assert list(away) == ["m2"]
    moved = replace(built, spec=replace(built.spec, clusters=(TargetCluster("m2", 2),)))
    assert with_footprint(away, moved, built.spec.clusters) == once


def test_the_assumed_workloads_of_other_bindings_stay() -> None:
    built, other = (binding(name).replicas(2).on(m1=2).build() for name in ("w", "other"))
    both = with_footprint(with_footprint({}, other, other.spec.clusters), built, built.spec.clusters)
    assert [each.binding for each in both["m1"]] == [other.key, built.key]
    away = with_footprint(both, built, (TargetCluster("m2", 2),))
    assert [each.binding for each in away["m1"]] == [other.key]
    assert [each.binding for each in away["m2"]] == [built.key]


def test_the_shortest_delay_that_a_plugin_requests_counts() -> None:
    delays = {"m1": 30.0, "m2": 10.0, "m3": 20.0, "m4": 0.0}
    later = plugin(
        "P", filter=lambda context: Result.unschedulable("later", retry_after=delays[context.cluster.name])
    )
    decision = decide(
        binding("w").replicas(1).duplicated(), *map(cluster, delays), plugins=with_in_tree(later)
    )
    assert decision.retry_after == 10.0


def test_a_repeated_decision_reports_failed_terms_once() -> None:
    builder = binding("w").duplicated().replicas(1).term("a", "m9").term("b", "m1", "m2").on(m2=1)
    decision = decide(builder, cluster("m1").capacity(pods=3), cluster("m2").capacity(pods=1))
    assert len(decision.attempts) > 2
    assert [failed.name for failed in decision.failed_terms] == ["a"]


def test_a_decision_mutates_neither_the_binding_nor_the_clusters() -> None:
    builder = binding("w").replicas(5).static_weights().on(m1=1)
    built, target = builder.build(), cluster("m1").build()
    before = (repr(built), repr(replace(target)))
    decide(builder, cluster("m1"))
    assert (repr(built), repr(replace(target))) == before


def test_sets_of_components_go_to_one_cluster() -> None:
    builder = (
        binding("w")
        .component("jm", 1, cpu=1)
        .component("tm", 2, cpu=2)
        .spread("cluster", 1, 1)
        .dynamic_weight()
    )
    clusters = [cluster("m1").capacity(cpu=4), cluster("m2").capacity(cpu=10)]
    on = gates(MultiplePodTemplatesScheduling=True)
    decision = decide(builder, *clusters, gates=on)
    assert placed(decision) == {"m2": 0}
    assert [each.allocatable for each in decision.attempts[0].candidates] == [2, 0]
    full = decide(builder, cluster("m1").capacity(cpu=4), gates=on)
    assert str(full.error) == "failed to select clusters: no enough resource when selecting 1 clusters"


def test_a_cluster_that_takes_only_the_bindings_it_has_is_not_among_the_refusals() -> None:
    tainted = cluster("m1").taint("x:NoSchedule")
    first = decide(binding("w").replicas(1).dynamic_weight().on(m1=1), tainted, cluster("m2"))
    assert placed(first) == {"m1": 1}
    assert dict(first.attempts[0].diagnosis.result_by_cluster) == {}
