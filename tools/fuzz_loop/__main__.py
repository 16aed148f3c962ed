"""The command line: ``python -m tools.fuzz_loop --steps N --seed S``.

Ends with status 1 at the first difference, after printing the step, its input and the binding's states.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

from tools.controlplane import ApiError, WaitTimeoutError, binaries
from tools.controlplane.processes import ProcessDiedError
from tools.controlplane.workspace import DEFAULT, WorkspaceError

from .plane import RestlessError
from .run import Report, fuzz_run


def main(arguments: list[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    options = _parser().parse_args(arguments)
    binaries.ensure(quiet=True)
    command = f"python -m tools.fuzz_loop --steps {options.steps} --seed {options.seed}"
    command += "".join(f" --scheduler-flag={flag}" for flag in options.scheduler_flag)

    def say(line: str) -> None:
        if not options.quiet:
            print(line, flush=True)

    begun = time.monotonic()
    try:
        with fuzz_run(
            options.folder.resolve(), seed=options.seed, flags=options.scheduler_flag, say=say
        ) as made:
            say(
                f"two control planes are up after {time.monotonic() - begun:.0f} s; logs under {options.folder}"
            )
            report = made.run(options.steps)
    except (ApiError, RestlessError, WaitTimeoutError, ProcessDiedError, WorkspaceError) as error:
        print(f"error: {error}\nagain: {command}", file=sys.stderr)
        return 1
    print(summary(report, seed=options.seed))
    if report.found is not None:
        print(f"\nDIFFERENT\n{report.found}\nagain: {command}")
        return 1
    return 0


def summary(report: Report, *, seed: int) -> str:
    """Return the results of a run, in a few lines."""
    steps = sum(report.steps.values()) - report.steps["beginning"]
    rate = steps / report.seconds if report.seconds else 0.0
    result = "equal" if report.found is None else "NOT equal"
    head = f"seed {seed}: {steps} steps in {report.seconds:.0f} s ({rate:.1f}/s)"
    return "\n".join(
        (
            f"{head}, {report.compared} states compared, {result}",
            f"  steps: {_counts(report.steps)}",
            f"  conditions seen: {_counts(report.outcomes)}",
            f"  lastScheduledTime moved, upstream/ours (None: within one second): {_counts(report.moved)}",
            f"  allowed differences: {_counts(report.allowed_differences) or 'none'}",
        )
    )


def _counts(counter: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counter.items()) if name != "beginning")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz_loop", description=__doc__)
    parser.add_argument(
        "--steps", type=int, default=100, help="changes to make, at least (default: %(default)s)"
    )
    parser.add_argument(
        "--seed", type=int, default=1, help="equal seeds draw equal steps (default: %(default)s)"
    )
    parser.add_argument(
        "--scheduler-flag",
        action="append",
        default=[],
        metavar="FLAG",
        help="a further flag of both schedulers, such as --feature-gates=PriorityBasedScheduling=true",
    )
    parser.add_argument("--quiet", action="store_true", help="print the summary only")
    parser.add_argument(
        "--folder", type=Path, default=DEFAULT / "fuzz-loop", help="where its files go (default: %(default)s)"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
