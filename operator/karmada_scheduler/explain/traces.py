"""All traces of one attempt, compared with the decision."""

from __future__ import annotations

from typing import NamedTuple

from karmada_scheduler.core.decision import Decision, TermAttempt
from karmada_scheduler.explain.inputs import ExplainInputs
from karmada_scheduler.explain.model import DivideTrace, Mismatch, SelectTrace
from karmada_scheduler.explain.trace_capacity import CapacityTrace, trace_capacity
from karmada_scheduler.explain.trace_divide import trace_divide
from karmada_scheduler.explain.trace_filter import FilterTrace, trace_filter
from karmada_scheduler.explain.trace_score import ScoreTrace, trace_score
from karmada_scheduler.explain.trace_select import trace_select
from karmada_scheduler.framework.diagnosis import FitError, OverBudgetError, PluginError


class Traces(NamedTuple):
    """The traces of one attempt; a step that was not reached has None.

    Attributes:
        mismatches: Where a trace does not equal the decision.
    """

    attempt: TermAttempt
    filter: FilterTrace
    score: ScoreTrace | None = None
    capacity: CapacityTrace | None = None
    select: SelectTrace | None = None
    divide: DivideTrace | None = None
    mismatches: tuple[Mismatch, ...] = ()


def attempt_of(decision: Decision) -> TermAttempt | None:
    """Return the attempt that explains a decision, None if no attempt began.

    Of several passes it is the first one with the final result: later ones only confirm it, and their scores are those
    of a binding that has it.
    """
    attempts = [each for each in decision.attempts if each.cycle is not None]
    if decision.error is not None:
        return next((each for each in attempts if each.error is decision.error), None) or next(
            reversed(attempts), None
        )
    found = (each for each in attempts if each.error is None and each.targets == decision.targets)
    return next(found, None) or next(reversed(attempts), None)


def trace_attempt(attempt: TermAttempt, decision: Decision, inputs: ExplainInputs) -> Traces:
    """Trace every step that an attempt reached."""
    if isinstance(attempt.error, PluginError | OverBudgetError):
        return Traces(attempt, FilterTrace({}, ()))  # it ended before its steps had results
    filtered = trace_filter(attempt, inputs)
    mismatches = list(filtered.mismatches)
    if isinstance(attempt.error, FitError):
        if passing := [name for name, row in filtered.rows.items() if not row.refusals]:
            mismatches.append(Mismatch("filter", "all", str(passing), str(attempt.error)))
        return Traces(attempt, filtered, mismatches=tuple(mismatches))
    mismatches += _passing(attempt, filtered)
    scored = trace_score(attempt, inputs)
    capacity = trace_capacity(attempt, decision, inputs)
    selected = trace_select(attempt, inputs)
    mismatches += [*scored.mismatches, *capacity.mismatches, *selected.mismatches]
    if selected.trace.error:
        return Traces(attempt, filtered, scored, capacity, selected.trace, None, tuple(mismatches))
    divided = trace_divide(attempt, inputs)
    mismatches += divided.mismatches
    return Traces(attempt, filtered, scored, capacity, selected.trace, divided.trace, tuple(mismatches))


def _passing(attempt: TermAttempt, filtered: FilterTrace) -> list[Mismatch]:
    ours = sorted(name for name, row in filtered.rows.items() if not row.refusals)
    theirs = sorted(each.name for each in attempt.candidates)
    return [] if ours == theirs else [Mismatch("filter", "candidates", str(ours), str(theirs))]
