"""The live tool: a real control plane with both schedulers, a workload, faults, and judges of what was recorded.

python -m tools.live chaos      # faults of 21 kinds, judged by the audit log and all stored versions
python -m tools.live soak       # a day of changes, judged by what grows
python -m tools.live compare    # the same random changes under both schedulers, each on a control plane of its own
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

from tools.controlplane import binaries
from tools.controlplane.workspace import DEFAULT, run_by_hand, timed_lines
from tools.live.compare.run import compare
from tools.live.fault_plan import KINDS, faults_for, missing_kinds
from tools.live.growth import judge_growth
from tools.live.judge import Judge
from tools.live.program import LEAKS
from tools.live.records import read
from tools.live.report import report
from tools.live.run import chaos
from tools.live.sampler import Sample
from tools.live.soak import Soak, SoakPlan
from tools.simulation.planted_bugs import BUGS

_ALL_KINDS_SECONDS: Final = 15 * 60
"""Runs of at least this length must have every kind of fault."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns 0 if nothing is wrong."""
    options = _parser().parse_args(arguments)
    return run_by_hand(partial(options.run, options), interrupted=130)


def _folder(options: argparse.Namespace) -> Path:
    now = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    folder: Path = (options.folder / options.mode / f"seed{options.seed}-{now}").resolve()
    return folder


def _chaos(options: argparse.Namespace) -> int:
    faults = faults_for(options.seed, options.minutes)
    if options.plan:
        print("\n".join(f"{fault.at:7.1f} s  {fault.kind} for {fault.seconds:g} s" for fault in faults))
        return 0
    if options.judge is not None:
        return _judge(options.judge.resolve())
    binaries.ensure(quiet=True)
    folder = _folder(options)
    chaos(
        folder,
        faults,
        seed=options.seed,
        bindings=options.bindings,
        replicas=options.replicas,
        planted=options.planted,
        say=timed_lines(),
    )
    return _judge(folder)


def _judge(folder: Path) -> int:
    records = read(folder)
    result = Judge(records).judge()
    text = report(folder, records, result)
    is_long = records.marks["faults end"] - records.marks["begin"] > _ALL_KINDS_SECONDS
    missing = missing_kinds(Counter(records.final["faults"])) if is_long else []
    if missing:
        text += f"\n\nFaults that did not occur: {', '.join(missing)}"
    (folder / "summary.txt").write_text(text + "\n")
    print(f"\n{text}\n\nAll records are in {folder}")
    return 1 if result.violations or missing else 0


def _soak(options: argparse.Namespace) -> int:
    sys.setswitchinterval(0.0005)  # the API server's thread shares the interpreter lock with the churn
    folder, samples, say = _folder(options), list[Sample](), timed_lines()
    folder.mkdir(parents=True)
    names = ("events", "every", "clusters", "bindings", "policies", "seed")
    plan = SoakPlan(**{name: getattr(options, name) for name in names}, leaks=options.leak)
    soak = Soak(plan, folder)
    try:
        for found in soak.samples(say):
            samples.append(found)
            columns = ("threads", "descriptors", "series", "tasks", "blocks")
            figures = ", ".join(f"{found.figures[name]:,.0f} {name}" for name in columns)
            say(f"{found.events:,.0f} events: {found.figures['rss_kib'] / 1024:.1f} MiB, {figures}")
    except KeyboardInterrupt:
        print("interrupted; the events so far are judged")
    (folder / "samples.json").write_text(json.dumps([[found.events, found.figures] for found in samples]))
    try:
        growth = judge_growth(samples)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print("\n".join([*growth.lines(), f"faults: {dict(soak.faults)}"]))
    print(f"bindings without a current decision at rest: {sorted(soak.unsettled) or 'none'}")
    return 1 if growth.problems or soak.unsettled else 0


def _compare(options: argparse.Namespace) -> int:
    binaries.ensure(quiet=True)
    folder = (options.folder / options.mode).resolve()
    return compare(folder, steps=options.steps, seed=options.seed, flags=options.scheduler_flag)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.live", description=(__doc__ or "").splitlines()[0])
    modes = parser.add_subparsers(dest="mode", required=True)

    def mode(name: str, run: object, text: str) -> argparse.ArgumentParser:
        made = modes.add_parser(name, help=text, description=text)
        made.set_defaults(run=run)
        made.add_argument(
            "--seed", type=int, default=1, help="equal seeds draw equal steps and faults (default: 1)"
        )
        made.add_argument(
            "--folder", type=Path, default=DEFAULT, help="where files go (default: %(default)s)"
        )
        return made

    made = mode("chaos", _chaos, f"{len(KINDS)} kinds of faults; see docs/reliability.md")
    made.add_argument(
        "--minutes", type=float, default=30.0, help="how long faults are injected (default: 30)"
    )
    made.add_argument("--bindings", type=int, default=200, help="how many there are (default: 200)")
    made.add_argument(
        "--replicas", type=int, default=3, choices=(2, 3, 4), help="of our scheduler (default: 3)"
    )
    made.add_argument(
        "--judge", type=Path, metavar="FOLDER", help="judge the records of an earlier run, and run nothing"
    )
    made.add_argument("--plan", action="store_true", help="print the faults of the seed, and run nothing")
    names = [bug.name for bug in BUGS]
    made.add_argument("--planted", choices=names, metavar="BUG", help=f"a bug to find: {'; '.join(names)}")
    made = mode("soak", _soak, "a day of changes; what our scheduler holds must not grow")
    for name in ("events", "every", "clusters", "bindings", "policies"):
        default, text = getattr(SoakPlan(), name), "events between samples" if name == "every" else "how many"
        made.add_argument(f"--{name}", type=int, default=default, help=f"{text} (default: {default:,})")
    made.add_argument("--leak", action="append", default=[], choices=sorted(LEAKS), help="plant a leak")
    made = mode("compare", _compare, "random changes, the same under both schedulers")
    made.add_argument("--steps", type=int, default=100, help="changes to make, at least (default: 100)")
    made.add_argument(
        "--scheduler-flag",
        action="append",
        default=[],
        metavar="FLAG",
        help="a further flag of both schedulers, such as --feature-gates=PriorityBasedScheduling=true",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
