"""All metrics of one process, in groups.

The composition root builds one ``Metrics``; tests read a private registry. Functions that are exposed as gauges are called
from the thread of the HTTP server, so they must copy a collection before they iterate over it.

Source: karmada v1.18.2 pkg/scheduler/metrics/metrics.go and pkg/version/prometheus.
"""

from __future__ import annotations

import platform
from typing import Final

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from karmada_pyscheduler.metrics.families import Families
from karmada_pyscheduler.metrics.plugins import PluginMetrics
from karmada_pyscheduler.metrics.scheduling import EstimatorMetrics, ExplainMetrics, SchedulingMetrics
from karmada_pyscheduler.metrics.work_queues import WorkqueueMetrics
from karmada_scheduler import __version__


class ApiServerMetrics:
    """Requests, watch events, caches, and the Lease."""

    def __init__(self, families: Families) -> None:
        """Register the families."""
        self.requests: Final = families.of("rest_client").counter(
            "requests",
            "Number of HTTP requests, partitioned by status code, method, and host.",
            "code",
            "method",
            "host",
        )
        self.writes: Final = families.counter("api_writes", "Writes to the API server", "target", "result")
        self.write_window: Final = families.gauge(
            "write_window",
            "Limit of placement writes that may be under way at the same time; follows the API server's latency",
        )
        self.watch_events: Final = families.counter(
            "watch_events",
            "Watch events, without changes whose version the cache had already",
            "kind",
            "event",
        )
        self.repairs: Final = families.counter(
            "cache_repairs", "Objects that differed between a list and the cache", "kind", "repair"
        )
        self.malformed: Final = families.counter(
            "malformed_objects", "Objects that could not be read; they are left alone", "kind"
        )
        self.leader: Final = families.of("leader_election").gauge(
            "master_status", "1 while this process holds the lease", "name"
        )
        self._schema = families.gauge(
            "control_plane_schema",
            "1 for the version of Karmada whose bindings the control plane serves",
            "schema",
        )
        self.cached: Final = families.gauge("cached_objects", "Objects in the cache", "kind")
        self.watch_age: Final = families.gauge(
            "watch_age_seconds",
            "Time since the last event or bookmark of a watch, or since the API server accepted it",
            "kind",
        )
        self.unavailable_workloads: Final = families.gauge(
            "unavailable_workload_kinds",
            "Kinds of workloads whose metadata plugins need, and that cannot be watched or were not listed yet",
        )

    def expose_schema(self, version: str) -> None:
        """Expose the version whose bindings are served, in place of the one before."""
        self._schema.clear()
        self._schema.labels(version).set(1)


CONTENT_TYPE: Final = CONTENT_TYPE_LATEST.removesuffix("; charset=utf-8")

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


class Metrics:
    """The metrics of one process.

    Attributes:
        registry: Has all families.
        scheduling: Attempts, queue, unplaced bindings.
        plugins: Plugins and extenders.
        estimators: Requests to estimators.
        explain: Records of decisions.
        api_server: Requests to the API server, watches and caches.
        workqueues: client-go's metrics of work queues.
    """

    def __init__(self) -> None:
        """Register all families in a registry of their own."""
        self.registry: Final = CollectorRegistry()
        families = Families(self.registry)
        self.scheduling: Final = SchedulingMetrics(families)
        self.plugins: Final = PluginMetrics(families)
        self.estimators: Final = EstimatorMetrics(families)
        self.explain: Final = ExplainMetrics(families)
        self.api_server: Final = ApiServerMetrics(families)
        self.workqueues: Final = WorkqueueMetrics(families)
        build = families.of("karmada").gauge("build_info", "A metric with a constant '1' value", *_BUILD)
        build.labels(*_BUILD.values()).set(1)
        ProcessCollector(registry=self.registry)

    def exposition(self) -> bytes:
        """Return all samples in Prometheus' text format; may be called from any thread."""
        return generate_latest(self.registry)
