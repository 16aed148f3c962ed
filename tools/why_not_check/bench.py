"""Latency of why-not at 100, 1,000 and 5,000 clusters: ``python -m tools.why_not_check.bench``.

The time is that of the answer, after the files were read and the plugins built. Fleets are those of the fuzzer's
generator; the gates are those of a scheduler without flags.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tools.oracle.generator.rng import Random
from tools.oracle.generator.scenarios import draw_scenario
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
    options = parser.parse_args(arguments)
    print("clusters  questions  answered  seconds p50    p90    p99    max  decisions p50   p99")
    for size in options.clusters:
        print(_line(size, options.questions, options.seed), flush=True)
    return 0


def _line(size: int, count: int, seed: int) -> str:
    seconds, decisions, answered, asked, number = [], [], 0, 0, 0
    with tempfile.TemporaryDirectory() as folder:
        checker = Checker(Path(folder), timeout="2s")
        while asked < count:
            number += 1
            rng = Random(f"bench/{seed}/{size}/{number}")
            document = draw_scenario(rng, clusters=size, bindings=_BINDINGS, identity=f"{seed}/{number}")
            for binding in document["bindings"][:8]:
                cluster = rng.pick(document["clusters"])["metadata"]["name"]
                question = CheckedQuestion(
                    "", document["clusters"], document["bindings"], binding, cluster, ()
                )
                _, answer = checker.ask(question)
                if not answer or answer["holds"]:
                    continue
                asked += 1
                answered += bool(answer["remedies"])
                seconds.append(answer["search"]["seconds"])
                decisions.append(answer["search"]["decisions"])
    seconds.sort()
    decisions.sort()

    def part(values: list[float], share: float) -> float:
        return values[min(len(values) - 1, int(len(values) * share))]

    return (
        f"{size:8}  {asked:9}  {answered:8}  {part(seconds, 0.5):11.3f} {part(seconds, 0.9):6.3f} "
        f"{part(seconds, 0.99):6.3f} {seconds[-1]:6.3f}  {part(decisions, 0.5):13} {part(decisions, 0.99):5}"
    )


if __name__ == "__main__":
    sys.exit(main())
