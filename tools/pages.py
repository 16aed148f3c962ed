"""Parts of pages that tools write: sections between two marks, tables of Markdown, and pictures.

Pictures are written by hand, for lines, bars and words are all that is drawn: a plotting library would be a hundred times
the code and a set of pinned packages to keep.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def with_section(page: str, begin: str, end: str, content: str) -> str:
    """Return a page whose section between two marks is replaced; ValueError without such a section."""
    head, first, rest = page.partition(begin)
    _, last, tail = rest.partition(end)
    if not first or not last:
        raise ValueError(f"the page has no section between {begin.strip()} and {end.strip()}")
    return f"{head}{begin}{content}{end}{tail}"


def markdown_table(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of Markdown, without a line break at its end."""
    lines = [heading, ["---"] * len(heading), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def svg(width: int, height: int, parts: Iterable[str]) -> str:
    """Return a picture on a white ground; sizes are in pixels."""
    size = f'width="{width}" height="{height}"'
    font = 'font-family="DejaVu Sans, Verdana, sans-serif" font-size="12"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {width} {height}" {font}>',
            f'<rect {size} fill="#ffffff"/>',
            *parts,
            "</svg>\n",
        ]
    )
