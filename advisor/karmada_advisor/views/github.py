"""The report about placement tests as annotations of GitHub, which shows them in the changed files."""

from __future__ import annotations

from collections.abc import Iterator
from os.path import relpath
from pathlib import Path

from karmada_advisor.placement_tests.report_model import CaseOutcome, PlacementTestReport
from karmada_advisor.views.layout import Style, printable
from karmada_advisor.views.placement_tests_text import failure_text


def github_annotations(report: PlacementTestReport) -> str:
    """Return one ``::error`` for each failure; paths are relative to the root of the repository."""
    return "".join(f"{line}\n" for line in _annotations(report))


def _annotations(report: PlacementTestReport) -> Iterator[str]:
    root = _root(Path.cwd())
    for file in report.files:
        for problem in file.problems:
            text = "\n".join([problem.text, *problem.excerpt])
            yield _annotation(root, problem.path, problem.line, problem.column, "the file is not run", text)
        for case in file.cases:
            if case.outcome is CaseOutcome.FAILED:
                for each in case.failures:
                    text = failure_text(each, Style())
                    yield _annotation(root, file.path, each.line, each.column, case.name, text)


def _annotation(root: Path, path: str, line: int, column: int, title: str, text: str) -> str:  # noqa: PLR0917
    fields = {
        "file": relpath(path, root),
        "line": str(line) if line else "",
        "col": str(column) if column else "",
        "title": title,
    }
    shown = ",".join(f"{name}={_property(each)}" for name, each in fields.items() if each)
    return f"::error {shown}::{_escaped(text)}"


def _property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")


def _escaped(text: str) -> str:
    lines = "%0A".join(printable(each).replace("%", "%25") for each in text.split("\n"))
    return lines.replace("\r", "%0D")


def _root(folder: Path) -> Path:
    """Return the repository that a folder is in; the folder itself if it is in none."""
    return next((each for each in (folder, *folder.parents) if (each / ".git").exists()), folder)
