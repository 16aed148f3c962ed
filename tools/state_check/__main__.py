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
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from tools.check_frame import Progress, on_control_plane, parser
from tools.state_check.check import Check
from tools.state_check.model import Outcome, Situation
from tools.state_check.plane import running
from tools.state_check.report import as_fields, complaints, head, row, totals
from tools.state_check.situations import SITUATIONS

_SIDE_BY_SIDE: Final = 3
"""Situations at a time."""


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
    progress = Progress()

    def check(folder: Path) -> bool:
        outcomes: list[Outcome] = []
        try:
            with running(folder, page=any(each.page for each in chosen)) as plane:
                print(f"the control plane is up after {progress.seconds:.0f} s; logs in {folder}", flush=True)
                _check_all(Check(plane, all_remedies=True), chosen, outcomes)
        except KeyboardInterrupt:
            print("\nStopped.")
        print(f"\n{totals(outcomes)}; {progress.seconds:.0f} s")
        if options.json:
            found = as_fields(outcomes, _commit())
            options.json.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
        return len(outcomes) == len(chosen) and not any(each.problems for each in outcomes)

    return on_control_plane(options.folder, check)


def _check_all(check: Check, chosen: Sequence[Situation], outcomes: list[Outcome]) -> None:
    """Check those that disturb nobody side by side, and the others after them, one by one."""
    width = max(len(each.name) for each in chosen)
    print(head(width), flush=True)

    def report(outcome: Outcome) -> None:
        print("\n".join([row(outcome, width), *complaints(outcome)]), flush=True)
        outcomes.append(outcome)

    with ThreadPoolExecutor(max_workers=_SIDE_BY_SIDE) as pool:
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
    made = parser("make check-state", __doc__, folder="state-check")
    made.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="NAME",
        help="situations with this in their name; may be repeated",
    )
    made.add_argument("--list", action="store_true", help="print the situations and make none")
    made.add_argument("--json", type=Path, metavar="FILE", help="write results and answers to a file")
    return made


if __name__ == "__main__":
    sys.exit(main())
