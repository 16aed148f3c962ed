"""How many replicas each cluster could still take: the least that any estimator says."""

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
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.quantity import MAX_INT32
from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.core.algorithms import columns
from karmada_scheduler.core.algorithms.columns import Column
from karmada_scheduler.framework.runtime.filter_cache import FilterResults

NO_OPINION: Final = -1
_SETS_AT_ONCE: Final = 16
"""Clusters whose sets are counted before others may have a turn; one with many different nodes takes a second."""

Assumed = Mapping[str, Sequence[AssumedWorkload]]
"""Cluster name to what was placed there lately and is not yet in its status."""


async def _no_turn() -> None:
    """Let nobody have a turn."""


class EstimationError(Exception):
    """An estimator cannot answer; all that it said about this binding is void."""


class ReplicaEstimator(Protocol):
    """Says how much a cluster can take, at once or after asking elsewhere.

    Every answer has one number per cluster, in the given order; NO_OPINION where it has none.

    Attributes:
        name: For logs.
    """

    name: str

    def max_available_replicas(
        self, clusters: Sequence[Cluster], requirements: ReplicaRequirements | None, assumed: Assumed
    ) -> Sequence[int] | Awaitable[Sequence[int]]:
        """Count the replicas that each cluster can take; EstimationError voids the answer."""
        ...

    def max_available_component_sets(
        self, clusters: Sequence[Cluster], components: Sequence[Component], namespace: str, assumed: Assumed
    ) -> Sequence[int] | Awaitable[Sequence[int]]:
        """Count the sets of all components that each cluster can take; EstimationError voids the answer."""
        ...


class LocalEstimator(ReplicaEstimator, Protocol):
    """One whose answer for a cluster depends on nothing but that cluster and the request.

    What it said is remembered until the cluster changes.
    """

    def replicas_by_row(
        self, verdicts: FilterResults, rows: Column, requirements: ReplicaRequirements | None
    ) -> Column:
        """Count the replicas that clusters can take, at once.

        Args:
            verdicts: The clusters that pass a set of filters, each of which has a row.
            rows: Those that are asked about.
            requirements: What a replica asks for.

        Returns:
            One number of at most 32 bits for each of these rows; NO_OPINION where there is none.
        """
        ...


def with_footprint(assumed: Assumed, binding: Binding, targets: Sequence[TargetCluster]) -> Assumed:
    """Return what is assumed once a binding is written to these targets instead of those it has.

    Only workloads in a namespace take room; what is known of other clusters than the old and new targets stays.
    """
    if binding.key.kind != RESOURCE_BINDING or not binding.spec.is_workload:
        return assumed
    after = dict(assumed)
    for name in {target.name for target in (*binding.spec.clusters, *targets)}:
        others = [each for each in after.pop(name, ()) if each.binding != binding.key]
        if others:  # a cluster without assumptions is not named, so that equal ones are equal
            after[name] = others
    for target in targets:
        after[target.name] = [*after.get(target.name, ()), footprint(binding, target)]
    return after


def counts_component_sets(spec: BindingSpec, gates: FeatureGates) -> bool:
    """Tell whether capacity is counted in sets of all components: they have to go to one cluster together."""
    if not spec.components or spec.placement is None or not gates.enabled("MultiplePodTemplatesScheduling"):
        return False
    return any(
        constraint.spread_by_field == "cluster" and constraint.min_groups == 1 and constraint.max_groups == 1
        for constraint in spec.placement.spread_constraints
    )


async def available_replicas(
    spec: BindingSpec,
    clusters: Sequence[Cluster],
    *,
    estimators: Sequence[ReplicaEstimator],
    gates: FeatureGates,
    assumed: Assumed,
    turn: Callable[[], Awaitable[None]] = _no_turn,
) -> list[int]:
    """Return how many replicas can be added to each cluster, in the given order.

    Between some clusters and the next others have a ``turn``, where that may take long.

    Source: karmada v1.18.2 pkg/scheduler/core/util.go calAvailableReplicas.
    """
    least = await _least_answers(
        spec, clusters, estimators=estimators, gates=gates, assumed=assumed, turn=turn
    )
    if not counts(spec):
        return least
    return [spec.replicas if known == MAX_INT32 else known for known in least]


def counts(spec: BindingSpec) -> bool:
    """Tell whether there is anything to find room for."""
    return spec.replicas != 0 or bool(spec.components)


async def _least_answers(
    spec: BindingSpec,
    clusters: Sequence[Cluster],
    *,
    estimators: Sequence[ReplicaEstimator],
    gates: FeatureGates,
    assumed: Assumed,
    turn: Callable[[], Awaitable[None]],
) -> list[int]:
    """Return the least that any estimator says of each cluster, in the given order; MAX_INT32: nobody says less."""
    least = [MAX_INT32] * len(clusters)
    if not counts(spec):
        return least
    if not gates.enabled("SchedulingOvercommitProtection"):
        assumed = {}
    for estimator in estimators:
        try:
            if counts_component_sets(spec, gates):
                answers = await _component_sets(estimator, spec, clusters, assumed, turn)
            else:
                asked = estimator.max_available_replicas(clusters, spec.replica_requirements, assumed)
                answers = await asked if inspect.isawaitable(asked) else asked
        except EstimationError:
            continue
        least = [
            answer if answer != NO_OPINION and answer < known else known
            for known, answer in zip(least, answers, strict=True)
        ]
    return least


async def _component_sets(
    estimator: ReplicaEstimator,
    spec: BindingSpec,
    clusters: Sequence[Cluster],
    assumed: Assumed,
    turn: Callable[[], Awaitable[None]],
) -> Sequence[int]:
    """Ask for all clusters at once, or for some after the other where nobody else has to be asked."""
    at_once = _SETS_AT_ONCE if hasattr(estimator, "replicas_by_row") else max(1, len(clusters))
    answers: list[int] = []
    for begin in range(0, len(clusters), at_once):
        await turn()
        some = clusters[begin : begin + at_once]
        asked = estimator.max_available_component_sets(
            some, spec.components, spec.resource.namespace, assumed
        )
        answers += await asked if inspect.isawaitable(asked) else asked
    return answers


def least_by_row(
    spec: BindingSpec, verdicts: FilterResults, rows: Column, estimators: Sequence[LocalEstimator]
) -> Column:
    """Return the least that any estimator says of the clusters in these rows; MAX_INT32: nobody says less.

    It depends on nothing of the binding but what a replica asks for.
    """
    if not estimators or not counts(spec):
        return columns.filled(len(rows), MAX_INT32)
    answers = [
        estimator.replicas_by_row(verdicts, rows, spec.replica_requirements) for estimator in estimators
    ]
    return columns.least(answers, but=NO_OPINION, otherwise=MAX_INT32)
