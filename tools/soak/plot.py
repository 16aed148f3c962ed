"""Two small charts of a run as SVG: memory, and containers with the queue."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final
from xml.sax.saxutils import escape

from tools import pages

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 470, 250, 60, 150, 40, 40
COLOURS: Final = ("#2f6f9f", "#d98a3d", "#5b8c5a", "#8e5b8c", "#9a3d3d", "#6b6b6b", "#3d9a96")
_GREY: Final = "#9aa5b1"


@dataclass(frozen=True, slots=True)
class Line:
    """A labelled line; None in it is a gap."""

    label: str
    values: Sequence[float | None]


@dataclass(frozen=True, slots=True)
class Panel:
    """One chart over the number of events.

    Attributes:
        title: Above it.
        lines: What is drawn.
        ticks: The labelled values.
        is_logarithmic: Whether the scale is that of log10(1 + value).
        takeovers: Where another process begins, in events.
    """

    title: str
    events: Sequence[float]
    lines: Sequence[Line]
    ticks: Sequence[float]
    is_logarithmic: bool = False
    takeovers: Sequence[float] = ()

    def svg(self, left: int, top: int) -> str:
        """Return it as SVG, with its upper left corner there."""
        right, bottom = left + LEFT + WIDTH, top + TOP + HEIGHT
        parts = [f'<text x="{left + LEFT}" y="{top + 18}" font-weight="600">{escape(self.title)}</text>']
        for tick in self.ticks:
            y = top + self._y(tick)
            parts.append(
                f'<line x1="{left + LEFT}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}" stroke="#e4e7eb"/>'
                f'<text x="{left + LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{tick:,g}</text>'
            )
        for each in self.takeovers:
            x = left + self._x(each)
            parts.append(
                f'<line x1="{x:.1f}" y1="{top + TOP}" x2="{x:.1f}" y2="{bottom}" stroke="{_GREY}" stroke-dasharray="3 3"/>'
            )
        used: list[float] = []
        for line, colour in zip(self.lines, COLOURS, strict=False):
            parts.append(self._line(line, colour, left, top))
            y = _free(top + self._y(_last(line.values)) + 4, used)
            parts.append(f'<text x="{right + 8}" y="{y:.1f}" fill="{colour}">{escape(line.label)}</text>')
        last = self.events[-1]
        for share in (0.0, 0.5, 1.0):
            x = left + self._x(last * share)
            parts.append(
                f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{_short(last * share)}</text>'
            )
        parts.append(f'<text x="{right}" y="{bottom + 34}" text-anchor="end">watch events</text>')
        return "\n".join(parts)

    def _line(self, line: Line, colour: str, left: int, top: int) -> str:
        points = [
            f"{left + self._x(x):.1f},{top + self._y(y):.1f}"
            for x, y in zip(self.events, line.values, strict=True)
            if y is not None
        ]
        return f'<polyline points="{" ".join(points)}" fill="none" stroke="{colour}" stroke-width="1.5"/>'

    def _x(self, events: float) -> float:
        return LEFT + WIDTH * events / self.events[-1]

    def _y(self, value: float) -> float:
        highest = self._scaled(max(self.ticks))
        return TOP + HEIGHT * (1 - self._scaled(value) / highest)

    def _scaled(self, value: float) -> float:
        return math.log10(1 + value) if self.is_logarithmic else value


def svg(document: dict[str, Any]) -> str:
    """Return both charts side by side."""
    samples = document["samples"]
    events, series = samples["events"], samples["series"]
    processes = samples["process"]
    takeovers = [events[index] for index in range(1, len(events)) if processes[index] != processes[index - 1]]
    mebi = [each / 1024 for each in _each(series["rss_kib"], len(events))]
    step = max(50, 50 * round(max(mebi) / 250))
    ticks = [step * each for each in range(math.ceil(max(mebi) / step) + 1)]
    lines = [Line("resident", mebi)]
    if "memory used" in series:
        used = [each / (1 << 20) for each in _each(series["memory used"], len(events))]
        lines.append(Line("in use", used))
    memory = Panel("Memory, MiB", events, lines, ticks, takeovers=takeovers)
    held = [Line(label, _each(series[name], len(events))) for label, name in document["plotted"].items()]
    decades = [0, 10, 100, 1000, 10_000, 100_000]
    highest = max(value for line in held for value in line.values if value is not None)
    shown = decades[: next((i for i, each in enumerate(decades) if each >= highest), len(decades) - 1) + 1]
    caches = Panel(
        "Caches, queue, tasks, descriptors (logarithmic)",
        events,
        held,
        shown,
        is_logarithmic=True,
        takeovers=takeovers,
    )
    panel = LEFT + WIDTH + RIGHT
    return pages.svg(2 * panel, TOP + HEIGHT + BOTTOM, [memory.svg(0, 0), caches.svg(panel, 0)])


def _each(values: float | list[float | None] | None, count: int) -> list[Any]:
    """Return a value for each sample of a figure, which may never have changed."""
    return values if isinstance(values, list) else [values] * count


def _last(values: Sequence[float | None]) -> float:
    return next((each for each in reversed(values) if each is not None), 0.0)


def _free(y: float, used: list[float]) -> float:
    """Return the next y at which a label overlaps no other."""
    while any(abs(y - each) < 14 for each in used):
        y -= 14
    used.append(y)
    return y


def _short(number: float) -> str:
    return f"{number / 1e6:g}M" if number >= 1e6 else f"{number / 1000:g}k"
