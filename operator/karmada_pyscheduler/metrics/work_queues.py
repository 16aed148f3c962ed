"""client-go's metrics of work queues."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from karmada_pyscheduler.metrics.families import Families, exponential
from karmada_scheduler.structs import Struct


class WorkqueueMetrics:
    """client-go's metrics of work queues; ``of`` returns those of one queue.

    Source: sigs.k8s.io/controller-runtime 0.23.1 pkg/internal/metrics/workqueue.go.
    """

    def __init__(self, families: Families) -> None:
        """Register the families."""
        registered, names = families.of("workqueue"), ("name", "controller")
        buckets = exponential(1e-8, 10, 12)
        self._depth = registered.gauge(
            "depth", "Current depth of workqueue by workqueue and priority", *names, "priority"
        )
        self._adds = registered.counter("adds", "Total number of adds handled by workqueue", *names)
        self._retries = registered.counter("retries", "Total number of retries handled by workqueue", *names)
        self._waited = registered.histogram(
            "queue_duration_seconds",
            "How long in seconds an item stays in workqueue before being requested",
            *names,
            buckets=buckets,
        )
        self._worked = registered.histogram(
            "work_duration_seconds",
            "How long in seconds processing an item from workqueue takes.",
            *names,
            buckets=buckets,
        )
        self._unfinished = registered.gauge(
            "unfinished_work_seconds",
            "How many seconds of work is in progress and has not been observed yet",
            *names,
        )
        self._longest = registered.gauge(
            "longest_running_processor_seconds",
            "How many seconds has the longest running processor been running",
            *names,
        )

    def of(self, name: str) -> QueueMetrics:
        """Return the metrics of the queue with a name, which are exposed from now on."""
        return QueueMetrics(
            adds=self._adds.labels(name, name),
            retries=self._retries.labels(name, name),
            waited=self._waited.labels(name, name),
            worked=self._worked.labels(name, name),
            depth=self._depth.labels(name, name, ""),
            unfinished=self._unfinished.labels(name, name),
            longest=self._longest.labels(name, name),
        )


class QueueMetrics(Struct, frozen=True, kw_only=True):
    """The metrics of one queue."""

    adds: Counter
    retries: Counter
    waited: Histogram
    worked: Histogram
    depth: Gauge
    unfinished: Gauge
    longest: Gauge

    def added(self) -> None:
        """Count a key that was added."""
        self.adds.inc()

    def retried(self) -> None:
        """Count a key that will be added again later."""
        self.retries.inc()

    def taken(self, waited: float) -> None:
        """Count a key that was taken after waiting some seconds."""
        self.waited.observe(waited)

    def finished(self, worked: float) -> None:
        """Count a key that was processed in some seconds."""
        self.worked.observe(worked)

    def expose(self, *, depth: Callable[[], int], unfinished: Callable[[], list[float]]) -> None:
        """Expose the depth, and the seconds for which each key has been in progress."""
        self.depth.set_function(depth)
        self.unfinished.set_function(lambda: sum(unfinished()))
        self.longest.set_function(lambda: max(unfinished(), default=0.0))


def unexposed() -> QueueMetrics:
    """Return metrics of a queue that nobody reads."""
    return WorkqueueMetrics(Families(CollectorRegistry())).of("")
