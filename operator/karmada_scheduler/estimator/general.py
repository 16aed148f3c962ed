"""The built-in estimator: capacity from the resource summary and the resource models of a cluster.

Source: karmada v1.18.2 pkg/estimator/client/general.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from karmada_scheduler.api.binding import AssumedWorkload, Component, ReplicaRequirements
from karmada_scheduler.api.cluster import Cluster, ResourceSummary
from karmada_scheduler.api.quantity import (
    DECIMAL_EXPONENT,
    DECIMAL_SI,
    MAX_INT64,
    ZERO,
    Quantity,
    wrap32,
    wrap64,
)
from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.estimator.nodes import fit_alone, place_sets, runs_of
from karmada_scheduler.estimator.resources import CPU, PODS, Amounts, amounts

_MAX_INT32: Final = 2**31 - 1
_NOBODY: Final[Sequence[AssumedWorkload]] = ()


class GeneralEstimator:
    """Estimates from what clusters report about themselves; it always has an answer."""

    name = "general-estimator"

    def __init__(self, gates: FeatureGates) -> None:
        self._uses_models = gates.enabled("CustomizedClusterResourceModeling")
        self._deducts = gates.enabled("SchedulingOvercommitProtection")

    def max_available_replicas(
        self,
        clusters: Sequence[Cluster],
        requirements: ReplicaRequirements | None,
        assumed: Mapping[str, Sequence[AssumedWorkload]],
    ) -> list[int]:
        """Count the replicas that each cluster can still take."""
        request = requirements.resource_request if requirements is not None else None
        return [self._replicas(cluster, request, assumed.get(cluster.name, _NOBODY)) for cluster in clusters]

    def max_available_component_sets(
        self,
        clusters: Sequence[Cluster],
        components: Sequence[Component],
        namespace: str,  # noqa: ARG002  (quotas in the member clusters are the accurate estimator's business)
        assumed: Mapping[str, Sequence[AssumedWorkload]],
    ) -> list[int]:
        """Count the sets of all components that each cluster can still take."""
        return [self._sets(cluster, components, assumed.get(cluster.name, _NOBODY)) for cluster in clusters]

    def _replicas(
        self, cluster: Cluster, request: Mapping[str, Quantity] | None, assumed: Sequence[AssumedWorkload]
    ) -> int:
        summary = cluster.resource_summary
        if summary is None:
            return 0
        if self._deducts and assumed:
            summary = _with_assumed(summary, assumed)
        pods = _free_pods(summary)
        if pods <= 0 or request is None:
            return wrap32(max(pods, 0))
        if self._uses_models and summary.modelings:
            by_models = _replicas_by_models(cluster, amounts(request), assumed)
            if by_models is not None:
                return wrap32(min(by_models, pods))
        return wrap32(min(_replicas_by_summary(summary, request), pods))

    def _sets(
        self, cluster: Cluster, components: Sequence[Component], assumed: Sequence[AssumedWorkload]
    ) -> int:
        summary = cluster.resource_summary
        if summary is None:
            return 0
        available = {name: _mixed_units(room) for name, room in summary.room.items()}
        pods = _free_pods(summary)
        if pods <= 0:
            return 0
        if self._deducts and assumed:
            pods -= _deduct(available, assumed)
            if pods <= 0:
                return 0
        pods_per_set = sum(component.replicas for component in components)
        if pods_per_set <= 0:
            return wrap32(pods)
        most = _sets_by_summary(available, _per_set(components), wrap32(pods // pods_per_set))
        if self._uses_models and summary.modelings and most != 0:
            most = min(most, _sets_by_models(cluster, components, assumed, most))
        return most


def _free_pods(summary: ResourceSummary) -> int:
    allocatable, allocated, allocating = (
        pods.get(PODS, ZERO).value for pods in (summary.allocatable, summary.allocated, summary.allocating)
    )
    return max(0, wrap64(allocatable - allocated - allocating))


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


def _replicas_by_summary(summary: ResourceSummary, request: Mapping[str, Quantity]) -> int:
    best = MAX_INT64
    for name, quantity in request.items():
        wanted = quantity.value
        if wanted <= 0:
            continue
        room = summary.room.get(name)
        if room is None:
            return 0
        have = room.value
        if have <= 0:
            return 0
        if name == CPU:
            have, wanted = room.milli_value, quantity.milli_value
            if wanted == 0:  # milli-units overflowed; upstream divides by zero and dies
                return 0
        best = min(best, _quotient(have, wanted))
    return best


def _replicas_by_models(cluster: Cluster, request: Amounts, assumed: Sequence[AssumedWorkload]) -> int | None:
    """Count replicas on the virtual nodes; None where the models cannot be used."""
    try:
        runs = runs_of(cluster)
    except ValueError:
        return None
    for workload in assumed:
        place_sets(runs, workload.components, most=1)
    return min(fit_alone(runs, request), _MAX_INT32)


def _sets_by_models(
    cluster: Cluster, components: Sequence[Component], assumed: Sequence[AssumedWorkload], most: int
) -> int:
    try:
        runs = runs_of(cluster)
    except ValueError:
        return most
    for workload in assumed:
        place_sets(runs, workload.components, most=1)
    return place_sets(runs, components, most=most)


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
