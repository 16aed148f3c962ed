"""What is allocated in clusters, and how that changes when replicas stop and start."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from karmada_advisor.plan.load import CPU, PODS, requests
from karmada_scheduler.api.binding import BindingSpec, TargetCluster
from karmada_scheduler.api.cluster import Cluster, ResourceSummary
from karmada_scheduler.api.quantity import Quantity

SHARED: Final = (CPU, "memory", PODS)
"""The resources of which the largest share is the dominant one."""

Amounts = Mapping[str, int]
"""Resource name to thousandths of cpu, or whole units of others."""


class Usage:
    """The allocated resources of all clusters."""

    def __init__(self, clusters: Iterable[Cluster]) -> None:
        """Start with what the clusters report."""
        self._clusters = {each.name: each for each in clusters}
        self._allocatable: dict[str, dict[str, int]] = {}
        self._taken: dict[str, dict[str, int]] = {}
        self._moved: dict[str, dict[str, int]] = {}
        for name, cluster in self._clusters.items():
            summary = cluster.resource_summary
            if summary is None:
                continue
            self._allocatable[name] = {
                each: _units(each, amount) for each, amount in summary.allocatable.items()
            }
            self._taken[name] = {
                each: amount - _units(each, summary.left(each))
                for each, amount in self._allocatable[name].items()
            }

    def share(self, name: str) -> float | None:
        """Return the dominant share of a cluster: 1 is full; None if it reports nothing."""
        return self._share(name, {})

    def shares(self) -> dict[str, float]:
        """Return the dominant shares of all clusters that report theirs."""
        found = {name: self.share(name) for name in self._clusters}
        return {name: share for name, share in found.items() if share is not None}

    def share_with(self, name: str, replicas: int, amounts: Amounts) -> float | None:
        """Return the dominant share of a cluster with more replicas, or fewer if the number is negative."""
        return self._share(name, {each: replicas * amount for each, amount in amounts.items()})

    def _share(self, name: str, more: Amounts) -> float | None:
        allocatable, taken = self._allocatable.get(name), self._taken.get(name, {})
        if allocatable is None:
            return None
        shares = [
            max(0, taken[each] + more.get(each, 0)) / allocatable[each]
            for each in SHARED
            if allocatable.get(each, 0) > 0
        ]
        return max(shares, default=None)

    def move(
        self, spec: BindingSpec, before: Sequence[TargetCluster], after: Sequence[TargetCluster]
    ) -> None:
        """Let the replicas of a binding stop and start."""
        amounts = requests(spec)
        for name, replicas in differences(before, after).items():
            if name not in self._allocatable:
                continue
            taken, moved = self._taken[name], self._moved.setdefault(name, {})
            for each, amount in amounts.items():
                if each in taken:
                    taken[each] += replicas * amount
                    moved[each] = moved.get(each, 0) + replicas * amount

    def clusters(self) -> list[Cluster]:
        """Return the clusters as they report their resources after all moves."""
        return [self._cluster(each) for each in self._clusters.values()]

    def _cluster(self, cluster: Cluster) -> Cluster:
        moved, summary = self._moved.get(cluster.name), cluster.resource_summary
        if not moved or summary is None or not any(moved.values()):
            return cluster
        allocated = dict(summary.allocated)
        for name, amount in moved.items():
            allocated[name] = _at_least_zero(allocated.get(name), _quantity(name, amount))
        return replace(
            cluster,
            resource_summary=ResourceSummary(
                summary.allocatable, allocated, summary.allocating, summary.modelings
            ),
        )


def differences(before: Sequence[TargetCluster], after: Sequence[TargetCluster]) -> dict[str, int]:
    """Return by how many replicas each cluster changes; clusters that do not change are left out."""
    found: dict[str, int] = {}
    for target in after:
        found[target.name] = found.get(target.name, 0) + target.replicas
    for target in before:
        found[target.name] = found.get(target.name, 0) - target.replicas
    return {name: replicas for name, replicas in found.items() if replicas}


def deviation(shares: Mapping[str, float]) -> float:
    """Return the standard deviation of shares; 0 without any."""
    if not shares:
        return 0.0
    mean = sum(shares.values()) / len(shares)
    return math.sqrt(sum((each - mean) ** 2 for each in shares.values()) / len(shares))


def _units(name: str, amount: Quantity) -> int:
    return amount.milli_value if name == CPU else amount.value


def _quantity(name: str, amount: int) -> Quantity:
    return Quantity(amount, -3 if name == CPU else 0)


def _at_least_zero(one: Quantity | None, other: Quantity) -> Quantity:
    total = other if one is None else one + other
    return total if total.unscaled > 0 else Quantity(0)
