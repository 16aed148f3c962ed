"""The report about placement tests as text: one line for a file, below it what fails, and how that was decided."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from shlex import quote
from typing import Any, Final

from karmada_advisor.explain.amounts import counted
from karmada_advisor.explain.model import Explanation
from karmada_advisor.placement_tests.report_model import (
    OWN_UID,
    CaseOutcome,
    CaseResult,
    ExpectationFailure,
    FileResult,
    PlacementTestReport,
)
from karmada_advisor.views.layout import Style, printable, table
from karmada_advisor.views.text import asked_text, explanation_text, funnel_lines
from karmada_scheduler.structs import replace

_KEY_WIDTH: Final = 13
_UIDS: Final = ("EVEN UID", "ODD UID")


def report_text(
    report: PlacementTestReport,
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
    lines: list[str] = []
    for each in report.files:
        if not quiet or each.problems or each.count(CaseOutcome.FAILED):
            lines += _file(each, style, verbose=verbose, explains=explains)
    return "\n".join([*lines, *([""] if lines else []), *_end(report, style)]) + "\n"


def _file(file: FileResult, style: Style, *, verbose: bool, explains: bool) -> Iterator[str]:
    if file.problems:
        yield f"{style.paint('ERROR', 'red')} {printable(file.path)}"
        yield from problem_lines(file, style)
        return
    failed, skipped = file.count(CaseOutcome.FAILED), file.count(CaseOutcome.SKIPPED)
    word = style.paint("FAIL", "red") if failed else style.paint("PASS", "green")
    parts = [counted(len(file.cases), "case")]
    parts += [f"{failed} failed"] if failed else []
    parts += [f"{skipped} skipped"] if skipped else []
    fleet = ""
    if not failed:
        policies = f"{file.policies} {'policy' if file.policies == 1 else 'policies'}"
        fleet = f"   {counted(file.clusters, 'cluster')}, {policies}, {counted(file.workloads, 'workload')}"
    yield f"{word}  {printable(file.path)}   {', '.join(parts)}{fleet}"
    for note in file.notes:
        yield from style.wrap(f"  note: {printable(note)}", indent="    ")
    for case in file.cases:
        if case.outcome is CaseOutcome.FAILED:
            yield from case_lines(file.path, case, style, explains=explains)
        elif verbose:
            end = f": skipped, {case.skip}" if case.skip else ""
            yield printable(f"  {case.outcome.value:<7} {file.path}:{case.line}: {case.name}{end}")


def problem_lines(file: FileResult, style: Style) -> list[str]:
    """Return why a file is not run."""
    lines: list[str] = []
    for problem in file.problems:
        lines += style.wrap(printable(f"  {problem}"), indent="    ")
        lines += [f"    {printable(each)}" for each in problem.excerpt]
    return lines


def case_lines(path: str, case: CaseResult, style: Style, *, explains: bool = False) -> list[str]:
    """Return what does not hold in a case, and how that was decided."""
    lines = style.wrap(printable(f"  {path}:{case.line}: {case.name}"), indent="    ")
    for (workload, step), failures in groupby(case.failures, lambda each: (each.workload, each.step)):
        lines += _workload(workload, step, list(failures), style, explains=explains)
    if not explains and any(each.explanation is not None for each in case.failures):
        pattern = "".join(f"\\{each}" if each in _SPECIAL else each for each in case.name)
        lines.append(printable(f"    more: karmada-pyscheduler test {path} --run {quote(pattern)} --explain"))
    return lines


_SPECIAL: Final = frozenset(".^$*+?{}[]\\|()")


def _workload(
    workload: str, step: str, failures: Sequence[ExpectationFailure], style: Style, *, explains: bool
) -> Iterator[str]:
    explanation = failures[0].explanation
    if step:
        yield from style.wrap(printable(f"    {step} (line {failures[0].line})"), indent="      ")
    if workload:
        parts = [workload]
        if explanation is not None:
            parts.append(asked_text(explanation))
            if explanation.binding.policy is not None:
                parts.append(f"policy {explanation.binding.policy}")
        yield printable(f"    {'   '.join(parts)}")
    for each in failures:
        yield from _failure(each, style)
    if explanation is not None:
        yield from _explained(explanation, style, explains=explains)


def _explained(explanation: Explanation, style: Style, *, explains: bool) -> Iterator[str]:
    narrow = replace(style, width=max(40, style.width - 4))
    if explains:
        lines: Iterable[str] = explanation_text(explanation, narrow).splitlines()
    else:
        lines = [each.removeprefix("  ") for each in funnel_lines(explanation, narrow)]
        if not lines:
            lines = [f"{each.code}: {each.text}" for each in explanation.causes[:3]]
    yield from (printable(f"    {each}").rstrip() if not style.colour else f"    {each}" for each in lines)


def _failure(failure: ExpectationFailure, style: Style) -> Iterator[str]:
    left = [failure.key, f"line {failure.line}" if failure.line else ""]
    right = list(_difference(failure, style))
    for index in range(max(len(right), 2 if left[1] else 1)):
        head = left[index] if index < len(left) else ""
        line = right[index] if index < len(right) else ""
        yield printable(f"      {head:<{_KEY_WIDTH - 2}}  {line}").rstrip()


def failure_text(failure: ExpectationFailure, style: Style) -> str:
    """Return one failure: of which workload, after which event, and the difference."""
    head = " ".join(each for each in (failure.workload, failure.key) if each)
    step = f", {failure.step}" if failure.step else ""
    return "\n".join([f"{head}{step}", *_difference(failure, style)])


def _difference(failure: ExpectationFailure, style: Style) -> Iterator[str]:
    width = replace(style, width=max(40, style.width - _KEY_WIDTH - 6))
    if not failure.table:
        if failure.key.startswith("that"):
            listed = [failure.expected] if isinstance(failure.expected, str) else failure.expected
            yield from (line for each in listed for line in width.wrap(each))
        elif failure.expected is not None:
            got = "nothing" if failure.got is None else shown_value(failure.got)
            yield from width.wrap(f"expected {shown_value(failure.expected)}, got {got}")
        yield from width.wrap(failure.text) if failure.text else ()
        return
    results = len(failure.table[0].got)
    names = _UIDS if failure.text == OWN_UID else range(1, results + 1)
    heading = ["CLUSTER", "EXPECTED", *(["GOT"] if results == 1 else [f"GOT ({each})" for each in names])]
    by_name = not isinstance(failure.expected, dict)
    rows = [
        [
            each.name,
            _count(each.expected, by_name=by_name),
            *(_count(got, by_name=by_name) for got in each.got),
        ]
        for each in failure.table
    ]
    yield from table(heading, rows, width, align=" >" + ">" * results)
    yield from width.wrap(failure.text) if failure.text else ()


def _count(replicas: int | None, *, by_name: bool) -> str:
    if replicas is None:
        return "-"
    return "yes" if by_name else str(replicas)


def shown_value(value: Any) -> str:
    """Return a value as a file has it."""
    return value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)


def _end(report: PlacementTestReport, style: Style) -> Iterator[str]:
    parts = [f"{report.passed} passed"]
    parts += [f"{report.failed} failed"] if report.failed else []
    parts += [f"{report.skipped} skipped"] if report.skipped else []
    parts += [f"{counted(report.not_run, 'file')} not run"] if report.not_run else []
    text = f"{', '.join(parts)} in {report.seconds:.2f} s."
    if report.other_files:
        text += f" {counted(report.other_files, 'file')} of another kind."
    if report.idle_policies:
        names = style.fold(report.idle_policies)
        text += f" No case has a workload of {names}."
    elif report.idle_policies is not None and not report.not_run:
        text += " Every policy claims a workload of a case."
    yield from style.wrap(printable(text))
