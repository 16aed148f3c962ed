"""What a build prints while Go works: how far it is, and how long it still takes."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

LINKING = 15
"""The packages that take as long to compile as a program to link: with it the estimate was within a sixth from a tenth of the CPU time on."""


class Progress:
    """Lines with the time since the start; while Go works, one line every ten seconds.

    Attributes:
        downloaded: Modules.
        built: Packages.
        total: Packages to build, 0 until they are counted.
        build_start: When the build of the first one began.
    """

    def __init__(self, programs: int) -> None:
        self._start = time.monotonic()
        self._programs = programs
        self.downloaded = 0
        self.built = 0
        self.total = 0
        self.build_start = 0.0

    def __call__(self, line: str) -> None:
        minutes, seconds = divmod(int(time.monotonic() - self._start), 60)
        print(f"  {minutes}:{seconds:02} {line}", file=sys.stderr, flush=True)

    @contextmanager
    def watching(self, folder: Path) -> Iterator[None]:
        done = threading.Event()
        reporter = threading.Thread(target=self._report, args=(folder, done), daemon=True)
        reporter.start()
        try:
            yield
        finally:
            done.set()
            reporter.join()

    def _report(self, folder: Path, done: threading.Event) -> None:
        last = ""
        while not done.wait(10):
            line = self.line(sorted(path.name for path in folder.iterdir()), now=time.monotonic())
            if line != last:
                self(line)
            last = line

    def line(self, finished: Sequence[str], *, now: float) -> str:
        """Return what Go does, how far it is, and about how long it still takes."""
        if not self.total:
            return f"downloading: {self.downloaded} modules so far; building Go's standard library meanwhile"
        line = (
            f"building: {self.built} of {self.total} packages, {len(finished)} of {self._programs} programs"
        )
        if finished:
            line += f" ({', '.join(finished)})"
        if self.built < self.total / 20:  # too few to tell
            return line
        done = self.built + LINKING * len(finished)
        left = (now - self.build_start) / done * (self.total + LINKING * self._programs - done)
        minutes, seconds = divmod(round(left, -1), 60)  # whole minutes would be wrong by a third at the end
        return f"{line}; " + (
            f"about {minutes:.0f}:{seconds:02.0f} left" if left >= 60 else "less than a minute left"
        )
