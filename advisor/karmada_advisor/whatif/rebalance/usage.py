"""What clusters use of their capacity while bindings move, and what a move gains."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from karmada_advisor.explain.amounts import units
from karmada_advisor.whatif.plan.effects import differences
from karmada_advisor.whatif.plan.load import CPU, PODS, requests
from karmada_advisor.whatif.rebalance.model import Goal, Reason
from karmada_scheduler.api.binding import Binding, BindingSpec, TargetCluster
from karmada_scheduler.api.cluster import Cluster, ResourceSummary
from karmada_scheduler.api.placement import AGGREGATED
from karmada_scheduler.api.quantity import Quantity
from karmada_scheduler.core.assign_replicas import strategy_of
from karmada_scheduler.structs import replace

SHARED: Final = (CPU, "memory", PODS)
"""The resources of which the largest share is the dominant one."""

Amounts = Mapping[str, int]
"""Resource name to thousandths of cpu, or whole units of others."""

_NOTHING: Final[Amounts] = {}


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
                each: units(each, amount) for each, amount in summary.allocatable.items()
            }
            self._taken[name] = {
                each: amount - units(each, summary.left(each))
                for each, amount in self._allocatable[name].items()
            }

    def share(self, name: str, more: Amounts = _NOTHING) -> float | None:
        """Return the dominant share of a cluster, with more taken: 1 is full; None if it reports nothing."""
        allocatable, taken = self._allocatable.get(name), self._taken.get(name, {})
        if allocatable is None:
            return None
        shares = [
            max(0, taken[each] + more.get(each, 0)) / allocatable[each]
            for each in SHARED
            if allocatable.get(each, 0) > 0
        ]
        return max(shares, default=None)

    def shares(self) -> dict[str, float]:
        """Return the dominant shares of all clusters that report theirs."""
        found = {name: self.share(name) for name in self._clusters}
        return {name: share for name, share in found.items() if share is not None}

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


def deviation(shares: Mapping[str, float]) -> float:
    """Return the standard deviation of shares; 0 without any."""
    if not shares:
        return 0.0
    mean = sum(shares.values()) / len(shares)
    return math.sqrt(sum((each - mean) ** 2 for each in shares.values()) / len(shares))


def _quantity(name: str, amount: int) -> Quantity:
    return Quantity(amount, -3 if name == CPU else 0)


def _at_least_zero(one: Quantity | None, other: Quantity) -> Quantity:
    total = other if one is None else one + other
    return total if total.unscaled > 0 else Quantity(0)


_WEIGHTS = {Reason.PLACED: 2, Reason.DISALLOWED: 1, Reason.GOAL: 0}
_NEGLIGIBLE = 1e-12
"""Below this, a difference of squares of shares is a rounding error."""


class Gain(NamedTuple):
    """How much a rebalance is worth; larger is better.

    Attributes:
        weight: That of the reason; a reason with more weight always comes first.
        per_move: What each replica that stops gains for the goal.
        total: What all of them gain.
    """

    weight: int
    per_move: float
    total: float

    def suffices(self, least: float) -> bool:
        """Return whether it is worth the move; ``least`` is the smallest gain per replica."""
        return self.weight > 0 or (self.total > _NEGLIGIBLE and self.per_move >= least)


def gain_of(
    binding: Binding,
    after: Sequence[TargetCluster],
    usage: Usage,
    *,
    goal: Goal,
    fill: str,
    reason: Reason,
) -> Gain:
    """Return the gain of a rebalance.

    Args:
        binding: As it is stored.
        after: Its clusters afterwards.
        usage: What is allocated before it.
        goal: What the rebalance is for.
        fill: The cluster of the goal ``fill``.
        reason: Why it is looked at.
    """
    before = binding.spec.clusters
    changed = differences(before, after)
    stops = -sum(replicas for replicas in changed.values() if replicas < 0)
    match goal:
        case Goal.SPREAD:
            total = _spread(binding, changed, usage)
        case Goal.CONSOLIDATE:
            total = float(len(before) - len(after)) if _is_aggregated(binding) else 0.0
        case Goal.FILL:
            total = float(changed.get(fill, 0))
    return Gain(_WEIGHTS[reason], total / max(1, stops), total)


def _spread(binding: Binding, changed: dict[str, int], usage: Usage) -> float:
    """Return by how much the sum of the squares of the dominant shares becomes smaller."""
    amounts, total = requests(binding.spec), 0.0
    for name, replicas in changed.items():
        more = {each: replicas * amount for each, amount in amounts.items()}
        before, after = usage.share(name), usage.share(name, more)
        if before is not None and after is not None:
            total += before**2 - after**2
    return total


def _is_aggregated(binding: Binding) -> bool:
    placement = binding.spec.placement
    return placement is not None and strategy_of(placement) == AGGREGATED
