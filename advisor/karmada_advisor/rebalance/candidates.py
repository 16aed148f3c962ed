"""Which bindings a rebalance can change, and why others are not looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from karmada_advisor.plan.decide import PlanSide
from karmada_advisor.plan.effects import same
from karmada_advisor.plan.holds import HoldOf, nothing_holds
from karmada_advisor.plan.model import Effect
from karmada_advisor.rebalance.model import Bounds, Goal, Left, Reason, Skipped
from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.core.assign_replicas import STATIC_WEIGHT, strategy_of
from karmada_scheduler.core.classify import ScheduleType
from karmada_scheduler.core.requeue_rules import may_take
from karmada_scheduler.dryrun.dry_run import DryRun
from karmada_scheduler.framework.diagnosis import SchedulingError
from karmada_scheduler.structs import Struct, field

Progress = Callable[[int, int], None]


def _no_progress(_done: int, _total: int) -> None:
    """Show nothing."""


def _nothing_excluded(_: Binding) -> bool:
    return False


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
    is_excluded: Callable[[Binding], bool] = field(default=_nothing_excluded)
    hold_of: HoldOf = field(default=nothing_holds)
    fingerprint: str = ""
    source: str = ""
    at: str = ""
    more_notes: Sequence[str] = ()
    progress: Progress = field(default=_no_progress)


class Candidates(Struct, frozen=True):
    """The bindings of a proposal before the search.

    Attributes:
        wanted: Those whose rebalance is decided, with the reason to look at them.
        left: Those that are left without such a decision.
        skipped: Those that are not looked at.
    """

    wanted: list[tuple[Binding, Reason]]
    left: list[tuple[Binding, Left]]
    skipped: list[tuple[Binding, Skipped]]


def candidates(
    bindings: Iterable[Binding],
    side: PlanSide,
    is_excluded: Callable[[Binding], bool],
    hold_of: HoldOf = nothing_holds,
) -> Candidates:
    """Return which bindings to look at.

    Args:
        bindings: All of them.
        side: The clusters and the rules.
        is_excluded: Whether a binding must not be moved.
        hold_of: Returns why decisions about a binding do not take effect, None if they do.
    """
    found = Candidates([], [], [])
    for binding in bindings:
        skipped = Skipped.EXCLUDED if is_excluded(binding) else _skipped(binding, side, hold_of)
        if skipped is not None:
            found.skipped.append((binding, skipped))
            continue
        reason = _reason(binding, side)
        if isinstance(reason, Left):
            found.left.append((binding, reason))
        else:
            found.wanted.append((binding, reason))
    return found


def _skipped(binding: Binding, side: PlanSide, hold_of: HoldOf) -> Skipped | None:
    """Return why a rebalance cannot change a binding; None if it can."""
    placement = binding.spec.placement
    if placement is None or not side.is_assigned(binding):
        return Skipped.NOT_SCHEDULED_HERE
    if (hold := hold_of(binding)) is not None:
        return Skipped.UNDECIDED if hold.effect is Effect.UNDECIDED else Skipped.HELD
    if not binding.spec.clusters:
        return None
    if binding.spec.replicas <= 0:
        return Skipped.WITHOUT_REPLICAS
    if placement.is_duplicated:
        return Skipped.DUPLICATED
    try:
        strategy = strategy_of(placement)
    except SchedulingError:
        return None  # the decision fails, and is counted there
    return Skipped.STATIC_WEIGHTS if strategy == STATIC_WEIGHT else None


def _reason(binding: Binding, side: PlanSide) -> Reason | Left:
    """Return why a binding is looked at, or why it is left: because the next event changes it without a rebalance."""
    spec = binding.spec
    if not spec.clusters:
        return Reason.PLACED
    type_ = side.type_of(binding)
    if type_ is not ScheduleType.AVOID:
        outcome, _ = side.decide(binding, type_)
        if outcome.error:
            return Reason.PLACED
        if not same(outcome.targets, spec.clusters):
            return Left.CHANGES_ANYWAY
    assert spec.placement is not None  # it was not skipped
    for target in spec.clusters:
        cluster = side.snapshot.get(target.name)
        if cluster is not None and not may_take(cluster, spec.placement):
            return Reason.DISALLOWED
    return Reason.GOAL
