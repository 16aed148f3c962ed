"""``make soak``: run, print a table, and judge. The exit status is 1 if anything grows.

python -m tools.soak --events 1000000 --out docs/soak
python -m tools.soak --events 20000 --every 1000 --leak bindings
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tools.soak.judge import FEWEST, judge, window_of
from tools.soak.planted import LEAKS
from tools.soak.report import document, garbage_line, header, row, summary
from tools.soak.run import Plan, Soak


def main(arguments: Sequence[str] | None = None) -> int:
    """Run and return the exit status."""
    given = _parser().parse_args(arguments)
    plan = Plan(
        events=given.events,
        every=given.every,
        clusters=given.clusters,
        bindings=given.bindings,
        policies=given.policies,
        seed=given.seed,
        leaks=tuple(given.leak),
        outside=given.outside,
    )
    sys.setswitchinterval(0.0005)  # the API server's thread shares the interpreter lock with the churn
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)  # the scheduler ends with this process
    print(header(), flush=True)
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        failure: AssertionError | None = None
        soak = Soak(plan, given.folder or Path(folder))
        try:
            for sample in soak.samples_of_run():
                print(row(sample), flush=True)
                if given.out is not None and len(window_of(soak.samples)) >= FEWEST:
                    _write(given.out, soak)
        except KeyboardInterrupt:
            print("interrupted; the events so far are judged")
        except AssertionError as error:
            failure = error
            print(f"PROBLEM: {error}")
    try:
        judgement = judge(soak.samples)
    except ValueError as error:
        print(f"PROBLEM: {error}")
        return 1
    print(summary(judgement, soak.faults, unsettled=soak.unsettled))
    print(garbage_line(soak.garbage))
    return 1 if failure or judgement.problems or soak.unsettled else 0


def _write(folder: Path, soak: Soak) -> None:
    """Write the results so far."""
    folder.mkdir(parents=True, exist_ok=True)
    found = document(soak.plan, soak.samples, judge(soak.samples), soak.faults, unsettled=soak.unsettled)
    (folder / "soak.json").write_text(_lines(found))


def _lines(found: dict[str, object]) -> str:
    """Return JSON with a line for each figure, not for each number."""
    text = json.dumps(found, separators=(", ", ": "))
    return (
        text.replace('"size ', '\n"size ').replace('"gauge ', '\n"gauge ').replace('"lru ', '\n"lru ') + "\n"
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tools.soak", description=__doc__)
    plan = Plan()
    parser.add_argument("--events", type=int, default=plan.events, help="watch events (%(default)s)")
    parser.add_argument("--every", type=int, default=plan.every, help="events between samples (%(default)s)")
    parser.add_argument("--clusters", type=int, default=plan.clusters, help="live clusters (%(default)s)")
    parser.add_argument("--bindings", type=int, default=plan.bindings, help="live bindings (%(default)s)")
    parser.add_argument("--policies", type=int, default=plan.policies, help="live policies (%(default)s)")
    parser.add_argument("--seed", type=int, default=plan.seed, help="of the changes (%(default)s)")
    parser.add_argument(
        "--outside", action="store_true",
        help="do not walk through the objects of the process, which takes memory of the process",
    )  # fmt: skip
    parser.add_argument("--leak", action="append", default=[], choices=sorted(LEAKS), help="plant a leak")
    parser.add_argument("--out", type=Path, help="folder for soak.json")
    parser.add_argument("--folder", type=Path, help="existing folder for the scheduler's logs")
    return parser


if __name__ == "__main__":
    sys.exit(main())
