"""The report about placement tests as text, test cases, and annotations of GitHub: one line for a file, below it what fails, and how that was decided."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby, zip_longest
from operator import attrgetter
from os.path import relpath
from pathlib import Path
from shlex import quote
from typing import Any, Final

from karmada_advisor.explain.amounts import counted
from karmada_advisor.explain.model import Explanation
from karmada_advisor.views.document import Case, Line, Section, Suite, Table, TextBlock, Written
from karmada_advisor.views.explanation_text import asked_text, explanation_sections, funnel
from karmada_advisor.views.text import Style, lines, printable, text
from karmada_advisor.whatif.placement_tests import model
from karmada_scheduler.structs import replace

_KEY_WIDTH: Final = 13
_UIDS: Final = ("EVEN UID", "ODD UID")


def report_text(
    report: model.PlacementTestReport,
    style: Style,
    *,
    verbose: bool = False,
    quiet: bool = False,
    explains: bool = False,
) -> str:
    """Return the text.

    Args:
        report: The report.
        style: How to write.
        verbose: Whether to list the cases that pass, too.
        quiet: Whether to leave out the files that pass.
        explains: Whether to write the whole explanation of each failure.
    """
    failing = [file for file in report.files if file.problems or file.count(model.CaseOutcome.FAILED)]
    shown = failing if quiet else report.files
    files = [block for file in shown for block in _file(file, style, verbose=verbose, explains=explains)]
    return text([files, [_end(report, style)]], style)


def _file(file: model.FileResult, style: Style, *, verbose: bool, explains: bool) -> Iterator[TextBlock]:
    if file.problems:
        yield Line([("ERROR", "red"), (f" {file.path}", "")], breaks=False)
        yield from _problems(file)
        return
    failed, skipped = file.count(model.CaseOutcome.FAILED), file.count(model.CaseOutcome.SKIPPED)
    parts = [counted(len(file.cases), "case")]
    parts += [f"{failed} failed"] if failed else []
    parts += [f"{skipped} skipped"] if skipped else []
    fleet = ""
    if not failed:
        policies = counted(file.policies, "policy", "policies")
        fleet = f"   {counted(file.clusters, 'cluster')}, {policies}, {counted(file.workloads, 'workload')}"
    word = ("FAIL", "red") if failed else ("PASS", "green")
    yield Line([word, (f"  {file.path}   {', '.join(parts)}{fleet}", "")], breaks=False)
    yield from (f"  note: {note}" for note in file.notes)
    for case in file.cases:
        if case.outcome is model.CaseOutcome.FAILED:
            yield from _case(file.path, case, style, explains=explains)
        elif verbose:
            end = f": skipped, {case.skip}" if case.skip else ""
            yield Line(f"  {case.outcome.value:<7} {file.path}:{case.line}: {case.name}{end}", breaks=False)


def _problems(file: model.FileResult) -> Iterator[TextBlock]:
    """Yield why a file is not run."""
    for problem in file.problems:
        yield f"  {problem}"
        yield from (Line(f"    {excerpt}", breaks=False) for excerpt in problem.excerpt)


def _case(path: str, case: model.CaseResult, style: Style, *, explains: bool = False) -> Iterator[TextBlock]:
    """Yield what does not hold in a case, and how that was decided."""
    yield f"  {path}:{case.line}: {case.name}"
    for (workload, step), failures in groupby(case.failures, attrgetter("workload", "step")):
        yield from _workload(workload, step, list(failures), style, explains=explains)
    if not explains and any(failure.explanation is not None for failure in case.failures):
        pattern = "".join(f"\\{character}" if character in _SPECIAL else character for character in case.name)
        more = f"    more: karmada-pyscheduler test {path} --run {quote(pattern)} --explain"
        yield Line(more, breaks=False)


_SPECIAL: Final = frozenset(".^$*+?{}[]\\|()")


def _workload(
    workload: str, step: str, failures: Sequence[model.ExpectationFailure], style: Style, *, explains: bool
) -> Iterator[TextBlock]:
    explanation = failures[0].explanation
    if step:
        yield f"    {step} (line {failures[0].line})"
    if workload:
        parts = [workload]
        if explanation is not None:
            parts.append(asked_text(explanation))
            if explanation.binding.policy is not None:
                parts.append(f"policy {explanation.binding.policy}")
        yield Line(f"    {'   '.join(parts)}", breaks=False)
    for failure in failures:
        yield from _failure(failure, style)
    if explanation is not None:
        yield _explained(explanation, style, explains=explains)


def _explained(explanation: Explanation, style: Style, *, explains: bool) -> Written:
    narrow = replace(style, width=max(40, style.width - 4))
    if explains:
        return Written(text(explanation_sections(explanation, narrow), narrow).splitlines(), 4)
    narrow = replace(style, width=max(40, style.width - 6))
    steps: Section = [*funnel(explanation, narrow, depth=0)]
    causes = [Line(f"{cause.code}: {cause.text}", breaks=False) for cause in explanation.causes[:3]]
    return Written([*lines(steps or causes, narrow)], 4)


def _failure(failure: model.ExpectationFailure, style: Style) -> Iterator[TextBlock]:
    left = [failure.key, f"line {failure.line}" if failure.line else ""]
    for head, line in zip_longest(left if left[1] else left[:1], _difference(failure, style), fillvalue=""):
        yield Line(f"      {head:<{_KEY_WIDTH - 2}}  {line}".rstrip(), breaks=False)


def failure_text(failure: model.ExpectationFailure, style: Style) -> str:
    """Return one failure: of which workload, after which event, and the difference."""
    head = " ".join(part for part in (failure.workload, failure.key) if part)
    step = f", {failure.step}" if failure.step else ""
    return "\n".join([f"{head}{step}", *_difference(failure, style)])


def _difference(failure: model.ExpectationFailure, style: Style) -> Iterator[str]:
    """Yield what was expected, and what it was instead."""
    width = replace(style, width=max(40, style.width - _KEY_WIDTH - 6))
    yield from lines(_compared(failure), width)


def _compared(failure: model.ExpectationFailure) -> Iterator[TextBlock]:
    if failure.table:
        results = len(failure.table[0].got)
        names = _UIDS if failure.text == model.OWN_UID else range(1, results + 1)
        got = ["GOT"] if results == 1 else [f"GOT ({name})" for name in names]
        shown = partial(_count, by_name=not isinstance(failure.expected, dict))
        rows = [(row.name, shown(row.expected), *map(shown, row.got)) for row in failure.table]
        yield Table(("CLUSTER", "EXPECTED", *got), rows, " >" + ">" * results)
    elif failure.key.startswith("that"):
        listed = [failure.expected] if isinstance(failure.expected, str) else failure.expected
        yield from (Line(expression, hang=0) for expression in listed)
    elif failure.expected is not None:
        instead = "nothing" if failure.got is None else shown_value(failure.got)
        yield Line(f"expected {shown_value(failure.expected)}, got {instead}", hang=0)
    if failure.text:
        yield Line(failure.text, hang=0)


def _count(replicas: int | None, *, by_name: bool) -> str:
    if replicas is None:
        return "-"
    return "yes" if by_name else str(replicas)


def shown_value(value: Any) -> str:
    """Return a value as a file has it."""
    return value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)


def _end(report: model.PlacementTestReport, style: Style) -> Line:
    parts = [f"{report.passed} passed"]
    parts += [f"{report.failed} failed"] if report.failed else []
    parts += [f"{report.skipped} skipped"] if report.skipped else []
    parts += [f"{counted(report.not_run, 'file')} not run"] if report.not_run else []
    end = f"{', '.join(parts)} in {report.seconds:.2f} s."
    if report.other_files:
        end += f" {counted(report.other_files, 'file')} of another kind."
    if report.idle_policies:
        end += f" No case has a workload of {style.fold(report.idle_policies)}."
    elif report.idle_policies is not None and not report.not_run:
        end += " Every policy claims a workload of a case."
    return Line(end, hang=0)


def report_suites(report: model.PlacementTestReport) -> list[Suite]:
    """Return the test cases of each file; a file that is not run is a case with an error."""
    return [_suite(file) for file in report.files]


def _suite(file: model.FileResult) -> Suite:
    cases = [_test_case(file.path, case) for case in file.cases]
    if file.problems:
        problems = [*lines(_problems(file), Style())]
        message = str(file.problems[0])
        cases = [Case(file.path, "the file can be run", "error", message, problems, {"time": "0.000"})]
    return Suite(file.name, cases, {"file": file.path, "time": f"{file.seconds:.3f}"})


def _test_case(path: str, case: model.CaseResult) -> Case:
    found = Case(path, case.name, facts={"line": str(case.line), "time": f"{case.seconds:.3f}"})
    if case.outcome is model.CaseOutcome.SKIPPED:
        return replace(found, outcome="skipped", message=case.skip)
    if case.outcome is not model.CaseOutcome.FAILED:
        return found
    message = f"does not hold: {', '.join(failure.key for failure in case.failures)}"
    written = [*lines(_case(path, case, Style()), Style())]
    return replace(found, outcome="failure", message=message, lines=written)


def github_annotations(report: model.PlacementTestReport) -> str:
    """Return one ``::error`` for each failure; paths are relative to the root of the repository."""
    return "".join(f"{line}\n" for line in _annotations(report))


def _annotations(report: model.PlacementTestReport) -> Iterator[str]:
    root = _repository(Path.cwd())
    for file in report.files:
        for problem in file.problems:
            text = "\n".join([problem.text, *problem.excerpt])
            yield _annotation(root, problem.path, problem.line, problem.column, "the file is not run", text)
        for case in file.cases:
            if case.outcome is model.CaseOutcome.FAILED:
                for failure in case.failures:
                    text = failure_text(failure, Style())
                    yield _annotation(root, file.path, failure.line, failure.column, case.name, text)


def _annotation(root: Path, path: str, line: int, column: int, title: str, text: str) -> str:  # noqa: PLR0917
    fields = {"file": relpath(path, root), "line": str(line or ""), "col": str(column or ""), "title": title}
    shown = ",".join(f"{name}={_command_property(value)}" for name, value in fields.items() if value)
    return f"::error {shown}::{_command_text(text)}"


def _command_property(text: str) -> str:
    return _command_text(text).replace(":", "%3A").replace(",", "%2C")


def _command_text(text: str) -> str:
    lines = "%0A".join(printable(line).replace("%", "%25") for line in text.split("\n"))
    return lines.replace("\r", "%0D")


def _repository(folder: Path) -> Path:
    """Return the repository that a folder is in; the folder itself if it is in none."""
    return next((parent for parent in (folder, *folder.parents) if (parent / ".git").exists()), folder)
