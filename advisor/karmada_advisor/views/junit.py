"""The report about placement tests as JUnit XML, which CI systems read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final
from xml.etree import ElementTree as ET

from karmada_advisor.placement_tests.model import CaseOutcome, CaseResult, PlacementTestReport
from karmada_advisor.views.layout import Style
from karmada_advisor.views.placement_tests_text import case_lines, problem_lines

_FORBIDDEN: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_xml(report: PlacementTestReport) -> bytes:
    """Return one ``testsuite`` for each file in ``testsuites``; characters that XML does not have are question marks."""
    counts = {"tests": report.passed + report.failed + report.skipped + report.not_run}
    counts |= {"failures": report.failed, "errors": report.not_run, "skipped": report.skipped}
    root = _element(
        None, "testsuites", time=f"{report.seconds:.3f}", **{k: str(v) for k, v in counts.items()}
    )
    for file in report.files:
        suite = _element(
            root,
            "testsuite",
            name=file.name,
            file=file.path,
            tests=str(len(file.cases) or 1),
            failures=str(file.count(CaseOutcome.FAILED)),
            errors=str(int(bool(file.problems))),
            skipped=str(file.count(CaseOutcome.SKIPPED)),
            time=f"{file.seconds:.3f}",
        )
        if file.problems:
            case = _element(suite, "testcase", classname=file.path, name="the file can be run", time="0.000")
            _with_text(case, "error", str(file.problems[0]), problem_lines(file, Style()))
        for each in file.cases:
            _add_case(suite, file.path, each)
    found: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return found + b"\n"


def _add_case(suite: ET.Element, path: str, case: CaseResult) -> None:
    element = _element(
        suite, "testcase", classname=path, name=case.name, line=str(case.line), time=f"{case.seconds:.3f}"
    )
    if case.outcome is CaseOutcome.SKIPPED:
        _element(element, "skipped", message=case.skip)
    elif case.outcome is CaseOutcome.FAILED:
        keys = ", ".join(each.key for each in case.failures)
        _with_text(element, "failure", f"does not hold: {keys}", case_lines(path, case, Style()))


def _with_text(parent: ET.Element, tag: str, message: str, lines: Sequence[str]) -> None:
    _element(parent, tag, message=message).text = _allowed("\n".join(lines))


def _element(parent: ET.Element | None, tag: str, /, **attributes: str) -> ET.Element:
    found = {key: _allowed(text) for key, text in attributes.items()}
    return ET.Element(tag, found) if parent is None else ET.SubElement(parent, tag, found)


def _allowed(text: str) -> str:
    return _FORBIDDEN.sub("?", text)
