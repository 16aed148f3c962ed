"""The built-in estimator: capacity from the resource summary and the resource models of a cluster.

Source: karmada v1.18.2 pkg/estimator/client/general.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final
from weakref import WeakKeyDictionary, ref

from karmada_scheduler.api.binding import AssumedWorkload, Component, ReplicaRequirements
from karmada_scheduler.api.cluster import Cluster, ResourceSummary
from karmada_scheduler.api.quantity import (
    DECIMAL_EXPONENT,
    DECIMAL_SI,
    MAX_INT32,
    MAX_INT64,
    ZERO,
    Quantity,
    quotient,
    wrap32,
    wrap64,
)
from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.core.algorithms import columns
from karmada_scheduler.core.algorithms.columns import Column
from karmada_scheduler.estimator.capacity import CapacityColumns, ClusterCapacity, Deduction
from karmada_scheduler.estimator.nodes import (
    CPU,
    PODS,
    Amounts,
    NodeGroup,
    amounts,
    count_sets,
    fit_alone,
    place_set,
)
from karmada_scheduler.framework.diagnosis import SchedulingError
from karmada_scheduler.framework.runtime.filter_cache import FilterResults
from karmada_scheduler.structs import Struct

Demands = Sequence[tuple[str, int, int]]
"""Requested resources with a positive amount: name, whole units, and thousandths if it is cpu."""

_NO_WORKLOADS: Final[Sequence[AssumedWorkload]] = ()
_MARGIN: Final = 100


class GeneralEstimator:
    """Estimates from the resource summaries and models that clusters report; it always has a result."""

    name = "general-estimator"

    def __init__(self, gates: FeatureGates) -> None:
        self._uses_models = gates.enabled("CustomizedClusterResourceModeling")
        self._by_grade = gates.rules.model_estimate == "by_grade"
        self._deducts = gates.enabled("SchedulingOvercommitProtection")
        self._capacities: dict[str, ClusterCapacity] = {}
        self._largest_fleet = 0
        self._columns: WeakKeyDictionary[FilterResults, CapacityColumns] = WeakKeyDictionary()
        self._latest: Callable[[], CapacityColumns | None] = lambda: None

    def max_available_replicas(
        self,
        clusters: Sequence[Cluster],
        requirements: ReplicaRequirements | None,
        assumed: Mapping[str, Sequence[AssumedWorkload]],
    ) -> list[int]:
        """Return how many replicas each cluster can still take."""
        self._limit_cache(len(clusters))
        if requirements is None:
            return [self._pods(cluster, assumed.get(cluster.name, _NO_WORKLOADS)) for cluster in clusters]
        request = _RequestedAmounts.of(requirements)
        if not assumed:
            return [self._replicas(cluster, request, _NO_WORKLOADS) for cluster in clusters]
        return [
            self._replicas(cluster, request, assumed.get(cluster.name, _NO_WORKLOADS)) for cluster in clusters
        ]

    def replicas_by_row(
        self, results: FilterResults, rows: Column, requirements: ReplicaRequirements | None
    ) -> Column:
        """Return the results of ``max_available_replicas`` without assumed workloads, for some rows."""
        self._limit_cache(len(results))
        capacities = self._columns.get(results)
        if capacities is None:
            capacities = self._columns[results] = CapacityColumns(self._cached_capacity)
        latest = self._latest()
        capacities.refresh(results, None if latest is capacities else latest)
        self._latest = ref(capacities)
        if requirements is None:
            return capacities.pods(rows)
        demands = _demands_of(requirements)
        wanted = [(name, milli if name == CPU else value) for name, value, milli in demands]
        has_overflowed = any(amount <= 0 for _, amount in wanted)  # thousandths of cpu
        scalar = range(len(rows)) if has_overflowed else capacities.scalar_rows(rows)
        most = columns.filled(len(rows), 0) if has_overflowed else capacities.fits(wanted, rows)
        if scalar:
            requested = requirements.resource_request
            request = _RequestedAmounts(requested, demands, amounts(requested))
            for index in scalar:
                cluster = results.feasible[rows.item(index)]
                most[index] = self._replicas(cluster, request, _NO_WORKLOADS)
        return most

    def max_available_component_sets(
        self,
        clusters: Sequence[Cluster],
        components: Sequence[Component],
        namespace: str,  # noqa: ARG002  (only the accurate estimator applies quotas)
        assumed: Mapping[str, Sequence[AssumedWorkload]],
    ) -> list[int]:
        """Return how many sets of all components each cluster can still take."""
        self._limit_cache(len(clusters))
        per_set = _per_set(components)
        return [
            self._sets(cluster, components, per_set, assumed.get(cluster.name, _NO_WORKLOADS))
            for cluster in clusters
        ]

    def _cached_capacity(self, cluster: Cluster) -> ClusterCapacity:
        """Return a cluster's capacity, from the cache if the cluster is the same object."""
        cached = self._capacities.get(cluster.name)
        if cached is None or cached.cluster is not cluster:
            cached = ClusterCapacity.of(cluster, uses_models=self._uses_models, by_grade=self._by_grade)
            self._capacities[cluster.name] = cached
        return cached

    def _limit_cache(self, count: int) -> None:
        """Clear the cache if it has many more clusters than any call: most of them must have been removed."""
        self._largest_fleet = max(self._largest_fleet, count)
        if len(self._capacities) > 2 * self._largest_fleet + _MARGIN:
            self._capacities.clear()

    def _capacity(self, cluster: Cluster, assumed: Sequence[AssumedWorkload]) -> ClusterCapacity:
        cached = self._cached_capacity(cluster)
        return _deducted(cached, assumed) if self._deducts and assumed else cached

    def _pods(self, cluster: Cluster, assumed: Sequence[AssumedWorkload]) -> int:
        return wrap32(self._capacity(cluster, assumed).pods)

    def _replicas(
        self, cluster: Cluster, request: _RequestedAmounts, assumed: Sequence[AssumedWorkload]
    ) -> int:
        capacity = self._capacity(cluster, assumed)
        pods = capacity.pods
        if pods <= 0:
            return 0
        count: int | None = None
        if self._by_grade:
            count = capacity.grades.replicas(request.amounts) if capacity.grades is not None else None
        elif capacity.groups is not None:
            count = min(fit_alone(_after_assumed(capacity.groups, assumed), request.on_nodes), MAX_INT32)
        if count is None:
            count = _replicas_by_summary(capacity, request.demands)
        return wrap32(min(count, pods))

    def _sets(
        self,
        cluster: Cluster,
        components: Sequence[Component],
        per_set: Amounts,
        assumed: Sequence[AssumedWorkload],
    ) -> int:
        summary = cluster.resource_summary
        capacity = self._capacity(cluster, _NO_WORKLOADS)
        pods = capacity.pods
        if summary is None or pods <= 0:
            return 0
        available = {name: _mixed_units(amount) for name, amount in summary.available.items()}
        if self._deducts and assumed:
            pods -= _deduct(available, assumed)
            if pods <= 0:
                return 0
        pods_per_set = sum(component.replicas for component in components)
        if pods_per_set <= 0:
            return wrap32(pods)
        most = _sets_by_summary(available, per_set, wrap32(pods // pods_per_set))
        if capacity.groups is not None and most > 0:
            groups = _after_assumed(capacity.groups, assumed)
            try:
                most = min(most, count_sets(groups, components, most=most))
            except SchedulingError as problem:
                raise problem.within(f"cluster {cluster.name}") from None
        return most


class _RequestedAmounts(Struct, frozen=True):
    """What one replica requests, in the forms that the estimates take."""

    amounts: Mapping[str, Quantity]
    demands: Demands
    on_nodes: Amounts

    @classmethod
    def of(cls, requirements: ReplicaRequirements) -> _RequestedAmounts:
        request = requirements.resource_request
        return cls(request, _demands_of(requirements), amounts(request))


def _demands_of(requirements: ReplicaRequirements) -> Demands:
    return [
        (name, value, quantity.milli_value if name == CPU else 0)
        for name, quantity in requirements.resource_request.items()
        if (value := quantity.value) > 0
    ]


def _deducted(capacity: ClusterCapacity, assumed: Sequence[AssumedWorkload]) -> ClusterCapacity:
    """Return a capacity without assumed workloads; those of the calls before are not added again.

    A decision is repeated with its own footprint, which the next decision does not have in this place. So a result
    is continued from the one before, too.
    """
    known = [deduction for deduction in capacity.deductions if deduction.begins(assumed)]
    found = known[-1] if known else Deduction((), capacity)
    if len(found.workloads) < len(assumed) and found.result.summary is not None:
        summary = _with_assumed(found.result.summary, assumed[len(found.workloads) :])
        capacity.deductions = found, Deduction(assumed, capacity.with_summary(summary))
        return capacity.deductions[-1].result
    return found.result


def _with_assumed(summary: ResourceSummary, assumed: Sequence[AssumedWorkload]) -> ResourceSummary:
    """Return a summary in which assumed workloads count as allocating."""
    allocating = dict(summary.allocating)

    def add(name: str, amount: Quantity) -> None:
        # Not added to zero: the exponent, also of a zero, decides how a big decimal is wrapped to 64 bits.
        allocating[name] = allocating[name] + amount if name in allocating else amount

    for workload in assumed:
        for component in workload.components:
            replicas = component.replicas
            if replicas <= 0:
                continue
            # In whole pods, as in Go: its int64 wraps where the quantity would not.
            allocating[PODS] = Quantity(wrap64(allocating.get(PODS, ZERO).value + replicas))
            requirements = component.replica_requirements
            for name, quantity in (requirements.resource_request if requirements else {}).items():
                if name == CPU:
                    add(name, Quantity(wrap64(quantity.milli_value * replicas), -3))
                else:
                    add(name, Quantity(wrap64(quantity.value * replicas), 0, quantity.format))
    return ResourceSummary(summary.allocatable, summary.allocated, allocating, summary.modelings)


def _replicas_by_summary(capacity: ClusterCapacity, demands: Demands) -> int:
    best = MAX_INT64
    for name, value, milli in demands:
        have, have_milli = capacity.left(name)
        if have <= 0:
            return 0
        wanted = value
        if name == CPU:
            have, wanted = have_milli, milli
        best = min(best, have // wanted if have > 0 and wanted > 0 else quotient(have, wanted))
    return best


def _after_assumed(groups: Sequence[NodeGroup], assumed: Sequence[AssumedWorkload]) -> list[NodeGroup]:
    """Return virtual nodes after placing assumed workloads on them."""
    left = list(groups)
    for workload in assumed:
        place_set(left, workload.components)
    return left


def _mixed_units(quantity: Quantity) -> int:
    """Return an amount for the arithmetic of sets.

    Decimal notations count in thousandths and binary ones in whole units, and the two are compared: a defect of
    upstream, kept because decisions depend on it.
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
    """Subtract assumed workloads from the available amounts; return the number of their pods."""
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
