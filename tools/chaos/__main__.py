"""The command line: run and judge, or judge the records of an earlier run."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from tools.chaos.judge import Judge
from tools.chaos.plan import KINDS, faults_for, missing_kinds
from tools.chaos.records import read
from tools.chaos.report import report
from tools.chaos.run import run
from tools.controlplane import binaries
from tools.controlplane.workspace import DEFAULT, run_by_hand, timed_lines
from tools.simulation.planted_bugs import BUGS

_ALL_KINDS_MINUTES = 15.0
"""Runs of at least this length must have every kind of fault."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns 0 if no invariant was broken."""
    options = _parser().parse_args(arguments)
    return run_by_hand(partial(_command, options), interrupted=130)


def _command(options: argparse.Namespace) -> int:
    if options.plan:
        for fault in faults_for(options.seed, options.minutes):
            print(f"{fault.at:7.1f} s  {fault.kind} for {fault.seconds:g} s")
        return 0
    folder = options.judge
    if folder is None:
        now = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
        folder = options.folder / f"seed{options.seed}-{now}"
        _run(folder.resolve(), options)
    return _judge(folder.resolve())


def _run(folder: Path, options: argparse.Namespace) -> None:
    binaries.ensure(quiet=True)
    program = [sys.executable, "-m", "tools.chaos.planted", options.planted] if options.planted else []
    run(
        folder,
        minutes=options.minutes,
        seed=options.seed,
        bindings=options.bindings,
        replicas=options.replicas,
        program=program,
        say=timed_lines(),
    )


def _judge(folder: Path) -> int:
    records = read(folder)
    result = Judge(records).judge()
    text = report(folder, records, result)
    has_all_kinds = records.facts["minutes"] >= _ALL_KINDS_MINUTES
    missing = missing_kinds(Counter(records.final["faults"])) if has_all_kinds else []
    if missing:
        text += f"\n\nFaults that did not occur: {', '.join(missing)}"
    (folder / "summary.txt").write_text(text + "\n")
    print(f"\n{text}\n\nAll records are in {folder}")
    return 1 if result.violations or missing else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tools.chaos",
        description=f"Our scheduler under {len(KINDS)} kinds of faults on a real control plane; see docs/reliability.md.",
    )
    parser.add_argument(
        "--minutes", type=float, default=30.0, help="how long faults are injected (default: 30)"
    )
    parser.add_argument("--seed", type=int, default=1, help="decides faults and workload (default: 1)")
    parser.add_argument("--bindings", type=int, default=200, help="how many there are (default: 200)")
    parser.add_argument(
        "--replicas", type=int, default=3, choices=(2, 3, 4), help="of our scheduler (default: 3)"
    )
    parser.add_argument(
        "--folder", type=Path, default=DEFAULT / "chaos", help="where records go (default: %(default)s)"
    )
    parser.add_argument(
        "--judge", type=Path, metavar="FOLDER", help="judge the records of an earlier run, and run nothing"
    )
    parser.add_argument("--plan", action="store_true", help="print the faults of the seed, and run nothing")
    names = [bug.name for bug in BUGS]
    parser.add_argument(
        "--planted",
        choices=names,
        metavar="BUG",
        help=f"plant a bug, which the judge must find: {'; '.join(names)}",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
