"""Lines of text: folded lists, aligned tables, wrapped sentences, and colours that repeat what words say.

No text controls a terminal or forges lines, whatever names and messages contain (``printable``).
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, Final, TypeVar

from karmada_scheduler.structs import Struct, replace

FOLDED: Final = 5

_COLOURS: Final = {"bold": "1", "red": "31", "green": "32", "yellow": "33", "faint": "2"}


class Style(Struct, frozen=True):
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

    def wrap_parts(self, parts: Sequence[str], *, indent: str = "") -> list[str]:
        """Return parts in lines, three spaces between them; a part is not broken."""
        kept = "   ".join(part.replace(" ", "\xa0") for part in parts)
        return [line.replace("\xa0", " ") for line in self.wrap(kept, indent=indent)]

    def wrap(self, text: str, *, indent: str = "") -> list[str]:
        """Return a sentence in lines; those after the first are indented."""
        lines = textwrap.wrap(
            text, self.width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
        )
        return lines or [""]


def wide(style: Style) -> Style:
    """Return a style without folded lists and broken lines."""
    return replace(style, width=_UNBROKEN, unfolded=True)


_UNBROKEN: Final = 100_000
RIGHT: Final = ">"
_LEAST_CELL: Final = 12


def table(
    heading: Sequence[str],
    rows: Sequence[Sequence[str]],
    style: Style,
    *,
    align: str = "",
    optional: Sequence[int] = (),
    spilling: int = -1,
    indent: str = "",
) -> list[str]:
    """Return aligned lines, with two spaces between columns.

    Where they are wider than the style, optional columns go first, then the widest column is cut; the last column is
    wrapped instead.

    Args:
        heading: The names of the columns; empty for a table without heading.
        rows: The cells.
        style: Its width.
        align: One character per column, ``>`` for right; "" for left.
        optional: Columns that are left out if the table is too wide, in this order.
        spilling: A column whose cells may cover empty cells to their right; -1 for none.
        indent: Before each line.
    """
    cells = [list(row) for row in ([heading, *rows] if heading else rows)]
    columns = list(range(len(cells[0]))) if cells else []
    dropped = list(optional)
    while _width(cells, columns, spilling, indent) > style.width and dropped:
        columns.remove(dropped.pop(0))
    excess = _width(cells, columns, spilling, indent) - style.width
    last = columns[-1] if columns else 0
    if excess > 0 and align[last : last + 1] != RIGHT:
        widest = max(len(row[last]) for row in cells)
        excess -= widest - max(_LEAST_CELL, widest - excess)  # the last column is wrapped as far as it goes
    if excess > 0 and len(columns) > 1:
        cut = max(columns[:-1], key=lambda column: max(len(row[column]) for row in cells))
        keep = max(_LEAST_CELL, max(len(row[cut]) for row in cells) - excess)
        for row in cells:
            row[cut] = _cut(row[cut], keep)
    widths = {column: _column(cells, column, columns, spilling) for column in columns}
    grid = _Grid(columns, widths, align, indent, style.width)
    return [line for row in cells for line in grid.lines(row)]


class _Grid(Struct, frozen=True):
    """The columns of a table with their widths."""

    columns: Sequence[int]
    widths: dict[int, int]
    align: str
    indent: str
    width: int

    def lines(self, row: Sequence[str]) -> list[str]:
        """Return the lines of one row; the last cell is wrapped below itself."""
        line, full = self.indent, len(self.indent)
        for column in self.columns[:-1]:
            full += self.widths[column] + 2
            line = (line + self._aligned(row[column], column) + "  ").ljust(full if len(line) < full else 0)
        last = self.columns[-1]
        if self._is_right(last):
            over = max(0, len(line) - full)
            return [(line + row[last].rjust(max(0, self.widths[last] - over))).rstrip()]
        left = max(_LEAST_CELL, self.width - len(line))
        wrapped = textwrap.wrap(row[last], left, break_long_words=False, break_on_hyphens=False) or [""]
        return [(line + wrapped[0]).rstrip(), *(" " * len(line) + each for each in wrapped[1:])]

    def _aligned(self, cell: str, column: int) -> str:
        width = self.widths[column]
        return cell.rjust(width) if self._is_right(column) else cell.ljust(width)

    def _is_right(self, column: int) -> bool:
        return self.align[column : column + 1] == RIGHT


def _cut(cell: str, width: int) -> str:
    return cell if len(cell) <= width else cell[: width - 3] + "..."


def _column(cells: Sequence[Sequence[str]], column: int, columns: Sequence[int], spilling: int) -> int:
    """Return the width of a column; cells that spill over empty cells do not count."""
    after = [each for each in columns if each > column]
    if column == spilling:
        counted = [row[column] for row in cells if any(row[each] for each in after)]
        return max(map(len, counted), default=0)
    return max(len(row[column]) for row in cells)


def _width(cells: Sequence[Sequence[str]], columns: Sequence[int], spilling: int, indent: str) -> int:
    widths = [_column(cells, column, columns, spilling) for column in columns]
    total = len(indent) + sum(widths) + 2 * (len(widths) - 1)
    if spilling in columns:
        before = sum(width + 2 for column, width in zip(columns, widths, strict=True) if column < spilling)
        total = max(total, len(indent) + before + max(len(row[spilling]) for row in cells))
    return total


def folded_to(names: Sequence[str], width: int, style: Style) -> str:
    """Return as many names as fit into a width, and the number of the others."""
    for limit in range(FOLDED, 0, -1):
        text = style.fold(names, limit=limit)
        if len(text) <= width or style.unfolded:
            return text
    return style.fold(names, limit=1)


_UNSAFE: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff\ufff9-\ufffb]"
)
"""Control characters, line separators, characters without width, changes of the direction, and lone surrogates."""
_SPACES: Final = frozenset("\t\n\r")

T = TypeVar("T")


def printable(text: str) -> str:
    r"""Return a text with escapes such as ``\x1b`` instead of characters that are not shown; line breaks are spaces."""
    return _UNSAFE.sub(_escaped, text) if _UNSAFE.search(text) else text


def _escaped(found: re.Match[str]) -> str:
    character = found[0]
    if character in _SPACES:
        return " "
    number = ord(character)
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"


def with_printable_texts(value: T) -> T:
    """Return a value of the model in which every text, also of keys, is printable; the same one if all are."""
    return _printed(value)  # type: ignore[no-any-return]


def _printed(value: Any) -> Any:
    if isinstance(value, str):
        return printable(value)
    if value is None or isinstance(value, bool | int | float | Enum):
        return value
    if isinstance(value, Mapping):
        changed = {_printed(key): _printed(each) for key, each in value.items()}
        return value if changed == value else changed
    if isinstance(value, tuple | list):
        items = [_printed(each) for each in value]
        if all(new is old for new, old in zip(items, value, strict=True)):
            return value
        return type(value)(items)
    if isinstance(value, Struct):
        found = {name: getattr(value, name) for name in value.__struct_fields__}
        printed = {name: _printed(each) for name, each in found.items()}
        changes = {name: new for name, new in printed.items() if new is not found[name]}
        return replace(value, **changes) if changes else value
    return value
