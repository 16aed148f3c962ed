"""A few thousand generated cases; ``make fuzz`` runs any number."""

from __future__ import annotations

import pytest

from tools.oracle import fuzz
from tools.oracle.compare_scenario import Tally, compare_scenario
from tools.oracle.defects import MINUTES
from tools.oracle.generator.scenarios import scenarios
from tools.oracle.program import Oracle, ensure

pytestmark = pytest.mark.e2e  # runs the real Go core

CASES = 3000
OUTCOMES = (
    "outcome ok",
    "outcome fit",
    "outcome unschedulable",
    "outcome error",
    "several terms tried",
    "passes: 3+",
)


@pytest.fixture(scope="module")
def tally() -> Tally:
    whole = Tally()
    with Oracle(ensure(), patience_seconds=30) as oracle:
        for scenario in scenarios(20_26, cases=CASES):
            whole.add(compare_scenario(scenario, oracle))
    return whole


def test_no_generated_case_differs(tally: Tally) -> None:
    assert tally.cases >= CASES
    assert [f"{scenario}, binding {number}: {lines}" for scenario, number, lines in tally.found] == []


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_every_kind_of_outcome_occurs(tally: Tally, outcome: str) -> None:
    assert tally.features[outcome] > 0


def test_a_division_for_which_upstream_takes_minutes_is_a_known_defect() -> None:
    scenario = next(scenarios(512, cases=1 << 62, first=1497, step=1 << 62))
    with Oracle(ensure(), patience_seconds=2) as oracle:
        found = compare_scenario(scenario, oracle)
    assert not found.found
    assert (found.cases, found.defects[MINUTES]) == (2, 1)


def test_a_difference_is_shrunk_and_ends_the_run_with_status_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("karmada_scheduler.core.algorithms.webster.prefers_descending_names", lambda _: False)
    assert fuzz.main(["--cases", "300", "--seed", "3", "--jobs", "1", "--stop-after", "1"]) == 1
    printed = capsys.readouterr().out
    assert "different: scenario 3/" in printed
    assert "uid: " in printed  # what is left of the case shows the cause
