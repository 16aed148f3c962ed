"""Answers of ``why-not`` hold, checked without trusting them: ``make check-why-not``.

Every remedy is applied to the files by an RFC 6902 implementation of its own, and ``karmada-pyscheduler simulate`` over
the patched files has to print the promised result. Without any one of its patches, the goal has to be missed. The answers to
small questions are compared with those of a search that tries all sets of up to two changes.
"""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path
from typing import Final

import pytest

from tests.cases import number_of_cases
from tests.unit.whynot.checker import Checker
from tests.unit.whynot.exhaustive import Comparison, compare
from tests.unit.whynot.questions import questions
from tools.check_frame import Progress

_QUESTIONS: Final = 10
_SMALL: Final = 300
"""Questions that are searched exhaustively, at most."""


@pytest.fixture(scope="module")
def count(request: pytest.FixtureRequest) -> int:
    """Return the number of questions."""
    return number_of_cases(request.config, _QUESTIONS)


def test_every_remedy_does_what_it_promises_and_has_no_part_that_can_be_left_out(
    count: int, seed: int, tmp_path: Path
) -> None:
    checker, progress, problems = Checker(tmp_path), Progress(), list[str]()
    counts, decisions = Counter[str](), list[int]()
    for question in itertools.islice(questions(seed), count):
        result = checker.check(question)
        counts.update({result.outcome: 1, "remedies": result.remedies, "simulations": result.simulated})
        counts[f"none found: {result.primary}"] += result.outcome == "none found"
        decisions.append(result.decisions)
        problems += [f"{question.identity}: {problem}" for problem in result.problems]
        if progress.is_due():
            print(f"{len(decisions)} questions, {counts['remedies']} remedies, {len(problems)} wrong")
    ordered = sorted(decisions)
    shares = "/".join(str(ordered[int(len(ordered) * share)]) for share in (0.5, 0.9, 0.99))
    print(", ".join(f"{number} {name}" for name, number in counts.most_common() if number))
    print(f"{count} questions, decisions of a question: {shares} (p50/p90/p99)")
    assert not problems, "\n".join(problems)


def test_small_questions_have_the_answers_of_an_exhaustive_search(
    count: int, seed: int, tmp_path: Path
) -> None:
    comparison, progress = Comparison(), Progress()
    for comparison in compare(tmp_path, seed=seed, cases=min(count, _SMALL)):
        if progress.is_due():
            print(comparison.report())
    print("\n".join([comparison.report(), *(f"missed {text}" for text in comparison.missed)]))
    print("\n".join(f"not the fewest edits {text}" for text in comparison.larger))
    assert not comparison.problems, "\n".join(comparison.problems)
