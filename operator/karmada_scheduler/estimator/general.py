"""The built-in estimator: capacity from the resource summary and the resource models of a cluster.

Source: karmada v1.18.2 pkg/estimator/client/general.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final
from weakref import WeakKeyDictionary

from karmada_scheduler.api.binding import AssumedWorkload, Component, ReplicaRequirements
from karmada_scheduler.api.cluster import Cluster, ResourceSummary
from karmada_scheduler.api.quantity import (
    DECIMAL_EXPONENT,
    DECIMAL_SI,
    MAX_INT32,
    MAX_INT64,
    ZERO,
    Quantity,
    wrap32,
    wrap64,
)
from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.core.algorithms import columns
from karmada_scheduler.core.algorithms.columns import Column
from karmada_scheduler.estimator.capacity import Capacity, CapacityColumns
from karmada_scheduler.estimator.nodes import NodeGroup, count_sets, fit_alone, place_set
from karmada_scheduler.estimator.resources import CPU, PODS, Amounts, amounts
from karmada_scheduler.framework.diagnosis import SchedulingError
from karmada_scheduler.framework.runtime.filter_cache import FilterResults

Demands = Sequence[tuple[str, int, int]]
"""Requested resources: name, whole units, and of cpu thousandths; only what is more than nothing."""

_NOBODY: Final[Sequence[AssumedWorkload]] = ()
_FEW: Final = 100


class GeneralEstimator:
    """Estimates from what clusters report about themselves; it always has an answer."""

    name = "general-estimator"
    is_local = True

    def __init__(self, gates: FeatureGates) -> None:
        self._uses_models = gates.enabled("CustomizedClusterResourceModeling")
        self._deducts = gates.enabled("SchedulingOvercommitProtection")
        self._capacities: dict[str, Capacity] = {}
        self._largest_fleet = 0
        self._columns: WeakKeyDictionary[FilterResults, CapacityColumns] = WeakKeyDictionary()

    def max_available_replicas(
        self,
        clusters: Sequence[Cluster],
        requirements: ReplicaRequirements | None,
        assumed: Mapping[str, Sequence[AssumedWorkload]],
    ) -> list[int]:
        """Count the replicas that each cluster can still take."""
        self._forget_clusters(len(clusters))
        if requirements is None:
            return [self._pods(cluster, assumed.get(cluster.name, _NOBODY)) for cluster in clusters]
        demands, on_nodes = _demands_of(requirements), amounts(requirements.resource_request)
        if not assumed:
            return [self._replicas(cluster, demands, on_nodes, _NOBODY) for cluster in clusters]
        return [
            self._replicas(cluster, demands, on_nodes, assumed.get(cluster.name, _NOBODY))
            for cluster in clusters
        ]

    def replicas_by_row(
        self, verdicts: FilterResults, rows: Column, requirements: ReplicaRequirements | None
    ) -> Column:
        """Count as ``max_available_replicas`` does, with nothing assumed, for rows of the clusters that pass."""
        self._forget_clusters(len(verdicts))
        capacities = self._columns.get(verdicts)
        if capacities is None:
            capacities = self._columns[verdicts] = CapacityColumns(self._known)
        capacities.refresh(verdicts)
        if requirements is None:
            return capacities.pods(rows)
        demands = _demands_of(requirements)
        wanted = [(name, milli if name == CPU else value) for name, value, milli in demands]
        has_overflowed = any(amount <= 0 for _, amount in wanted)  # thousandths of cpu
        alone = range(len(rows)) if has_overflowed else capacities.scalar_rows(rows)
        most = columns.filled(len(rows), 0) if has_overflowed else capacities.fits(wanted, rows)
        if alone:
            on_nodes = amounts(requirements.resource_request)
            for place in alone:
                cluster = verdicts.feasible[rows.item(place)]
                most[place] = self._replicas(cluster, demands, on_nodes, _NOBODY)
        return most

    def max_available_component_sets(
        self,
        clusters: Sequence[Cluster],
        components: Sequence[Component],
        namespace: str,  # noqa: ARG002  (quotas in the member clusters are the accurate estimator's business)
        assumed: Mapping[str, Sequence[AssumedWorkload]],
    ) -> list[int]:
        """Count the sets of all components that each cluster can still take."""
        self._forget_clusters(len(clusters))
        per_set = _per_set(components)
        return [
            self._sets(cluster, components, per_set, assumed.get(cluster.name, _NOBODY))
            for cluster in clusters
        ]

    def _known(self, cluster: Cluster) -> Capacity:
        """Return a cluster's capacity, from memory if it is the same cluster."""
        known = self._capacities.get(cluster.name)
        if known is None or known.cluster is not cluster:
            known = Capacity.of(cluster, uses_models=self._uses_models)
            self._capacities[cluster.name] = known
        return known

    def _forget_clusters(self, asked: int) -> None:
        """Forget what is known of clusters, most of which must be gone if they are more than ever were asked about."""
        self._largest_fleet = max(self._largest_fleet, asked)
        if len(self._capacities) > 2 * self._largest_fleet + _FEW:
            self._capacities.clear()

    def _capacity(self, cluster: Cluster, assumed: Sequence[AssumedWorkload]) -> Capacity:
        known = self._known(cluster)
        if self._deducts and assumed and cluster.resource_summary is not None:
            return known.with_summary(_with_assumed(cluster.resource_summary, assumed))
        return known

    def _pods(self, cluster: Cluster, assumed: Sequence[AssumedWorkload]) -> int:
        return wrap32(self._capacity(cluster, assumed).pods)

    def _replicas(
        self, cluster: Cluster, demands: Demands, on_nodes: Amounts, assumed: Sequence[AssumedWorkload]
    ) -> int:
        capacity = self._capacity(cluster, assumed)
        pods = capacity.pods
        if pods <= 0:
            return 0
        if capacity.runs is not None:
            count = _replicas_on_nodes(capacity.runs, on_nodes, assumed)
        else:
            count = _replicas_by_summary(capacity, demands)
        count = min(count, pods)
        return count if 0 <= count <= MAX_INT32 else wrap32(count)

    def _sets(
        self,
        cluster: Cluster,
        components: Sequence[Component],
        per_set: Amounts,
        assumed: Sequence[AssumedWorkload],
    ) -> int:
        summary = cluster.resource_summary
        capacity = self._capacity(cluster, _NOBODY)
        pods = capacity.pods
        if summary is None or pods <= 0:
            return 0
        available = {name: _mixed_units(room) for name, room in summary.room.items()}
        if self._deducts and assumed:
            pods -= _deduct(available, assumed)
            if pods <= 0:
                return 0
        pods_per_set = sum(component.replicas for component in components)
        if pods_per_set <= 0:
            return wrap32(pods)
        most = _sets_by_summary(available, per_set, wrap32(pods // pods_per_set))
        if capacity.runs is not None and most > 0:
            runs = _taken(capacity.runs, assumed)
            try:
                most = min(most, count_sets(runs, components, most=most))
            except SchedulingError as problem:
                raise problem.within(f"cluster {cluster.name}") from None
        return most


def _demands_of(requirements: ReplicaRequirements) -> Demands:
    return [
        (name, value, quantity.milli_value if name == CPU else 0)
        for name, quantity in requirements.resource_request.items()
        if (value := quantity.value) > 0
    ]


def _with_assumed(summary: ResourceSummary, assumed: Sequence[AssumedWorkload]) -> ResourceSummary:
    """Count assumed workloads as about to be allocated."""
    allocating = dict(summary.allocating)

    def add(name: str, amount: Quantity) -> None:
        allocating[name] = allocating.get(name, Quantity(0, format="")) + amount

    for workload in assumed:
        for component in workload.components:
            replicas = component.replicas
            if replicas <= 0:
                continue
            # Whole pods first, as Go does: its int64 wraps where the quantity would not.
            allocating[PODS] = Quantity(wrap64(allocating.get(PODS, ZERO).value + replicas))
            requirements = component.replica_requirements
            for name, quantity in (requirements.resource_request if requirements else {}).items():
                if name == CPU:
                    add(name, Quantity(wrap64(quantity.milli_value * replicas), -3))
                else:
                    add(name, Quantity(wrap64(quantity.value * replicas), 0, quantity.format))
    return ResourceSummary(summary.allocatable, summary.allocated, allocating, summary.modelings)


def _replicas_by_summary(capacity: Capacity, demands: Demands) -> int:
    best = MAX_INT64
    for name, value, milli in demands:
        have, have_milli = capacity.left(name)
        if have <= 0:
            return 0
        wanted = value
        if name == CPU:
            have, wanted = have_milli, milli
            if wanted == 0:  # milli-units overflowed; upstream divides by zero and dies
                return 0
        best = min(best, have // wanted if have > 0 and wanted > 0 else _quotient(have, wanted))
    return best


def _replicas_on_nodes(
    runs: Sequence[NodeGroup], request: Amounts, assumed: Sequence[AssumedWorkload]
) -> int:
    return min(fit_alone(_taken(runs, assumed), request), MAX_INT32)


def _taken(runs: Sequence[NodeGroup], assumed: Sequence[AssumedWorkload]) -> list[NodeGroup]:
    """Return virtual nodes on which assumed workloads have been placed."""
    left = list(runs)
    for workload in assumed:
        place_set(left, workload.components)
    return left


def _mixed_units(quantity: Quantity) -> int:
    """Convert an amount for the arithmetic of sets.

    Decimal notations count in thousandths and binary ones in whole units, and the two are compared as
    they are: upstream's defect, kept because decisions depend on it.
    """
    return quantity.milli_value if quantity.format in {DECIMAL_SI, DECIMAL_EXPONENT} else quantity.value


def _per_set(components: Sequence[Component]) -> Amounts:
    per_set: Amounts = {}
    for component in components:
        requirements = component.replica_requirements
        for name, quantity in (requirements.resource_request if requirements else {}).items():
            per_set[name] = wrap64(per_set.get(name, 0) + _mixed_units(quantity) * component.replicas)
    return per_set


def _deduct(available: Amounts, assumed: Sequence[AssumedWorkload]) -> int:
    """Take assumed workloads off; return their pods."""
    pods = 0
    for workload in assumed:
        pods += sum(component.replicas for component in workload.components)
        for name, amount in _per_set(workload.components).items():
            available[name] = wrap64(available.get(name, 0) - amount)
    return pods


def _sets_by_summary(available: Amounts, per_set: Amounts, most: int) -> int:
    for name, amount in per_set.items():
        if amount <= 0:
            continue
        have = available.get(name, 0)
        if have <= 0:
            return 0
        most = min(most, wrap32(have // amount))
    return most


def _quotient(dividend: int, divisor: int) -> int:
    """Divide as Go does: towards zero."""
    magnitude = abs(dividend) // abs(divisor)
    return magnitude if (dividend < 0) == (divisor < 0) else -magnitude
