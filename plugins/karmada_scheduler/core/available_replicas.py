"""How many replicas each cluster can still take: the smallest estimate of all estimators."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, Protocol

from karmada_scheduler.api.binding import (
    RESOURCE_BINDING,
    AssumedWorkload,
    Binding,
    BindingSpec,
    Component,
    ReplicaRequirements,
    TargetCluster,
    footprint,
)
from karmada_scheduler.api.binding_spec import TargetComponents
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.quantity import MAX_INT32
from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.core.algorithms import columns
from karmada_scheduler.core.algorithms.columns import Column
from karmada_scheduler.framework.runtime.filter_cache import FilterResults
from karmada_scheduler.structs import Struct

NO_OPINION: Final = -1
_SETS_AT_ONCE: Final = 16
"""Clusters whose sets are counted before the decision may yield; one with many different nodes takes a second."""

Assumed = Mapping[str, Sequence[AssumedWorkload]]
"""Workloads by cluster name that were placed recently and are not yet in the cluster's status."""


async def _never_yield() -> None:
    """Do not yield to the event loop."""


class EstimationError(Exception):
    """An estimator failed; none of its results for this binding count."""


class ReplicaEstimator(Protocol):
    """Estimates how many replicas clusters can take.

    A result has one number per cluster, in the given order; NO_OPINION means that the estimator has no number.

    Attributes:
        name: For logs.
    """

    name: str

    def max_available_replicas(
        self, clusters: Sequence[Cluster], requirements: ReplicaRequirements | None, assumed: Assumed
    ) -> Sequence[int] | Awaitable[Sequence[int]]:
        """Return how many replicas each cluster can take; EstimationError makes all results invalid."""

    def max_available_component_sets(
        self, clusters: Sequence[Cluster], components: Sequence[Component], namespace: str, assumed: Assumed
    ) -> Sequence[int] | Awaitable[Sequence[int]]:
        """Return how many sets of all components each cluster can take; EstimationError as above."""


class LocalEstimator(ReplicaEstimator, Protocol):
    """An estimator in this process, whose result for a cluster depends only on that cluster and the request.

    Its results are cached until the cluster changes.
    """

    def replicas_by_row(
        self, results: FilterResults, rows: Column, requirements: ReplicaRequirements | None
    ) -> Column:
        """Return how many replicas some clusters can take, without waiting.

        Args:
            results: The clusters that pass a set of filters, one per row.
            rows: The rows to estimate.
            requirements: The resource request of a replica.

        Returns:
            One number of at most 32 bits for each of these rows; NO_OPINION where there is none.
        """


class Estimators(Struct, frozen=True):
    """The estimators of one decision.

    Attributes:
        local: Those in this process.
        session: The estimators in the member clusters, None if they are not enabled.
    """

    local: Sequence[LocalEstimator] = ()
    session: ReplicaEstimator | None = None

    def all(self) -> Sequence[ReplicaEstimator]:
        """Return all of them in the order in which they are called."""
        return self.local if self.session is None else (*self.local, self.session)


def with_footprint(assumed: Assumed, binding: Binding, targets: Sequence[TargetCluster]) -> Assumed:
    """Return the assumed workloads with a binding on these targets instead of its current ones.

    Only workloads in a namespace need capacity. Clusters other than the old and new targets stay as they are.
    """
    if binding.key.kind != RESOURCE_BINDING or not binding.spec.is_workload:
        return assumed
    after = dict(assumed)
    for name in {target.name for target in (*binding.spec.clusters, *targets)}:
        others = [workload for workload in after.pop(name, ()) if workload.binding != binding.key]
        if others:  # a cluster without assumptions is not named, so that equal ones are equal
            after[name] = others
    for target in targets:
        after[target.name] = [*after.get(target.name, ()), footprint(binding, target)]
    return after


def counts_component_sets(spec: BindingSpec, gates: FeatureGates) -> bool:
    """Return whether capacity is counted in sets of all components, which must go to one cluster together."""
    if not spec.components or spec.placement is None or not gates.enabled("MultiplePodTemplatesScheduling"):
        return False
    return any(
        constraint.spread_by_field == "cluster" and constraint.min_groups == 1 and constraint.max_groups == 1
        for constraint in spec.placement.spread_constraints
    )


def components_of_targets(spec: BindingSpec, gates: FeatureGates) -> TargetComponents | None:
    """Return the components of every target of a successful decision; None by rules without them.

    Source: karmada master of 2026-08-21 (f8fdd02df) pkg/scheduler/core/common.go.
    """
    if not gates.rules.target_components:
        return None
    if len(spec.components) < 2 or not counts_component_sets(spec, gates):
        return ()
    return tuple([(component.name, component.replicas) for component in spec.components])


async def available_replicas(
    spec: BindingSpec,
    clusters: Sequence[Cluster],
    *,
    estimators: Estimators,
    gates: FeatureGates,
    assumed: Assumed,
    yield_if_due: Callable[[], Awaitable[None]] = _never_yield,
) -> list[int]:
    """Return how many replicas can be added to each cluster, in the given order.

    Counting sets of components may take long, so ``yield_if_due`` is awaited after every few clusters.

    Source: karmada v1.18.2 pkg/scheduler/core/util.go calAvailableReplicas.
    """
    least = [MAX_INT32] * len(clusters)
    if not counts(spec):
        return least
    if not gates.enabled("SchedulingOvercommitProtection"):
        assumed = {}
    for estimator in estimators.all():
        try:
            if counts_component_sets(spec, gates):
                # A session sends its requests for all clusters at the same time.
                at_once = max(1, len(clusters)) if estimator is estimators.session else _SETS_AT_ONCE
                estimates = await _component_sets(
                    estimator, spec, clusters, assumed=assumed, at_once=at_once, yield_if_due=yield_if_due
                )
            else:
                result = estimator.max_available_replicas(clusters, spec.replica_requirements, assumed)
                estimates = await result if inspect.isawaitable(result) else result
        except EstimationError:
            continue
        least = [
            estimate if estimate != NO_OPINION and estimate < known else known
            for known, estimate in zip(least, estimates, strict=True)
        ]
    return [spec.replicas if known == MAX_INT32 else known for known in least]


def counts(spec: BindingSpec) -> bool:
    """Return whether the binding needs capacity."""
    return spec.replicas != 0 or bool(spec.components)


async def _component_sets(
    estimator: ReplicaEstimator,
    spec: BindingSpec,
    clusters: Sequence[Cluster],
    *,
    assumed: Assumed,
    at_once: int,
    yield_if_due: Callable[[], Awaitable[None]],
) -> Sequence[int]:
    """Return the estimates of one estimator, ``at_once`` clusters per call."""
    estimates: list[int] = []
    for begin in range(0, len(clusters), at_once):
        await yield_if_due()
        some = clusters[begin : begin + at_once]
        result = estimator.max_available_component_sets(
            some, spec.components, spec.resource.namespace, assumed
        )
        estimates += await result if inspect.isawaitable(result) else result
    return estimates


def least_by_row(
    spec: BindingSpec, results: FilterResults, rows: Column, estimators: Sequence[LocalEstimator]
) -> Column:
    """Return the smallest estimate for the clusters in some rows; MAX_INT32 if there is none.

    Of the binding, it depends only on the resource request of a replica.
    """
    if not estimators or not counts(spec):
        return columns.filled(len(rows), MAX_INT32)
    estimates = [
        estimator.replicas_by_row(results, rows, spec.replica_requirements) for estimator in estimators
    ]
    return columns.row_minimum(estimates, ignored=NO_OPINION, default=MAX_INT32)
