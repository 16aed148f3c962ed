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

import orjson

from karmada_advisor.cli.flags.what_if import DOMAINS, SURVIVE_FAIL_ON
from karmada_advisor.cli.output import CommandAnswer, exit_status, print_error
from karmada_advisor.cli.questions import check_names, process_rules_of, read_whole_fleet, source_of, words_of
from karmada_advisor.fleet.errors import NoAnswerError
from karmada_advisor.fleet.files import read
from karmada_advisor.fleet.rules import Rules
from karmada_advisor.state.stored import value_at
from karmada_advisor.views.text import Style
from karmada_advisor.whatif.plan.fleet_rules import now, served_version
from karmada_advisor.whatif.survive.domains import KINDS, LABEL, PAIR
from karmada_advisor.whatif.survive.fail_on import WORDS, FailOn, Figures, figures_in
from karmada_advisor.whatif.survive.loss import Loss
from karmada_advisor.whatif.survive.model import LossSettings, SurvivalReport
from karmada_advisor.whatif.survive.question import SurviveQuestion, read_settings, taint_policies_of
from karmada_advisor.whatif.survive.reports import survival_reports
from karmada_scheduler.api.names import nearest_hint
from karmada_scheduler.framework.profile.factory import Registration
from karmada_scheduler.process.memory import no_collection


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
        for output in ("json", "yaml", "text", *found.others):
            suffix = _SUFFIXES.get(output, output)
            chosen = argparse.Namespace(**{**vars(arguments), "output": output, "color": "never"})
            _write(arguments.write_to / f"survive.{suffix}", found.written(chosen).encode())
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


_SUFFIXES: Final = {"text": "txt", "markdown": "md", "junit": "xml"}
"""Of the files of ``--write-to``, where it is not the name of the format."""


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
    unread = [*problems, *(domain for domain in report.domains if not domain.done)]
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
    check_names(source.plane, fleet, question.namespaces, question.policies)
    policies, problem = taint_policies_of(arguments.taint_policies, source.plane, fleet)
    if problem:
        print_error(problem)
    notes = served_version(source.plane, fleet, question.rules)[1]
    [report] = survival_reports(question, fleet, taint_policies=policies, more_notes=notes)
    return report, fleet.problems


def question_of(arguments: argparse.Namespace, rules: Rules) -> SurviveQuestion:
    """Return the question of the flags of ``survive``.

    Raises:
        NoAnswerError: A flag or a file cannot be used.
    """
    holds, loss = arguments.demand == "holds", Loss(arguments.loss)
    default = f"{SURVIVE_FAIL_ON},interrupted" if holds else SURVIVE_FAIL_ON
    pairs, drawn = pairs_of(arguments.pairs)
    return SurviveQuestion(
        rules=rules,
        settings=settings_of(arguments.controller_manager, loss),
        fail_on=fail_on_of(arguments.fail_on or default),
        expected=arguments.expect,
        kinds=kinds_of(arguments.domain),
        names=arguments.names,
        spanning_is_lost=arguments.spanning == "lost",
        pairs=pairs,
        drawn_pairs=drawn,
        namespaces=arguments.namespaces,
        policies=arguments.policy,
        least_priority=arguments.min_priority,
        holds=holds,
        every_loss=arguments.all,
        baseline=baseline_of(arguments.baseline, loss),
        remedies=0 if arguments.no_remedies else arguments.remedies,
        seconds=arguments.timeout,
        fails_on_not_judged=not arguments.fail_on,
    )


def settings_of(path: str, loss: Loss) -> LossSettings:
    """Return how karmada-controller-manager is set.

    Raises:
        NoAnswerError: The file cannot be used.
    """
    if not path:
        return LossSettings(loss)
    found = read([path], partial(read_settings, loss=loss))
    if found.problems or len(found.objects) != 1:
        problem = str(found.problems[0]) if found.problems else f"{path}: expected one Deployment or Pod"
        raise NoAnswerError(f"--controller-manager: {problem}")
    return found.objects[0]


def baseline_of(path: str, loss: Loss) -> Figures | None:
    """Return what is compared about an earlier report; None without one.

    Raises:
        NoAnswerError: The file cannot be used.
    """
    if not path:
        return None
    try:
        document = orjson.loads(Path(path).read_bytes())
    except OSError as error:
        raise NoAnswerError(f"--baseline: {path}: {error.strerror}") from error
    except orjson.JSONDecodeError as error:
        raise NoAnswerError(f"--baseline: {path}: is not JSON: {error}") from error
    if not isinstance(document, dict) or document.get("kind") != SurvivalReport.__name__:
        raise NoAnswerError(f"--baseline: {path}: expected a report of survive -o json")
    before = value_at(document, "settings", "loss")
    if before != loss.value:
        raise NoAnswerError(f"--baseline: {path}: was made with --loss {before}, not {loss.value}")
    return figures_in(document)


def kinds_of(written: Sequence[str]) -> list[str]:
    """Return the kinds of ``--domain``.

    Raises:
        NoAnswerError: There is no such kind.
    """
    kinds = [kind for text in written for kind in text.split(",") if kind]
    for kind in kinds:
        if kind in KINDS or (kind.startswith(LABEL) and kind != LABEL):
            continue
        raise NoAnswerError(f"--domain: expected {DOMAINS}, got {kind}{nearest_hint(kind, KINDS)}")
    return kinds


def pairs_of(written: Sequence[str]) -> tuple[list[tuple[str, str]], int]:
    """Return the pairs that ``--pairs`` names, and how many are to be drawn.

    Raises:
        NoAnswerError: One is neither.
    """
    named, count = list[tuple[str, str]](), 0
    for text in written:
        one, separator, other = text.partition("+")
        if text.isdecimal() and int(text):
            count = int(text)
        elif separator and one and other and one != other:
            named.append((one, other))
        else:
            raise NoAnswerError(f"--pairs: expected A+B or a number from 1, got {text}")
    return named, count


def fail_on_of(written: str) -> list[FailOn]:
    """Return what ``--fail-on`` asks for.

    Raises:
        NoAnswerError: There is no such word, or no such kind of domain.
    """
    found = []
    for word, separator, kind in words_of("--fail-on", written, WORDS):
        if separator and kind not in (*KINDS, PAIR) and not (kind.startswith(LABEL) and kind != LABEL):
            raise NoAnswerError(f"--fail-on: expected {DOMAINS} after @, got {kind or 'nothing'}")
        found.append(FailOn(word, kind))
    return found
