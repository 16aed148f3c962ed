"""The figures that matter most as horizontal bars, from the JSON of ``tools.bench.plane``.

python -m tools.bench.plot docs/benchmark/throughput.json docs/benchmark/throughput.svg
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from tools import pages
from tools.bench.report import number
from tools.bench.scenarios import BARE, DEFAULT, LIFTED, OURS
from tools.bench.summary import Summary, summaries

COLOURS = {
    BARE: "#9aa5b1",
    DEFAULT: "#e8c07d",
    LIFTED: "#d98a3d",
    OURS: "#2f6f9f",
    "ours, FreshFirst": "#6aa5cf",
}
WIDTH, LABELS, BARS, ROW, HEAD, GAP = 520, 170, 270, 20, 34, 22


@dataclass(frozen=True, slots=True)
class Panel:
    """One chart: a title, and a bar per scheduler."""

    title: str
    bars: list[tuple[str, float]]

    @property
    def height(self) -> int:
        """Its height with the gap below, in pixels."""
        return HEAD + ROW * len(self.bars) + GAP

    def svg(self, left: int, top: int) -> str:
        """Return it as SVG, with its upper left corner there."""
        longest = max((value for _, value in self.bars), default=0.0) or 1.0
        parts = [f'<text x="{left}" y="{top + 16}" font-weight="600">{escape(self.title)}</text>']
        for row, (label, value) in enumerate(self.bars):
            y, length = top + HEAD + row * ROW, max(1.0, BARS * value / longest)
            x = left + LABELS
            parts += [
                f'<text x="{x - 8}" y="{y + 11}" text-anchor="end">{escape(label)}</text>',
                f'<rect x="{x}" y="{y}" width="{length:.1f}" height="14" fill="{COLOURS[label]}"/>',
                f'<text x="{x + length + 6:.1f}" y="{y + 11}">{number(value)}</text>',
            ]
        return "\n".join(parts)


def _panel(title: str, group: Sequence[Summary], value: Callable[[Summary], float | None]) -> Panel:
    best: dict[str, float] = {}
    for each in group:
        found, name = value(each), each.case["scheduler"]
        if found is not None:
            best[name] = max(found, best.get(name, 0.0))
    return Panel(title, [(name, best[name]) for name in COLOURS if name in best])


def panels(found: Sequence[Summary], clusters: int) -> list[Panel]:
    """Return the charts for so many clusters, those without a bar left out."""
    here = [each for each in found if each.case["clusters"] == clusters]
    result = []
    backlog = [each for each in here if each.case["rate"] is None]
    placements = list(dict.fromkeys(each.case["placement"] for each in backlog))
    size = f"{clusters:,} clusters"
    for placement in placements:
        group = [each for each in backlog if each.case["placement"] == placement]
        title = f"Backlog, {placement}, {size}: bindings/s"
        result.append(_panel(title, group, lambda each: each.median("rate")))
    first = [each for each in backlog if each.case["placement"] == placements[0]] if placements else []
    title = f"Backlog, {size}: CPU of the writer per binding, ms"
    result.append(_panel(title, first, lambda each: each.median("scheduler_cpu")))
    title = f"Backlog, {size}: CPU of API server and etcd per binding, ms"
    result.append(_panel(title, first, lambda each: each.servers_cpu))
    for rate in sorted({each.case["rate"] for each in here if each.case["rate"] is not None}):
        # A scheduler that does not keep up has no latency: it has a queue that grows.
        group = [each for each in here if each.case["rate"] == rate and _keeps_up(each)]
        title = f"Stream of {rate:g}/s, {size}: p99 to a place, ms"
        result.append(_panel(title, group, lambda each: each.median("latency", "answered", "p99")))
    return [panel for panel in result if panel.bars]


def _keeps_up(each: Summary) -> bool:
    placed = each.median("placed")
    return placed is not None and placed >= 0.99 * each.case["bindings"]


def svg(document: dict[str, Any]) -> str:
    """Return the whole picture: a column for each number of clusters."""
    found = summaries(document)
    return picture(
        [panels(found, clusters) for clusters in sorted({each.case["clusters"] for each in found})]
    )


def picture(columns: Sequence[Sequence[Panel]]) -> str:
    """Return columns of charts as SVG."""
    height = GAP + max((sum(panel.height for panel in column) for column in columns), default=0)
    width = GAP + WIDTH * len(columns)
    parts = []
    for index, column in enumerate(columns):
        top = GAP
        for panel in column:
            parts.append(panel.svg(GAP + index * WIDTH, top))
            top += panel.height
    return pages.svg(width, height, parts)


def main() -> None:
    """Draw one file from the other."""
    source, target = Path(sys.argv[1]), Path(sys.argv[2])
    target.write_text(svg(json.loads(source.read_text())))


if __name__ == "__main__":
    main()
