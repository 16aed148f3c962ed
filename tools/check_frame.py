"""What long checks share: arguments, and lines about how far they are."""

from __future__ import annotations

import argparse
import time
from typing import Final

REPORT_SECONDS: Final = 30.0


def parser(prog: str, description: str | None) -> argparse.ArgumentParser:
    """Return a parser that is described by the first line of a docstring."""
    return argparse.ArgumentParser(prog=prog, description=(description or "").splitlines()[0])


def add_cases(made: argparse.ArgumentParser, cases: int) -> None:
    """Add the number of cases, and the seed from which they are drawn."""
    made.add_argument("--cases", type=int, default=cases, help="how many (default: %(default)s)")
    made.add_argument("--seed", type=int, default=1, help="equal seeds give equal cases (default: 1)")


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
