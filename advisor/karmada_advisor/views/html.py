"""A document as one HTML file without scripts and references, for tickets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape
from pathlib import Path
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

_STYLES: Final = Path(__file__).parent
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"


def html(document: Iterable[Block], *styles: str) -> str:
    """Return a document without scripts and references; its first heading is the title. ``styles`` are further files."""
    heading, *blocks = document
    assert isinstance(heading, Heading)
    title = _escaped(heading.text)
    style = "".join((_STYLES / name).read_text() for name in ("document.css", *styles))
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
<h1>{title}</h1>
{html_of(blocks)}
</body>
</html>
"""


def html_of(document: Iterable[Block]) -> str:
    """Return the parts of a document; a heading with an anchor begins a section."""
    lines, end = list[str](), list[str]()
    for block in document:
        if isinstance(block, Heading):
            lines += end
            end = ["</section>"] if block.anchor else []
        lines += _lines(block)
    return "\n".join(lines + end)


def _lines(block: Block) -> Iterator[str]:
    match block:
        case Heading():
            if block.anchor:
                yield f'<section id="{_escaped(block.anchor)}" tabindex="-1">'
            yield f"<h2>{_escaped(block.text)}</h2>"
        case Paragraph():
            yield f"<p>{_led(block.lead, block.text)}</p>"
        case Items():
            yield "<ul>"
            for lead, text, below in block.items:
                items = "".join(f"<li>{_escaped(item)}</li>" for item in below)
                yield f"<li>{_led(lead, text)}{f'<ul>{items}</ul>' if items else ''}</li>"
            yield "</ul>"
        case Table():
            yield from _table(block)
        case Details():
            yield f"<details><summary>{_escaped(block.summary)}</summary>"
            yield html_of(blocks_of(block.blocks))
            yield "</details>"


def _escaped(text: str) -> str:
    return escape(printable(text))


def _led(lead: str, text: str) -> str:
    return f"<strong>{_escaped(lead)}</strong> {_escaped(text)}" if lead else _escaped(text)


def _table(table: Table) -> Iterator[str]:
    heading = table.heading or [""] * max(map(len, table.rows), default=1)
    marks = ["number" if mark == ">" else "" for mark in table.align.ljust(len(heading))[: len(heading)]]
    yield f'<div class="table"><table{_attribute("class", table.kind)}>'
    yield f"<caption>{_escaped(table.caption)}</caption>"
    heads = (_cell("th", cell, mark, 'scope="col"') for cell, mark in zip(heading, marks, strict=True))
    yield f"<thead><tr>{''.join(heads)}</tr></thead><tbody>"
    for first, *cells in table.rows:
        head = _cell("th", first, "", 'scope="row"') if table.kind else _cell("td", first, marks[0])
        others = (_cell("td", cell, mark) for cell, mark in zip(cells, marks[1:], strict=True))
        yield f"<tr>{head}{''.join(others)}</tr>"
    yield "</tbody></table></div>"
    if table.more:
        yield f"<p>and {table.more:,} more</p>"


def _cell(tag: str, cell: str | Cell, mark: str, scope: str = "") -> str:
    text, found = _escaped(text_of(cell).strip()), cell if isinstance(cell, Cell) else Cell("")
    if found.link:
        label = _attribute("aria-label", found.title)
        text = f"<a{_attribute('href', found.link)}{label}>{text}</a>"
    if found.is_strong:
        text = f"<strong>{text}</strong>"
    attributes = _attribute("class", found.shade or mark) + _attribute("title", found.title)
    return f"<{tag}{f' {scope}' if scope else ''}{attributes}>{text}</{tag}>"


def _attribute(name: str, value: str) -> str:
    return f' {name}="{_escaped(value)}"' if value else ""
