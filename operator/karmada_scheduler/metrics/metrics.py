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

from karmada_scheduler import __version__
from karmada_scheduler.metrics.api_server import ApiServerMetrics
from karmada_scheduler.metrics.estimators import EstimatorMetrics
from karmada_scheduler.metrics.explain import ExplainMetrics
from karmada_scheduler.metrics.families import Families
from karmada_scheduler.metrics.plugins import PluginMetrics
from karmada_scheduler.metrics.scheduling import SchedulingMetrics
from karmada_scheduler.metrics.work_queues import WorkqueueMetrics

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
        self.workqueues: Final = WorkqueueMetrics(self.registry)
        build = families.gauge(
            "build_info", "A metric with a constant '1' value", *_BUILD, subsystem="karmada"
        )
        build.labels(*_BUILD.values()).set(1)
        ProcessCollector(registry=self.registry)

    def exposition(self) -> bytes:
        """Return all samples in Prometheus' text format; may be called from any thread."""
        return generate_latest(self.registry)
