"""Runs the cases of a file, each with both parities of every uid that decides something."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence
from itertools import combinations
from typing import Final

from karmada_advisor.whatif.placement_tests import model
from karmada_advisor.whatif.placement_tests.expectations import failures
from karmada_advisor.whatif.placement_tests.outcomes import PlacedWorkload
from karmada_advisor.whatif.placement_tests.scenario import NONE_ODD, UIDS, CaseState, OddTemplates, Scenario
from karmada_advisor.whatif.plan.change import Draft
from karmada_advisor.whatif.plan.objects import ChangeError, UnversionedTemplateKey, resource_key
from karmada_advisor.whatif.plan.what_if import WrittenChange
from karmada_scheduler.api.manifest import ManifestError
from karmada_scheduler.core.assign_replicas import assign_replicas
from karmada_scheduler.core.decision import TermAttempt
from karmada_scheduler.dryrun.dry_run import DryRun
from karmada_scheduler.structs import IdentityStruct, field, replace

MOST_COMBINED: Final = 4
"""Up to so many templates that depend on each other are tried with each combination of uids."""


class CaseTries(IdentityStruct):
    """The states of one case after each step: one, and more where the uid of a template that has none decides."""

    scenario: Scenario
    given: Sequence[model.ScenarioChange]
    names: Collection[str] | None
    _tries: dict[OddTemplates, CaseState] = field(default_factory=dict)
    _dependent: OddTemplates = NONE_ODD
    _steps: list[Sequence[model.ScenarioChange]] = field(default_factory=list)

    def begin(self) -> list[CaseState]:
        """Make the first decisions; return the states, that with even uids first.

        Raises:
            ChangeError: A change cannot be made.
        """
        self._tries = {NONE_ODD: self._replayed(NONE_ODD)}
        return self._completed()

    def step(self, changes: Sequence[model.ScenarioChange]) -> list[CaseState]:
        """Take a step; return the states, of which there may be more than before.

        Raises:
            ChangeError: A change cannot be made, or Karmada would refuse it.
        """
        began = self.scenario.clock.at
        self._steps.append(changes)
        for state in self._tries.values():
            self.scenario.clock.at = began
            state.step(changes)
        return self._completed()

    def why_different(self, key: UnversionedTemplateKey) -> str:
        """Return why the states differ in a workload."""
        if not self.scenario.rules.is_coupled or self._dependent == {key}:
            return model.OWN_UID
        return f"it depends on the uids of {', '.join(map(str, sorted(self._dependent)))}"

    def _completed(self) -> list[CaseState]:
        """Add states until each uid that decides something in one of them is tried with both parities."""
        rules = self.scenario.rules
        while True:
            steps = [attempt.last for attempt in self._tries.values() if attempt.last is not None]
            found = self._dependent.union(*(decided_by_uid(step, rules) for step in steps))
            if found == self._dependent:
                return list(self._tries.values())
            self._dependent = found
            self._tries = {
                odd: self._tries.get(odd) or self._replayed(odd)
                for odd in combined(found, is_coupled=rules.is_coupled)
            }

    def _replayed(self, odd: OddTemplates) -> CaseState:
        """Return a state after the last step, made again from the beginning with other uids."""
        state = CaseState.begin(self.scenario, odd, self.given, self.names)
        for changes in self._steps:
            state.step(changes)
        return state


class CaseRunner:
    """Runs cases; they share nothing but objects that were read once."""

    def __init__(self, scenario: Scenario) -> None:
        """Run cases of one file."""
        self._scenario = scenario
        self.claiming: set[str] = set()
        """The policies that claim a workload of a case, as ``KIND/[NS/]NAME``."""

    def run(self, case: model.PlacementCase) -> model.CaseResult:
        """Run one case."""
        begun = time.perf_counter()
        if case.skip:
            return model.CaseResult(
                case.name, case.place.line, model.CaseOutcome.SKIPPED, 0.0, skip=case.skip
            )
        found = tuple(self._stages(case))
        outcome = model.CaseOutcome.FAILED if found else model.CaseOutcome.PASSED
        return model.CaseResult(case.name, case.place.line, outcome, time.perf_counter() - begun, found)

    def _stages(self, case: model.PlacementCase) -> Iterator[model.ExpectationFailure]:
        """Yield what does not hold after the first decisions, and after each step."""
        expected = [*case.expect, *(expectation for step in case.then for expectation in step.expect)]
        subjects = [each.subject for step in case.then for each in step.changes if each.word in _OF_WORKLOADS]
        tries = CaseTries(self._scenario, case.given, {*(each.workload for each in expected), *subjects})
        for step in (None, *case.then):
            try:
                states = tries.begin() if step is None else tries.step(step.changes)
            except (ChangeError, ManifestError) as problem:
                yield _not_made(case, step, str(problem))
                return
            for expectation in case.expect if step is None else step.expect:
                found = [_workload(state, expectation.workload) for state in states]
                self.claiming.update(other.policy for other in found)
                results = {(*other.clusters.items(), other.effect) for other in found}
                why = tries.why_different(found[0].key)
                yield from failures(expectation, found[:1] if len(results) == 1 else found, step, why)


_OF_WORKLOADS: Final = frozenset({"scale", "rebalance"})


def _workload(state: CaseState, written: str) -> PlacedWorkload:
    draft = Draft(state.objects)
    named = draft.workloads(written)
    if not named:  # it was deleted, or no case decides about it
        named = Draft(state.scenario.objects).workloads(written)
    return PlacedWorkload.of(state, next(iter(named)))


def _not_made(case: model.PlacementCase, step: model.CaseStep | None, text: str) -> model.ExpectationFailure:
    """Return that the changes of a case, or of one of its steps, cannot be made."""
    if step is None:
        return model.ExpectationFailure("", "", "given", *case.place, None, None, text)
    return model.ExpectationFailure("", str(step), "then", *step.place, None, None, text)


def decided_by_uid(step: WrittenChange, rules: DryRun) -> Iterator[UnversionedTemplateKey]:
    """Yield the templates without a uid of their own whose uid decides where a replica goes."""
    for decision in step.decisions:
        binding = step.known.bindings.get(decision.key)
        uid = "" if binding is None else binding.spec.resource.uid
        if uid not in UIDS:
            continue
        other = UIDS[1 - UIDS.index(uid)]
        if rules.frameworks.has_own_plugins or any(_differs(attempt, other) for attempt in decision.attempts):
            yield resource_key(step.objects.bindings[decision.key])


def _differs(attempt: TermAttempt, other: str) -> bool:
    """Return whether the workload would get other replicas from a run of the algorithm if ``other`` was its uid.

    The division is the only step of the core that reads the uid: ties go to the earlier or to the later name. So it
    is made again; plugins of one's own are not asked.
    """
    cycle = attempt.cycle
    if cycle is None or attempt.error is not None:
        return False
    spec = cycle.binding.spec
    resource = spec.resource._replace(uid=other)
    twin = replace(cycle, binding=replace(cycle.binding, spec=replace(spec, resource=resource)))
    return assign_replicas(twin, attempt.selected) != assign_replicas(cycle, attempt.selected)


def combined(dependent: OddTemplates, *, is_coupled: bool) -> Iterator[OddTemplates]:
    """Yield which of the templates get an odd uid in each try, none of them first.

    Args:
        dependent: The templates whose uid decides something.
        is_coupled: Whether the decision about one may change that about another. If not, one try has both
            parities of all of them.
    """
    names = sorted(dependent)
    yield NONE_ODD
    if not is_coupled or len(names) == 1:
        sizes = range(len(names), len(names) + 1)
    elif len(names) <= MOST_COMBINED:
        sizes = range(1, len(names) + 1)
    else:
        sizes = range(1, len(names) + 1, len(names) - 1)  # each alone, and all of them
    for size in sizes if names else ():
        yield from map(frozenset, combinations(names, size))
