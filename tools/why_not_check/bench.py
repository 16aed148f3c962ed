"""Latency of why-not at 100, 1,000 and 5,000 clusters: ``python -m tools.why_not_check.bench``.

The time is that of the answer, after the objects were read and the plugins built, as wall-clock and as CPU time. Fleets are
plausible ones (``fleets``), or with ``--adversarial`` those of the fuzzer's generator; the gates are those of a scheduler
without flags.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from karmada_advisor.cli import whynot
from karmada_advisor.whynot import answer as answer_module
from tools.oracle.generator.rng import Random
from tools.oracle.generator.scenarios import draw_scenario
from tools.why_not_check import fleets
from tools.why_not_check.check import Checker
from tools.why_not_check.questions import CheckedQuestion

_BINDINGS = 20


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tools.why_not_check.bench", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--clusters", type=int, nargs="*", default=[100, 1000, 5000])
    parser.add_argument("--questions", type=int, default=60, help="per size (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--adversarial", action="store_true", help="fleets of the fuzzer's generator")
    options = parser.parse_args(arguments)
    print(
        "clusters  questions  answered   seconds p50   p90   p99   CPU p50   p90   p99   decisions p50  p99"
    )
    for size in options.clusters:
        print(_line(size, options), flush=True)
    return 0


def _line(size: int, options: argparse.Namespace) -> str:
    seconds, cpu, decisions, answered = [], [], [], 0
    with tempfile.TemporaryDirectory() as folder:
        checker = Checker(Path(folder), timeout="2s")
        for question in _questions(size, options, checker):
            with _cpu_time() as spent:
                _, answer = checker.ask(question)
            if not answer or answer["nextHolds"]:
                continue
            answered += bool(answer["remedies"])
            seconds.append(answer["search"]["seconds"])
            cpu += spent
            decisions.append(answer["search"]["decisions"])
            if len(seconds) >= options.questions:
                break
    wall = "".join(f"{_part(seconds, share):6.3f}" for share in (0.5, 0.9, 0.99))
    own = "".join(f"{_part(cpu, share):6.3f}" for share in (0.5, 0.9, 0.99))
    return (
        f"{size:8}  {len(seconds):9}  {answered:8}        {wall}    {own}   "
        f"{_part(decisions, 0.5):13} {_part(decisions, 0.99):4}"
    )


def _part(values: Sequence[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def _questions(size: int, options: argparse.Namespace, checker: Checker) -> Iterator[CheckedQuestion]:
    number = 0
    while True:
        number += 1
        rng = Random(f"bench/{options.seed}/{size}/{number}")
        if options.adversarial:
            document = draw_scenario(
                rng, clusters=size, bindings=_BINDINGS, identity=f"{options.seed}/{number}"
            )
            clusters, bindings = document["clusters"], document["bindings"]
        else:
            clusters = fleets.draw_fleet(rng, size)
            bindings = _placed(
                [fleets.draw_binding(rng, each) for each in range(_BINDINGS)], clusters, checker
            )
        for binding in bindings[:10]:
            cluster = rng.pick(clusters)["metadata"]["name"]
            yield CheckedQuestion("", clusters, bindings, binding, cluster, ())


def _placed(
    bindings: list[dict[str, Any]], clusters: list[dict[str, Any]], checker: Checker
) -> list[dict[str, Any]]:
    """Return bindings after their first scheduling, three of four; the others are new."""
    results = checker.simulate(clusters, bindings)
    return [
        fleets.as_placed(binding, result["clusters"]) if number % 4 and result["clusters"] else binding
        for number, (binding, result) in enumerate(zip(bindings, results, strict=True))
    ]


@contextmanager
def _cpu_time() -> Iterator[list[float]]:
    """Collect the CPU time of ``answer``; reading objects and building plugins does not count."""
    spent: list[float] = []
    original: Callable[..., Any] = answer_module.answer

    def timed(*arguments: Any, **options: Any) -> Any:
        start = time.process_time()
        found = original(*arguments, **options)
        spent.append(time.process_time() - start)
        return found

    with mock.patch.object(whynot, "answer", timed):
        yield spent


if __name__ == "__main__":
    sys.exit(main())
