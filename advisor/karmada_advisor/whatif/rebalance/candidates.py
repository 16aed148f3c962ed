"""Which bindings a rebalance can change, and why others are not looked at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from karmada_advisor.whatif.plan.decide import PlanSide, Progress, no_progress
from karmada_advisor.whatif.plan.effects import same
from karmada_advisor.whatif.plan.holds import HoldOf, nothing_holds
from karmada_advisor.whatif.plan.model import Effect
from karmada_advisor.whatif.rebalance.model import Bounds, Goal, Left, Reason, Skipped
from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.core.assign_replicas import STATIC_WEIGHT, strategy_of
from karmada_scheduler.core.classify import ScheduleType
from karmada_scheduler.core.requeue_rules import may_take
from karmada_scheduler.dryrun.dry_run import DryRun
from karmada_scheduler.framework.diagnosis import SchedulingError
from karmada_scheduler.structs import Struct


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
        source: Where the objects come from, for people.
        at: The time, as the API writes times.
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
    source: str = ""
    at: str = ""
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
    if placement is None or not side.is_assigned(binding):
        return Skipped.NOT_SCHEDULED_HERE
    if not spec.clusters:
        return Reason.PLACED
    if spec.replicas <= 0:
        return Skipped.WITHOUT_REPLICAS
    if placement.is_duplicated:
        return Skipped.DUPLICATED
    try:
        if strategy_of(placement) == STATIC_WEIGHT:
            return Skipped.STATIC_WEIGHTS
    except SchedulingError:
        pass  # the decision fails, and is counted there
    type_ = side.type_of(binding)
    if type_ is not ScheduleType.AVOID:  # the next event decides about it without a rebalance
        outcome, _ = side.decide(binding, type_)
        if outcome.error:
            return Reason.PLACED
        if not same(outcome.targets, spec.clusters):
            return Left.CHANGES_ANYWAY
    clusters = [side.snapshot.get(each.name) for each in spec.clusters]
    is_allowed = all(each is None or may_take(each, placement) for each in clusters)
    return Reason.GOAL if is_allowed else Reason.DISALLOWED
