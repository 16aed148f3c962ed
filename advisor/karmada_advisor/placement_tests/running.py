"""Runs the cases of a file."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final

from karmada_advisor.placement_tests.case_state import CaseState, PlacedWorkload
from karmada_advisor.placement_tests.case_tries import CaseTries
from karmada_advisor.placement_tests.expectations import failures
from karmada_advisor.placement_tests.model import CaseStep, PlacementCase
from karmada_advisor.placement_tests.outcomes import clusters_of, effect_of, policy_of
from karmada_advisor.placement_tests.report_model import CaseOutcome, CaseResult, ExpectationFailure
from karmada_advisor.placement_tests.scenario import Scenario
from karmada_advisor.plan.change import Draft
from karmada_advisor.plan.stored import ChangeError
from karmada_scheduler.api.manifest import ManifestError


class CaseRunner:
    """Runs cases; they share nothing but objects that were read once."""

    def __init__(self, scenario: Scenario) -> None:
        """Run cases of one file."""
        self._scenario = scenario
        self.claiming: set[str] = set()
        """The policies that claim a workload of a case, as ``KIND/[NS/]NAME``."""

    def run(self, case: PlacementCase) -> CaseResult:
        """Run one case."""
        begun = time.perf_counter()
        if case.skip:
            return CaseResult(case.name, case.place.line, CaseOutcome.SKIPPED, 0.0, skip=case.skip)
        found = tuple(self._stages(case))
        outcome = CaseOutcome.FAILED if found else CaseOutcome.PASSED
        return CaseResult(case.name, case.place.line, outcome, time.perf_counter() - begun, found)

    def _stages(self, case: PlacementCase) -> Iterator[ExpectationFailure]:
        """Yield what does not hold after the first decisions, and after each step."""
        expected = [*case.expect, *(each for step in case.then for each in step.expect)]
        subjects = [each.subject for step in case.then for each in step.changes if each.word in _OF_WORKLOADS]
        tries = CaseTries(self._scenario, case.given, {*(each.workload for each in expected), *subjects})
        for step in (None, *case.then):
            try:
                states = tries.begin() if step is None else tries.step(step.changes)
            except (ChangeError, ManifestError) as problem:
                yield _not_made(case, step, str(problem))
                return
            for each in case.expect if step is None else step.expect:
                found = [_workload(state, each.workload) for state in states]
                self.claiming.update(map(policy_of, found))
                results = {(*clusters_of(other).items(), effect_of(other)) for other in found}
                why = tries.why_different(found[0].key)
                yield from failures(each, found[:1] if len(results) == 1 else found, step, why)


_OF_WORKLOADS: Final = frozenset({"scale", "rebalance"})


def _workload(state: CaseState, written: str) -> PlacedWorkload:
    draft = Draft(state.objects)
    named = draft.workloads(written)
    if not named:  # it was deleted, or no case decides about it
        named = Draft(state.scenario.objects).workloads(written)
    return state.of(next(iter(named)))


def _not_made(case: PlacementCase, step: CaseStep | None, text: str) -> ExpectationFailure:
    """Return that the changes of a case, or of one of its steps, cannot be made."""
    if step is None:
        return ExpectationFailure("", "", "given", *case.place, None, None, text)
    return ExpectationFailure("", str(step), "then", *step.place, None, None, text)
