"""Metrics of everything between the scheduler and the API server: watches, caches, writes, the Lease."""

from __future__ import annotations

from typing import Final

from prometheus_client import Counter

from karmada_scheduler.metrics.families import Families, Labelled


class ApiServerMetrics:
    """Requests, watch events, caches, and the Lease."""

    def __init__(self, families: Families) -> None:
        """Register the families."""
        self.requests: Final = Labelled(
            Counter(
                "rest_client_requests",
                "Number of HTTP requests, partitioned by status code, method, and host.",
                ["code", "method", "host"],
                registry=families.registry,
            )
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
        self.leader: Final = families.gauge(
            "master_status", "1 while this process holds the lease", "name", subsystem="leader_election"
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
