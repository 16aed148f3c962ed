"""A document as text: wrapped sentences, aligned tables, folded lists, and colours that repeat what words say.

No text controls a terminal or forges lines, whatever names and messages contain (``printable``).
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeVar

from karmada_advisor.views.document import Details, Line, Section, Table, Written, text_of
from karmada_scheduler.structs import Struct, replace

T = TypeVar("T")

FOLDED: Final = 5

_COLOURS: Final = {"bold": "1", "red": "31", "green": "32", "yellow": "33", "faint": "2"}


class Style(Struct, frozen=True):
    """How to write.

    Attributes:
        width: Columns; at least 40.
        colour: Whether to write colours.
        unfolded: Whether lists are written in full.
        least: As many items of a list are written, if it has them.
    """

    width: int = 100
    colour: bool = False
    unfolded: bool = False
    least: int = 0

    def paint(self, text: str, colour: str) -> str:
        """Return a text in a colour, if there are colours; "" is none."""
        return f"\x1b[{_COLOURS[colour]}m{text}\x1b[0m" if self.colour and text and colour else text

    def first(self, items: Sequence[T], limit: int) -> Sequence[T]:
        """Return the items that are written: the first ones, or all."""
        return items if self.unfolded else items[: max(limit, self.least)]

    def fold(self, items: Sequence[str], *, limit: int = FOLDED, separator: str = ", ") -> str:
        """Return the first items, and the number of the others."""
        limit = max(limit, self.least)
        if self.unfolded or len(items) <= limit + 1:
            return separator.join(items)
        return f"{separator.join(items[:limit])} and {len(items) - limit:,} more"

    def fold_to(self, names: Sequence[str], width: int) -> str:
        """Return as many names as fit into a width, and the number of the others."""
        for limit in range(FOLDED, 0, -1):
            text = self.fold(names, limit=limit)
            if len(text) <= width or self.unfolded:
                return text
        return self.fold(names, limit=1)

    def wrap(self, text: str, *, indent: str = "") -> list[str]:
        """Return a sentence in lines; those after the first are indented."""
        lines = textwrap.wrap(
            text, self.width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
        )
        return lines or [""]


_UNBROKEN: Final = 100_000
"""The width of a text whose lines are not wrapped."""


def wide(style: Style) -> Style:
    """Return a style without folded lists and broken lines."""
    return replace(style, width=_UNBROKEN, unfolded=True)


def of_document(rows: int, *, unfolded: bool = False) -> Style:
    """Return the style of a text that becomes a document, with so many rows."""
    return Style(_UNBROKEN, unfolded=unfolded, least=rows)


_RIGHT: Final = ">"
_LEAST_CELL: Final = 12
_MARKS: Final = ("!", "~")


def text(sections: Iterable[Section], style: Style) -> str:
    """Return a text: its sections with blank lines between them, without those that are empty."""
    written = ("\n".join(lines(section, style)) for section in sections)
    return "\n\n".join(section for section in written if section) + "\n"


def lines(section: Section, style: Style) -> Iterator[str]:
    """Yield the lines of a section."""
    for block in section:
        if isinstance(block, Table):
            yield from _table(block, style)
        elif isinstance(block, Details):
            yield from lines([*filter(None, [block.lead]), *block.blocks], style)
        elif isinstance(block, Written):
            yield from (f"{'':<{block.indent}}{line}".rstrip() for line in block.lines)
        else:
            yield from _line(Line(block) if isinstance(block, str) else block, style)


def table(heading: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table of any width, without a final newline."""
    cells = [[str(cell) for cell in row] for row in rows]
    return "\n".join(lines([Table(heading, cells)], Style(_UNBROKEN)))


def unbroken(parts: Iterable[str]) -> str:
    """Return parts of a line with three spaces between them, at which alone it is wrapped."""
    return "   ".join(part.replace(" ", "\xa0") for part in parts)


def _line(line: Line, style: Style) -> Iterator[str]:
    spans = [(line.text, "")] if isinstance(line.text, str) else line.text
    spans = [(printable(part), colour) for part, colour in spans]
    whole = "".join(part for part, _ in spans)
    depth = len(whole) - len(whole.lstrip()) + 2
    hang = line.hang if line.hang is not None else max(depth, 4) if whole.startswith(_MARKS) else depth
    first, *rest = style.wrap(whole, indent=" " * hang) if line.breaks else [whole]
    painted, start = "", 0
    for part, colour in spans:
        painted += style.paint(first[start : start + len(part)], colour or line.colour)
        start += len(part)
    for written in (painted, *(style.paint(other, line.colour) for other in rest)):
        yield written.replace("\xa0", " ")


def _table(found: Table, style: Style) -> list[str]:
    """Return aligned lines, with two spaces between columns.

    Where they are wider than the style, optional columns go first, then the widest column is cut; the last column is
    wrapped instead.
    """
    rows = [found.heading, *found.rows] if found.heading else found.rows
    cells = [[printable(text_of(cell)) for cell in row] for row in rows]
    columns, indent = list(range(len(cells[0]))) if cells else [], " " * found.indent
    for column in found.optional:
        if _width(cells, columns, found.spilling, indent) > style.width:
            columns.remove(column)
    excess = _width(cells, columns, found.spilling, indent) - style.width
    rights = [found.align[column : column + 1] == _RIGHT for column in columns]
    if excess > 0 and not rights[-1]:
        widest = max(len(row[columns[-1]]) for row in cells)
        excess -= widest - max(_LEAST_CELL, widest - excess)  # the last column is wrapped as far as it goes
    if excess > 0 and len(columns) > 1:
        cut = max(columns[:-1], key=lambda column: max(len(row[column]) for row in cells))
        keep = max(_LEAST_CELL, max(len(row[cut]) for row in cells) - excess)
        for row in cells:
            row[cut] = _cut(row[cut], keep)
    widths = [_column(cells, column, columns, found.spilling) for column in columns]
    chosen = ([row[column] for column in columns] for row in cells)
    return [line for row in chosen for line in _row(row, widths, rights, indent, style.width)]


def _row(
    cells: Sequence[str], widths: Sequence[int], rights: Sequence[bool], indent: str, width: int
) -> list[str]:
    """Return the lines of one row; the last cell is wrapped below itself."""
    line, full = indent, len(indent)
    for cell, size, is_right in zip(cells[:-1], widths[:-1], rights[:-1], strict=True):
        full += size + 2
        aligned = cell.rjust(size) if is_right else cell.ljust(size)
        line = f"{line}{aligned}  ".ljust(full if len(line) < full else 0)
    if rights[-1]:
        over = max(0, len(line) - full)
        return [(line + cells[-1].rjust(max(0, widths[-1] - over))).rstrip()]
    left = max(_LEAST_CELL, width - len(line))
    wrapped = textwrap.wrap(cells[-1], left, break_long_words=False, break_on_hyphens=False) or [""]
    return [(line + wrapped[0]).rstrip(), *(" " * len(line) + rest for rest in wrapped[1:])]


def _cut(cell: str, width: int) -> str:
    return cell if len(cell) <= width else cell[: width - 3] + "..."


def _column(cells: Sequence[Sequence[str]], column: int, columns: Sequence[int], spilling: int) -> int:
    """Return the width of a column; cells that spill over empty cells do not count."""
    if column == spilling:
        after = [other for other in columns if other > column]
        return max((len(row[column]) for row in cells if any(row[other] for other in after)), default=0)
    return max(len(row[column]) for row in cells)


def _width(cells: Sequence[Sequence[str]], columns: Sequence[int], spilling: int, indent: str) -> int:
    widths = [_column(cells, column, columns, spilling) for column in columns]
    total = len(indent) + sum(widths) + 2 * (len(widths) - 1)
    if spilling in columns:
        before = sum(width + 2 for column, width in zip(columns, widths, strict=True) if column < spilling)
        total = max(total, len(indent) + before + max(len(row[spilling]) for row in cells))
    return total


_UNSAFE: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff\ufff9-\ufffb]"
)
"""Control characters, line separators, characters without width, changes of the direction, and lone surrogates."""
_SPACES: Final = frozenset("\t\n\r")


def printable(text: str) -> str:
    r"""Return a text with escapes such as ``\x1b`` instead of characters that are not shown; line breaks are spaces."""
    return _UNSAFE.sub(_escaped, text) if _UNSAFE.search(text) else text


def _escaped(found: re.Match[str]) -> str:
    character = found[0]
    if character in _SPACES:
        return " "
    number = ord(character)
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"
