"""All traces of one attempt, compared with the decision."""

from __future__ import annotations

from functools import cached_property

from karmada_advisor.explain.inputs import ExplainInputs
from karmada_advisor.explain.model import DivideTrace, Mismatch, SelectTrace
from karmada_advisor.explain.trace_capacity import CapacityTrace, trace_capacity
from karmada_advisor.explain.trace_divide import Divided, trace_divide
from karmada_advisor.explain.trace_filter import FilterRow, FilterTrace, trace_cluster, trace_filter
from karmada_advisor.explain.trace_score import ScoreTrace, trace_score
from karmada_advisor.explain.trace_select import Selected, trace_select
from karmada_scheduler.core.decision import Decision, TermAttempt
from karmada_scheduler.framework.diagnosis import FitError, OverBudgetError, PluginError


class Traces:
    """The traces of one attempt; each is made when it is first needed. A step that was not reached has None."""

    def __init__(self, attempt: TermAttempt, decision: Decision, inputs: ExplainInputs) -> None:
        self.attempt = attempt
        self._decision = decision
        self._inputs = inputs

    @property
    def _ended_early(self) -> bool:
        """Whether the attempt ended before its steps had results."""
        return isinstance(self.attempt.error, PluginError | OverBudgetError)

    @property
    def _has_candidates(self) -> bool:
        return not self._ended_early and not isinstance(self.attempt.error, FitError)

    def row_of(self, cluster: str) -> FilterRow | None:
        """Return what the filters say about one cluster, without asking them about all others; None if it is unknown."""
        if self._ended_early:
            return None
        if "filter" in self.__dict__:
            return self.filter.rows.get(cluster)
        return trace_cluster(self.attempt, self._inputs, cluster)

    @cached_property
    def filter(self) -> FilterTrace:
        """The answers of the filters about all clusters."""
        return FilterTrace({}, ()) if self._ended_early else trace_filter(self.attempt, self._inputs)

    @cached_property
    def score(self) -> ScoreTrace | None:
        """The scores."""
        return trace_score(self.attempt, self._inputs) if self._has_candidates else None

    @cached_property
    def capacity(self) -> CapacityTrace | None:
        """The capacities."""
        return trace_capacity(self.attempt, self._decision, self._inputs) if self._has_candidates else None

    @cached_property
    def _selected(self) -> Selected | None:
        return trace_select(self.attempt, self._inputs) if self._has_candidates else None

    @property
    def select(self) -> SelectTrace | None:
        """The selection of clusters."""
        return None if self._selected is None else self._selected.trace

    @cached_property
    def _divided(self) -> Divided | None:
        if self.select is None or self.select.error:
            return None
        return trace_divide(self.attempt, self._inputs)

    @property
    def divide(self) -> DivideTrace | None:
        """The division of replicas."""
        return None if self._divided is None else self._divided.trace

    @cached_property
    def mismatches(self) -> tuple[Mismatch, ...]:
        """Where a trace does not equal the decision; makes all traces."""
        if self._ended_early:
            return ()
        passing = sorted(name for name, row in self.filter.rows.items() if not row.refusals)
        found = list(self.filter.mismatches)
        if not self._has_candidates:
            if passing:
                found.append(Mismatch("filter", "all", str(passing), str(self.attempt.error)))
            return tuple(found)
        candidates = sorted(each.name for each in self.attempt.candidates)
        if passing != candidates:
            found.append(Mismatch("filter", "candidates", str(passing), str(candidates)))
        for each in (self.score, self.capacity, self._selected, self._divided):
            if each is not None:
                found += each.mismatches
        return tuple(found)


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
