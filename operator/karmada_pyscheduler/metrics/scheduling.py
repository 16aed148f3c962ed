"""Metrics of decisions: attempts, queue and unplaced bindings, requests to estimators, and records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from karmada_pyscheduler.metrics.families import SUBSYSTEM, Families, expose_each

DROPPED: Final = "dropped"
"""Of a decision that was not recorded, because too many waited."""
EVICTED: Final = "evicted"
"""Of a record that was removed from memory, because others needed its place."""
UNLOGGED: Final = "unlogged"
"""Of a record that was not written to the decision log."""


class ExplainMetrics:
    """Metrics of the records of decisions; without records they have no samples, or 0."""

    def __init__(self, families: Families) -> None:
        """Register the families."""
        self.records: Final = families.total("explain_records", "Decisions recorded in memory")
        self.cpu: Final = families.total(
            "explain_cpu_seconds", "CPU time of the main thread for records of decisions"
        )
        self.lost: Final = families.counter(
            "explain_records_lost",
            "Records dropped because too many waited, evicted from memory by newer ones, or unlogged because the "
            "decision log could not be written",
            "reason",
        )
        self.errors: Final = families.counter(
            "explain_errors",
            "Errors of recording, serving and logging decisions; none affects scheduling",
            "part",
        )
        self.requests: Final = families.counter(
            "explain_requests", "Requests to the address of --explain-bind-address", "code"
        )
        self._memory = families.gauge("explain_memory_bytes", "Memory of the records of decisions")
        self._bindings = families.gauge("explain_recorded_bindings", "Bindings with a record in memory")

    def expose(self, *, memory: Callable[[], int], bindings: Callable[[], int]) -> None:
        """Expose the memory of all records in bytes, and their number."""
        self._memory.set_function(memory)
        self._bindings.set_function(bindings)
        for reason in (DROPPED, EVICTED, UNLOGGED):
            self.lost.labels(reason)


class EstimatorMetrics:
    """Requests to estimators, and the state of the connections to them.

    Upstream has the families of requests in the estimators, where they measure the counting. Here they measure the time
    from the request of a decision until its response. Implements ``estimator.accurate.RequestObserver``.
    """

    def __init__(self, families: Families) -> None:
        """Register the families."""
        self.requests: Final = families.counter(
            "estimator_estimating_request", "Number of scheduler estimator requests", "result", "type"
        )
        self.duration: Final = families.histogram(
            "estimator_estimating_algorithm_duration_seconds",
            "Estimating algorithm latency in seconds for each step",
            "result",
            "type",
            "step",
        )
        self.shared: Final = families.counter(
            "estimates_shared", "Estimator requests answered from another decision's request", "type"
        )
        self.fallbacks: Final = families.counter(
            "estimate_fallbacks",
            "Decisions with estimators that used resource summaries for some clusters, or for all",
            "extent",
        )
        self.undecided: Final = families.gauge(
            "decisions_waiting_for_estimators",
            "Decisions that wait for estimators which do not respond, not counted in --max-in-flight",
        )
        self._states = families.gauge("estimators", "Clusters by the state of their estimator", "standing")

    def expose_states(self, states: Callable[[], dict[str, int]]) -> None:
        """Expose the number of clusters by the state of the connection to their estimator."""
        expose_each(self._states, states)

    def request_ended(self, method: str, result: str, seconds: float, /) -> None:
        """Count a request to one cluster that ended with ``success``, ``error`` or ``timeout``."""
        self.requests.labels(result, method).inc()
        self.duration.labels(result, method, "Total").observe(seconds)

    def request_shared(self, method: str, /) -> None:
        """Count a request that was answered from another one."""
        self.shared.labels(method).inc()


class SchedulingMetrics:
    """Metrics of the scheduling loop and of unplaced bindings."""

    def __init__(self, families: Families) -> None:
        """Register the families."""
        self._families = families
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
        self.queue_wait: Final = families.histogram(
            "queue_wait_seconds", "Time from when a binding is due until it is taken from the queue"
        ).labels()
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
        pending = self._families.of("scheduler")
        expose_each(
            pending.gauge("pending_bindings", "Number of pending bindings, by the queue type", "queue"), sizes
        )


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
