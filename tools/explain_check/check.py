"""The traces of every attempt of a decision, compared with it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from karmada_advisor.explain.inputs import ExplainInputs
from karmada_advisor.explain.situation import Basis
from karmada_advisor.explain.trace_trigger import compare_trigger, trace_trigger
from karmada_scheduler.core.decision import Decision
from karmada_scheduler.framework.diagnosis import SchedulingError


@dataclass
class Tally:
    """The result of a run.

    Attributes:
        traced: Attempts by the step at which they ended.
        found: Each mismatch with its case.
    """

    decisions: int = 0
    attempts: int = 0
    traced: Counter[str] = field(default_factory=Counter)
    found: list[str] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        """Add the result of another run."""
        self.decisions += other.decisions
        self.attempts += other.attempts
        self.traced += other.traced
        self.found += other.found


def check(case: str, decision: Decision, inputs: ExplainInputs, tally: Tally) -> None:
    """Trace every attempt of a decision, and the rules that asked for it."""
    tally.decisions += 1
    try:
        mismatches = compare_trigger(inputs.binding, trace_trigger(inputs))
    except SchedulingError:
        mismatches = []  # it has no placement, so no rule applies
    for attempt in decision.attempts:
        tally.attempts += 1
        traces = Basis(inputs, decision, attempt)
        mismatches += traces.mismatches
        last = "divide" if traces.divide is not None else "select" if traces.select is not None else "filter"
        tally.traced[last if attempt.error is not None else "placed"] += 1
    tally.found += [
        f"{case}: {each.trace} {each.place}\n  trace    {each.ours}\n  decision {each.decision}"
        for each in mismatches
    ]
