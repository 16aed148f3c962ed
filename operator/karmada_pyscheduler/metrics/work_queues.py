"""client-go's metrics of work queues."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry

from karmada_pyscheduler.metrics.families import Families, exponential


class WorkqueueMetrics:
    """client-go's metrics of work queues; ``of`` returns those of one queue.

    Source: sigs.k8s.io/controller-runtime 0.23.1 pkg/internal/metrics/workqueue.go.
    """

    def __init__(self, families: Families) -> None:
        """Register the families."""
        registered, names = families.of("workqueue"), ("name", "controller")
        buckets = exponential(1e-8, 10, 12)
        self.depth = registered.gauge(
            "depth", "Current depth of workqueue by workqueue and priority", *names, "priority"
        )
        self.adds = registered.counter("adds", "Total number of adds handled by workqueue", *names)
        self.retries = registered.counter("retries", "Total number of retries handled by workqueue", *names)
        self.waited = registered.histogram(
            "queue_duration_seconds",
            "How long in seconds an item stays in workqueue before being requested",
            *names,
            buckets=buckets,
        )
        self.worked = registered.histogram(
            "work_duration_seconds",
            "How long in seconds processing an item from workqueue takes.",
            *names,
            buckets=buckets,
        )
        self.unfinished = registered.gauge(
            "unfinished_work_seconds",
            "How many seconds of work is in progress and has not been observed yet",
            *names,
        )
        self.longest = registered.gauge(
            "longest_running_processor_seconds",
            "How many seconds has the longest running processor been running",
            *names,
        )

    def of(self, name: str) -> QueueMetrics:
        """Return the metrics of the queue with a name, which are exposed from now on."""
        return QueueMetrics(self, name)


class QueueMetrics:
    """The metrics of one queue."""

    def __init__(self, families: WorkqueueMetrics, name: str) -> None:
        """Take its part of the families."""
        self._adds = families.adds.labels(name, name)
        self._retries = families.retries.labels(name, name)
        self._waited = families.waited.labels(name, name)
        self._worked = families.worked.labels(name, name)
        self._depth = families.depth.labels(name, name, "")
        self._unfinished = families.unfinished.labels(name, name)
        self._longest = families.longest.labels(name, name)

    def added(self) -> None:
        """Count a key that was added."""
        self._adds.inc()

    def retried(self) -> None:
        """Count a key that will be added again later."""
        self._retries.inc()

    def taken(self, waited: float) -> None:
        """Count a key that was taken after waiting some seconds."""
        self._waited.observe(waited)

    def finished(self, worked: float) -> None:
        """Count a key that was processed in some seconds."""
        self._worked.observe(worked)

    def expose(self, *, depth: Callable[[], int], unfinished: Callable[[], list[float]]) -> None:
        """Expose the depth, and the seconds for which each key has been in progress."""
        self._depth.set_function(depth)
        self._unfinished.set_function(lambda: sum(unfinished()))
        self._longest.set_function(lambda: max(unfinished(), default=0.0))


def unexposed() -> QueueMetrics:
    """Return metrics of a queue that nobody reads."""
    return WorkqueueMetrics(Families(CollectorRegistry())).of("")
