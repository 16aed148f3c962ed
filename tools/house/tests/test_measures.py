"""The measures count what they say."""

import ast

import pytest

from tools.house import sources
from tools.house.__main__ import LIMITS, measured


def test_loops_and_comprehensions_count() -> None:
    tree = ast.parse("for each in []: ...\n[task for task in []]")
    assert list(sources._targets(tree)) == ["each", "task"]


def test_each_measure_has_a_limit() -> None:
    assert LIMITS.keys() == measured().keys()


def test_a_step_back_fails(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from tools.house import __main__ as house

    monkeypatch.setattr(house, "LIMITS", {"words of prose": 10})
    monkeypatch.setattr(house, "measured", lambda: {"words of prose": 11})
    assert house.main() == 1
    assert "WORSE" in capsys.readouterr().out
