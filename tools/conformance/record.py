"""Record what karmada-scheduler decides: ``python -m tools.conformance.record --seed S --out FILE``.

A random scenario is created on a real control plane, and the unmodified karmada-scheduler schedules it
three times, each time from the same start. karmada-controller-manager is stopped beforehand, so that
only the scheduler changes bindings and clusters.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tools.conformance import random_scenario, recording
from tools.conformance.recorder import RUNS, Recorder
from tools.controlplane import ApiError, ControlPlane, ProcessDiedError, WaitTimeoutError, binaries
from tools.controlplane.workspace import DEFAULT as WORKSPACES
from tools.controlplane.workspace import WorkspaceError, workspace

DECISION_GATES: Final = {"CustomizedClusterResourceModeling": True}  # as the scheduler's own default


def gates_in(flags: Sequence[str]) -> dict[str, bool]:
    """Return the feature gates among the flags, which webhook and API server are to share."""
    texts = [flag.partition("=")[2] for flag in flags if flag.startswith("--feature-gates=")]
    pairs = [pair.partition("=") for text in texts for pair in text.split(",")]
    return {name: value == "true" for name, _, value in pairs}


def run(options: argparse.Namespace) -> int:
    """Record one scenario; returns the exit status."""
    started = time.monotonic()

    def say(line: str) -> None:
        print(f"{time.monotonic() - started:5.1f} s  {line}", flush=True)

    binaries.ensure(quiet=True)
    scenario = random_scenario.scenario(options.seed, clusters=options.clusters, bindings=options.bindings)
    gates = {**DECISION_GATES, **gates_in(options.scheduler_flag)}
    with (
        workspace(options.folder.resolve()) as folder,
        ControlPlane(folder, feature_gates=gates, say=say) as plane,
    ):
        recorder = Recorder(plane, scenario, flags=options.scheduler_flag, say=say)
        document = recorder.record(runs=options.runs)
    recording.write(options.out, document)
    for name, reason in sorted(recorder.refused.items()):
        print(f"refused: {name}: {reason}")
    several = sum(len(case["outcomes"]) > 1 for case in document["cases"])
    say(
        f"{options.out}: {len(document['clusters'])} clusters, {len(document['cases'])} bindings, "
        f"{several} with more than one outcome, {len(recorder.refused)} objects refused"
    )
    return 0


def parser() -> argparse.ArgumentParser:
    """Return the command line."""
    made = argparse.ArgumentParser(
        prog="python -m tools.conformance.record",
        description="Record what the real karmada-scheduler decides about a random scenario.",
    )
    made.add_argument("--seed", type=int, default=1, help="equal seeds give equal scenarios (default 1)")
    made.add_argument("--clusters", type=int, default=12, metavar="N", help="(default 12)")
    made.add_argument("--bindings", type=int, default=120, metavar="N", help="(default 120)")
    made.add_argument("--runs", type=int, default=RUNS, metavar="N", help=f"(default {RUNS})")
    made.add_argument("--out", type=Path, required=True, metavar="FILE", help="a name ending in .json.gz")
    made.add_argument(
        "--scheduler-flag",
        type=_flag,
        action="append",
        default=[],
        metavar="FLAG",
        help=f"pass a flag on to the scheduler: {', '.join(recording.REPLAYED_FLAGS)}",
    )
    made.add_argument(
        "--folder",
        type=Path,
        default=WORKSPACES / "record",
        help="the control plane's files, emptied first (default: %(default)s)",
    )
    return made


def _flag(text: str) -> str:
    name, equals, _ = text.partition("=")
    if name not in recording.REPLAYED_FLAGS or not equals:
        known = ", ".join(f"{flag}=..." for flag in recording.REPLAYED_FLAGS)
        raise argparse.ArgumentTypeError(f"{text!r} is not one that can be replayed: {known}")
    return text


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    options = parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        return run(options)
    except KeyboardInterrupt:
        return 130
    except (binaries.BuildError, ProcessDiedError, WaitTimeoutError, WorkspaceError, ApiError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
