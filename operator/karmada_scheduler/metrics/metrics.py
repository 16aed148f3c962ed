"""Every metric of the process: upstream's by upstream's names, labels and buckets, and ours beside them.

One ``Metrics`` is built with a registry and handed down; tests read a private registry.

Source: karmada v1.18.2 pkg/scheduler/metrics/metrics.go and pkg/version/prometheus.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from itertools import accumulate
from typing import Any, Final, Protocol, TypeVar

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.metrics_core import GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from karmada_scheduler import __version__
from karmada_scheduler.metrics.histogram import FastHistogram

disable_created_metrics()  # type: ignore[no-untyped-call]  # karmada-scheduler has no such series beside each counter and histogram

CONTENT_TYPE: Final = CONTENT_TYPE_LATEST
_SUBSYSTEM: Final = "karmada_scheduler"


def _exponential(start: float, factor: float, count: int) -> list[float]:
    """Return buckets as Go makes them, by repeated multiplication, so that the ``le`` texts are equal."""
    buckets = [start]
    while len(buckets) < count:
        buckets.append(buckets[-1] * factor)
    return buckets


_Metric = TypeVar("_Metric", Counter, Histogram)


def _with_children_at_hand(metric: _Metric) -> _Metric:
    """Keep what ``labels`` returns, which the library checks, converts and locks for at every call."""
    metric.labels = cache(metric.labels)  # type: ignore[method-assign]
    return metric


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
            made = Counter(name, text, labels, subsystem=_SUBSYSTEM, registry=self.registry)
            return _with_children_at_hand(made)

        def gauge(name: str, text: str, *labels: str, subsystem: str = _SUBSYSTEM) -> Gauge:
            return Gauge(name, text, labels, subsystem=subsystem, registry=self.registry)

        def histogram(name: str, text: str, buckets: list[float], *labels: str) -> Histogram:
            made = Histogram(
                name, text, labels, subsystem=_SUBSYSTEM, buckets=buckets, registry=self.registry
            )
            return _with_children_at_hand(made)

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
        self.extension_point_duration: FastHistogram[tuple[str, Labelled]] = FastHistogram(
            _exponential(0.0001, 2, 12)
        )
        self.plugin_duration: FastHistogram[tuple[str, str, Labelled]] = FastHistogram(
            _exponential(0.00001, 1.5, 20)
        )
        self.registry.register(
            _HistogramCollector(
                self.extension_point_duration,
                "framework_extension_point_duration_seconds",
                "Latency for running all plugins of a specific extension point.",
                "extension_point",
                "result",
            )
        )
        self.registry.register(
            _HistogramCollector(
                self.plugin_duration,
                "plugin_execution_duration_seconds",
                "Duration for running a plugin at a specific extension point.",
                "plugin",
                "extension_point",
                "result",
            )
        )
        self.classified = counter(
            "classified_bindings",
            "Bindings taken from the queue, by what they turned out to need",
            "schedule_class",
        )
        self.api_writes = counter("api_writes", "Writes to the API server", "target", "result")
        self.watch_events = counter(
            "watch_events",
            "Events that kopf delivered; echoes of what is known are not counted",
            "kind",
            "event",
        )
        self.repaired = counter(
            "cache_repairs", "Objects that a list showed to differ from the cache", "kind", "repair"
        )
        self.malformed = counter(
            "malformed_objects", "Objects that could not be parsed and were left alone", "kind"
        )
        self._cached = gauge("cached_objects", "Objects in the cache", "kind")
        self._watch_age = gauge(
            "watch_age_seconds",
            "Time since the watch of a kind brought an event or a bookmark, or was accepted by the API server",
            "kind",
        )
        self._unavailable_workloads = gauge(
            "unavailable_workload_kinds",
            "Kinds of workloads whose metadata plugins need and which cannot be watched, or were not listed yet",
        )
        self.estimating_requests = counter(
            "estimator_estimating_request", "Number of scheduler estimator requests", "result", "type"
        )
        self.estimating_duration = histogram(
            "estimator_estimating_algorithm_duration_seconds",
            "Estimating algorithm latency in seconds for each step",
            seconds,
            "result",
            "type",
            "step",
        )
        self.estimates_shared = counter(
            "estimates_shared",
            "Questions to estimators that another decision had asked a moment before",
            "type",
        )
        self.estimate_fallbacks = counter(
            "estimate_fallbacks",
            "Decisions that went by summaries although estimators are enabled, for some clusters or for all",
            "extent",
        )
        self._estimators = gauge("estimators", "Clusters by what is known of their estimators", "standing")
        self._assumed = gauge("assumed_placements", "Bindings whose placement is assumed")
        self._unplaced = _UnplacedCollector()
        self.registry.register(self._unplaced)
        self._unclaimed = gauge(
            "unclaimed_bindings",
            "Bindings with our schedulerName that are left alone because no policy claims them, where this process leads",
        )
        self.in_flight = gauge("writes_in_flight", "Bindings that are being written, their statuses included")
        self.write_window = gauge(
            "write_window",
            "Writes of placements that may be under way at the same time, by how the API server answers",
        )
        self.queue_wait = histogram(
            "queue_wait_seconds", "Time between becoming due and being taken from the queue", seconds
        )
        self.extender_requests = counter(
            "extender_requests", "Requests to HTTP extenders", "extender", "verb", "result"
        )
        self.extender_duration = histogram(
            "extender_request_duration_seconds",
            "Duration of requests to extenders",
            seconds,
            "extender",
            "verb",
        )
        self.breaker_openings = counter(
            "plugin_breaker_openings",
            "How often a plugin took too long and was not called for a while",
            "plugin",
        )
        self.breakers_open = gauge(
            "plugin_breakers_open",
            "Profiles in which a plugin is not called because it took too long",
            "plugin",
        )
        self.plugin_run_failures = counter(
            "plugin_run_failures",
            "How often the run method of a plugin failed and was started again",
            "plugin",
        )
        self.permit_waiting = gauge(
            "permit_waiting_bindings",
            "Bindings that wait at Permit, by the plugin that made them wait",
            "plugin",
        )
        self.permit_wait = histogram(
            "permit_wait_duration_seconds", "Time that bindings wait at Permit", seconds, "result"
        )
        self.leader = gauge(
            "master_status", "1 while this process holds the lease", "name", subsystem="leader_election"
        )
        self.rest_requests = Counter(
            "rest_client_requests",
            "Number of HTTP requests, partitioned by status code, method, and host.",
            ["code", "method", "host"],
            registry=self.registry,
        )
        gauge("build_info", "A metric with a constant '1' value", *_BUILD, subsystem="karmada").labels(
            *_BUILD.values()
        ).set(1)
        self.workqueues = WorkqueueMetrics(self.registry)
        ProcessCollector(registry=self.registry)

    def watch_cache(self, kind: str, count: Callable[[], int]) -> None:
        """Report how many objects of a kind are cached by asking for it."""
        self._cached.labels(kind).set_function(count)

    def watch_unavailable_workloads(self, count: Callable[[], int]) -> None:
        """Report of how many kinds plugins need the metadata and do not get it by asking for it."""
        self._unavailable_workloads.set_function(count)

    def watch_age(self, kind: str, age: Callable[[], float]) -> None:
        """Report how long the watch of a kind has been silent by asking for it; in seconds, from any thread."""
        self._watch_age.labels(kind).set_function(age)

    def watch_estimators(self, standings: Callable[[], dict[str, int]]) -> None:
        """Report how many clusters' estimators are connected, lost and so on."""
        for name in standings():
            self._estimators.labels(name).set_function(partial(_entry, standings, name))

    def watch_assumed(self, count: Callable[[], int]) -> None:
        """Report how many bindings' placements are assumed."""
        self._assumed.set_function(count)

    def watch_unplaced(
        self, report: Callable[[], Mapping[str, tuple[int, float]]], *, unclaimed: Callable[[], int]
    ) -> None:
        """Report from now on what has no place; until then there are no samples, and no unclaimed bindings.

        Args:
            report: Returns the bindings without a place by reason, with the seconds that the oldest has had none.
            unclaimed: Returns how many bindings no policy claims.
        """
        self._unplaced.report = report
        self._unclaimed.set_function(unclaimed)

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
        """Return everything in Prometheus' text format; may be called from any thread.

        What asks for a number (``watch_...``) is therefore called from any thread as well, and must copy a
        collection before it iterates over it.
        """
        return generate_latest(self.registry)


class _HistogramCollector(Collector):
    """Exposes what ``FastHistogram`` counted; the last part of each key is a verdict."""

    def __init__(self, durations: FastHistogram[Any], name: str, text: str, *labels: str) -> None:
        self._durations = durations
        self._labelnames = labels  # under the name that prometheus_client's own metrics have it
        self._family = partial(HistogramMetricFamily, f"{_SUBSYSTEM}_{name}", text, labels=labels)

    def describe(self) -> Iterable[Metric]:
        """Return the family without samples, so that the registry knows its name."""
        return [self._family()]

    def collect(self) -> Iterable[Metric]:
        """Return one family."""
        family = self._family()
        bounds = [*map(floatToGoString, self._durations.bounds), "+Inf"]
        for key, counts, seconds in self._durations.items():
            *labels, verdict = key
            buckets = list(zip(bounds, accumulate(counts), strict=True))
            family.add_metric([*labels, verdict.value], buckets, seconds)
        return [family]


class _UnplacedCollector(Collector):
    """Exposes how many bindings have no place, and for how long the oldest of them, asking once for each scrape."""

    _labelnames = ("reason",)  # under the name that prometheus_client's own metrics have it

    def __init__(self) -> None:
        self.report: Callable[[], Mapping[str, tuple[int, float]]] = dict

    def describe(self) -> Iterable[Metric]:
        """Return the families without samples, so that the registry knows their names."""
        return self._families()

    def _families(self) -> tuple[GaugeMetricFamily, GaugeMetricFamily]:
        return (
            GaugeMetricFamily(
                f"{_SUBSYSTEM}_unplaced_bindings",
                "Bindings without a place, where this process leads, by the reason in the condition Scheduled "
                "(NoClusterFit, Unschedulable, SchedulerError, QuotaExceeded, other), or gated by PreEnqueue, "
                "waiting at Permit, pending for those about which nothing was decided yet",
                labels=self._labelnames,
            ),
            GaugeMetricFamily(
                f"{_SUBSYSTEM}_unplaced_binding_age_seconds",
                "For how long the oldest of the bindings without a place has had none, by reason; 0 where there is none",
                labels=self._labelnames,
            ),
        )

    def collect(self) -> Iterable[Metric]:
        """Return both families."""
        counts, ages = families = self._families()
        for reason, (count, age) in self.report().items():
            counts.add_metric([reason], count)
            ages.add_metric([reason], age)
        return families


class WorkqueueMetrics:
    """client-go's metrics of work queues; one for the process, ``of`` gives the part of one queue.

    Source: sigs.k8s.io/controller-runtime 0.23.1 pkg/internal/metrics/workqueue.go.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        """Register the families."""
        names = ["name", "controller"]
        buckets = _exponential(1e-8, 10, 12)

        def gauge(name: str, text: str, labels: list[str] = names) -> Gauge:
            return Gauge(name, text, labels, subsystem="workqueue", registry=registry)

        self._depth = gauge(
            "depth", "Current depth of workqueue by workqueue and priority", [*names, "priority"]
        )
        self._adds = Counter(
            "adds",
            "Total number of adds handled by workqueue",
            names,
            subsystem="workqueue",
            registry=registry,
        )
        self._retries = Counter(
            "retries",
            "Total number of retries handled by workqueue",
            names,
            subsystem="workqueue",
            registry=registry,
        )
        self._waited = Histogram(
            "queue_duration_seconds",
            "How long in seconds an item stays in workqueue before being requested",
            names,
            subsystem="workqueue",
            buckets=buckets,
            registry=registry,
        )
        self._worked = Histogram(
            "work_duration_seconds",
            "How long in seconds processing an item from workqueue takes.",
            names,
            subsystem="workqueue",
            buckets=buckets,
            registry=registry,
        )
        self._unfinished = gauge(
            "unfinished_work_seconds", "How many seconds of work is in progress and has not been observed yet"
        )
        self._longest = gauge(
            "longest_running_processor_seconds",
            "How many seconds has the longest running processor been running",
        )

    def of(self, name: str) -> QueuePart:
        """Return the metrics of the queue of a name; they are exposed from now on."""
        return QueuePart(
            adds=self._adds.labels(name, name),
            retries=self._retries.labels(name, name),
            waited=self._waited.labels(name, name),
            worked=self._worked.labels(name, name),
            depth=self._depth.labels(name, name, ""),
            unfinished=self._unfinished.labels(name, name),
            longest=self._longest.labels(name, name),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuePart:
    """The metrics of one queue; conforms to ``scheduling_queue.QueueObserver``."""

    adds: Counter
    retries: Counter
    waited: Histogram
    worked: Histogram
    depth: Gauge
    unfinished: Gauge
    longest: Gauge

    def added(self) -> None:
        """A key was added."""
        self.adds.inc()

    def retried(self) -> None:
        """A key is to be added again later."""
        self.retries.inc()

    def taken(self, waited: float) -> None:
        """A key was handed out after some seconds."""
        self.waited.observe(waited)

    def finished(self, worked: float) -> None:
        """A key was returned after some seconds."""
        self.worked.observe(worked)

    def watch(self, *, depth: Callable[[], int], unfinished: Callable[[], list[float]]) -> None:
        """Report what can only be asked for: the depth, and the seconds that each key has been in progress."""
        self.depth.set_function(depth)
        self.unfinished.set_function(lambda: sum(unfinished()))
        self.longest.set_function(lambda: max(unfinished(), default=0.0))


class EstimatingObserver:
    """Feeds the metrics of estimating; conforms to ``estimator.shared_requests.RequestObserver``.

    Upstream has these families in the estimators themselves, where they measure the counting. Here they measure
    what a decision sees: from the question to the answer. Asked for each cluster, so the children are kept.
    """

    def __init__(self, metrics: Metrics) -> None:
        """Observe into the metrics of one process."""
        self._metrics = metrics
        self._children: dict[tuple[str, str], tuple[Counter, Histogram]] = {}

    def request_ended(self, method: str, result: str, seconds: float, /) -> None:
        """A request to one cluster ended: ``success``, ``error`` or ``timeout``."""
        children = self._children.get((method, result))
        if children is None:
            metrics = self._metrics
            children = self._children[method, result] = (
                metrics.estimating_requests.labels(result, method),
                metrics.estimating_duration.labels(result, method, "Total"),
            )
        children[0].inc()
        children[1].observe(seconds)

    def request_shared(self, method: str, /) -> None:
        """A request was not sent, because an equal one was sent a moment before."""
        self._metrics.estimates_shared.labels(method).inc()


def _entry(sizes: Callable[[], dict[str, int]], name: str) -> int:
    return sizes()[name]


class AlgorithmObserver:
    """Feeds upstream's three histograms of the algorithm; conforms to ``framework.guard.Observer``."""

    def __init__(self, metrics: Metrics) -> None:
        """Observe into the metrics of one process."""
        self._metrics = metrics
        self._points = metrics.extension_point_duration
        self._plugins = metrics.plugin_duration
        self._steps: dict[str, Histogram] = {}

    def extension_point(self, point: str, code: Labelled, seconds: float, /) -> None:
        """All plugins of a point ran."""
        self._points.observe((point, code), seconds)

    def plugin(self, plugin: str, point: str, code: Labelled, seconds: float, /) -> None:
        """One plugin ran."""
        self._plugins.observe((plugin, point, code), seconds)

    def step(self, step: str, seconds: float, /) -> None:
        """One step of the algorithm ended."""
        histogram = self._steps.get(step)
        if histogram is None:
            histogram = self._steps[step] = self._metrics.algorithm_duration.labels(step)
        histogram.observe(seconds)


class CircuitBreakerMetrics:
    """Feeds the metrics of plugins that are cut off; conforms to ``framework.breaker.BreakerObserver``."""

    def __init__(self, metrics: Metrics) -> None:
        """Count in the metrics of one process."""
        self._metrics = metrics

    def opened(self, plugin: str, now_open: int, /) -> None:
        """A plugin was cut off."""
        self._metrics.breaker_openings.labels(plugin).inc()
        self._metrics.breakers_open.labels(plugin).set(now_open)

    def closed(self, plugin: str, now_open: int, /) -> None:
        """A plugin answers again, or is gone."""
        self._metrics.breakers_open.labels(plugin).set(now_open)


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
