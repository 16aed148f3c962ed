"""The flags of ``survive`` as a question: files, failure domains, pairs of them, and what the exit status depends on."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import orjson

from karmada_advisor.cli.flags.survive import DEFAULT_FAIL_ON, DOMAINS
from karmada_advisor.cli.questions import words_of
from karmada_advisor.fleet.errors import NoAnswerError
from karmada_advisor.fleet.files import read
from karmada_advisor.fleet.names import nearest_hint
from karmada_advisor.fleet.rules import Rules
from karmada_advisor.state.stored import value_at
from karmada_advisor.whatif.survive.domains import KINDS, LABEL, PAIR
from karmada_advisor.whatif.survive.fail_on import WORDS, FailOn, Figures, figures_in
from karmada_advisor.whatif.survive.loss import Loss
from karmada_advisor.whatif.survive.model import LossSettings, SurvivalReport
from karmada_advisor.whatif.survive.question import SurviveQuestion
from karmada_advisor.whatif.survive.settings import read_settings


def question_of(arguments: argparse.Namespace, rules: Rules) -> SurviveQuestion:
    """Return the question of the flags of ``survive``.

    Raises:
        NoAnswerError: A flag or a file cannot be used.
    """
    holds, loss = arguments.demand == "holds", Loss(arguments.loss)
    default = f"{DEFAULT_FAIL_ON},interrupted" if holds else DEFAULT_FAIL_ON
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
    kinds = [each for text in written for each in text.split(",") if each]
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
