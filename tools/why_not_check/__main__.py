"""Random why-nots, checked without trusting them: ``python -m tools.why_not_check --cases N --seed S``.

Every remedy is applied to the files by an RFC 6902 implementation of its own, and ``karmada-pyscheduler simulate`` over
the patched files has to print the promised result. Without any one of its patches, the goal has to be missed. With
``--exhaustive N``, the answers to N small questions are compared with those of a search that tries all sets of up to ``--depth``
changes. Ends with status 1 if any claim is wrong.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import tempfile
from collections import Counter
from pathlib import Path

from tools.check_frame import Progress, add_cases, parser
from tools.why_not_check.check import Checker, CheckResult
from tools.why_not_check.exhaustive import Comparison, compare
from tools.why_not_check.questions import questions


def main(arguments: list[str] | None = None) -> int:
    """Run the check; returns the exit status."""
    made = parser("python -m tools.why_not_check", __doc__)
    add_cases(made, 10_000)
    made.add_argument(
        "--timeout", default="30s", help="of each search (default: %(default)s, so that runs end it)"
    )
    made.add_argument(
        "--exhaustive",
        type=int,
        default=0,
        metavar="N",
        help="small questions to compare with an exhaustive search (default: %(default)s)",
    )
    made.add_argument(
        "--depth",
        type=int,
        default=2,
        metavar="EDITS",
        help="the largest sets that the exhaustive search tries (default: %(default)s)",
    )
    made.add_argument(
        "--most-tried",
        type=int,
        default=10_000,
        metavar="SETS",
        help="the number of sets after which the exhaustive search gives up (default: %(default)s)",
    )
    options = made.parse_args(arguments)
    progress, tally = Progress(), _Tally()
    with tempfile.TemporaryDirectory() as folder:
        checker = Checker(Path(folder), timeout=options.timeout)
        for question in itertools.islice(questions(options.seed), options.cases):
            tally.add(question.identity, checker.check(question))
            if progress.is_due():
                print(tally.line(progress.seconds), flush=True)
    tally.report(progress.seconds)
    wrong = _compare(options) if options.exhaustive else []
    return 1 if tally.problems or wrong else 0


def _compare(options: argparse.Namespace) -> list[str]:
    """Compare small questions with an exhaustive search; print the figures, and return what is wrong."""
    comparison, progress = Comparison(), Progress()
    with tempfile.TemporaryDirectory() as folder:
        for comparison in compare(
            Path(folder),
            seed=options.seed,
            cases=options.exhaustive,
            depth=options.depth,
            most_tried=options.most_tried,
        ):
            if progress.is_due():
                print(comparison.report(), flush=True)
    print(comparison.report())
    for text in comparison.missed:
        print(f"missed {text}")
    for text in comparison.larger:
        print(f"not the fewest edits {text}")
    for problem in comparison.problems:
        print(f"WRONG {problem}")
    return comparison.problems


class _Tally:
    def __init__(self) -> None:
        self.outcomes: Counter[str] = Counter()
        self.parts: Counter[int] = Counter()
        self.unsolved: Counter[str] = Counter()
        self.problems: list[str] = []
        self.remedies = self.simulated = self.inapplicable = 0
        self.decisions: list[int] = []

    def add(self, identity: str, result: CheckResult) -> None:
        self.outcomes[result.outcome] += 1
        self.parts.update(result.parts)
        self.remedies += result.remedies
        self.simulated += result.simulated
        self.inapplicable += result.inapplicable
        if result.outcome in {"answered", "none found"}:
            self.decisions.append(result.decisions)
        if result.outcome == "none found":
            self.unsolved[result.primary] += 1
        for problem in result.problems:
            self.problems.append(f"{identity}: {problem}")
            print(f"WRONG {identity}: {problem}", flush=True)

    def line(self, seconds: float) -> str:
        asked = sum(self.outcomes.values())
        return f"{asked} questions, {self.remedies} remedies, {len(self.problems)} wrong, {asked / seconds:.1f}/s"

    def report(self, seconds: float) -> None:
        print(self.line(seconds))
        print("outcomes:", ", ".join(f"{count} {name}" for name, count in self.outcomes.most_common()))
        print(
            "edits per remedy:", ", ".join(f"{size}: {count}" for size, count in sorted(self.parts.items()))
        )
        print(
            f"{self.simulated} simulations; {self.inapplicable} patches without one part could not be applied"
        )
        print(
            "none found, by primary cause:",
            ", ".join(f"{count} {name}" for name, count in self.unsolved.most_common()),
        )
        if self.decisions:
            ordered = sorted(self.decisions)
            shown = [ordered[int(len(ordered) * part)] for part in (0.5, 0.9, 0.99)]
            print(f"decisions per question p50 / p90 / p99: {' / '.join(map(str, shown))}")


if __name__ == "__main__":
    sys.exit(main())
