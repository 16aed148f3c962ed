"""What grew although the number of live objects stayed the same.

A line is fitted to each figure by least squares over the last half of the run, in the process that ended it. A figure
grows if all of this holds, so that neither noise nor one step counts:

- the rise of the line over the window is at least 4 times the standard deviation of the samples around the line
  (the line then explains more than half of the variance),
- every sample of the last quarter of the window is above every sample of the first quarter,
- the mean rises from each quarter to the next,
- the rise is at least one unit.

Memory has a limit of its own, a slope; one within two standard errors of the limit is not counted:

- of resident memory, by Theil and Sen (the median of the slopes between all pairs of samples). Resident memory moves in
  steps: Python's allocator maps 1 MiB at a time, and keeps what one peak needed. By least squares one such step in
  500,000 events is up to 3 KB per 1,000 events. Free memory is returned after each list, so it also falls.
- of the bytes in use, by least squares. A leak of less than the free memory of the allocators does not show in resident
  memory.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from statistics import median
from typing import Final

from karmada_scheduler.cache import store
from karmada_scheduler.client import event_correlator
from karmada_scheduler.framework import snapshot
from karmada_scheduler.framework.runtime import failure_log
from tools.soak.samples import Sample

RSS_LIMIT: Final = 1024.0
"""Bytes per 1,000 events; also the limit of the bytes in use."""

USED: Final = "memory used"
"""The figure with the bytes in use. Runs of before 2026-11-23 lack it."""

_CERTAIN: Final = 2.0
"""Standard errors by which a slope has to exceed the limit."""

FEWEST: Final = 8
"""Samples in the window; with fewer nothing is judged."""

_NOISE: Final = 4.0

KNOWN_BOUNDS: Final[Mapping[str, int]] = {
    "._tombstones": store._TOMBSTONES,
    "._clusters._log._names": 2 * snapshot._KEPT_CHANGES,
    "._correlator._buckets._entries": event_correlator.CACHE_SIZE,
    "._correlator._posted._entries": event_correlator.CACHE_SIZE,
    "._correlator._similar._entries": event_correlator.CACHE_SIZE,
    "._failures._logged_at": failure_log._MAX_TRACEBACKS,
    "._limiter._latencies": 100,  # one per write of a window, which is at most --max-in-flight
    "duration._cells[]": 22 * 200,  # 22 buckets per plugin, extension point and result that has occurred
    "._estimators[]._capacities": 300,  # 2 per cluster and 100, with 100 clusters
    "._estimators[]._capacities[]._left": 600,
    "._similar._entries[].messages": event_correlator.CACHE_SIZE * event_correlator.SIMILAR_LIMIT,
}
"""Containers that may grow up to a bound, by the end of their path."""

_MEMORY: Final = re.compile(r"gauge process_(resident|virtual)_memory_bytes|memory (?!used$)")
"""Judged by the slope of ``rss_kib``."""

_CACHED: Final = re.compile(
    r"(gauge karmada_scheduler_cached_objects)\{kind=\"(?:Cluster)?(\w*(?:Binding|Policy))\"\}"
)
"""Both scopes of a kind are one figure: the number of both together is constant."""

_TIMES: Final = re.compile(r"gauge \w+_(age|time)_seconds\b")
"""Figures that are times, not sizes: the age of the oldest unplaced binding follows from when the churn deletes it."""


@dataclass(frozen=True, slots=True)
class Trend:
    """A figure over the window.

    Attributes:
        name: Its name.
        first: The first sample.
        last: The last sample.
        slope: Per 1,000 events.
        error: The standard error of the slope, for independent noise.
        noise: The standard deviation around the line.
        grows: Whether it grows, as defined above.
        bound: The bound up to which it may grow, None without one.
    """

    name: str
    first: float
    last: float
    slope: float
    error: float
    noise: float
    grows: bool
    bound: int | None = None

    @property
    def is_leak(self) -> bool:
        """Whether it grows without a bound, or beyond it."""
        return self.grows and (self.bound is None or self.last > self.bound)


@dataclass(frozen=True, slots=True)
class Judgement:
    """The judgement of a run.

    Attributes:
        window: The first and the last number of events of the window.
        samples: The number of samples in it.
        rss: The trend of memory in KiB.
        rss_slope: Of memory by Theil and Sen, in bytes per 1,000 events.
        trends: The trends of all figures.
        leaks: The names of those that grow.
        filling: The names of those that grow within a bound.
    """

    window: tuple[int, int]
    samples: int
    rss: Trend
    rss_slope: float
    trends: dict[str, Trend]
    leaks: list[str]
    filling: list[str]

    @property
    def used(self) -> Trend | None:
        """The trend of the bytes in use, None if the run has not recorded them."""
        return self.trends.get(USED)

    @property
    def problems(self) -> list[str]:
        """What is wrong, a line each."""
        found = []
        error = self.rss.error * 1024
        if self.rss_slope - _CERTAIN * error > RSS_LIMIT:
            found.append(
                f"RSS grows by {self.rss_slope:.0f} +- {error:.0f} bytes per 1,000 events, the limit is {RSS_LIMIT:.0f}"
            )
        if self.used is not None and self.used.slope - _CERTAIN * self.used.error > RSS_LIMIT:
            found.append(
                f"the bytes in use grow by {self.used.slope:.0f} +- {self.used.error:.0f} per 1,000 events, the limit is "
                f"{RSS_LIMIT:.0f}"
            )
        for name in self.leaks:
            trend = self.trends[name]
            found.append(
                f"{name} grows by {trend.slope:.3g} per 1,000 events: {trend.first:g} to {trend.last:g}"
            )
        return found


def judge(samples: Sequence[Sample]) -> Judgement:
    """Judge a run.

    Raises:
        ValueError: There are too few samples.
    """
    window = window_of(samples)
    if len(window) < FEWEST:
        raise ValueError(
            f"{len(window)} samples in the last half of the events, at least {FEWEST} are needed"
        )
    events = [float(each.events) for each in window]
    figures = _with_moved([_judged(each.figures) for each in window])
    # A gauge without a sample, or a container that was empty and is gone, is 0.
    trends = {
        name: trend(name, events, [each.get(name, 0.0) for each in figures], bound_of(name))
        for name in sorted({name for each in figures for name in each})
    }
    for name in sorted({name for each in window for name in each.bounded}):
        sizes = [float(each.bounded.get(name, (0, 0))[0]) for each in window]
        bound = max(each.bounded[name][1] for each in window if name in each.bounded)
        trends[f"lru {name}"] = trend(f"lru {name}", events, sizes, bound)
    rss = trends.pop("rss_kib")
    rss_slope = robust_slope(events, [each["rss_kib"] for each in figures]) * 1024
    leaks = [name for name, each in trends.items() if each.is_leak]
    filling = [name for name, each in trends.items() if each.grows and not each.is_leak]
    return Judgement(
        (window[0].events, window[-1].events), len(window), rss, rss_slope, trends, leaks, filling
    )


def window_of(samples: Sequence[Sample]) -> list[Sample]:
    """Return the samples of the last half of the events, of the process that ended the run."""
    if not samples:
        return []
    half, process = samples[-1].events / 2, samples[-1].process
    return [each for each in samples if each.events >= half and each.process == process]


def _judged(figures: Mapping[str, float]) -> dict[str, float]:
    """Return the figures that are judged, with those that belong together as one."""
    found: defaultdict[str, float] = defaultdict(float)
    for name, value in figures.items():
        if not _TIMES.match(name) and not _MEMORY.match(name):
            found[_CACHED.sub(r"\1 \2", name)] += value
    return found


def _with_moved(samples: Sequence[Mapping[str, float]]) -> list[dict[str, float]]:
    """Add up containers that some samples lack, by the end of their path.

    A container that several paths lead to may have another shortest path in each sample.
    """
    names = set().union(*samples)
    moved = {name for name in names if name.startswith("size ") and any(name not in each for each in samples)}
    of_end = Counter(_end(name) for name in moved)
    new_names = {name: f"size *{_end(name)}" if of_end[_end(name)] > 1 else name for name in moved}
    found = []
    for each in samples:
        figures = defaultdict[str, float](float)
        for name, value in each.items():
            figures[new_names.get(name, name)] += value
        found.append(dict(figures))
    return found


def _end(name: str) -> str:
    """Return the end of a path: two attributes, or more if a known bound names more."""
    attributes = "." + ".".join(name.split(".")[-2:])
    return max(attributes, *(end for end in KNOWN_BOUNDS if name.endswith(end)), "", key=len)


def bound_of(name: str) -> int | None:
    """Return the known bound of a container, None without one."""
    return next((bound for end, bound in KNOWN_BOUNDS.items() if name.endswith(end)), None)


def robust_slope(events: Sequence[float], values: Sequence[float]) -> float:
    """Return the slope per 1,000 events by Theil and Sen."""
    pairs = combinations(zip(events, values, strict=True), 2)
    return 1000 * median((y - before) / (x - earlier) for (earlier, before), (x, y) in pairs)


def trend(name: str, events: Sequence[float], values: Sequence[float], bound: int | None = None) -> Trend:
    """Fit a line by least squares; slopes are per 1,000 events."""
    count = len(values)
    middle, mean = sum(events) / count, sum(values) / count
    spread = sum((each - middle) ** 2 for each in events)
    slope = sum((x - middle) * (y - mean) for x, y in zip(events, values, strict=True)) / spread
    left = _squares(y - mean - slope * (x - middle) for x, y in zip(events, values, strict=True))
    noise = math.sqrt(left / (count - 2))
    rise = slope * (events[-1] - events[0])
    quarter = max(1, count // 4)
    is_apart = min(values[-quarter:]) > max(values[:quarter])
    cuts = [round(each * count / 4) for each in range(5)]
    means = [sum(values[begin:end]) / (end - begin) for begin, end in pairwise(cuts)]
    keeps_rising = all(after > before for before, after in pairwise(means))
    grows = rise >= 1.0 and rise >= _NOISE * noise and is_apart and keeps_rising
    return Trend(
        name,
        values[0],
        values[-1],
        slope * 1000,
        noise / math.sqrt(spread) * 1000,
        noise,
        grows,
        bound,
    )


def _squares(values: Iterable[float]) -> float:
    return sum(each * each for each in values)
