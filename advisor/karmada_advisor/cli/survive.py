"""``karmada-pyscheduler survive``: what the loss of each cluster, zone, region or provider would do to every binding.

Reads the objects of a control plane, or files as ``simulate`` reads them. Nothing is written.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

from karmada_advisor.cli.collection import no_collection
from karmada_advisor.cli.output import CommandAnswer, exit_status, print_error
from karmada_advisor.cli.questions import process_rules_of, read_whole_fleet, source_of
from karmada_advisor.cli.survive_inputs import question_of
from karmada_advisor.fleet.errors import NoAnswerError
from karmada_advisor.views.text import Style
from karmada_advisor.whatif.plan.fleet_rules import notes_about_controllers, now
from karmada_advisor.whatif.survive.model import SurvivalReport
from karmada_advisor.whatif.survive.question import taint_policies_of
from karmada_advisor.whatif.survive.report_steps import finished, report_steps
from karmada_scheduler.framework.profile.factory import Registration


def answer(arguments: argparse.Namespace, own: Sequence[Registration] = ()) -> CommandAnswer:
    """Return what to print, and the exit status.

    Args:
        arguments: As parsed.
        own: The plugins of a main program of the user's own.

    Raises:
        NoAnswerError: There is no answer.
    """
    began = time.monotonic()
    with no_collection():
        report, problems = report_of(arguments, own)
    found = CommandAnswer(
        report,
        partial(_text, report, arguments.top),
        status_of(report, problems),
        others={output: partial(_document, report, output) for output in ("markdown", "html", "junit")},
    )
    if arguments.metrics:
        from karmada_advisor.cli.survive_metrics import survival_metrics  # brings the client library

        at_, seconds = now().timestamp(), time.monotonic() - began
        _write(Path(arguments.metrics), survival_metrics(report, top=arguments.top, at=at_, seconds=seconds))
    if arguments.write_to is not None:
        for name, output in _FILES.items():
            chosen = argparse.Namespace(**{**vars(arguments), "output": output, "color": "never"})
            _write(arguments.write_to / name, found.written(chosen).encode())
    return found


# Only what is printed is imported.
def _text(report: SurvivalReport, top: int, style: Style) -> str:
    from karmada_advisor.views.survive_text import survive_text

    return survive_text(report, style, top=top)


def _document(report: SurvivalReport, output: str, _: Style) -> str:
    from karmada_advisor.views.survive_document import survive_html, survive_markdown, survive_suites

    if output == "junit":
        from karmada_advisor.views.junit import junit

        return junit(survive_suites(report), name="survive").decode()
    return survive_html(report) if output == "html" else survive_markdown(report)


_FILES: Final = {
    "survive.json": "json",
    "survive.yaml": "yaml",
    "survive.txt": "text",
    "survive.md": "markdown",
    "survive.html": "html",
    "survive.xml": "junit",
}


def _write(path: Path, content: bytes) -> None:
    """Write a file as a whole: a reader sees the old one or the new one.

    Raises:
        NoAnswerError: It cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f".{path.name}.part")
        part.write_bytes(content)
        part.replace(path)
    except OSError as error:
        raise NoAnswerError(f"{path}: cannot be written: {error.strerror}") from error


def status_of(report: SurvivalReport, problems: Sequence[str]) -> int:
    """Return the exit status of a report; ``problems`` is what could not be read."""
    unread = [*problems, *(each for each in report.domains if not each.done)]
    return exit_status(is_good=not report.failing, problems=unread)


def report_of(
    arguments: argparse.Namespace, own: Sequence[Registration] = ()
) -> tuple[SurvivalReport, Sequence[str]]:
    """Return the report, and what could not be read.

    Raises:
        NoAnswerError: There is no answer.
    """
    source = source_of(arguments)
    question = question_of(arguments, process_rules_of(arguments, own))
    fleet = read_whole_fleet(source, without_clusters="There is no cluster, so nothing can be lost.")
    policies, problem = taint_policies_of(arguments.taint_policies, source.plane, fleet)
    if problem:
        print_error(problem)
    steps = report_steps(
        question,
        fleet,
        taint_policies=policies,
        more_notes=notes_about_controllers(source.plane, fleet),
    )
    [report] = finished(steps)
    return report, fleet.problems
