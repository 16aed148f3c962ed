"""Metric families as the groups of metrics register them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, Generic, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics

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
            child = self._children[values] = self._family.labels(*values)
        return child


def expose_each(gauge: Gauge, counts: Callable[[], Mapping[str, int]]) -> None:
    """Expose each entry of a mapping, which always has the same keys, as the value of the gauge with its key as label."""

    def entry(name: str) -> float:
        return counts()[name]

    for name in counts():
        gauge.labels(name).set_function(partial(entry, name))


class Families:
    """Registers families with upstream's subsystem; names are given without it."""

    def __init__(self, registry: CollectorRegistry) -> None:
        """Register in this registry."""
        self.registry = registry

    def counter(self, name: str, text: str, *labels: str) -> Labelled[Counter]:
        """Register a counter with labels."""
        return Labelled(Counter(name, text, labels, subsystem=SUBSYSTEM, registry=self.registry))

    def gauge(self, name: str, text: str, *labels: str, subsystem: str = SUBSYSTEM) -> Gauge:
        """Register a gauge."""
        return Gauge(name, text, labels, subsystem=subsystem, registry=self.registry)

    def histogram(
        self, name: str, text: str, *labels: str, buckets: list[float] = SECONDS
    ) -> Labelled[Histogram]:
        """Register a histogram with labels."""
        family = Histogram(name, text, labels, subsystem=SUBSYSTEM, buckets=buckets, registry=self.registry)
        return Labelled(family)
