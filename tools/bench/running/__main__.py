"""How many of the replicas that are placed run, with karmada-scheduler and with this scheduler.

    python -m tools.bench.running --quick

Members have nodes, and a kube-scheduler each that binds Pods to them (docs/control-plane.md). The first fleet is always the
same, with workloads by the seed; the others are drawn. Every fleet has a control plane of its own, on which the schedulers
run one after the other, in the opposite order every other time. The table comes at the end, progress goes to standard error.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from tools.bench.plane import machine
from tools.bench.running.fleets import Fleet, drawn, known
from tools.bench.running.run import KARMADA, OURS, Result, Setting, measure, started
from tools.controlplane.workspace import run_by_hand
from tools.report import markdown_table

HEADING = (
    "fleet", "scheduler", "wanted", "placed", "running", "pending", "lost", "could run elsewhere", "moved per replica",
    "writes per binding", "bindings that wait", "writes in the second half", "last change",
)  # fmt: skip


def fleets(options: argparse.Namespace) -> list[Fleet]:
    """Return the fleets of a run."""
    first = [known(options.seed, load=options.load)]
    return first + [drawn(options.seed + number) for number in range(1, options.fleets)]


def settings(options: argparse.Namespace) -> list[Setting]:
    """Return the schedulers of a run, in the order of the first fleet."""
    made = [Setting(KARMADA), Setting(OURS)]
    made += [Setting(OURS, flags=tuple(options.flag))] if options.flag else []
    if options.descheduler:
        return [Setting(each.scheduler, options.estimators, each.flags, True) for each in made[-1:]]
    return made + ([Setting(each.scheduler, True, each.flags) for each in made] if options.estimators else [])


def row(fleet: Fleet, setting: Setting, result: Result) -> list[str]:
    """Return a row of the table."""
    figures = (result.wanted, result.placed, result.running, result.pending, result.lost, result.elsewhere)
    return [
        fleet.name,
        setting.label,
        *map(str, figures),
        f"{result.moved / result.wanted:.2f}",
        f"{result.writes / max(1, result.bindings):.2f}",
        f"{result.waiting} of {result.bindings}",
        str(result.late),
        f"{result.seconds:.0f} s",
    ]


def parse(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the arguments."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    option = parser.add_argument
    option("--fleets", type=int, default=6, metavar="N", help="how many (6)")
    option("--seed", type=int, default=1, help="equal seeds draw equal fleets and workloads (1)")
    option("--load", type=float, default=0.7, metavar="SHARE", help="of the first fleet (0.7)")
    option("--seconds", type=float, default=120, metavar="S",
           help="until the figures are taken, from the last creation and from a loss of nodes on (120)")  # fmt: skip
    option("--estimators", action="store_true", help="run each scheduler with estimators as well")
    option("--descheduler", action="store_true",
           help="run this scheduler alone, with its flags, and karmada-descheduler, which takes what has waited for 30 s")  # fmt: skip
    option("--flag", action="append", default=[], metavar="FLAG",
           help="of this scheduler, which then runs with it and without; may be repeated")  # fmt: skip
    option("--quick", action="store_true", help="one fleet, 45 seconds, to see whether it works")
    option("--json", type=Path, metavar="FILE", help="where to write everything")
    options = parser.parse_args(words)
    if options.quick:
        options.fleets, options.seconds = 1, 45
    return options


def main(words: Sequence[str] | None = None) -> int:
    """Measure, write JSON, print the table; return the exit status."""
    return run_by_hand(partial(_run, parse(words)), interrupted=130)


def _run(options: argparse.Namespace) -> int:
    arguments = {name: value for name, value in vars(options).items() if name != "json"}
    document: dict[str, Any] = {"machine": machine(), "arguments": arguments, "runs": []}
    rows = []
    for number, fleet in enumerate(fleets(options)):
        order = settings(options)[:: -1 if number % 2 else 1]
        began = time.monotonic()
        with (
            tempfile.TemporaryDirectory() as folder,
            started(
                fleet, Path(folder) / "plane", estimators=options.estimators or options.descheduler
            ) as plane,
        ):
            _say(f"{fleet.name}: members are up after {time.monotonic() - began:.0f} s")
            for turn, setting in enumerate(order, start=1):
                result = measure(plane, fleet, setting, f"bench-{turn}", options.seconds)
                rows.append(row(fleet, setting, result))
                _say("  ".join(rows[-1]))
                run = {
                    "fleet": fleet.name, "load": fleet.load, "interval": fleet.interval, "loses": fleet.loses,
                    "setting": dataclasses.asdict(setting), "result": dataclasses.asdict(result),
                }  # fmt: skip
                document["runs"].append(run)
                if options.json is not None:
                    options.json.write_text(json.dumps(document, indent=1) + "\n")
    print(markdown_table(HEADING, rows))
    return 0


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
