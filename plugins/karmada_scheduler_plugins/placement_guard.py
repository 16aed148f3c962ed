"""PlacementGuard: keep what runs. Off by default; docs/no-harm.md explains it for operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from karmada_scheduler.api.binding import Binding, TargetCluster
from karmada_scheduler.api.own_annotations import (
    HELD,
    LAST_MOVE,
    HeldDecision,
    RecordedMove,
    Unreadable,
    held_in,
    moves_text,
    text_of,
)
from karmada_scheduler.core.classify import placement_changed
from karmada_scheduler.framework import (
    SUCCESS,
    BindContext,
    EvictionTask,
    GuardAnswer,
    GuardContext,
    Handle,
    Result,
)
from karmada_scheduler_plugins._cluster_outages import ClusterOutages
from karmada_scheduler_plugins._guard_args import GuardArgs
from karmada_scheduler_plugins._guard_budget import MoveBooks
from karmada_scheduler_plugins._guard_moves import (
    Move,
    leaves_last_healthy_copy,
    move_of,
    not_known_unhealthy,
    unready_target,
)

LAST_HEALTHY_COPY: Final = "LastHealthyCopy"
PARTIAL: Final = "Partial"
_LOOK_SECONDS: Final = 30.0
"""The longest pause before a held decision is repeated to see whether a copy is healthy."""
_FORGET_SECONDS: Final = 300.0
"""How long the record of a wait counts after its end; it is left over if the decision was not needed any more."""
_EXCLUSIVE: Final = frozenset({"Directly", "Immediately"})


class PlacementGuard:
    """Keep placements that nothing replaces, wait for healthy copies and budgets, and move gracefully."""

    name = "PlacementGuard"
    timeout: Final = None  # post_bind waits for nothing

    def __init__(self, args: GuardArgs, handle: Handle) -> None:
        """Take the args of the profile."""
        self._args = args
        self._handle = handle
        self._books = MoveBooks(handle, args.budgets)
        self._outages = ClusterOutages(handle)
        handle.follow_bindings(self._books.changed)
        handle.follow_clusters(self._outages.changed)

    @property
    def is_graceful(self) -> bool:
        """Whether moves are graceful."""
        return self._args.graceful.enabled

    def guard(self, context: GuardContext, /) -> Result | GuardAnswer:
        """Keep the placement, or let the decision through, with eviction tasks if moves are graceful."""
        if context.error is not None:
            return self._cancelled(context) or self._nothing_fits(context.binding)
        binding = context.binding
        if not binding.spec.clusters:
            return SUCCESS
        move, now = move_of(context), self._handle.now()
        off = self._graceful_off(now)
        healthy = not_known_unhealthy(binding, context.cycle.snapshot, self._outages)
        counts = move.is_move and not self._is_exempt(context, healthy)
        if counts and (held := self._hold(context, move, now, healthy, off=off)) is not None:
            return held
        annotations: dict[str, str | None] = {HELD: None} if HELD in binding.annotations else {}
        recent = self._books.recent(binding, now)
        if counts:
            annotations[LAST_MOVE] = _record(context, move, recent, now)
        elif LAST_MOVE in binding.annotations and not recent and not binding.spec.graceful_eviction_tasks:
            annotations[LAST_MOVE] = None
        tasks = self._tasks(context, move, healthy)
        return GuardAnswer(tasks=[] if off else tasks, annotations=annotations, warning=off if tasks else "")

    def guard_observation(self, binding: Binding, /) -> Result:
        """Refuse as long as a current cluster does not have all replicas ready."""
        if not self._args.graceful.enabled:
            return SUCCESS
        problem = unready_target(binding)
        return Result.unschedulable(problem) if problem else SUCCESS

    def reserve(self, context: BindContext, /) -> Result:
        """Count the move until it is known whether it is stored."""
        self._books.under_way.begin(context)
        if context.eviction_tasks:
            self._books.stamps.written(self._handle.now())
        return SUCCESS

    def unreserve(self, context: BindContext, /) -> None:
        """Stop counting the move, unless it may be stored."""
        self._books.under_way.end_failed(context)

    async def post_bind(self, context: BindContext, /) -> None:
        """Count the move as it is stored."""
        self._books.under_way.end_stored(context)

    def _cancelled(self, context: GuardContext) -> GuardAnswer | None:
        """Return the moves to cancel for a workload that has no cluster any more, None without one that is healthy."""
        binding, args = context.binding, self._args.graceful
        if not (args.enabled and args.cancel_moves) or binding.spec.target_names - context.gone:
            return None
        healthy = not_known_unhealthy(binding, context.cycle.snapshot, self._outages)
        own = [
            task.from_cluster
            for task in binding.spec.graceful_eviction_tasks
            if task.producer == binding.spec.responsible_scheduler and task.from_cluster in healthy
        ]
        return GuardAnswer(cancel=own) if own else None

    def _nothing_fits(self, binding: Binding) -> Result:
        if not binding.spec.clusters:
            return SUCCESS
        rule, placement = self._args.nothing_fits, binding.spec.placement
        if rule == "clear" or placement is None:
            return SUCCESS
        if rule == "keepUnlessPlacementChanged" and placement_changed(binding, placement):
            return SUCCESS
        wanted, has = binding.spec.replicas, sum(target.replicas for target in binding.spec.clusters)
        differs = not placement.is_duplicated and binding.spec.is_workload and wanted != has
        more = f"; it wants {wanted} replicas and has {has}" if differs else ""
        return Result.unschedulable(f"nothingFits is {rule}{more}")

    def _graceful_off(self, now: float) -> str:
        """Return why no eviction task may be written now although moves are graceful; "" if one may, or they are not."""
        if not self._args.graceful.enabled or not self._books.controller_is_off(now):
            return ""
        stamps = self._books.stamps
        return "" if stamps.may_probe(now) else stamps.reason()

    def _is_exempt(self, context: GuardContext, healthy: frozenset[str]) -> bool:
        """Return whether a move is never held, and uses up no budget: nothing healthy can be lost, or it is urgent.

        What leaves clusters that are gone is no part of a move.
        """
        above = self._args.exempt_priority_above
        return not healthy or (above is not None and context.binding.spec.priority > above)

    def _hold(
        self, context: GuardContext, move: Move, now: float, healthy: frozenset[str], *, off: str
    ) -> Result | GuardAnswer | None:
        """Return the refusal of a move, None if it may begin; ``off`` is why moves are not graceful, if they should be."""
        binding, args = context.binding, self._args
        if (
            args.last_healthy_copy.enabled
            and (off or not args.graceful.enabled)
            and not _is_exclusive(binding)
            and leaves_last_healthy_copy(context, healthy)
        ):
            what = f"{_names(context.leaving)} has the last healthy copy" + (f", and {off}" if off else "")
            if context.proposal is not None:
                return Result.unschedulable(f"{what}, and it does not move gracefully")
            longest = args.last_healthy_copy.max_wait_seconds
            held = _held_for(binding, LAST_HEALTHY_COPY, what, longest=longest, now=now)
            if held is not None:
                return held
        if args.graceful.enabled and args.graceful.partial == "hold" and move.partial:
            what = f"{move.partial} replicas would leave clusters that stay, which cannot be graceful"
            if context.proposal is not None:
                return Result.unschedulable(what)
            held = _held_for(binding, PARTIAL, what, longest=args.graceful.max_hold_seconds, now=now)
            if held is not None:
                return held
        wait = self._books.wait_for(binding, move.replicas, now)
        if wait is None:
            return None
        total = sum(target.replicas for target in binding.spec.clusters)
        what = f"moving {move.replicas} of {total} replicas is held by {wait.reason}"
        return GuardAnswer(Result.unschedulable(what, retry_after=wait.seconds), line=wait.budget)

    def _tasks(self, context: GuardContext, move: Move, healthy: frozenset[str]) -> list[EvictionTask]:
        """Return an eviction task for each cluster that the workload leaves, if it should leave gracefully."""
        args, binding = self._args.graceful, context.binding
        if not args.enabled or (not move.is_move and args.on_scale_down == "immediate"):
            return []
        mode = "Gracefully"
        if _is_exclusive(binding):
            if args.exclusive == "none":
                return []
            mode = args.exclusive
        leaving = context.leaving & healthy if args.only_healthy else context.leaving
        grace_period = self._grace_period(context, healthy)
        message = f"moved to {_targets_text(context.targets or ())} by PlacementGuard of the profile {self._handle.profile}"
        return [
            EvictionTask(
                target.name,
                reason=move.cause,
                message=message[:1024],
                grace_period_seconds=grace_period,
                purge_mode=mode,
                replicas=target.replicas,
            )
            for target in binding.spec.clusters
            if target.name in leaving
        ]

    def _grace_period(self, context: GuardContext, healthy: frozenset[str]) -> int:
        seconds, last = self._args.graceful.grace_period_seconds, self._args.last_healthy_copy
        is_longer = last.enabled and leaves_last_healthy_copy(context, healthy)
        return max(seconds, last.max_wait_seconds) if is_longer else seconds


def _held_for(binding: Binding, cause: str, what: str, *, longest: int, now: float) -> GuardAnswer | None:
    """Return the refusal of a move that waits for at most ``longest`` seconds, None when the time is over."""
    held, since = held_in(binding.annotations.get(HELD, "")), now
    if held is not None and not isinstance(held, Unreadable) and held.cause == cause:
        since = held.since if now - longest - _FORGET_SECONDS < held.since <= now else now
    rest = since + longest - now
    if rest <= 0:
        return None
    text = f"{what}; held until it is healthy elsewhere, at most until {text_of(since + longest)}"
    if cause == PARTIAL:
        text = f"{what}; held until {text_of(since + longest)}"
    refusal = Result.unschedulable(text, retry_after=min(_LOOK_SECONDS, rest))
    return GuardAnswer(refusal, annotations={HELD: HeldDecision(since, cause).text()})


def _record(context: GuardContext, move: Move, before: Sequence[RecordedMove], now: float) -> str:
    """Return the annotation about a move, with those before that still count."""
    binding = context.binding
    kept = {target.name: target.replicas for target in context.targets or ()}
    left = [target.name for target in binding.spec.clusters if kept.get(target.name, -1) < target.replicas]
    moves = (*before, RecordedMove(now, move.replicas))
    return moves_text(moves, clusters=left, cause=move.cause, term=context.cycle.affinity_name)


def _is_exclusive(binding: Binding) -> bool:
    """Return whether the owner of a workload said that two copies must not run at the same time."""
    return bool(binding.spec.failover_purge_modes & _EXCLUSIVE)


def _names(names: frozenset[str]) -> str:
    return ", ".join(sorted(names))


def _targets_text(targets: Sequence[TargetCluster]) -> str:
    shown = ", ".join(target.name for target in targets[:10])
    return shown + (f" and {len(targets) - 10} more" if len(targets) > 10 else "")
