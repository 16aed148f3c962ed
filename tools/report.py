"""Parts of reports that tools write: tables of Markdown, and bars.

Pictures are written by hand, for bars and words are all that is drawn: a plotting library would be a hundred times the code
and a set of pinned packages to keep.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from xml.sax.saxutils import escape

WIDTH: Final = 520
_LABELS, _BARS, _ROW, _HEAD, _GAP = 170, 270, 20, 34, 22


def markdown_table(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of Markdown, without a line break at its end."""
    lines = [heading, ["---"] * len(heading), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def number(value: float | None) -> str:
    """Return three digits or so, a dash for nothing."""
    if value is None:
        return "-"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


@dataclass(frozen=True, slots=True)
class Panel:
    """One chart: a title, and a bar per label."""

    title: str
    bars: Sequence[tuple[str, float]]

    @property
    def height(self) -> int:
        """Its height with the gap below, in pixels."""
        return _HEAD + _ROW * len(self.bars) + _GAP

    def svg(self, left: int, top: int, colours: Mapping[str, str]) -> str:
        """Return it as SVG, with its upper left corner there."""
        longest = max((value for _, value in self.bars), default=0.0) or 1.0
        parts = [f'<text x="{left}" y="{top + 16}" font-weight="600">{escape(self.title)}</text>']
        for row, (label, value) in enumerate(self.bars):
            y, length = top + _HEAD + row * _ROW, max(1.0, _BARS * value / longest)
            x = left + _LABELS
            parts += [
                f'<text x="{x - 8}" y="{y + 11}" text-anchor="end">{escape(label)}</text>',
                f'<rect x="{x}" y="{y}" width="{length:.1f}" height="14" fill="{colours[label]}"/>',
                f'<text x="{x + length + 6:.1f}" y="{y + 11}">{number(value)}</text>',
            ]
        return "\n".join(parts)


def picture(columns: Sequence[Sequence[Panel]], colours: Mapping[str, str]) -> str:
    """Return columns of charts as SVG, on a white ground."""
    height = _GAP + max((sum(panel.height for panel in column) for column in columns), default=0)
    width = _GAP + WIDTH * len(columns)
    size = f'width="{width}" height="{height}"'
    font = 'font-family="DejaVu Sans, Verdana, sans-serif" font-size="12"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {width} {height}" {font}>',
        f'<rect {size} fill="#ffffff"/>',
    ]
    for index, column in enumerate(columns):
        top = _GAP
        for panel in column:
            parts.append(panel.svg(_GAP + index * WIDTH, top, colours))
            top += panel.height
    return "\n".join([*parts, "</svg>\n"])
