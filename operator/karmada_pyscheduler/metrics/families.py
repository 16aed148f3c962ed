"""Metric families as the groups of metrics register them, and a histogram that is fast to observe."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate
from typing import Any, Final, Generic, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics
from prometheus_client.metrics_core import HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

disable_created_metrics()  # type: ignore[no-untyped-call]  # karmada-scheduler has no such series for counters and histograms

SUBSYSTEM: Final = "karmada_scheduler"

_Metric = TypeVar("_Metric", Counter, Histogram)


def exponential(start: float, factor: float, count: int) -> list[float]:
    """Return buckets by repeated multiplication, as Go computes them, so that the ``le`` texts are equal."""
    buckets = [start]
    while len(buckets) < count:
        buckets.append(buckets[-1] * factor)
    return buckets


SECONDS: Final = exponential(0.001, 2, 15)
"""Upstream's buckets for the duration of an attempt and of its steps."""


class Labelled(Generic[_Metric]):
    """A counter or histogram with labels, and the children that were used.

    The library's own ``labels`` checks and converts the values and takes a lock, on every call.
    """

    def __init__(self, family: _Metric) -> None:
        """Start without children."""
        self._family: _Metric = family
        self._children: dict[tuple[str, ...], _Metric] = {}

    def labels(self, *values: str) -> _Metric:
        """Return the counter or histogram with these label values."""
        child = self._children.get(values)
        if child is None:
            child = self._children[values] = self._family.labels(*values) if values else self._family
        return child


def expose_each(gauge: Gauge, counts: Callable[[], Mapping[str, int]]) -> None:
    """Expose each entry of a mapping, which always has the same keys, as the value of the gauge with its key as label."""

    def entry(name: str) -> float:
        return counts()[name]

    for name in counts():
        gauge.labels(name).set_function(partial(entry, name))


class Families:
    """Registers families with a subsystem, by default upstream's; names are given without it."""

    def __init__(self, registry: CollectorRegistry, subsystem: str = SUBSYSTEM) -> None:
        """Register in this registry."""
        self.registry = registry
        self._subsystem = subsystem

    def of(self, subsystem: str) -> Families:
        """Return what registers families with another subsystem."""
        return Families(self.registry, subsystem)

    def total(self, name: str, text: str) -> Counter:
        """Register a counter without labels."""
        return Counter(name, text, subsystem=self._subsystem, registry=self.registry)

    def counter(self, name: str, text: str, *labels: str) -> Labelled[Counter]:
        """Register a counter with labels."""
        return Labelled(Counter(name, text, labels, subsystem=self._subsystem, registry=self.registry))

    def gauge(self, name: str, text: str, *labels: str) -> Gauge:
        """Register a gauge."""
        return Gauge(name, text, labels, subsystem=self._subsystem, registry=self.registry)

    def histogram(
        self, name: str, text: str, *labels: str, buckets: list[float] = SECONDS
    ) -> Labelled[Histogram]:
        """Register a histogram with labels."""
        subsystem, registry = self._subsystem, self.registry
        return Labelled(
            Histogram(name, text, labels, subsystem=subsystem, buckets=buckets, registry=registry)
        )

    def fast_histogram(self, name: str, text: str, *labels: str, buckets: list[float]) -> FastHistogram[Any]:
        """Register a histogram that is fast to observe; the last label is a ``Code`` of a plugin."""
        found = FastHistogram[Any](buckets)
        self.registry.register(_HistogramCollector(found, f"{self._subsystem}_{name}", text, labels))
        return found


Key = TypeVar("Key", bound=Hashable)


class FastHistogram(Generic[Key]):
    """Counts of seconds per bucket, by key; observed from one thread, read from any."""

    def __init__(self, buckets: Sequence[float]) -> None:
        """Start without observations; ``buckets`` are upper bounds in seconds, growing."""
        self.bounds: Final = tuple(buckets)
        self._cells: dict[Key, list[float]] = {}

    def observe(self, key: Key, seconds: float, count: int = 1) -> None:
        """Count a duration, or several with their mean."""
        cells = self._cells.get(key)
        if cells is None:
            cells = self._cells[key] = [0.0] * (len(self.bounds) + 2)
        cells[bisect_left(self.bounds, seconds)] += count
        cells[-1] += count * seconds

    def items(self) -> Iterator[tuple[Key, Sequence[float], float]]:
        """Yield each key with its observations per bucket, the unbounded one last, and the sum of seconds."""
        for key, cells in list(self._cells.items()):
            yield key, cells[:-1], cells[-1]


class _HistogramCollector(Collector):
    """Exposes a ``FastHistogram``; the last part of each key is a ``Code`` of a plugin."""

    def __init__(self, histogram: FastHistogram[Any], name: str, text: str, labels: Sequence[str]) -> None:
        self._histogram = histogram
        self._labelnames = labels  # the attribute that prometheus_client's own metrics have
        self._family = partial(HistogramMetricFamily, name, text, labels=labels)

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
