"""What grew although the number of live objects stayed the same.

A line is fitted to each figure by least squares over the last half of the run, in the process that ended it. A figure
grows if all of this holds, so that neither noise nor one step counts:

- the rise of the line over the window is at least 4 times the standard deviation of the samples around the line
  (the line then explains more than half of the variance),
- every sample of the last quarter of the window is above every sample of the first quarter,
- the mean rises from each quarter to the next,
- the rise is at least one unit.

Memory grows by each cache that fills up to its bound. It has limits instead, slopes; one within two standard errors of the limit
is not counted. That of resident memory is by Theil and Sen (the median of the slopes between all pairs of samples): Python's
allocator maps 1 MiB at a time, and keeps what one peak needed. A leak of less than the free memory of the allocators shows in
the blocks and bytes that are in use only.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from statistics import linear_regression, mean, median
from typing import Final

from tools.live.sampler import Sample

LIMITS: Final[Mapping[str, float]] = {"rss_kib": 1.0, "blocks": 16.0, "malloc_bytes": 1024.0}
"""The most by which memory may grow in 1,000 events: 1 KiB, and blocks of 64 bytes."""

FEWEST: Final = 8
"""Samples in the window; with fewer nothing is judged."""

_CERTAIN: Final = 2.0
"""Standard errors by which a slope has to exceed its limit."""

_NOISE: Final = 4.0
_NOT_SIZES: Final = re.compile(r"\w+_(?:age|time)_seconds\b|process_\w+_bytes|karmada_build_info")
"""Figures that are times; and memory, which has limits."""

_CACHED: Final = re.compile(r"(karmada_scheduler_cached_objects)\{kind=(?:Cluster)?(\w*(?:Binding|Policy))\}")
"""Both scopes of a kind are one figure: the number of both together is constant."""


@dataclass(frozen=True, slots=True)
class Trend:
    """A figure over the window.

    Attributes:
        first: The first sample.
        last: The last sample.
        slope: Per 1,000 events.
        error: The standard error of the slope, for independent noise.
        grows: Whether it grows, as defined above.
    """

    first: float
    last: float
    slope: float
    error: float
    grows: bool


@dataclass(frozen=True, slots=True)
class Growth:
    """The judgement of a run.

    Attributes:
        window: The first and the last number of events of the window.
        trends: All figures, by name.
        types: The types of which there are more and more objects: what a leak may be.
    """

    window: tuple[float, float]
    trends: Mapping[str, Trend]
    types: Mapping[str, Trend]

    @property
    def problems(self) -> list[str]:
        """What is wrong, a line each."""
        return [
            f"{name} grows by {trend.slope:.4g} +- {trend.error:.2g} per 1,000 events: {trend.first:g} to {trend.last:g}"
            for name, trend in self.trends.items()
            if (
                trend.slope - _CERTAIN * trend.error > LIMITS[name]
                if name in LIMITS
                else trend.grows and not _NOT_SIZES.match(name)
            )
        ]

    def lines(self) -> Iterator[str]:
        """Yield the judgement in words."""
        yield f"events {self.window[0]:,.0f} to {self.window[1]:,.0f}, {len(self.trends)} figures"
        for name, limit in LIMITS.items():
            trend = self.trends[name]
            slope = f"{trend.slope:.4g} +- {trend.error:.2g} per 1,000 events"
            yield f"  {name}: {trend.first:,.0f} to {trend.last:,.0f}, {slope} (limit {limit:g})"
        for name, trend in sorted(self.types.items(), key=lambda item: -item[1].slope)[:10]:
            yield f"  more and more {name}: {trend.first:g} to {trend.last:g}"
        yield from (f"PROBLEM: {problem}" for problem in self.problems)


def judge_growth(samples: Sequence[Sample]) -> Growth:
    """Judge a run; ValueError if there are too few samples."""
    half, pid = samples[-1].events / 2 if samples else 0.0, samples[-1].pid if samples else 0
    window = [found for found in samples if found.events >= half and found.pid == pid]
    if len(window) < FEWEST:
        raise ValueError(
            f"{len(window)} samples in the last half of the events, at least {FEWEST} are needed"
        )
    events = [found.events for found in window]
    trends = _trends(events, [_judged(found.figures) for found in window])
    types = _trends(events, [found.types for found in window])
    grown = {name: trend for name, trend in types.items() if trend.grows}
    return Growth((events[0], events[-1]), trends, grown)


def _judged(figures: Mapping[str, float]) -> dict[str, float]:
    """Return the figures with those that belong together as one."""
    found: dict[str, float] = {}
    for name, value in figures.items():
        title = _CACHED.sub(r"\1 \2", name)
        found[title] = found.get(title, 0.0) + value
    return found


def _trends(events: Sequence[float], samples: Sequence[Mapping[str, float]]) -> dict[str, Trend]:
    # A gauge without a sample is 0.
    return {
        name: trend(name, events, [found.get(name, 0.0) for found in samples])
        for name in sorted({name for found in samples for name in found})
    }


def trend(name: str, events: Sequence[float], values: Sequence[float]) -> Trend:
    """Fit a line to a figure; slopes are per 1,000 events."""
    count, (slope, start) = len(values), linear_regression(events, values)
    left = sum((value - start - slope * event) ** 2 for event, value in zip(events, values, strict=True))
    noise, middle = math.sqrt(left / (count - 2)), mean(events)
    error = noise / math.sqrt(sum((event - middle) ** 2 for event in events))
    rise, quarter = slope * (events[-1] - events[0]), max(1, count // 4)
    cuts = [round(part * count / 4) for part in range(5)]
    means = [mean(values[begin:end]) for begin, end in pairwise(cuts)]
    grows = (
        rise >= max(1.0, _NOISE * noise)
        and min(values[-quarter:]) > max(values[:quarter])
        and all(after > before for before, after in pairwise(means))
    )
    if name == "rss_kib":
        pairs = combinations(zip(events, values, strict=True), 2)
        slope = median((value - before) / (event - earlier) for (earlier, before), (event, value) in pairs)
    return Trend(values[0], values[-1], 1000 * slope, 1000 * error, grows)
