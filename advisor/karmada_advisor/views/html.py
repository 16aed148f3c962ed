"""An explanation as one HTML file without scripts and references, for tickets."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Final

from karmada_advisor.explain.model import Explanation
from karmada_advisor.views.document import Block, Heading, Items, Paragraph, Table, document_of

_ROWS: Final = 50
STYLE: Final = """
:root { color-scheme: light dark; }
body { font: 1rem/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 75rem; padding: 0 1rem; }
.table { overflow-x: auto; }
table { border-collapse: collapse; margin: 1rem 0; }
caption { font-weight: bold; padding: .25rem 0; text-align: left; }
th, td { border-bottom: 1px solid; padding: .2rem .6rem; text-align: left; vertical-align: top; }
.number { text-align: right; font-variant-numeric: tabular-nums; }
"""
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"


def explanation_html(explanation: Explanation, *, unfolded: bool = False) -> str:
    """Return the document; long tables are cut, with the number of the other rows, unless ``unfolded``."""
    rows = len(explanation.clusters) + 1 if unfolded else _ROWS
    title, *blocks = document_of(explanation, rows=rows)
    assert isinstance(title, Heading)
    body = "\n".join(line for block in blocks for line in _lines(block))
    return html_page(title.text, body)


def html_page(title: str, body: str, *, style: str = STYLE) -> str:
    """Return a document without scripts and references; ``body`` is HTML, ``title`` is text."""
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="viewport" content="width=device-width">
<title>{escape(title)}</title>
<style>{style}</style>
</head>
<body>
<h1>{escape(title)}</h1>
{body}
</body>
</html>
"""


def _lines(block: Block) -> Iterator[str]:
    match block:
        case Heading(text):
            yield f"<h2>{escape(text)}</h2>"
        case Paragraph(text, lead):
            yield f"<p>{_lead(lead)}{escape(text)}</p>"
        case Items(items):
            yield "<ul>"
            for lead, text in items:
                yield f"<li>{_lead(lead)}{escape(text)}</li>"
            yield "</ul>"
        case Table():
            yield from _table(block)


def _lead(text: str) -> str:
    return f"<strong>{escape(text)}</strong> " if text else ""


def _table(table: Table) -> Iterator[str]:
    yield '<div class="table"><table>'
    yield f"<caption>{escape(table.caption)}</caption>"
    classes = [
        ' class="number"' if table.align[index : index + 1] == ">" else ""
        for index in range(len(table.heading))
    ]
    cells = "".join(
        f'<th scope="col"{class_}>{escape(text)}</th>'
        for class_, text in zip(classes, table.heading, strict=True)
    )
    yield f"<thead><tr>{cells}</tr></thead><tbody>"
    for row in table.rows:
        cells = "".join(f"<td{class_}>{escape(text)}</td>" for class_, text in zip(classes, row, strict=True))
        yield f"<tr>{cells}</tr>"
    yield "</tbody></table></div>"
    if table.more:
        yield f"<p>and {table.more:,} more</p>"
