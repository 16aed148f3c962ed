"""``karmada-pyscheduler test``: placement tests, in CI and anywhere else without a control plane."""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from karmada_advisor.cli.flags.offline import FILE_NAMES
from karmada_advisor.cli.output import GOOD, NO_ANSWER, NOT_GOOD, CommandAnswer, print_answer
from karmada_advisor.fleet.errors import NoAnswerError
from karmada_advisor.views.fields import as_json
from karmada_advisor.views.placement_tests_text import github_annotations, report_suites, report_text
from karmada_advisor.whatif.placement_tests import model
from karmada_advisor.whatif.placement_tests.files import Unread, read_test_file
from karmada_advisor.whatif.placement_tests.running import CaseRunner
from karmada_advisor.whatif.placement_tests.scenario import names_of_policies, scenario_of
from karmada_advisor.whatif.placement_tests.schema import SCHEMA
from karmada_advisor.whatif.plan.objects import ChangeError
from karmada_scheduler.config.problems import ConfigError
from karmada_scheduler.framework.profile.factory import Registration
from karmada_scheduler.process.memory import no_collection
from karmada_scheduler.structs import IdentityStruct, field


def run(arguments: argparse.Namespace, own: Sequence[Registration] = ()) -> int:
    """Run the command; return its exit status.

    Args:
        arguments: As parsed.
        own: The plugins of a main program of the user's own.
    """
    if arguments.schema:
        sys.stdout.write(as_json(SCHEMA))
        return GOOD
    if arguments.init:
        from karmada_advisor.cli.init_tests import run_init

        return run_init(arguments, own)
    return print_answer(arguments, lambda: _answer(arguments, own))


def _answer(arguments: argparse.Namespace, own: Sequence[Registration]) -> CommandAnswer:
    with no_collection():
        report = report_of(arguments, own)
    if arguments.junit:
        _write_junit(arguments.junit, report)
    end = ""
    if arguments.update:
        from karmada_advisor.whatif.placement_tests.updates import updated

        differences = "".join(updated(file) for file in report.files if file.count(model.CaseOutcome.FAILED))
        end = f"\n{differences}" if differences else ""
    if arguments.github:
        end += github_annotations(report)
    flags = {"verbose": arguments.verbose, "quiet": arguments.quiet, "explains": arguments.explain}
    status = status_of(report, every_policy=arguments.every_policy)
    return CommandAnswer(report, lambda style: report_text(report, style, **flags) + end, status)


def status_of(report: model.PlacementTestReport, *, every_policy: bool) -> int:
    """Return the exit status of a report."""
    if report.not_run:
        return NO_ANSWER
    return NOT_GOOD if report.failed or (every_policy and report.idle_policies) else GOOD


def _write_junit(path: str, report: model.PlacementTestReport) -> None:
    from karmada_advisor.views.junit import junit

    try:
        Path(path).write_bytes(junit(report_suites(report), time=f"{report.seconds:.3f}"))
    except OSError as error:
        raise NoAnswerError(f"--junit {path}: {error.strerror or error}") from error


def report_of(arguments: argparse.Namespace, own: Sequence[Registration] = ()) -> model.PlacementTestReport:
    """Run the tests.

    Raises:
        NoAnswerError: There is no test, or ``--run`` is wrong or matches none.
    """
    begun = time.perf_counter()
    running = _Running(_patterns(arguments.run), own, fail_fast=arguments.fail_fast)
    for path, named in _files(arguments.paths or ["."]):
        running.take(path, named=named)
        if running.is_over:
            break
    files = running.files
    if not files:
        raise NoAnswerError(_no_tests(arguments, running.others))
    passed, failed, skipped = (sum(file.count(outcome) for file in files) for outcome in model.CaseOutcome)
    return model.PlacementTestReport(
        tuple(files),
        passed,
        failed,
        skipped,
        sum(bool(file.problems) for file in files),
        round(time.perf_counter() - begun, 3),
        running.others,
        None if arguments.run or running.is_over else running.idle_policies,
    )


def _no_tests(arguments: argparse.Namespace, others: int) -> str:
    where = " ".join(arguments.paths or ["this directory"])
    if arguments.run:
        return f"--run {' '.join(arguments.run)}: no case matches in {where}"
    more = f" ({others} of another kind)" if others else ""
    return f"there are no placement tests in {where}: no file *{FILE_NAMES[0]} of kind PlacementTest{more}"


def _patterns(written: Iterable[str]) -> list[re.Pattern[str]]:
    found = []
    for pattern in written:
        try:
            found.append(re.compile(pattern))
        except re.error as error:
            raise NoAnswerError(f"--run {pattern}: no regular expression: {error}") from error
    return found


def _files(paths: Iterable[str]) -> Iterator[tuple[str, bool]]:
    """Yield test files in the order of their names, with whether the user has named them; directories are searched, not through links."""
    seen: set[str] = set()
    for path in paths:
        if not os.path.lexists(path):
            raise NoAnswerError(f"{path} does not exist ({Path(path).absolute()})")
        found = sorted(_walked(path)) if Path(path).is_dir() else [path]
        for file in found:
            if file not in seen:
                seen.add(file)
                yield file, file == path


def _walked(folder: str) -> Iterator[str]:
    for root, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            if name.endswith(FILE_NAMES) and not name.startswith("."):
                yield str(Path(root) / name)


class _Running(IdentityStruct):
    """A run of files, one after the other.

    Attributes:
        patterns: Of the names of cases; all without one.
        own: The plugins of a main program of the user's own.
        fail_fast: Whether it ends after the first case that fails.
        files: How they ended, those without a chosen case left out.
        others: Files of another kind.
        is_over: Whether a case has failed and no other one is to run.
    """

    patterns: Sequence[re.Pattern[str]]
    own: Sequence[Registration]
    fail_fast: bool
    files: list[model.FileResult] = field(default_factory=list)
    others: int = 0
    is_over: bool = False
    _policies: dict[str, None] = field(default_factory=dict)
    _claiming: set[str] = field(default_factory=set)

    @property
    def idle_policies(self) -> tuple[str, ...]:
        """The policies that claim no workload of a case."""
        return tuple(policy for policy in self._policies if policy not in self._claiming)

    def take(self, path: str, *, named: bool) -> None:
        """Run a file; ``named`` as in ``read_test_file``."""
        begun = time.perf_counter()
        try:
            file, problems = read_test_file(path, named=named)
        except Unread:
            self.others += 1
            return
        if file is None:
            self.files.append(model.FileResult(path, path, (), tuple(problems)))
            return
        cases = [case for case in file.cases if self._is_chosen(file, case)]
        if not cases:
            return
        try:
            notes = [*file.notes]
            results = tuple(self._results(file, cases, notes))
        except (ChangeError, ConfigError) as problem:
            texts = problem.problems if isinstance(problem, ConfigError) else [problem]
            found = tuple(model.FileProblem(file.path, 0, 0, str(text)) for text in texts)
            self.files.append(model.FileResult(file.path, file.name, (), found))
            return
        counts = len(file.clusters), len(file.policies), len(file.workloads)
        seconds = round(time.perf_counter() - begun, 3)
        self.files.append(model.FileResult(file.path, file.name, results, (), *counts, seconds, tuple(notes)))

    def _is_chosen(self, file: model.PlacementTestFile, case: model.PlacementCase) -> bool:
        name = f"{file.path}/{case.name}"
        return not self.patterns or any(pattern.search(name) for pattern in self.patterns)

    def _results(
        self, file: model.PlacementTestFile, cases: Iterable[model.PlacementCase], notes: list[str]
    ) -> Iterator[model.CaseResult]:
        with scenario_of(file, self.own) as scenario:
            notes += [f"{name}: {text}" for name, texts in scenario.lints.items() for text in texts]
            self._policies.update(dict.fromkeys(names_of_policies(scenario.objects)))
            runner = CaseRunner(scenario)
            for case in cases:
                result = runner.run(case)
                yield result
                if self.fail_fast and result.outcome is model.CaseOutcome.FAILED:
                    self.is_over = True
                    break
            self._claiming |= runner.claiming
