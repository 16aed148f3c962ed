"""Tests that depend on content only are not repeated where they passed with equal content."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests import earlier_results
from tests.earlier_results import CONTENT, NOT_READ, OF_CONTENT, REASON, EarlierResults

ROOT = Path(__file__).parents[2]
MODULE = "tools/simulation/tests/test_a.py"
IMPORTED = "tools/simulation/tests/test_b.py"


class _Item:
    def __init__(self, nodeid: str) -> None:
        self.nodeid = nodeid
        self.markers: list[Any] = []

    def add_marker(self, marker: Any) -> None:
        self.markers.append(marker)


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A work tree with one module of tests that depend on content only."""
    top = tmp_path / "tree"
    (top / MODULE).parent.mkdir(parents=True)
    (top / MODULE).write_text("from tools.simulation.tests.test_b import CASES")
    (top / IMPORTED).write_text("of another test")
    (top / "operator").mkdir()
    (top / "operator" / "core.py").write_text("of the scheduler")
    monkeypatch.setattr(earlier_results, "ROOT", top)
    return top


def _run(folder: Path, *tests: tuple[str, str, Any]) -> list[str]:
    """Run tests, given by name and the phase with an outcome; return the names of those that are not repeated."""
    results = EarlierResults(folder)
    items: list[Any] = [_Item(name) for name, _, _ in tests]
    results.pytest_collection_modifyitems(items)
    known = [item.nodeid for item in items if item.markers]
    for name, phase, outcome in tests:
        for when in ("setup", "call", "teardown"):
            shown: Any = outcome if when == phase else "passed"
            if name not in known:
                results.pytest_runtest_logreport(pytest.TestReport(name, ("", 0, ""), {}, shown, None, when))
    results.pytest_sessionfinish()
    return known


def test_what_passed_with_equal_content_is_not_repeated_and_all_else_is(tree: Path, tmp_path: Path) -> None:
    of_content = [
        (f"{MODULE}::{name}", phase, outcome)
        for name, phase, outcome in (
            ("passes", "call", "passed"),
            ("fails", "call", "failed"),
            ("ends_badly", "teardown", "failed"),
            ("is_skipped", "setup", "skipped"),
        )
    ]
    others = [("tests/e2e/test_b.py::passes", "call", "passed")]
    assert _run(tmp_path / "results", *of_content, *others) == []
    assert _run(tmp_path / "results", *of_content, *others) == [f"{MODULE}::passes"]
    assert _run(tmp_path / "of-another-machine", *of_content) == []


@pytest.mark.parametrize(
    "changed", [MODULE, IMPORTED, "operator/core.py", "operator/new.txt", "tools/simulation/data.json"]
)
def test_a_change_of_code_or_data_lets_them_run_again(changed: str, tree: Path, tmp_path: Path) -> None:
    test = (f"{MODULE}::passes", "call", "passed")
    _run(tmp_path / "results", test)
    (tree / changed).write_text("changed")
    assert _run(tmp_path / "results", test) == []
    assert _run(tmp_path / "results", test) == [test[0]]


def test_a_change_of_another_test_does_not(tree: Path, tmp_path: Path) -> None:
    test = (f"{MODULE}::passes", "call", "passed")
    _run(tmp_path / "results", test)
    (tree / MODULE).with_name("test_c.py").write_text("of a third test")
    assert _run(tmp_path / "results", test) == [test[0]]


def test_nothing_is_kept_of_content_that_changes_during_the_run(tree: Path, tmp_path: Path) -> None:
    results = EarlierResults(tmp_path / "results")
    items: list[Any] = [_Item(f"{MODULE}::passes")]
    results.pytest_collection_modifyitems(items)
    (tree / "operator" / "core.py").write_text("edited meanwhile")
    results.pytest_runtest_logreport(
        pytest.TestReport(items[0].nodeid, ("", 0, ""), {}, "passed", None, "call")
    )
    results.pytest_sessionfinish()
    assert list((tmp_path / "results").iterdir()) == []


def test_what_is_not_repeated_is_counted_apart() -> None:
    results = EarlierResults.__new__(EarlierResults)
    known = pytest.TestReport("a", ("", 0, ""), {}, "skipped", ("a.py", 1, f"Skipped: {REASON}"), "setup")
    skipped = pytest.TestReport("a", ("", 0, ""), {}, "skipped", ("a.py", 1, "Skipped: no root"), "setup")
    assert results.pytest_report_teststatus(known) == (REASON, "=", REASON.upper())
    assert results.pytest_report_teststatus(skipped) is None


def test_modules_of_content_are_there_and_read_only_what_is_looked_at() -> None:
    assert all((ROOT / path).exists() for path in (*OF_CONTENT, *CONTENT, *NOT_READ))
    modules = [
        file
        for path in OF_CONTENT
        for file in ([ROOT / path] if path.endswith(".py") else (ROOT / path).glob("*.py"))
    ]
    folders = "|".join(each.replace("/", r"\.") for each in NOT_READ)
    not_looked_at = re.compile(rf"^\s*(from|import) ({folders})\b", re.MULTILINE)
    assert [file for file in modules if not_looked_at.search(file.read_text())] == []
