"""Runs the cases of a file."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from karmada_advisor.placement_tests.case_state import CaseState, PlacedWorkload
from karmada_advisor.placement_tests.case_tries import CaseTries
from karmada_advisor.placement_tests.expectations import Checker
from karmada_advisor.placement_tests.model import CaseStep, Expectation, PlacementCase
from karmada_advisor.placement_tests.outcomes import clusters_of, effect_of, policy_of
from karmada_advisor.placement_tests.report_model import CaseOutcome, CaseResult, ExpectationFailure
from karmada_advisor.placement_tests.scenario import Scenario
from karmada_advisor.plan.change import Draft
from karmada_advisor.plan.objects import UnversionedTemplateKey
from karmada_advisor.plan.stored import ChangeError
from karmada_scheduler.api.manifest import ManifestError

Clock = Callable[[], float]


class CaseRunner:
    """Runs cases; they share nothing but objects that were read once."""

    def __init__(self, scenario: Scenario, clock: Clock = time.perf_counter) -> None:
        """Run cases of one file; ``clock`` measures them, in seconds."""
        self._scenario = scenario
        self._clock = clock
        self.claiming: set[str] = set()
        """The policies that claim a workload of a case, as ``KIND/[NS/]NAME``."""

    def run(self, case: PlacementCase) -> CaseResult:
        """Run one case."""
        begun = self._clock()
        if case.skip:
            return CaseResult(case.name, case.place.line, CaseOutcome.SKIPPED, 0.0, skip=case.skip)
        failures = tuple(self._failures(case))
        outcome = CaseOutcome.FAILED if failures else CaseOutcome.PASSED
        return CaseResult(case.name, case.place.line, outcome, self._clock() - begun, failures)

    def _failures(self, case: PlacementCase) -> Iterator[ExpectationFailure]:
        try:
            yield from self._stages(case)
        except _NotMadeError as problem:
            yield problem.failure(case)

    def _stages(self, case: PlacementCase) -> Iterator[ExpectationFailure]:
        """Yield what does not hold after the first decisions, and after each step."""
        expected = [*case.expect, *(each for step in case.then for each in step.expect)]
        subjects = [each.subject for step in case.then for each in step.changes if each.word in _OF_WORKLOADS]
        names = {*(each.workload for each in expected), *subjects}

        def wanted(draft: Draft) -> Iterable[UnversionedTemplateKey]:
            return [key for name in names for key in draft.workloads(name)]

        tries = CaseTries(self._scenario, case.given, wanted)
        for step in (None, *case.then):
            try:
                states = tries.begin() if step is None else tries.step(step.changes)
            except (ChangeError, ManifestError) as problem:
                raise _NotMadeError(step, str(problem)) from problem
            yield from self._checked(step, case.expect if step is None else step.expect, states, tries)

    def _checked(
        self,
        step: CaseStep | None,
        expect: Sequence[Expectation],
        states: Sequence[CaseState],
        tries: CaseTries,
    ) -> Iterator[ExpectationFailure]:
        checker = Checker(step, tries.why_different)
        for each in expect:
            found = [_workload(state, each.workload) for state in states]
            self.claiming.update(map(policy_of, found))
            results = {(*clusters_of(other).items(), effect_of(other)) for other in found}
            yield from checker.failures(each, found[:1] if len(results) == 1 else found)


_OF_WORKLOADS: Final = frozenset({"scale", "rebalance"})


def _workload(state: CaseState, written: str) -> PlacedWorkload:
    draft = Draft(state.objects)
    named = draft.workloads(written)
    if not named:  # it was deleted, or no case decides about it
        named = Draft(state.scenario.objects).workloads(written)
    return state.of(next(iter(named)))


class _NotMadeError(Exception):
    """The changes of a case cannot be made."""

    def __init__(self, step: CaseStep | None, text: str) -> None:
        super().__init__(text)
        self._step = step

    def failure(self, case: PlacementCase) -> ExpectationFailure:
        """Return it as a failure of the case."""
        if self._step is None:
            return ExpectationFailure("", "", "given", *case.place, None, None, str(self))
        return ExpectationFailure("", str(self._step), "then", *self._step.place, None, None, str(self))
