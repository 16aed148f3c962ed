"""The smallest estimate of several estimators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from karmada_scheduler.api.binding import AssumedWorkload, Component, ReplicaRequirements
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.core.algorithms.columns import Column
from karmada_scheduler.core.available_replicas import (
    Assumed,
    EstimationError,
    Estimators,
    available_replicas,
    counts_component_sets,
)
from karmada_scheduler.core.budget import run_sync
from karmada_scheduler.framework.runtime.filter_cache import FilterResults
from karmada_scheduler.testing import BindingBuilder, binding, cluster, gates

CLUSTERS = [cluster(name).build() for name in ("c1", "c2", "c3")]
COMPONENTS_ON = gates(MultiplePodTemplatesScheduling=True)


class FixedEstimator:
    """An estimator with fixed answers."""

    name = "fixed"

    def __init__(self, replicas: Sequence[int] | None, sets: Sequence[int] | None = None) -> None:
        self.replicas = replicas
        self.sets = sets
        self.assumed: list[Assumed] = []

    def max_available_replicas(
        self, clusters: Sequence[Cluster], requirements: ReplicaRequirements | None, assumed: Assumed
    ) -> Sequence[int]:
        self.assumed.append(assumed)
        return self._result(self.replicas)

    def max_available_component_sets(
        self, clusters: Sequence[Cluster], components: Sequence[Component], namespace: str, assumed: Assumed
    ) -> Sequence[int]:
        return self._result(self.sets)

    def replicas_by_row(
        self, results: FilterResults, rows: Column, requirements: ReplicaRequirements | None
    ) -> Column:
        raise NotImplementedError

    def _result(self, result: Sequence[int] | None) -> Sequence[int]:
        if result is None:
            raise EstimationError("no connection")
        return result


def available(
    builder: BindingBuilder,
    *estimators: FixedEstimator,
    on: FeatureGates | None = None,
    assumed: Mapping[str, Sequence[AssumedWorkload]] | None = None,
) -> list[int]:
    return run_sync(
        available_replicas(
            builder.build().spec,
            CLUSTERS,
            estimators=Estimators(estimators),
            gates=on or FeatureGates(),
            assumed=assumed or {},
        )
    )


WEB = binding("web").replicas(4)
PAIR = binding("web").component("a", 1).component("b", 2).spread("cluster", 1, 1)


@pytest.mark.parametrize(
    ("estimators", "expected"),
    [
        pytest.param([FixedEstimator([12, 7, 0])], [12, 7, 0], id="one"),
        pytest.param(
            [FixedEstimator([12, 7, 0]), FixedEstimator([9, -1, 5])], [9, 7, 0], id="the-least-and-no-opinion"
        ),
        pytest.param(
            [FixedEstimator([12, 7, 0]), FixedEstimator(None)], [12, 7, 0], id="a-failing-one-does-not-count"
        ),
        pytest.param(
            [FixedEstimator([12, -1, 0]), FixedEstimator([-1, -1, 5])],
            [12, 4, 0],
            id="without-an-estimate-all-fit",
        ),
        pytest.param([], [4, 4, 4], id="no-estimator"),
        pytest.param([FixedEstimator([-5, 2**31 - 1, 1])], [-5, 4, 1], id="overflowed-answers-count"),
    ],
)
def test_the_smallest_estimate_counts(estimators: list[FixedEstimator], expected: list[int]) -> None:
    assert available(WEB, *estimators) == expected


def test_without_replicas_capacity_is_unlimited() -> None:
    estimator = FixedEstimator(None)
    assert available(binding("web").replicas(0, cpu=1), estimator) == [2**31 - 1] * 3
    assert estimator.assumed == []


def test_components_on_one_cluster_are_estimated_in_sets() -> None:
    estimator = FixedEstimator([1, 2, 3], sets=[50, 150, 250])
    assert available(PAIR, estimator, on=COMPONENTS_ON) == [50, 150, 250]
    assert available(PAIR, estimator) == [1, 2, 3]
    assert available(PAIR, FixedEstimator([1, 2, 3], sets=[-1, 150, 250]), on=COMPONENTS_ON) == [0, 150, 250]
    assert available(PAIR, FixedEstimator([1, 2, 3], sets=None), on=COMPONENTS_ON) == [0, 0, 0]


@pytest.mark.parametrize(
    ("builder", "applicable"),
    [
        pytest.param(binding("w").spread("cluster", 1, 1), False, id="no-components"),
        pytest.param(binding("w").component("a", 1), False, id="no-constraint"),
        pytest.param(binding("w").component("a", 1).placement(None), False, id="no-placement"),
        pytest.param(binding("w").component("a", 1).spread("region", 1, 1), False, id="region-only"),
        pytest.param(binding("w").component("a", 1).spread("cluster", 2, 2), False, id="two-clusters"),
        pytest.param(binding("w").component("a", 1).spread("cluster", 1, 1), True, id="one-component"),
        pytest.param(PAIR, True, id="two-components"),
        pytest.param(
            binding("w").component("a", 1).spread("region", 1, 1).spread("cluster", 1, 1),
            True,
            id="region-besides",
        ),
    ],
)
def test_sets_need_components_and_exactly_one_cluster(builder: BindingBuilder, applicable: bool) -> None:
    spec = builder.build().spec
    assert counts_component_sets(spec, COMPONENTS_ON) is applicable
    assert not counts_component_sets(spec, FeatureGates())


def test_estimators_get_assumed_workloads_if_the_gate_is_on() -> None:
    estimator, assumed = FixedEstimator([1, 2, 3]), {"c1": [AssumedWorkload("ns", ())]}
    available(WEB, estimator, assumed=assumed)
    available(WEB, estimator, assumed=assumed, on=gates(SchedulingOvercommitProtection=True))
    assert estimator.assumed == [{}, assumed]
