"""The folder of one control plane started by hand: cleared of an earlier run, used by one run at a time."""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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
