"""The parts of an answer, of which every format is written."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from karmada_scheduler.structs import Struct, field


class Heading(Struct, frozen=True):
    """A heading; the first one of a document is its title.

    Attributes:
        text: The words.
        anchor: The target of links; "" for none.
    """

    text: str
    anchor: str = ""


class Paragraph(Struct, frozen=True):
    """A sentence or more; ``lead`` is shown in bold before it."""

    text: str
    lead: str = ""


class Items(Struct, frozen=True):
    """A list: of each item a part in bold (which may be empty), a text, and a list below it."""

    items: Sequence[tuple[str, str, Sequence[str]]]


class Cell(Struct, frozen=True):
    """A cell of a table that is more than its text.

    Attributes:
        text: The text.
        is_strong: Whether it is shown in bold.
        link: A target; "" for none.
        title: The text in words, for a cell with signs; "" if it needs none.
        shade: A class of colours; "" for none.
    """

    text: str
    is_strong: bool = False
    link: str = ""
    title: str = ""
    shade: str = ""


class Table(Struct, frozen=True):
    """A table.

    Attributes:
        heading: The names of the columns; empty for a table without heading.
        rows: The cells.
        align: One character per column, ``>`` for right; "" for left.
        caption: What it shows; a text has none.
        indent: Columns before each line of a text.
        optional: Columns that a text leaves out if it is too narrow, in this order.
        spilling: A column whose cells may cover empty cells to their right in a text; -1 for none.
        kind: A class of tables; "" for those that look like the others.
    """

    heading: Sequence[str | Cell]
    rows: Sequence[Sequence[str | Cell]]
    align: str = ""
    caption: str = ""
    indent: int = 0
    optional: Sequence[int] = ()
    spilling: int = -1
    kind: str = ""


class Line(Struct, frozen=True):
    """A sentence of a text.

    Attributes:
        text: The sentence, or its parts with their colours; the colours end with the first line.
        colour: The colour of all lines; "" for none.
        hang: Columns before the lines after the first; None for two more than the first has, and four after a mark.
        breaks: Whether it is wrapped.
        continues: Whether it ends the sentence before it, which is too long for one line.
    """

    text: str | Sequence[tuple[str, str]]
    colour: str = ""
    hang: int | None = None
    breaks: bool = True
    continues: bool = False


class Details(Struct, frozen=True):
    """Parts of a text that a document shows when they are asked for.

    Attributes:
        summary: What they are, in a document.
        blocks: The parts.
        lead: The line before them in a text; "" for none.
    """

    summary: str
    blocks: Sequence[TextBlock]
    lead: str = ""


class Written(Struct, frozen=True):
    """Lines of a text that are written already, for a part that is narrower than the others."""

    lines: Sequence[str]
    indent: int = 0


class Case(Struct, frozen=True):
    """A test case of a report for CI.

    Attributes:
        group: What the case belongs to, as CI systems group cases.
        name: Its name in the group.
        outcome: ``failure``, ``error`` or ``skipped``; "" if it passed.
        message: Why, in a line.
        lines: What there is to know about a failure or an error.
        facts: Further attributes, such as the line in a file.
    """

    group: str
    name: str
    outcome: str = ""
    message: str = ""
    lines: Sequence[str] = ()
    facts: Mapping[str, str] = field(default_factory=dict)


class Suite(Struct, frozen=True):
    """Test cases, and further attributes of them together."""

    name: str
    cases: Sequence[Case]
    facts: Mapping[str, str] = field(default_factory=dict)


Block = Heading | Paragraph | Items | Table | Details
"""A part of a document for tickets and pull requests."""

TextBlock = str | Line | Table | Details | Written
"""A part of a text for a terminal; a string is a line without colours."""

Section = Iterable[TextBlock]
"""Parts of a text without blank lines between them."""

_GAP: Final = re.compile(" {2,}")


def document_of(title: str, sections: Iterable[Section]) -> Iterator[Block]:
    """Yield a text as the parts of a document: indented lines are items of lists, and those further in are below these.

    Args:
        title: The first heading.
        sections: Of a text that is not wrapped.
    """
    yield Heading(title)
    for section in sections:
        yield from blocks_of(section)


def blocks_of(section: Section) -> Iterator[Block]:
    """Yield the parts of a text as parts of a document."""
    items, outer = list[tuple[str, str, list[str]]](), 0
    for block in section:
        if isinstance(block, str | Line):
            line = Line(block) if isinstance(block, str) else block
            whole = line.text if isinstance(line.text, str) else "".join(part for part, _ in line.text)
            depth = len(whole) - len(whole.lstrip())
            if items and line.continues:
                lead, text, below = items[-1]
                items[-1] = lead, f"{text} {whole.strip()}", below
                continue
            if items and depth > outer:
                items[-1][2].append(" ".join(filter(None, _led(line))))
                continue
            if depth:
                items.append((*_led(line), []))
                outer = depth
                continue
        if items:
            yield Items(items)
            items = []
        if isinstance(block, str | Line):
            lead, text = _led(line)
            yield Paragraph(text, lead)
        elif not isinstance(block, Written):
            yield block
    if items:
        yield Items(items)


def _led(line: Line) -> tuple[str, str]:
    """Return a line as its beginning, if that has a colour, and the rest; wide gaps are points."""
    spans = [(line.text, line.colour)] if isinstance(line.text, str) else list(line.text)
    first = next((number for number, (part, _) in enumerate(spans) if part.strip()), 0)
    lead, colour = spans[first]
    rest = "".join(part for part, _ in spans[first + 1 :])
    if not colour:
        lead, rest = "", lead + rest
    elif rest.startswith(":"):
        lead, rest = f"{lead}:", rest[1:]
    lead, rest = (_GAP.sub(" \u00b7 ", part.replace("\xa0", " ").strip()) for part in (lead, rest))
    return lead, rest


def text_of(cell: str | Cell) -> str:
    """Return the text of a cell."""
    return cell if isinstance(cell, str) else cell.text
