"""What a rebalance of one binding does for the goal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from karmada_advisor.plan.load import requests
from karmada_advisor.rebalance.model import Goal, Reason
from karmada_advisor.rebalance.usage import Usage, differences
from karmada_scheduler.api.binding import Binding, TargetCluster
from karmada_scheduler.api.placement import AGGREGATED
from karmada_scheduler.core.assign_replicas import strategy_of

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

    @property
    def reason(self) -> Reason:
        """The reason with that weight."""
        return next(reason for reason, weight in _WEIGHTS.items() if weight == self.weight)

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
        before, after = usage.share(name), usage.share_with(name, replicas, amounts)
        if before is not None and after is not None:
            total += before**2 - after**2
    return total


def _is_aggregated(binding: Binding) -> bool:
    placement = binding.spec.placement
    return placement is not None and strategy_of(placement) == AGGREGATED
