"""The measures count what they say."""

import ast

import pytest

from tools.house import __main__ as house
from tools.house import sources


def test_loops_and_comprehensions_count() -> None:
    tree = ast.parse("for each in []: ...\n[task for task in []]")
    assert list(sources._targets(tree)) == ["each", "task"]


def test_each_measure_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few sources and no answer are measured here; ``make house`` measures all, for ten seconds of CPU time."""
    monkeypatch.setattr(sources, "files", lambda: {"advisor/a.py": "for a in []: ..."})
    monkeypatch.setattr(house, "_way", lambda _: (0, 0))
    assert house.LIMITS.keys() == house.measured().keys()


def test_a_step_back_fails(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(house, "LIMITS", {"words of prose": 10})
    monkeypatch.setattr(house, "measured", lambda: {"words of prose": 11})
    assert house.main() == 1
    assert "WORSE" in capsys.readouterr().out
