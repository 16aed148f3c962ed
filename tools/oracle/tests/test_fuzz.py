"""A few thousand generated cases; ``make fuzz`` runs any number."""

from __future__ import annotations

import signal
from typing import Any

import pytest

from tools.oracle import fuzz
from tools.oracle.compare_scenario import Tally, compare_scenario
from tools.oracle.defects import ENDED
from tools.oracle.generator.scenarios import scenarios
from tools.oracle.ours import Scenario
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


def test_no_generated_case_ends_upstreams_process(tally: Tally) -> None:
    assert tally.defects[ENDED] == 0


class EndingOracle(Oracle):
    """The oracle, whose process is stopped, or ended, before it reads a scenario with some binding."""

    def __init__(self, uid: str, *, ends: bool = True) -> None:
        super().__init__(ensure(), patience_seconds=5)
        self._uid, self._ends = uid, ends

    def send(self, scenario: dict[str, Any]) -> None:
        is_it = any(each["metadata"]["uid"] == self._uid for each in scenario["bindings"])
        if is_it:
            self._process.send_signal(signal.SIGSTOP)
        super().send(scenario)
        if is_it and self._ends:
            self._process.kill()


@pytest.mark.parametrize("ends", [True, False], ids=["ended", "silent"])
def test_a_case_for_which_upstreams_process_ends_is_counted_and_the_others_are_compared(
    *, ends: bool
) -> None:
    scenario = next(scenarios(3, cases=1))
    count = len(scenario["bindings"])
    with EndingOracle("b4", ends=ends) as oracle:
        found = compare_scenario(scenario, oracle)
    assert (found.scenarios, found.cases, found.defects[ENDED]) == (1, count, 1)
    assert not found.found
    with Oracle(ensure()) as oracle:
        scenario["bindings"] = [each for each in scenario["bindings"] if each["metadata"]["uid"] != "b4"]
        assert compare_scenario(scenario, oracle).decided == found.decided > 0


def test_a_difference_next_to_a_case_that_ends_has_the_number_of_its_binding(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scenario = next(scenarios(3, cases=1))
    monkeypatch.setattr("tools.oracle.compare.condition_for", lambda _: ("Unknown", "", ""))
    with EndingOracle("b4") as oracle:
        numbers = [number for _, number, _ in compare_scenario(scenario, oracle).found]
    assert numbers
    assert numbers == sorted(set(numbers))
    assert numbers[-1] > 4


def test_a_case_that_ends_upstreams_process_is_a_difference_if_ours_raises(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scenario = next(scenarios(3, cases=1))
    monkeypatch.setattr(Scenario, "decide", lambda *_: 1 / 0)
    with EndingOracle("b4") as oracle:
        found = compare_scenario(scenario, oracle)
    assert [(number, lines[0]) for _, number, lines in found.found] == [
        (number, "ours raised") for number in range(len(scenario["bindings"]))
    ]


def test_a_difference_is_shrunk_and_ends_the_run_with_status_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("karmada_scheduler.core.algorithms.webster.prefers_descending_names", lambda _: False)
    assert fuzz.main(["--cases", "300", "--seed", "3", "--jobs", "1", "--stop-after", "1"]) == 1
    printed = capsys.readouterr().out
    assert "different: scenario 3/" in printed
    assert "uid: " in printed  # what is left of the case shows the cause
