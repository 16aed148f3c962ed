"""Every metric of the process: upstream's by upstream's names, labels and buckets, and ours beside them.

One ``Metrics`` is built with a registry and handed down; tests read a private registry.

Source: karmada v1.18.2 pkg/scheduler/metrics/metrics.go and pkg/version/prometheus.
"""

from __future__ import annotations

import platform
from collections.abc import Callable
from functools import partial
from typing import Final, Protocol

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from karmada_scheduler import __version__

CONTENT_TYPE: Final = CONTENT_TYPE_LATEST
_SUBSYSTEM: Final = "karmada_scheduler"


def _exponential(start: float, factor: float, count: int) -> list[float]:
    """Return buckets as Go makes them, by repeated multiplication, so that the ``le`` texts are equal."""
    buckets = [start]
    while len(buckets) < count:
        buckets.append(buckets[-1] * factor)
    return buckets


class Labelled(Protocol):
    """A verdict that has a name for a label."""

    @property
    def value(self) -> str:
        """Upstream's name of the verdict, such as ``Unschedulable``."""
        ...


class Metrics:
    """The metrics of one process. Attributes are named after what they count."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        """Register everything; a new registry unless one is given."""
        self.registry = registry or CollectorRegistry()

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(name, text, labels, subsystem=_SUBSYSTEM, registry=self.registry)

        def gauge(name: str, text: str, *labels: str, subsystem: str = _SUBSYSTEM) -> Gauge:
            return Gauge(name, text, labels, subsystem=subsystem, registry=self.registry)

        def histogram(name: str, text: str, buckets: list[float], *labels: str) -> Histogram:
            return Histogram(
                name, text, labels, subsystem=_SUBSYSTEM, buckets=buckets, registry=self.registry
            )

        seconds = _exponential(0.001, 2, 15)
        self.schedule_attempts = counter(
            "schedule_attempts",
            "Number of attempts to schedule a ResourceBinding or ClusterResourceBinding",
            "result",
            "schedule_type",
        )
        self.e2e_duration = histogram(
            "e2e_scheduling_duration_seconds",
            "E2e scheduling latency in seconds",
            seconds,
            "result",
            "schedule_type",
        )
        self.algorithm_duration = histogram(
            "scheduling_algorithm_duration_seconds",
            "Scheduling algorithm latency in seconds",
            seconds,
            "schedule_step",
        )
        self.queue_incoming = counter(
            "queue_incoming_bindings", "Number of bindings added to scheduling queues by event type", "event"
        )
        self.extension_point_duration = histogram(
            "framework_extension_point_duration_seconds",
            "Latency for running all plugins of a specific extension point.",
            _exponential(0.0001, 2, 12),
            "extension_point",
            "result",
        )
        self.plugin_duration = histogram(
            "plugin_execution_duration_seconds",
            "Duration for running a plugin at a specific extension point.",
            _exponential(0.00001, 1.5, 20),
            "plugin",
            "extension_point",
            "result",
        )
        self.classified = counter(
            "classified_bindings",
            "Bindings taken from the queue, by what they turned out to need",
            "schedule_class",
        )
        self.api_writes = counter("api_writes", "Writes to the API server", "target", "result")
        self.watch_events = counter("watch_events", "Events that kopf delivered", "kind", "event")
        self.repaired = counter(
            "cache_repairs", "Objects that a list showed to differ from the cache", "kind", "repair"
        )
        self.malformed = counter(
            "malformed_objects", "Objects that could not be parsed and were left alone", "kind"
        )
        self.in_flight = gauge("writes_in_flight", "Bindings that are being written")
        self.queue_wait = histogram(
            "queue_wait_seconds", "Time between becoming due and being taken from the queue", seconds
        )
        self.leader = gauge(
            "master_status", "1 while this process holds the lease", "name", subsystem="leader_election"
        )
        self._queue_depth = gauge(
            "depth", "Current depth of workqueue", "name", "controller", "priority", subsystem="workqueue"
        )
        gauge("build_info", "A metric with a constant '1' value", *_BUILD, subsystem="karmada").labels(
            *_BUILD.values()
        ).set(1)
        ProcessCollector(registry=self.registry)

    def watch_queue(self, depth: Callable[[], int]) -> None:
        """Report the depth of the binding queue by asking for it."""
        self._queue_depth.labels("scheduler-queue", "scheduler-queue", "").set_function(depth)

    def watch_pending(self, sizes: Callable[[], dict[str, int]]) -> None:
        """Report the sizes of the priority queue's sets; upstream keeps this gauge and does not serve it."""
        pending = Gauge(
            "scheduler_pending_bindings",
            "Number of pending bindings, by the queue type",
            ["queue"],
            registry=self.registry,
        )
        for name in sizes():
            pending.labels(name).set_function(partial(_entry, sizes, name))

    def exposition(self) -> bytes:
        """Return everything in Prometheus' text format."""
        return generate_latest(self.registry)


def _entry(sizes: Callable[[], dict[str, int]], name: str) -> int:
    return sizes()[name]


class AlgorithmObserver:
    """Feeds upstream's three histograms of the algorithm; conforms to ``framework.runtime.Observer``."""

    def __init__(self, metrics: Metrics) -> None:
        """Observe into the metrics of one process."""
        self._metrics = metrics

    def extension_point(self, point: str, code: Labelled, seconds: float, /) -> None:
        """All plugins of a point ran."""
        self._metrics.extension_point_duration.labels(point, code.value).observe(seconds)

    def plugin(self, plugin: str, point: str, code: Labelled, seconds: float, /) -> None:
        """One plugin ran."""
        self._metrics.plugin_duration.labels(plugin, point, code.value).observe(seconds)

    def step(self, step: str, seconds: float, /) -> None:
        """One step of the algorithm ended."""
        self._metrics.algorithm_duration.labels(step).observe(seconds)


_BUILD: Final = {
    "git_version": f"v{__version__}",
    "git_commit": "",
    "git_short_commit": "",
    "git_tree_state": "",
    "build_date": "",
    "go_version": "",
    "compiler": f"cpython {platform.python_version()}",
    "platform": f"{platform.system().lower()}/{platform.machine()}",
}
