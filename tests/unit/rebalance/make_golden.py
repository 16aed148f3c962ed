"""Writes the golden files again: ``python -m tests.unit.rebalance.make_golden``; look at the differences before you commit them."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.unit.rebalance.fleet import GOALS, GOLDEN, WIDTHS, files, golden, proposed, text


def main() -> None:
    """Write all of them."""
    GOLDEN.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        written = files(Path(folder))
        for goal in GOALS:
            for width in WIDTHS:
                golden(goal, width).write_text(text(proposed(written, goal), width))


if __name__ == "__main__":
    main()
