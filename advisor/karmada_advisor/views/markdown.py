"""An explanation as GitHub-flavored Markdown, for issues and pull requests."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from karmada_advisor.explain.model import Explanation
from karmada_advisor.views.document import Block, Heading, Items, Paragraph, Table, document_of

MAX_CHARACTERS: Final = 60_000
"""GitHub takes 65,536 characters in a comment."""

_ROWS: Final = 20
_SPECIAL: Final = re.compile(r"[\\`*_\[\]|<>&~$]|^[#+=-]|(?<=^\d)[.)]")
_REFERENCE: Final = re.compile(r"[@#](?=[\w-])|\b(?:https?|ftp)(?=://)|\bwww(?=\.)", re.IGNORECASE)
_BREAK: Final = "\u200b"
"""A space without width: GitHub makes no mention, reference or link of what is broken by it."""


def explanation_markdown(explanation: Explanation, *, unfolded: bool = False) -> str:
    """Return the Markdown; without ``unfolded`` below 60,000 characters, with fewer rows if need be."""
    if unfolded:
        return _markdown(explanation, len(explanation.clusters) + 1)
    rows = _ROWS
    text = _markdown(explanation, rows)
    while len(text) > MAX_CHARACTERS and rows > 1:
        rows //= 2
        text = _markdown(explanation, rows)
    return cut(text)


def cut(text: str) -> str:
    """Return a text that GitHub takes, without its last lines if need be."""
    if len(text) <= MAX_CHARACTERS:
        return text
    return text[: text.rindex("\n", 0, MAX_CHARACTERS - 40)] + "\n\n(cut at 60,000 characters)\n"


def _markdown(explanation: Explanation, rows: int) -> str:
    return "\n\n".join("\n".join(_lines(each)) for each in document_of(explanation, rows=rows)) + "\n"


def escaped(text: str) -> str:
    """Return a text that Markdown shows as it is: it ends no table, mentions nobody, and links nowhere."""
    found = _REFERENCE.sub(lambda part: f"{part[0]}{_BREAK}", text)
    return _SPECIAL.sub(lambda part: f"\\{part[0]}", found)


def _lines(block: Block) -> Iterator[str]:
    match block:
        case Heading(text):
            yield f"### {escaped(text)}"
        case Paragraph(text, lead):
            yield " ".join(part for part in (f"**{escaped(lead)}**" if lead else "", escaped(text)) if part)
        case Items(items):
            for lead, text in items:
                yield f"- **{escaped(lead)}** {escaped(text)}"
        case Table():
            yield from _table(block)


def _table(table: Table) -> Iterator[str]:
    yield f"**{escaped(table.caption)}**"
    yield ""
    yield f"| {' | '.join(map(escaped, table.heading))} |"
    marks = [
        "---:" if table.align[index : index + 1] == ">" else "---" for index in range(len(table.heading))
    ]
    yield f"|{'|'.join(marks)}|"
    for row in table.rows:
        yield f"| {' | '.join(map(escaped, row))} |"
    if table.more:
        yield ""
        yield f"and {table.more:,} more"
