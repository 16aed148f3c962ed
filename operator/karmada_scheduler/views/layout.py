"""Lines of text: folded lists, aligned tables, wrapped sentences, and colours that repeat what words say."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

FOLDED: Final = 5

_COLOURS: Final = {"bold": "1", "red": "31", "green": "32", "yellow": "33", "faint": "2"}


@dataclass(frozen=True, slots=True)
class Style:
    """How to write.

    Attributes:
        width: Columns; at least 40.
        colour: Whether to write colours.
        unfolded: Whether lists are written in full.
    """

    width: int = 100
    colour: bool = False
    unfolded: bool = False

    def paint(self, text: str, colour: str) -> str:
        """Return a text in a colour, if there are colours."""
        return f"\x1b[{_COLOURS[colour]}m{text}\x1b[0m" if self.colour and text else text

    def fold(self, items: Sequence[str], *, limit: int = FOLDED, separator: str = ", ") -> str:
        """Return the first items, and the number of the others."""
        if self.unfolded or len(items) <= limit + 1:
            return separator.join(items)
        return f"{separator.join(items[:limit])} and {len(items) - limit:,} more"

    def wrap(self, text: str, *, indent: str = "") -> list[str]:
        """Return a sentence in lines; those after the first are indented."""
        lines = textwrap.wrap(
            text, self.width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
        )
        return lines or [""]


RIGHT: Final = ">"


def table(
    heading: Sequence[str],
    rows: Sequence[Sequence[str]],
    style: Style,
    *,
    align: str = "",
    optional: Sequence[int] = (),
    indent: str = "",
) -> list[str]:
    """Return aligned lines; where they are wider than the style, optional columns go first, then long cells are cut.

    Args:
        heading: The names of the columns.
        rows: The cells.
        style: Its width.
        align: One character per column, ``>`` for right; "" for left.
        optional: Columns that are left out if the table is too wide, in this order.
        indent: Before each line.
    """
    cells = [list(heading), *(list(row) for row in rows)]
    columns = list(range(len(heading)))
    dropped = list(optional)
    while _width(cells, columns, indent) > style.width and dropped:
        columns.remove(dropped.pop(0))
    excess = _width(cells, columns, indent) - style.width
    if excess > 0:
        widest = max(columns, key=lambda column: max(len(row[column]) for row in cells))
        keep = max(12, max(len(row[widest]) for row in cells) - excess)
        for row in cells:
            if len(row[widest]) > keep:
                row[widest] = row[widest][: keep - 3] + "..."
    widths = {column: max(len(row[column]) for row in cells) for column in columns}
    return [
        (
            indent
            + "  ".join(
                row[column].rjust(widths[column])
                if align[column : column + 1] == RIGHT
                else row[column].ljust(widths[column])
                for column in columns
            )
        ).rstrip()
        for row in cells
    ]


def _width(cells: Sequence[Sequence[str]], columns: Sequence[int], indent: str) -> int:
    widths = [max(len(row[column]) for row in cells) for column in columns]
    return len(indent) + sum(widths) + 2 * (len(widths) - 1)
