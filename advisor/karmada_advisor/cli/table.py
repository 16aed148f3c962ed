"""Aligned tables for terminals."""

from __future__ import annotations

from collections.abc import Sequence


def table(heading: Sequence[str], rows: Sequence[Sequence[object]], *, indent: str = "") -> str:
    """Return rows under a heading, each column as wide as its widest cell, with two spaces between columns."""
    cells = [list(heading), *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(heading))]
    return "\n".join(
        (indent + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))).rstrip()
        for row in cells
    )
