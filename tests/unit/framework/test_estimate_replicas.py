"""EstimateReplicas plugins change how many replicas clusters can take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.core.budget import run_sync
from karmada_scheduler.core.decision import Decision
from karmada_scheduler.core.schedule import SchedulingAlgorithm
from karmada_scheduler.estimator.general import GeneralEstimator
from karmada_scheduler.framework import SUCCESS, EstimateContext, ReplicaEstimate, Result
from karmada_scheduler.framework.runtime.framework import Framework
from karmada_scheduler.testing import binding, cluster, schedule, snapshot
from tests.unit.framework.plugins import answering, at_their_points, plugin, raising, with_in_tree

MEMBERS = [cluster("m1").capacity(cpu=4), cluster("m2").capacity(cpu=8), cluster("m3").capacity(cpu=8)]


def placed(*estimates: ReplicaEstimate, builder: Any = None) -> dict[str, int]:
    plugins = [plugin(f"P{i}", estimate_replicas=answering(each)) for i, each in enumerate(estimates)]
    web = builder or binding("web").replicas(10, cpu=1).dynamic_weight()
    return schedule(web, *MEMBERS, plugins=with_in_tree(*plugins)).placed


def test_without_an_estimate_the_estimators_count() -> None:
    assert placed(ReplicaEstimate()) == placed() == {"m1": 2, "m2": 4, "m3": 4}


def test_while_no_plugin_estimates_anything_none_is_called() -> None:
    cap = ReplicaEstimate(most={"m2": 1})
    idle = plugin("Idle", estimate_replicas=answering(cap))
    idle.estimates_nothing = True
    web = binding("web").replicas(10, cpu=1).dynamic_weight()
    assert schedule(web, *MEMBERS, plugins=with_in_tree(idle)).placed == placed()
    idle.estimates_nothing = False
    assert schedule(web, *MEMBERS, plugins=with_in_tree(idle)).placed == placed(cap)


def test_a_cap_moves_the_rest_to_other_clusters() -> None:
    assert placed(ReplicaEstimate(most={"m2": 1})) == {"m1": 3, "m2": 1, "m3": 6}


def test_of_several_plugins_the_smallest_cap_counts() -> None:
    assert placed(ReplicaEstimate(most={"m2": 3}), ReplicaEstimate(most={"m2": 0, "m1": 2})) == {
        "m1": 2,
        "m3": 8,
    }


def test_what_several_plugins_subtract_adds_up() -> None:
    assert placed(ReplicaEstimate(less={"m2": 4}), ReplicaEstimate(less={"m2": 100})) == {"m1": 3, "m3": 7}


def test_places_that_become_free_count_whatever_the_estimators_say() -> None:
    more = ReplicaEstimate(at_least={"m1": 16})
    assert placed(more, ReplicaEstimate(less={"m1": 4})) == {"m1": 5, "m2": 3, "m3": 2}


def test_a_cap_holds_also_for_places_that_become_free() -> None:
    assert "m1" not in placed(ReplicaEstimate(at_least={"m1": 16}, most={"m1": 0}))


def test_fewer_replicas_than_the_estimators_say_are_no_change() -> None:
    assert placed(ReplicaEstimate(at_least={"m1": 1}, most={"m2": 8})) == placed()


def test_a_cap_leaves_what_is_placed() -> None:
    web = binding("web").replicas(10, cpu=1).dynamic_weight().on(m2=6)
    assert placed(ReplicaEstimate(most={"m2": 0, "m1": 1}), builder=web) == {"m2": 6, "m3": 4}


def test_a_cap_chooses_other_clusters_where_the_spread_leaves_a_choice() -> None:
    web = binding("web").replicas(6, cpu=1).dynamic_weight().spread("cluster", 1, 1)
    assert placed(ReplicaEstimate(most={"m2": 5}), builder=web) == {"m3": 6}


def test_too_little_capacity_is_reported_as_without_the_plugin() -> None:
    caps = plugin(
        "P", estimate_replicas=answering(ReplicaEstimate(most=dict.fromkeys(["m1", "m2", "m3"], 2)))
    )
    run = schedule(
        binding("web").replicas(10, cpu=1).dynamic_weight().on(m1=2), *MEMBERS, plugins=with_in_tree(caps)
    )
    assert run.condition.reason == "Unschedulable"
    assert "Clusters available replicas 6 are not enough to schedule." in run.condition.message
    assert {target.name for target in run.binding.spec.clusters} == {"m1"}


def test_a_refused_cluster_stays_refused() -> None:
    estimate = plugin("P", estimate_replicas=answering(ReplicaEstimate(at_least={"m2": 100})))
    web = binding("web").replicas(4, cpu=1).dynamic_weight().affinity(clusterNames=["m1", "m3"])
    assert "m2" not in schedule(web, *MEMBERS, plugins=with_in_tree(estimate)).placed


def test_the_plugin_knows_what_is_needed_and_is_called_once_per_pass() -> None:
    contexts: list[EstimateContext] = []

    def estimate(context: EstimateContext) -> ReplicaEstimate:
        contexts.append(context)
        return ReplicaEstimate()

    schedule(
        binding("web").replicas(5, cpu=1).aggregated(),
        *MEMBERS,
        plugins=with_in_tree(plugin("P", estimate_replicas=estimate)),
    )
    assert [(each.needed, each.cycle.affinity_name) for each in contexts] == [(5, "")]


def test_a_binding_without_replicas_needs_no_estimate() -> None:
    assert schedule(
        binding("config"), *MEMBERS, plugins=with_in_tree(plugin("P", estimate_replicas=raising()))
    ).placed


INVALID: list[tuple[Callable[..., Any], str]] = [
    (raising(), 'plugin "P" failed at EstimateReplicas: RuntimeError: boom'),
    (
        answering(ReplicaEstimate(most={"m1": -1})),
        "returned {'m1': -1} at EstimateReplicas, expected 0 to 2147483647",
    ),
    (answering(ReplicaEstimate(less={"m1": 1.5})), "returned {'m1': 1.5} at EstimateReplicas"),  # type: ignore[dict-item]
    (answering(ReplicaEstimate(most={"m1": True})), "returned {'m1': True} at EstimateReplicas"),
    (
        answering(ReplicaEstimate(at_least={"m9": 1})),
        "returned 'm9' at EstimateReplicas, expected the names of",
    ),
    (answering(ReplicaEstimate(most={7: 1})), "returned 7 at EstimateReplicas"),  # type: ignore[dict-item]
    (answering(ReplicaEstimate(most=7)), "at EstimateReplicas, expected replicas by cluster name"),  # type: ignore[arg-type]
    (answering(ReplicaEstimate(reason=None)), "at EstimateReplicas, expected a ReplicaEstimate"),  # type: ignore[arg-type]
    (answering({"m1": 1}), "returned {'m1': 1} at EstimateReplicas, expected a ReplicaEstimate"),
    (answering(None), "returned None at EstimateReplicas"),
    (answering(Result.unschedulable("no")), "expected a ReplicaEstimate or Error"),
    (answering(Result.error("caches are empty")), 'running EstimateReplicas plugin "P": caches are empty'),
]


@pytest.mark.parametrize(("estimate", "text"), INVALID, ids=[text for _, text in INVALID])
def test_an_invalid_estimate_is_an_error_of_the_binding_and_the_placement_stays(
    estimate: Callable[..., Any], text: str
) -> None:
    web = binding("web").replicas(10, cpu=1).dynamic_weight().on(m1=2)
    run = schedule(web, *MEMBERS, plugins=with_in_tree(plugin("P", estimate_replicas=estimate)))
    assert run.condition.reason == "SchedulerError"
    assert text in run.condition.message
    assert 'plugin "P"' in run.condition.message
    assert [tuple(each) for each in run.binding.spec.clusters] == [("m1", 2)]


def test_a_plugin_with_estimate_replicas_keeps_the_cached_results_of_the_others() -> None:
    calls: list[str] = []

    def keyed(context: Any) -> Any:
        calls.append(context.cluster.name)
        return SUCCESS

    filters = plugin("F", filter=keyed, filter_key=answering(()))
    capped = with_in_tree(filters, plugin("P", estimate_replicas=answering(ReplicaEstimate(most={"m1": 1}))))
    gates = FeatureGates()
    algorithm, clusters = SchedulingAlgorithm(gates, [GeneralEstimator(gates)]), snapshot(*MEMBERS)
    from karmada_scheduler.core.budget import run_sync

    for name in ("a", "b", "c"):
        found = run_sync(
            algorithm.decide(
                binding(name).replicas(10, cpu=1).dynamic_weight().build(),
                clusters,
                capped,
                until_stable=False,
            )
        )
        assert dict(found.targets or ())["m1"] == 1
    assert calls == ["m1", "m2", "m3"]


_REPLICAS = st.dictionaries(st.sampled_from([f"m{i}" for i in range(6)]), st.integers(0, 12))


@settings(deadline=None)
@given(
    estimates=st.lists(st.builds(ReplicaEstimate, _REPLICAS, _REPLICAS, _REPLICAS), max_size=3),
    capacities=st.lists(st.integers(0, 10), min_size=6, max_size=6),
    on=st.dictionaries(st.sampled_from([f"m{i}" for i in range(6)]), st.integers(1, 5), max_size=3),
    replicas=st.integers(1, 25),
    shape=st.sampled_from(["aggregated", "dynamic_weight", "duplicated", "one", "regions"]),
)
def test_decisions_from_cached_orders_are_those_without_caches(
    estimates: list[ReplicaEstimate], capacities: list[int], on: dict[str, int], replicas: int, shape: str
) -> None:
    members = [
        cluster(f"m{i}").region(f"r{i % 3}").capacity(cpu=capacity) for i, capacity in enumerate(capacities)
    ]
    web = binding("web").replicas(replicas, cpu=1).on(**on)
    web = getattr(web, shape)() if hasattr(web, shape) else web.dynamic_weight()
    if shape == "one":
        web = web.spread("cluster", 1, 2)
    if shape == "regions":
        web = web.spread("region", 1, 2).spread("cluster", 1, 3)
    plugins = {
        f"P{i}": plugin(f"P{i}", estimate_replicas=answering(each)) for i, each in enumerate(estimates)
    }
    every = {**{each.name: each for each in with_in_tree().plugins.unique}, **plugins}
    gates = FeatureGates()

    def decided(*, caches: bool) -> Decision:
        made = Framework(at_their_points(every), caches_results=caches)
        algorithm = SchedulingAlgorithm(gates, [GeneralEstimator(gates)])
        return run_sync(algorithm.decide(web.build(), snapshot(*members), made))

    cached, plain = decided(caches=True), decided(caches=False)
    assert (str(cached.error), cached.targets) == (str(plain.error), plain.targets)
    for one, other in zip(cached.attempts, plain.attempts, strict=True):
        assert list(one.candidates) == list(other.candidates)
