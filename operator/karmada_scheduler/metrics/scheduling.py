"""Metrics of the scheduling loop: attempts, queue, unplaced bindings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from prometheus_client import Gauge, Histogram
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from karmada_scheduler.metrics.families import SECONDS, SUBSYSTEM, Families, expose_each


class SchedulingMetrics:
    """Metrics of the scheduling loop and of unplaced bindings."""

    def __init__(self, families: Families) -> None:
        """Register the families."""
        self._registry = families.registry
        self.attempts: Final = families.counter(
            "schedule_attempts",
            "Number of attempts to schedule a ResourceBinding or ClusterResourceBinding",
            "result",
            "schedule_type",
        )
        self.e2e_duration: Final = families.histogram(
            "e2e_scheduling_duration_seconds",
            "E2e scheduling latency in seconds",
            "result",
            "schedule_type",
        )
        self.queue_incoming: Final = families.counter(
            "queue_incoming_bindings", "Number of bindings added to scheduling queues by event type", "event"
        )
        self.queue_wait: Final = Histogram(
            "queue_wait_seconds",
            "Time from when a binding is due until it is taken from the queue",
            subsystem=SUBSYSTEM,
            buckets=SECONDS,
            registry=families.registry,
        )
        self.classified: Final = families.counter(
            "classified_bindings",
            "Bindings taken from the queue, by the kind of scheduling that they need",
            "schedule_class",
        )
        self.in_flight: Final = families.gauge(
            "writes_in_flight", "Bindings whose result or status is being written"
        )
        self.assumed: Final = families.gauge("assumed_placements", "Bindings with an assumed placement")
        self._unclaimed = families.gauge(
            "unclaimed_bindings",
            "Bindings with our schedulerName that are not scheduled because no policy claims them; on the leader",
        )
        self._unplaced = _UnplacedCollector()
        families.registry.register(self._unplaced)

    def expose_unplaced(
        self, report: Callable[[], Mapping[str, tuple[int, float]]], *, unclaimed: Callable[[], int]
    ) -> None:
        """Expose unplaced and unclaimed bindings from now on; there are no samples before.

        Args:
            report: Returns, by reason, the number of unplaced bindings and the seconds for which the oldest one has
                been unplaced.
            unclaimed: Returns the number of unclaimed bindings.
        """
        self._unplaced.report = report
        self._unclaimed.set_function(unclaimed)

    def expose_pending(self, sizes: Callable[[], dict[str, int]]) -> None:
        """Expose the sizes of the priority queue's sets; upstream has this gauge and does not serve it."""
        pending = Gauge(
            "scheduler_pending_bindings",
            "Number of pending bindings, by the queue type",
            ["queue"],
            registry=self._registry,
        )
        expose_each(pending, sizes)


class _UnplacedCollector(Collector):
    """Exposes the number of unplaced bindings and the age of the oldest one; calls ``report`` once per scrape."""

    _labelnames = ("reason",)  # the attribute that prometheus_client's own metrics have

    def __init__(self) -> None:
        self.report: Callable[[], Mapping[str, tuple[int, float]]] = dict

    def describe(self) -> Iterable[Metric]:
        """Return the families without samples; the registry reads their names."""
        return self._families()

    def collect(self) -> Iterable[Metric]:
        """Return both families with their samples."""
        counts, ages = families = self._families()
        for reason, (count, age) in self.report().items():
            counts.add_metric([reason], count)
            ages.add_metric([reason], age)
        return families

    def _families(self) -> tuple[GaugeMetricFamily, GaugeMetricFamily]:
        return (
            GaugeMetricFamily(
                f"{SUBSYSTEM}_unplaced_bindings",
                "Unplaced bindings on the leader, by the reason of the condition Scheduled, or gated, waiting, pending",
                labels=self._labelnames,
            ),
            GaugeMetricFamily(
                f"{SUBSYSTEM}_unplaced_binding_age_seconds",
                "Time for which the oldest unplaced binding has been unplaced, by reason; 0 without one",
                labels=self._labelnames,
            ),
        )
