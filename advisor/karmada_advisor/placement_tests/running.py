"""Runs the cases of a file."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from karmada_advisor.placement_tests.case_state import UIDS, CaseState, PlacedWorkload, Scenario
from karmada_advisor.placement_tests.expectations import Checker
from karmada_advisor.placement_tests.model import (
    CaseOutcome,
    CaseResult,
    CaseStep,
    Expectation,
    ExpectationFailure,
    PlacementCase,
)
from karmada_advisor.placement_tests.outcomes import clusters_of, policy_of
from karmada_advisor.plan.change import ChangeError, Draft
from karmada_advisor.plan.objects import UnversionedTemplateKey
from karmada_scheduler.api.manifest import ManifestError

Clock = Callable[[], float]
Wanted = Callable[[Draft], Iterable[UnversionedTemplateKey]]


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
            for step, expect, states in self._stages(case):
                yield from self._checked(step, expect, states)
        except _NotMadeError as problem:
            yield problem.failure(case)

    def _stages(
        self, case: PlacementCase
    ) -> Iterator[tuple[CaseStep | None, Sequence[Expectation], Sequence[CaseState]]]:
        """Yield the first decisions and each step, with the states for both parities of the uid where they count."""
        expected = [*case.expect, *(each for step in case.then for each in step.expect)]
        subjects = [each.subject for step in case.then for each in step.changes if each.word in _OF_WORKLOADS]
        names = {*(each.workload for each in expected), *subjects}

        def wanted(draft: Draft) -> Iterable[UnversionedTemplateKey]:
            return [key for name in names for key in draft.workloads(name)]

        states: list[CaseState] = []
        for index, step in enumerate([None, *case.then]):
            try:
                self._advance(states, case, wanted, index)
                if len(states) == 1 and _depends_on_uid(states[0]):
                    states.append(self._state(1, case, wanted, index))
            except (ChangeError, ManifestError) as problem:
                raise _NotMadeError(step, str(problem)) from problem
            yield step, case.expect if step is None else step.expect, states

    def _advance(self, states: list[CaseState], case: PlacementCase, wanted: Wanted, stages: int) -> None:
        """Let states reach a stage from the one before it."""
        if not states:
            states.append(self._state(0, case, wanted, stages))
            return
        at = self._scenario.clock.at
        for state in states:
            self._scenario.clock.at = at
            state.step(case.then[stages - 1].changes)

    def _state(self, number: int, case: PlacementCase, wanted: Wanted, stages: int) -> CaseState:
        """Return a state that has reached a stage."""
        state = CaseState.begin(self._scenario, number, case.given, wanted)
        for step in case.then[:stages]:
            state.step(step.changes)
        return state

    def _checked(
        self, step: CaseStep | None, expect: Sequence[Expectation], states: Sequence[CaseState]
    ) -> Iterator[ExpectationFailure]:
        checker = Checker(step)
        for each in expect:
            found = [_workload(state, each.workload) for state in states]
            self.claiming.update(map(policy_of, found))
            is_one = all(clusters_of(other) == clusters_of(found[0]) for other in found)
            yield from checker.failures(each, found[:1] if is_one else found)


_OF_WORKLOADS: Final = frozenset({"scale", "rebalance"})


def _workload(state: CaseState, written: str) -> PlacedWorkload:
    draft = Draft(state.objects)
    named = draft.workloads(written)
    if not named:  # it was deleted, or no case decides about it
        named = Draft(state.scenario.objects).workloads(written)
    return state.of(next(iter(named)))


def _depends_on_uid(state: CaseState) -> bool:
    """Return whether the uid of a template that has none may decide where a replica goes."""
    return any(
        each.spec.replicas > 0
        and each.spec.placement is not None
        and not each.spec.placement.is_duplicated
        and each.spec.resource.uid in UIDS
        for each in state.known.bindings.values()
    )


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
