"""A document as GitHub-flavored Markdown, for issues and pull requests."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from karmada_advisor.views.document import (
    Block,
    Cell,
    Details,
    Heading,
    Items,
    Paragraph,
    Table,
    blocks_of,
    text_of,
)
from karmada_advisor.views.text import printable

MAX_CHARACTERS: Final = 60_000
"""GitHub takes 65,536 characters in a comment."""

_SPECIAL: Final = re.compile(r"[\\`*_\[\]|<>&~$]|^[#+=-]|(?<=^\d)[.)]")
_REFERENCE: Final = re.compile(r"[@#](?=[\w-])|\b(?:https?|ftp)(?=://)|\bwww(?=\.)", re.IGNORECASE)
_MARK: Final = "! "
"""Begins what is wrong; GitHub shows it as an alert."""
_BREAK: Final = "\u200b"
"""A space without width: GitHub makes no mention, reference or link of what is broken by it."""


def fitting(written: Callable[[int], Iterable[Block]], rows: int) -> str:
    """Return the Markdown of a document of so many rows, with fewer rows if it has too many characters."""
    text = markdown(written(rows))
    while len(text) > MAX_CHARACTERS and rows > 1:
        rows //= 2
        text = markdown(written(rows))
    return cut(text)


def cut(text: str) -> str:
    """Return a text that GitHub takes, without its last lines if need be."""
    if len(text) <= MAX_CHARACTERS:
        return text
    return text[: text.rindex("\n", 0, MAX_CHARACTERS - 40)] + "\n\n(cut at 60,000 characters)\n"


def markdown(document: Iterable[Block]) -> str:
    """Return the Markdown."""
    return "\n\n".join("\n".join(_lines(block)) for block in document).rstrip() + "\n"


def escaped(text: str) -> str:
    """Return a text that Markdown shows as it is: it ends no table, mentions nobody, and links nowhere."""
    found = _REFERENCE.sub(lambda part: f"{part[0]}{_BREAK}", printable(text))
    return _SPECIAL.sub(lambda part: f"\\{part[0]}", found)


def _lines(block: Block) -> Iterator[str]:
    match block:
        case Heading():
            yield f"### {escaped(block.text)}"
        case Paragraph():
            is_alert = block.lead.startswith(_MARK)
            yield from ["> [!WARNING]"] if is_alert else []
            yield f"{'> ' if is_alert else ''}{_led(block.lead.removeprefix(_MARK), block.text)}"
        case Items():
            for lead, text, below in block.items:
                yield f"- {_led(lead, text)}"
                yield from (f"  - {escaped(item)}" for item in below)
        case Table():
            yield from _table(block)
        case Details():
            yield f"<details><summary>{escaped(block.summary)}</summary>\n"
            yield markdown(blocks_of(block.blocks))
            yield "</details>"


def _led(lead: str, text: str) -> str:
    return " ".join(part for part in (f"**{escaped(lead)}**" if lead else "", escaped(text)) if part)


def _table(table: Table) -> Iterator[str]:
    if table.caption:
        yield f"**{escaped(table.caption)}**\n"
    heading = table.heading or [""] * max(map(len, table.rows), default=1)
    yield f"| {' | '.join(map(_cell, heading))} |"
    marks = ["---:" if mark == ">" else "---" for mark in table.align.ljust(len(heading))[: len(heading)]]
    yield f"|{'|'.join(marks)}|"
    for row in table.rows:
        yield f"| {' | '.join(map(_cell, row))} |"
    if table.more:
        yield ""
        yield f"and {table.more:,} more"


def _cell(cell: str | Cell) -> str:
    mark = "**" if isinstance(cell, Cell) and cell.is_strong else ""
    return f"{mark}{escaped(text_of(cell).strip())}{mark}"
