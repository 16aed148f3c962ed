"""One case, tried with both parities of each uid that decides something."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from karmada_advisor.placement_tests.case_state import CaseState
from karmada_advisor.placement_tests.model import ScenarioChange
from karmada_advisor.placement_tests.report_model import OWN_UID
from karmada_advisor.placement_tests.scenario import Scenario
from karmada_advisor.placement_tests.uids import NONE_ODD, OddTemplates, combined, decided_by_uid
from karmada_advisor.plan.objects import UnversionedTemplateKey


class CaseTries:
    """The states of one case after each step: one, and more where the uid of a template that has none decides."""

    def __init__(
        self, scenario: Scenario, given: Sequence[ScenarioChange], names: Collection[str] | None
    ) -> None:
        """Begin a case; the arguments are those of ``CaseState.begin``."""
        self._scenario = scenario
        self._given = given
        self._names = names
        self._tries: dict[OddTemplates, CaseState] = {}
        self._dependent: OddTemplates = NONE_ODD
        self._steps: list[Sequence[ScenarioChange]] = []

    def begin(self) -> list[CaseState]:
        """Make the first decisions; return the states, that with even uids first.

        Raises:
            ChangeError: A change cannot be made.
        """
        self._tries = {NONE_ODD: self._replayed(NONE_ODD)}
        return self._completed()

    def step(self, changes: Sequence[ScenarioChange]) -> list[CaseState]:
        """Take a step; return the states, of which there may be more than before.

        Raises:
            ChangeError: A change cannot be made, or Karmada would refuse it.
        """
        began = self._scenario.clock.at
        self._steps.append(changes)
        for state in self._tries.values():
            self._scenario.clock.at = began
            state.step(changes)
        return self._completed()

    def why_different(self, key: UnversionedTemplateKey) -> str:
        """Return why the states differ in a workload."""
        if not self._scenario.rules.is_coupled or self._dependent == {key}:
            return OWN_UID
        return f"it depends on the uids of {', '.join(map(str, sorted(self._dependent)))}"

    def _completed(self) -> list[CaseState]:
        """Add states until each uid that decides something in one of them is tried with both parities."""
        rules = self._scenario.rules
        while True:
            steps = [each.last for each in self._tries.values() if each.last is not None]
            found = self._dependent.union(*(decided_by_uid(each, rules) for each in steps))
            if found == self._dependent:
                return list(self._tries.values())
            self._dependent = found
            self._tries = {
                odd: self._tries.get(odd) or self._replayed(odd)
                for odd in combined(found, is_coupled=rules.is_coupled)
            }

    def _replayed(self, odd: OddTemplates) -> CaseState:
        """Return a state after the last step, made again from the beginning with other uids."""
        state = CaseState.begin(self._scenario, odd, self._given, self._names)
        for changes in self._steps:
            state.step(changes)
        return state
