"""Broken and healthy situations on a real control plane, explained: ``python -m tools.state_check``.

Each situation is made as a user would make it, in a namespace of its own. ``explain`` and other commands run as processes,
and headline, cause, remedy, exit status and JSON are judged apart. A remedy that is a patch is applied, and the binding has
to be placed as it promises. Ends with status 1 if anything is wrong.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tools.controlplane import ApiError, WaitTimeoutError, binaries
from tools.controlplane.processes import ProcessDiedError
from tools.controlplane.workspace import DEFAULT, WorkspaceError, workspace
from tools.state_check.check import Check
from tools.state_check.model import Outcome, Situation
from tools.state_check.plane import running
from tools.state_check.report import as_fields, complaints, head, row, totals
from tools.state_check.situations import SITUATIONS


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    options = _parser().parse_args(arguments)
    chosen = [
        each for each in SITUATIONS if not options.only or any(name in each.name for name in options.only)
    ]
    if options.list:
        width = max(len(each.name) for each in chosen)
        print("\n".join(f"{each.name:<{width}}  {each.source}" for each in chosen))
        return 0
    if not chosen:
        print(
            f"error: no situation has a name with {' or '.join(options.only)}; --list has all",
            file=sys.stderr,
        )
        return 2
    binaries.ensure(quiet=True)
    started = time.monotonic()
    outcomes: list[Outcome] = []
    try:
        with (
            workspace(options.folder.resolve()) as folder,
            running(folder, page=any(each.page for each in chosen)) as plane,
        ):
            print(
                f"the control plane is up after {time.monotonic() - started:.0f} s; logs in {folder}",
                flush=True,
            )
            _check_all(
                Check(plane, search=options.search, all_remedies=not options.first_remedy),
                chosen,
                options.jobs,
                outcomes,
            )
    except KeyboardInterrupt:
        print("\nStopped.")
    except (ApiError, WaitTimeoutError, ProcessDiedError, WorkspaceError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"\n{totals(outcomes)}; {time.monotonic() - started:.0f} s")
    if options.json:
        options.json.write_text(
            json.dumps(as_fields(outcomes, _commit()), indent=1, ensure_ascii=False) + "\n"
        )
    return 1 if len(outcomes) < len(chosen) or any(each.problems for each in outcomes) else 0


def _check_all(check: Check, chosen: Sequence[Situation], jobs: int, outcomes: list[Outcome]) -> None:
    """Check those that disturb nobody side by side, and the others after them, one by one."""
    width = max(len(each.name) for each in chosen)
    print(head(width), flush=True)

    def report(outcome: Outcome) -> None:
        print("\n".join([row(outcome, width), *complaints(outcome)]), flush=True)
        outcomes.append(outcome)

    with ThreadPoolExecutor(max_workers=jobs) as pool:
        for outcome in pool.map(check.check, [each for each in chosen if not each.alone]):
            report(outcome)
    for each in chosen:
        if each.alone:
            report(check.check(each))


def _commit() -> str:
    done = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    )
    return done.stdout.strip()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make check-state", description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="NAME",
        help="situations with this in their name; may be repeated",
    )
    parser.add_argument("--list", action="store_true", help="print the situations and make none")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write results and answers to a file")
    parser.add_argument(
        "--jobs", type=int, default=3, metavar="N", help="situations side by side (default: %(default)s)"
    )
    parser.add_argument(
        "--search", default="10s", metavar="TIME", help="of each search for remedies (default: %(default)s)"
    )
    parser.add_argument(
        "--first-remedy", action="store_true", help="apply the first remedy of each situation only"
    )
    parser.add_argument(
        "--folder",
        type=Path,
        default=DEFAULT / "state-check",
        help="where its files go (default: %(default)s)",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
