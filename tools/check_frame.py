"""What the checks share: arguments, the folder of a control plane, progress, and the exit status.

The status of a check is 0 if nothing is wrong, 1 if something is, and 2 if it could not be made.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from karmada_scheduler.command import main as command
from tools.controlplane import ApiError, WaitTimeoutError, binaries
from tools.controlplane.processes import ProcessDiedError
from tools.controlplane.workspace import DEFAULT, WorkspaceError, workspace

REPORT_SECONDS: Final = 30.0
_NOT_MADE: Final[tuple[type[Exception], ...]] = (ApiError, WaitTimeoutError, ProcessDiedError, WorkspaceError)


def parser(prog: str, description: str | None, *, folder: str = "") -> argparse.ArgumentParser:
    """Return a parser that is described by the first line of a docstring; ``folder`` is the default of ``--folder``."""
    made = argparse.ArgumentParser(prog=prog, description=(description or "").splitlines()[0])
    if folder:
        made.add_argument(
            "--folder",
            type=Path,
            default=DEFAULT / folder,
            help="where the control plane's files go (default: %(default)s)",
        )
    return made


def add_cases(made: argparse.ArgumentParser, cases: int) -> None:
    """Add the number of cases, and the seed from which they are drawn."""
    made.add_argument("--cases", type=int, default=cases, help="how many (default: %(default)s)")
    made.add_argument("--seed", type=int, default=1, help="equal seeds give equal cases (default: 1)")


def on_control_plane(folder: Path, check: Callable[[Path], bool], *not_made: type[Exception]) -> int:
    """Run a check in an empty folder; return the exit status.

    Args:
        folder: Where the control plane's files go.
        check: Starts the control plane there; returns whether nothing is wrong.
        not_made: Further errors that end the check.
    """
    binaries.ensure(quiet=True)
    try:
        with workspace(folder.resolve()) as empty:
            return 0 if check(empty) else 1
    except _NOT_MADE + not_made as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def report_of(*arguments: str) -> dict[str, Any]:
    """Run a command of ours; return what it prints as JSON, or end if its status is not 0."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        status = command([*arguments, "-o=json"])
    if status:
        raise SystemExit(f"{arguments[0]} ended with status {status}")
    found: dict[str, Any] = json.loads(out.getvalue())
    return found


class Progress:
    """When the next line about a long run is due."""

    def __init__(self) -> None:
        """Start now."""
        self._begin = self._reported = time.monotonic()

    @property
    def seconds(self) -> float:
        """The time since the start."""
        return time.monotonic() - self._begin

    def is_due(self) -> bool:
        """Return whether the last line was printed long ago, and count this one as printed."""
        now = time.monotonic()
        if now - self._reported < REPORT_SECONDS:
            return False
        self._reported = now
        return True
