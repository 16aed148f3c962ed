"""A few thousand generated cases; ``make fuzz`` runs any number."""

from __future__ import annotations

import pytest

from tools.oracle import fuzz
from tools.oracle.compare_world import Tally, compare_world
from tools.oracle.generator.worlds import worlds
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
        for world in worlds(20_26, cases=CASES):
            whole.add(compare_world(world, oracle))
    return whole


def test_no_generated_case_differs(tally: Tally) -> None:
    assert tally.cases >= CASES
    assert [f"{world}, binding {number}: {lines}" for world, number, lines in tally.found] == []


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_every_kind_of_outcome_occurs(tally: Tally, outcome: str) -> None:
    assert tally.features[outcome] > 0


def test_a_difference_is_shrunk_and_ends_the_run_with_status_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("karmada_scheduler.core.algorithms.webster.prefers_descending_names", lambda _: False)
    assert fuzz.main(["--cases", "300", "--seed", "3", "--jobs", "1", "--stop-after", "1"]) == 1
    printed = capsys.readouterr().out
    assert "different: world 3/" in printed
    assert "uid: " in printed  # what is left of the case shows the cause
