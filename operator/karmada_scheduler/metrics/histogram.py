"""A histogram that takes little CPU time to observe.

A decision about 1,000 clusters makes 40 observations, or 8,000 when plugins are called for all clusters. With the
histogram of prometheus_client (a lock per value, checks, label objects) such decisions took 7 % and 28 % more CPU time;
an observation takes 0.3 µs here and 4 µs there.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Iterable, Iterator, Sequence
from functools import partial
from itertools import accumulate
from typing import Any, Final, Generic, Protocol, TypeVar

from prometheus_client.metrics_core import HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from karmada_scheduler.metrics.families import SUBSYSTEM

Key = TypeVar("Key", bound=Hashable)


class ResultCode(Protocol):
    """A result with a name for a label."""

    @property
    def value(self) -> str:
        """Upstream's name of the result, such as ``Unschedulable``."""
        ...


class FastHistogram(Generic[Key]):
    """Counts of seconds per bucket, by key; observed from one thread, read from any."""

    def __init__(self, buckets: Sequence[float]) -> None:
        """Start without observations; ``buckets`` are upper bounds in seconds, growing."""
        self.bounds: Final = tuple(buckets)
        self._cells: dict[Key, list[float]] = {}

    def observe(self, key: Key, seconds: float) -> None:
        """Count one duration."""
        cells = self._cells.get(key)
        if cells is None:
            cells = self._cells[key] = [0.0] * (len(self.bounds) + 2)
        cells[bisect_left(self.bounds, seconds)] += 1
        cells[-1] += seconds

    def items(self) -> Iterator[tuple[Key, Sequence[float], float]]:
        """Yield each key with its observations per bucket, the unbounded one last, and the sum of seconds."""
        for key, cells in list(self._cells.items()):
            yield key, cells[:-1], cells[-1]


class HistogramCollector(Collector):
    """Exposes a ``FastHistogram``; the last part of each key is a ``ResultCode``."""

    def __init__(self, histogram: FastHistogram[Any], name: str, text: str, *labels: str) -> None:
        """Expose it under a name without the subsystem."""
        self._histogram = histogram
        self._labelnames = labels  # the attribute that prometheus_client's own metrics have
        self._family = partial(HistogramMetricFamily, f"{SUBSYSTEM}_{name}", text, labels=labels)

    def describe(self) -> Iterable[Metric]:
        """Return the family without samples; the registry reads its name."""
        return [self._family()]

    def collect(self) -> Iterable[Metric]:
        """Return the family with its samples."""
        family = self._family()
        bounds = [*map(floatToGoString, self._histogram.bounds), "+Inf"]
        for key, counts, seconds in self._histogram.items():
            *labels, result = key
            buckets = list(zip(bounds, accumulate(counts), strict=True))
            family.add_metric([*labels, result.value], buckets, seconds)
        return [family]
