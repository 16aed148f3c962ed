"""The check of generated placement tests finds no difference, and would find one."""

from __future__ import annotations

import pytest

from karmada_advisor.placement_tests.case_state import CaseState
from tools import placement_tests_check


def test_generated_cases_agree_with_simulate_and_plan(capsys: pytest.CaptureFixture[str]) -> None:
    assert placement_tests_check.main(["--cases", "12", "--seed", "3"]) == 0
    assert ", 0 differences" in capsys.readouterr().out


def test_a_step_that_does_nothing_would_be_found(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(CaseState, "step", lambda _state, _changes: None)
    assert placement_tests_check.main(["--cases", "12", "--seed", "3"]) == 1
    assert "; the plan (" in capsys.readouterr().out
