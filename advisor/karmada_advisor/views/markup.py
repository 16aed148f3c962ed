"""A document as GitHub-flavored Markdown, for issues and pull requests, and as one HTML file without scripts, for tickets."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from html import escape
from pathlib import Path
from typing import Final

from karmada_advisor.views import document as parts
from karmada_advisor.views.text import printable

MAX_CHARACTERS: Final = 60_000
"""GitHub takes 65,536 characters in a comment."""

_SPECIAL: Final = re.compile(r"[\\`*_\[\]|<>&~$]|^[#+=-]|(?<=^\d)[.)]")
_REFERENCE: Final = re.compile(r"[@#](?=[\w-])|\b(?:https?|ftp)(?=://)|\bwww(?=\.)", re.IGNORECASE)
_MARK: Final = "! "
"""Begins what is wrong; GitHub shows it as an alert."""
_BREAK: Final = "\u200b"
"""A space without width: GitHub makes no mention, reference or link of what is broken by it."""


def fitting(written: Callable[[int], Iterable[parts.Block]], rows: int) -> str:
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


def markdown(document: Iterable[parts.Block]) -> str:
    """Return the Markdown."""
    return "\n\n".join("\n".join(_lines(block)) for block in document).rstrip() + "\n"


def escaped(text: str) -> str:
    """Return a text that Markdown shows as it is: it ends no table, mentions nobody, and links nowhere."""
    found = _REFERENCE.sub(lambda part: f"{part[0]}{_BREAK}", printable(text))
    return _SPECIAL.sub(lambda part: f"\\{part[0]}", found)


def _lines(block: parts.Block) -> Iterator[str]:
    match block:
        case parts.Heading():
            yield f"### {escaped(block.text)}"
        case parts.Paragraph():
            is_alert = block.lead.startswith(_MARK)
            yield from ["> [!WARNING]"] if is_alert else []
            yield f"{'> ' if is_alert else ''}{_led(block.lead.removeprefix(_MARK), block.text)}"
        case parts.Items():
            for lead, text, below in block.items:
                yield f"- {_led(lead, text)}"
                yield from (f"  - {escaped(item)}" for item in below)
        case parts.Table():
            yield from _table(block)
        case parts.Details():
            yield f"<details><summary>{escaped(block.summary)}</summary>\n"
            yield markdown(parts.blocks_of(block.blocks))
            yield "</details>"


def _led(lead: str, text: str) -> str:
    return " ".join(part for part in (f"**{escaped(lead)}**" if lead else "", escaped(text)) if part)


def _table(table: parts.Table) -> Iterator[str]:
    if table.caption:
        yield f"**{escaped(table.caption)}**\n"
    heading = table.heading or [""] * max(map(len, table.rows), default=1)
    yield f"| {' | '.join(map(_cell, heading))} |"
    marks = ["---:" if mark == ">" else "---" for mark in table.align.ljust(len(heading))[: len(heading)]]
    yield f"|{'|'.join(marks)}|"
    for row in table.rows:
        yield f"| {' | '.join(map(_cell, row))} |"


def _cell(cell: str | parts.Cell) -> str:
    mark = "**" if isinstance(cell, parts.Cell) and cell.is_strong else ""
    return f"{mark}{escaped(parts.text_of(cell).strip())}{mark}"


_FILES: Final = Path(__file__).parent


def html(document: Iterable[parts.Block], *styles: str) -> str:
    """Return a document without scripts and references; its first heading is the title. ``styles`` are further files."""
    heading, *blocks = document
    assert isinstance(heading, parts.Heading)
    title = _escaped(heading.text)
    style = "".join((_FILES / name).read_text() for name in ("document.css", *styles))
    page = (_FILES / "document.html").read_text()
    return page.format(title=title, style=style, blocks=html_of(blocks))


def html_of(document: Iterable[parts.Block]) -> str:
    """Return the parts of a document; a heading with an anchor begins a section."""
    lines, end = list[str](), list[str]()
    for block in document:
        if isinstance(block, parts.Heading):
            lines += end
            end = ["</section>"] if block.anchor else []
        lines += _html_lines(block)
    return "\n".join(lines + end)


def _html_lines(block: parts.Block) -> Iterator[str]:
    match block:
        case parts.Heading():
            if block.anchor:
                yield f'<section id="{_escaped(block.anchor)}" tabindex="-1">'
            yield f"<h2>{_escaped(block.text)}</h2>"
        case parts.Paragraph():
            yield f"<p>{_html_led(block.lead, block.text)}</p>"
        case parts.Items():
            yield "<ul>"
            for lead, text, below in block.items:
                items = "".join(f"<li>{_escaped(item)}</li>" for item in below)
                yield f"<li>{_html_led(lead, text)}{f'<ul>{items}</ul>' if items else ''}</li>"
            yield "</ul>"
        case parts.Table():
            yield from _html_table(block)
        case parts.Details():
            yield f"<details><summary>{_escaped(block.summary)}</summary>"
            yield html_of(parts.blocks_of(block.blocks))
            yield "</details>"


def _escaped(text: str) -> str:
    return escape(printable(text))


def _html_led(lead: str, text: str) -> str:
    return f"<strong>{_escaped(lead)}</strong> {_escaped(text)}" if lead else _escaped(text)


def _html_table(table: parts.Table) -> Iterator[str]:
    heading = table.heading or [""] * max(map(len, table.rows), default=1)
    marks = ["number" if mark == ">" else "" for mark in table.align.ljust(len(heading))[: len(heading)]]
    yield f'<div class="table"><table{_attribute("class", table.kind)}>'
    yield f"<caption>{_escaped(table.caption)}</caption>"
    heads = (_html_cell("th", cell, mark, 'scope="col"') for cell, mark in zip(heading, marks, strict=True))
    yield f"<thead><tr>{''.join(heads)}</tr></thead><tbody>"
    for first, *cells in table.rows:
        head = _html_cell("th", first, "", 'scope="row"') if table.kind else _html_cell("td", first, marks[0])
        others = (_html_cell("td", cell, mark) for cell, mark in zip(cells, marks[1:], strict=True))
        yield f"<tr>{head}{''.join(others)}</tr>"
    yield "</tbody></table></div>"


def _html_cell(tag: str, cell: str | parts.Cell, mark: str, scope: str = "") -> str:
    text = _escaped(parts.text_of(cell).strip())
    found = cell if isinstance(cell, parts.Cell) else parts.Cell("")
    if found.link:
        label = _attribute("aria-label", found.title)
        text = f"<a{_attribute('href', found.link)}{label}>{text}</a>"
    if found.is_strong:
        text = f"<strong>{text}</strong>"
    attributes = _attribute("class", found.shade or mark) + _attribute("title", found.title)
    return f"<{tag}{f' {scope}' if scope else ''}{attributes}>{text}</{tag}>"


def _attribute(name: str, value: str) -> str:
    return f' {name}="{_escaped(value)}"' if value else ""
