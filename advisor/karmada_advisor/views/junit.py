"""The report about placement tests as JUnit XML, which CI systems read."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from karmada_advisor.placement_tests.report_model import CaseOutcome, CaseResult, PlacementTestReport
from karmada_advisor.views.layout import Style
from karmada_advisor.views.placement_tests_text import case_lines, problem_lines
from karmada_advisor.views.xml_elements import add_text, document, element


def junit_xml(report: PlacementTestReport) -> bytes:
    """Return one ``testsuite`` for each file in ``testsuites``; characters that XML does not have are question marks."""
    counts = {"tests": report.passed + report.failed + report.skipped + report.not_run}
    counts |= {"failures": report.failed, "errors": report.not_run, "skipped": report.skipped}
    root = element(None, "testsuites", time=f"{report.seconds:.3f}", **{k: str(v) for k, v in counts.items()})
    for file in report.files:
        suite = element(
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
            case = element(suite, "testcase", classname=file.path, name="the file can be run", time="0.000")
            add_text(case, "error", str(file.problems[0]), problem_lines(file, Style()))
        for each in file.cases:
            _add_case(suite, file.path, each)
    return document(root)


def _add_case(suite: ET.Element, path: str, case: CaseResult) -> None:
    made = element(
        suite, "testcase", classname=path, name=case.name, line=str(case.line), time=f"{case.seconds:.3f}"
    )
    if case.outcome is CaseOutcome.SKIPPED:
        element(made, "skipped", message=case.skip)
    elif case.outcome is CaseOutcome.FAILED:
        keys = ", ".join(each.key for each in case.failures)
        add_text(made, "failure", f"does not hold: {keys}", case_lines(path, case, Style()))
