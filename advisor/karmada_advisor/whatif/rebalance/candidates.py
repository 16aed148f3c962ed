"""Which bindings a rebalance can change, why others are not looked at, what clusters use meanwhile, and what a move gains."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Final, NamedTuple

from karmada_advisor.explain.amounts import units
from karmada_advisor.explain.model import Provenance, Tense
from karmada_advisor.whatif.plan.decide import PlanSide, Progress, no_progress
from karmada_advisor.whatif.plan.effects import differences, same
from karmada_advisor.whatif.plan.holds import HoldOf, nothing_holds
from karmada_advisor.whatif.plan.load import CPU, PODS, requests
from karmada_advisor.whatif.plan.model import Effect
from karmada_advisor.whatif.rebalance.model import Bounds, Goal, Left, Reason, Skipped
from karmada_scheduler.api.binding import Binding, BindingSpec, TargetCluster
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.placement import AGGREGATED, Placement
from karmada_scheduler.api.quantity import Quantity
from karmada_scheduler.core.assign_replicas import STATIC_WEIGHT, strategy_of
from karmada_scheduler.core.classify import ScheduleType
from karmada_scheduler.core.requeue_rules import may_take
from karmada_scheduler.core.schedule_terms import may_return
from karmada_scheduler.dryrun.dry_run import DryRun
from karmada_scheduler.framework.diagnosis import SchedulingError
from karmada_scheduler.structs import Struct, replace


class Inputs(Struct, frozen=True):
    """Everything that a proposal reads.

    Attributes:
        clusters: All clusters.
        bindings: All bindings, in the order in which they were read.
        rules: The configuration of the scheduler.
        goal: What the rebalance is for.
        bounds: Its limits.
        fill: The cluster of the goal ``fill``; "" otherwise.
        is_excluded: Whether a binding must not be moved.
        hold_of: Returns why decisions about a binding do not take effect, None if they do.
        fingerprint: A hash over all that decisions read.
        provenance: Where the objects come from, and when.
        more_notes: What the reader of the proposal should know besides.
        progress: Called with the number of first decisions made, and their total.
    """

    clusters: Sequence[Cluster]
    bindings: Sequence[Binding]
    rules: DryRun
    goal: Goal
    bounds: Bounds
    fill: str = ""
    is_excluded: Callable[[Binding], bool] = lambda _: False
    hold_of: HoldOf = nothing_holds
    fingerprint: str = ""
    provenance: Provenance = Provenance(Tense.RECOMPUTED, "")
    more_notes: Sequence[str] = ()
    progress: Progress = no_progress


_SKIPPED: Final = {Effect.UNDECIDED: Skipped.UNDECIDED, Effect.NOT_JUDGED: Skipped.NOT_JUDGED}


def reason_of(binding: Binding, inputs: Inputs, side: PlanSide) -> Reason | Left | Skipped:
    """Return why a binding is looked at, why it is left, or why a rebalance cannot change it.

    Args:
        binding: As it is stored.
        inputs: What the proposal reads.
        side: The clusters, and the rules.
    """
    if inputs.is_excluded(binding):
        return Skipped.EXCLUDED
    placement, spec, hold = binding.spec.placement, binding.spec, inputs.hold_of(binding)
    if hold is not None and (hold.effect is Effect.NOT_JUDGED or side.is_assigned(binding)):
        return _SKIPPED.get(hold.effect, Skipped.HELD)
    if placement is None:
        return Skipped.FOLLOWERS
    if not side.is_assigned(binding):
        return Skipped.NOT_SCHEDULED_HERE
    if not spec.clusters:
        return Reason.PLACED
    if (skipped := _stays(spec, placement)) and not may_return(binding, inputs.rules.gates.rules):
        return skipped
    type_ = side.type_of(binding)
    if type_ is not ScheduleType.AVOID:  # the next event decides about it without a rebalance
        outcome, _ = side.decide(binding, type_)
        if outcome.error:
            return Reason.PLACED
        if not same(outcome.targets, spec.clusters):
            return Left.CHANGES_ANYWAY
    clusters = [side.snapshot.get(target.name) for target in spec.clusters]
    is_allowed = all(cluster is None or may_take(cluster, placement) for cluster in clusters)
    return Reason.GOAL if is_allowed else Reason.DISALLOWED


def _stays(spec: BindingSpec, placement: Placement) -> Skipped | None:
    """Return why a rebalance within the affinity term in use changes nothing; None if it may."""
    if spec.replicas <= 0:
        return Skipped.WITHOUT_REPLICAS
    if placement.is_duplicated:
        return Skipped.DUPLICATED
    try:
        return Skipped.STATIC_WEIGHTS if strategy_of(placement) == STATIC_WEIGHT else None
    except SchedulingError:
        return None  # the decision fails, and is counted there


SHARED: Final = (CPU, "memory", PODS)
"""The resources of which the largest share is the dominant one."""

Amounts = Mapping[str, int]
"""Resource name to thousandths of cpu, or whole units of others."""

_NOTHING: Final[Amounts] = {}


class Usage:
    """The allocated resources of all clusters."""

    def __init__(self, clusters: Iterable[Cluster]) -> None:
        """Start with what the clusters report."""
        self._clusters = {cluster.name: cluster for cluster in clusters}
        summaries = {name: cluster.resource_summary for name, cluster in self._clusters.items()}
        reported = {name: summary for name, summary in summaries.items() if summary is not None}
        self._allocatable = {
            name: {resource: units(resource, amount) for resource, amount in summary.allocatable.items()}
            for name, summary in reported.items()
        }
        self._taken = {
            name: {
                each: amount - units(each, reported[name].left(each)) for each, amount in allocatable.items()
            }
            for name, allocatable in self._allocatable.items()
        }
        self._moved = {name: Counter[str]() for name in reported}

    def share(self, name: str, more: Amounts = _NOTHING) -> float | None:
        """Return the dominant share of a cluster, with more taken: 1 is full; None if it reports nothing."""
        if name not in self._allocatable:
            return None
        allocatable, taken, moved = self._allocatable[name], self._taken[name], self._moved[name]
        shares = [
            max(0, taken[resource] + moved[resource] + more.get(resource, 0)) / allocatable[resource]
            for resource in SHARED
            if allocatable.get(resource, 0) > 0
        ]
        return max(shares, default=None)

    @cached_property
    def shares(self) -> Mapping[str, float]:
        """The dominant shares of all clusters that report theirs."""
        found = {name: self.share(name) for name in self._clusters}
        return {name: share for name, share in found.items() if share is not None}

    @cached_property
    def total(self) -> float:
        """The sum of the shares."""
        return sum(self.shares.values())

    def move(
        self, spec: BindingSpec, before: Sequence[TargetCluster], after: Sequence[TargetCluster]
    ) -> None:
        """Let the replicas of a binding stop and start."""
        amounts = requests(spec)
        for name in ("shares", "total"):
            self.__dict__.pop(name, None)
        for name, replicas in differences(before, after).items():
            for resource, amount in amounts.items():
                if resource in self._allocatable.get(name, {}):
                    self._moved[name][resource] += replicas * amount

    def clusters(self) -> list[Cluster]:
        """Return the clusters as they report their resources after all moves."""
        return [self._cluster(cluster) for cluster in self._clusters.values()]

    def _cluster(self, cluster: Cluster) -> Cluster:
        moved, summary = self._moved.get(cluster.name), cluster.resource_summary
        if not moved or summary is None or not any(moved.values()):
            return cluster
        allocated = dict(summary.allocated)
        for name, amount in moved.items():
            allocated[name] = _at_least_zero(allocated.get(name), _quantity(name, amount))
        return replace(cluster, resource_summary=replace(summary, allocated=allocated))


def deviation(shares: Mapping[str, float]) -> float:
    """Return the standard deviation of shares; 0 without any."""
    if not shares:
        return 0.0
    mean = sum(shares.values()) / len(shares)
    return math.sqrt(sum((share - mean) ** 2 for share in shares.values()) / len(shares))


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
    binding: Binding, after: Sequence[TargetCluster], usage: Usage, inputs: Inputs, reason: Reason
) -> Gain:
    """Return the gain of a rebalance.

    Args:
        binding: As it is stored.
        after: Its clusters afterwards.
        usage: What is allocated before it.
        inputs: With what the rebalance is for.
        reason: Why it is looked at.
    """
    before = binding.spec.clusters
    changed = differences(before, after)
    stops = -sum(replicas for replicas in changed.values() if replicas < 0)
    match inputs.goal:
        case Goal.SPREAD:
            total = _spread(binding, changed, usage)
        case Goal.CONSOLIDATE:
            total = float(len(before) - len(after)) if _is_aggregated(binding) else 0.0
        case Goal.FILL:
            total = float(changed.get(inputs.fill, 0))
    return Gain(_WEIGHTS[reason], total / max(1, stops), total)


def _spread(binding: Binding, changed: dict[str, int], usage: Usage) -> float:
    """Return by how much the sum of the squared distances of the dominant shares from their mean becomes smaller."""
    amounts, squares, more_share, shares = requests(binding.spec), 0.0, 0.0, usage.shares
    for name, replicas in changed.items():
        more = {resource: replicas * amount for resource, amount in amounts.items()}
        before, after = usage.share(name), usage.share(name, more)
        if before is not None and after is not None:
            squares += before**2 - after**2
            more_share += after - before
    mean_squares = usage.total**2 - (usage.total + more_share) ** 2
    return squares - mean_squares / max(1, len(shares))


def _is_aggregated(binding: Binding) -> bool:
    placement = binding.spec.placement
    return placement is not None and strategy_of(placement) == AGGREGATED
