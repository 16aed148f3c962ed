"""Random why-nots, checked without trusting them: ``python -m tools.why_not_check --cases N --seed S``.

Every remedy is applied to the files by an RFC 6902 implementation of its own, and ``karmada-pyscheduler simulate`` over
the patched files has to print the promised result. Without any one of its patches, the goal has to be missed. With
``--exhaustive N``, the answers to N small questions are compared with those of a search that tries all sets of up to ``--depth``
changes. Ends with status 1 if any claim is wrong.
"""

from __future__ import annotations

import argparse
import itertools
import json
import multiprocessing
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tools.why_not_check.check import Checker, CheckResult
from tools.why_not_check.exhaustive import Comparison, compare
from tools.why_not_check.questions import questions

_REPORT_SECONDS = 30.0


class _Share(NamedTuple):
    seed: int
    cases: int
    first: int
    step: int
    timeout: str


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tools.why_not_check", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--cases", type=int, default=10_000, help="questions to ask (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="equal seeds give equal questions")
    parser.add_argument("--jobs", type=int, default=1, help="worker processes (default: %(default)s)")
    parser.add_argument(
        "--timeout", default="30s", help="of each search (default: %(default)s, so that runs end it)"
    )
    parser.add_argument(
        "--unsolved", type=Path, metavar="FILE", help="append questions without a remedy, as JSON lines"
    )
    parser.add_argument(
        "--exhaustive",
        type=int,
        default=0,
        metavar="N",
        help="small questions to compare with an exhaustive search (default: %(default)s)",
    )
    parser.add_argument(
        "--depth",
        type=int,
        default=2,
        metavar="EDITS",
        help="the largest sets that the exhaustive search tries (default: %(default)s)",
    )
    parser.add_argument(
        "--most-tried",
        type=int,
        default=10_000,
        metavar="SETS",
        help="the number of sets after which the exhaustive search gives up (default: %(default)s)",
    )
    options = parser.parse_args(arguments)
    shares = [
        _Share(options.seed, options.cases // options.jobs, number, options.jobs, options.timeout)
        for number in range(options.jobs)
    ]
    start, tally = time.monotonic(), _Tally()
    for identity, result in _results(shares):
        tally.add(identity, result)
        if result.outcome == "none found" and options.unsolved is not None:
            with options.unsolved.open("a") as file:
                file.write(
                    json.dumps({"id": identity, "primary": result.primary, "complete": result.complete})
                    + "\n"
                )
        if tally.due():
            print(tally.line(time.monotonic() - start), flush=True)
    tally.report(time.monotonic() - start)
    wrong = _compare(options) if options.exhaustive else []
    return 1 if tally.problems or wrong else 0


def _compare(options: argparse.Namespace) -> list[str]:
    """Compare small questions with an exhaustive search; print the figures, and return what is wrong."""
    comparison, reported = Comparison(), time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        for comparison in compare(
            Path(folder),
            seed=options.seed,
            cases=options.exhaustive,
            depth=options.depth,
            most_tried=options.most_tried,
        ):
            if time.monotonic() - reported > _REPORT_SECONDS:
                reported = time.monotonic()
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
        self._reported = time.monotonic()

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

    def due(self) -> bool:
        if time.monotonic() - self._reported < _REPORT_SECONDS:
            return False
        self._reported = time.monotonic()
        return True

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


def _results(shares: list[_Share]) -> Iterator[tuple[str, CheckResult]]:
    if len(shares) == 1:
        yield from _work(shares[0])
        return
    context = multiprocessing.get_context("spawn")
    queue: multiprocessing.Queue[tuple[str, CheckResult] | None] = context.Queue()
    workers = [context.Process(target=_worker, args=(share, queue), daemon=True) for share in shares]
    for worker in workers:
        worker.start()
    running = len(workers)
    while running:
        part = queue.get()
        if part is None:
            running -= 1
        else:
            yield part
    if any(worker.exitcode for worker in workers):
        raise RuntimeError("a worker failed")


def _worker(share: _Share, queue: multiprocessing.Queue[tuple[str, CheckResult] | None]) -> None:
    try:
        for part in _work(share):
            queue.put(part)
    finally:
        queue.put(None)


def _work(share: _Share) -> Iterator[tuple[str, CheckResult]]:
    with tempfile.TemporaryDirectory() as folder:
        checker = Checker(Path(folder), timeout=share.timeout)
        asked = questions(share.seed, first=share.first, step=share.step)
        for question in itertools.islice(asked, share.cases):
            yield question.identity, checker.check(question)


if __name__ == "__main__":
    sys.exit(main())
