"""A control plane started by hand: its folder, which is cleared of an earlier run and used by one run at a time; lines with the
time since the start; and how the command ends.
"""

from __future__ import annotations

import fcntl
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from .api import ApiError
from .binaries import BuildError
from .processes import ProcessDiedError
from .waiting import WaitTimeoutError

DEFAULT = Path(__file__).parents[2] / ".controlplane"  # ignored by git
MARKS = ("pki", "logs")  # what a folder of ours holds, so that no other is ever cleared


class WorkspaceError(RuntimeError):
    """The folder cannot be used."""


@contextmanager
def workspace(folder: Path) -> Iterator[Path]:
    """Yield the folder, empty. What a run leaves there (logs above all) stays until the next one."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_name(folder.name + ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise WorkspaceError(f"another control plane is running in {folder}; give --folder=...") from None
        if folder.exists():
            if any(folder.iterdir()) and not all((folder / mark).is_dir() for mark in MARKS):
                raise WorkspaceError(
                    f"{folder} holds files that are not a control plane's; give --folder=..."
                )
            shutil.rmtree(folder)
        yield folder


def timed_lines() -> Callable[[str], None]:
    """Return what prints a line with the seconds since now."""
    started = time.monotonic()
    return lambda line: print(f"{time.monotonic() - started:5.1f} s  {line}", flush=True)


def run_by_hand(act: Callable[[], int], *, interrupted: int) -> int:
    """Return the exit status of a command; ``interrupted`` is that after Ctrl-C."""
    # So that `kill` ends it as Ctrl-C does: in order.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it for what it starts with `&`
    try:
        return act()
    except KeyboardInterrupt:
        print("\nStopped; nothing is left running.")
        return interrupted
    except (BuildError, ProcessDiedError, WaitTimeoutError, WorkspaceError, ApiError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
