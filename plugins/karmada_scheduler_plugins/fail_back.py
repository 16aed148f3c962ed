"""FailBack: return to an earlier affinity term when it can take a workload again. Off by default.

docs/no-harm.md explains it for operators.
"""

from __future__ import annotations

from typing import Final

from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.own_annotations import FAIL_BACK, OVERFLOW, TermChange, change_in
from karmada_scheduler.api.placement import ClusterAffinityTerm, Placement
from karmada_scheduler.framework import (
    SUCCESS,
    BindContext,
    Cluster,
    GuardAnswer,
    GuardContext,
    Handle,
    Proposal,
    ReconsiderContext,
    Result,
    Terms,
)
from karmada_scheduler.structs import Struct, replace
from karmada_scheduler_plugins._returns import FailBackArgs, empties_higher_tiers, evicted_again, tier_of
from karmada_scheduler_plugins._returns_under_way import ReturnsUnderWay

FAILED_BACK: Final = "FailedBack"
SPREAD_BACK: Final = "SpreadBack"
WAITS: Final = "FailBackWaits"
_MISSED_CHECKS: Final = 4
"""After this many intervals without a check it is not known whether the term could take the workload all the time."""


class _Clock(Struct, frozen=True):
    """Since when a term has been able to take a binding without a miss.

    Attributes:
        uid: The uid of the binding.
        term: The first affinity term that could take it, or ``OVERFLOW``.
        since: In seconds since 1970.
        checked: The time of the last check.
        noted: The last text about the wait that was recorded as an Event.
    """

    uid: str
    term: str
    since: float
    checked: float
    noted: str = ""


class FailBack:
    """Propose a return to an earlier affinity term, and let it happen after a time without a miss."""

    name = "FailBack"
    only_with_terms: Final = True
    timeout: Final = None  # post_bind waits for nothing

    def __init__(self, args: FailBackArgs, handle: Handle) -> None:
        """Take the args of the profile."""
        self.reconsider_seconds: Final = float(args.check_seconds)
        self._args = args
        self._handle = handle
        self._clocks: dict[BindingKey, _Clock] = {}
        self._returns = ReturnsUnderWay(handle)
        handle.follow_bindings(self._returns.changed)

    def propose(self, binding: Binding, /) -> Proposal | None:
        """Propose an earlier term for a binding that is settled in a later one."""
        proposal = self._proposal(binding) if binding.is_settled else None
        if proposal is None:
            self._clocks.pop(binding.key, None)
        return proposal

    def start_term(self, binding: Binding, /) -> str:
        """Return the term that a binding has changed to, if its status still has the term before.

        With ``rebalance_from_first``, a binding that has to be rescheduled begins with the first term, as in Karmada 1.19.
        """
        placement, name = binding.spec.placement, binding.status.scheduler_observing_affinity_name
        if placement is None or not placement.cluster_affinities:
            return ""
        if self._args.rebalance_from_first and binding.reschedule_triggered:
            return placement.cluster_affinities[0].affinity_name
        change = self._returns.change_of(binding)
        if change is None or not binding.spec.clusters or name != change.source or name == change.target:
            return ""
        term = placement.affinity_term(change.target)
        if term is None or any(
            tier_of(term, self._cluster(target)) is None for target in binding.spec.target_names
        ):
            return ""
        return change.target

    def reconsider(self, context: ReconsiderContext, /) -> Result:
        """Let a return be written that could have been written for the whole wait."""
        binding, now = context.binding, self._handle.now()
        problem = self._problem(context)
        if problem:
            self._clocks.pop(binding.key, None)
            return Result.unschedulable(problem)
        clock = self._checked(context, now)
        wait = self._wait_of(binding)
        rest = clock.since + wait - now
        if rest > 0:
            why = f"could take it; returns after {wait:g}s without a miss"
            return self._refused(context, clock, why, rest=rest)
        if context.held:
            return self._refused(context, clock, f"could take it; {context.error}")
        if tuple(context.targets or ()) == binding.spec.clusters:
            return SUCCESS  # only the name of the term changes
        count = self._returns.count(now, without=binding.key)
        if count >= self._args.at_once:
            return self._refused(context, clock, f"could take it; {count} returns are under way")
        return SUCCESS

    def guard(self, context: GuardContext, /) -> Result | GuardAnswer:
        """Add the record of a change of the term."""
        binding, now = context.binding, self._handle.now()
        before, after = binding.status.scheduler_observing_affinity_name, context.cycle.affinity_name
        change = self._returns.change_of(binding)
        proposal = context.proposal
        if proposal is not None and proposal.reason in (FAILED_BACK, SPREAD_BACK):
            source = OVERFLOW if proposal.terms is Terms.IN_FORCE else before
            return _recorded(TermChange(self._next_number(binding), now, source, after))
        placement = binding.spec.placement
        if context.targets is None or placement is None or not _is_later(placement, before, after):
            return SUCCESS
        if change is None:
            return _recorded(TermChange(0, now, before, after, left=now))
        has_left_before = change.left is not None and change.target == before
        return _recorded(
            TermChange(change.number, change.at, before, after, left=change.left if has_left_before else now)
        )

    def reserve(self, context: BindContext, /) -> Result:
        """Count a return until it is known whether it is stored."""
        if _return_in(context) is not None:
            self._returns.being_written.begin(context)
        return SUCCESS

    def unreserve(self, context: BindContext, /) -> None:
        """Stop counting a return, unless it may be stored."""
        self._returns.being_written.end_failed(context)

    async def post_bind(self, context: BindContext, /) -> None:
        """Report a return, and count it as it is stored."""
        self._returns.being_written.end_stored(context)
        clock = self._clocks.pop(context.binding.key, None)
        record = _return_in(context)
        if record is None or clock is None:
            return
        targets = ", ".join(f"{target.name}:{target.replicas}" for target in list(context.targets)[:10])
        reason = SPREAD_BACK if record.source == OVERFLOW else FAILED_BACK
        text = f"returns from {record.source} to {record.target}: {targets}"
        self._handle.record_event(context.binding, warning=False, reason=reason, text=text)

    def _proposal(self, binding: Binding) -> Proposal | None:
        placement = binding.spec.placement
        if placement is None or not placement.cluster_affinities:
            return None
        name = binding.status.scheduler_observing_affinity_name
        term = placement.affinity_term(name)
        if term is None:
            return None
        if placement.cluster_affinities[0].affinity_name != name:
            return Proposal(FAILED_BACK)
        if self._args.overflow and self._uses_overflow(binding, term):
            return Proposal(SPREAD_BACK, Terms.IN_FORCE)
        return None

    def _uses_overflow(self, binding: Binding, term: ClusterAffinityTerm) -> bool:
        if not term.overflow_affinities or not binding.spec.is_workload:
            return False
        return any(tier_of(term, self._cluster(target.name)) for target in binding.spec.clusters)

    def _cluster(self, name: str) -> Cluster | None:
        return self._handle.snapshot().get(name)

    def _problem(self, context: ReconsiderContext) -> str:
        """Return why a proposed decision is a miss, "" if it is none."""
        if context.error is not None and not context.held:
            return str(context.error)
        if context.proposal.terms is Terms.IN_FORCE and not empties_higher_tiers(
            context, self._handle.snapshot()
        ):
            return "no cluster of an overflow tier can be left entirely"
        return evicted_again(context, self._handle.snapshot())

    def _checked(self, context: ReconsiderContext, now: float) -> _Clock:
        """Return the clock of a binding after a check that was no miss."""
        binding = context.binding
        term = OVERFLOW if context.proposal.terms is Terms.IN_FORCE else context.affinity_name
        before = self._clocks.get(binding.key)
        longest = _MISSED_CHECKS * self._args.check_seconds
        if (
            before is None
            or (before.uid, before.term) != (binding.uid, term)
            or not 0 <= now - before.checked <= longest
        ):
            before = _Clock(binding.uid, term, now, now)
        clock = self._clocks[binding.key] = replace(before, checked=now)
        return clock

    def _refused(self, context: ReconsiderContext, clock: _Clock, why: str, *, rest: float = 0.0) -> Result:
        what = "an earlier tier" if clock.term == OVERFLOW else f"the earlier term {clock.term}"
        text = f"{what} {why}"
        if clock.noted != text:
            self._clocks[context.binding.key] = replace(clock, noted=text)
            self._handle.record_event(context.binding, warning=False, reason=WAITS, text=text)
        return Result.unschedulable(text, retry_after=rest)

    def _number(self, binding: Binding) -> int:
        """Return how many returns of a binding count for its next wait."""
        change = self._returns.change_of(binding)
        if change is None or change.stayed(self._args.forget_seconds):
            return 0
        is_old = self._handle.now() - change.at >= self._args.forget_seconds
        return 0 if change.source == OVERFLOW and is_old else change.number

    def _next_number(self, binding: Binding) -> int:
        """Return the number of a return. A further step towards the first term has the same number."""
        number = self._number(binding)
        return number if number and self._is_on_its_way(binding) else number + 1

    def _wait_of(self, binding: Binding) -> int:
        number = 0 if self._is_on_its_way(binding) else self._number(binding)
        doubled: int = self._args.stabilization_seconds << min(number, 40)
        return min(doubled, self._args.max_seconds)

    def _is_on_its_way(self, binding: Binding) -> bool:
        """Return whether a binding is in the term that it has returned to, which is not the first."""
        change = self._returns.change_of(binding)
        name = binding.status.scheduler_observing_affinity_name
        return change is not None and change.is_return and change.target == name and change.source != OVERFLOW


def _return_in(context: BindContext) -> TermChange | None:
    """Return the record of a return that a decision writes, None if it writes none."""
    record = change_in(context.annotations.get(FAIL_BACK) or "")
    return record if isinstance(record, TermChange) and record.is_return else None


def _recorded(change: TermChange) -> GuardAnswer:
    return GuardAnswer(annotations={FAIL_BACK: change.text()})


def _is_later(placement: Placement, before: str, after: str) -> bool:
    """Return whether an affinity term comes after another one; "" is before the first."""
    names = ["", *(term.affinity_name for term in placement.cluster_affinities)]
    if before not in names or after not in names:
        return False
    return names.index(after) > max(1, names.index(before))
