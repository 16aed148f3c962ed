"""Metrics of the algorithm, its plugins and extenders."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from karmada_pyscheduler.metrics.families import Families, FastHistogram, exponential, expose_each
from karmada_scheduler.framework.result import Code


class PluginMetrics:
    """Durations of the algorithm, of plugins and of extenders; circuit breakers; waits at Permit.

    Implements the framework's ``Observer`` and ``CircuitBreakerObserver``.
    """

    def __init__(self, families: Families) -> None:
        """Register the families."""
        self.algorithm_duration: Final = families.histogram(
            "scheduling_algorithm_duration_seconds",
            "Scheduling algorithm latency in seconds",
            "schedule_step",
        )
        self.extension_point_duration: Final[FastHistogram[tuple[str, Code]]] = families.fast_histogram(
            "framework_extension_point_duration_seconds",
            "Latency for running all plugins of a specific extension point.",
            "extension_point",
            "result",
            buckets=exponential(0.0001, 2, 12),
        )
        self.duration: Final[FastHistogram[tuple[str, str, Code]]] = families.fast_histogram(
            "plugin_execution_duration_seconds",
            "Duration for running a plugin at a specific extension point.",
            "plugin",
            "extension_point",
            "result",
            buckets=exponential(0.00001, 1.5, 20),
        )
        self.breaker_openings: Final = families.counter(
            "plugin_breaker_openings",
            "Number of times that a plugin took too long and was not called for a while",
            "plugin",
        )
        self.breakers_open: Final = families.gauge(
            "plugin_breakers_open",
            "Profiles in which a plugin is not called because it took too long",
            "plugin",
        )
        self.run_failures: Final = families.counter(
            "plugin_run_failures",
            "Number of times that the run method of a plugin failed and was started again",
            "plugin",
        )
        self.permit_waiting: Final = families.gauge(
            "permit_waiting_bindings",
            "Bindings that wait at Permit, by the plugin that made them wait",
            "plugin",
        )
        self.permit_wait: Final = families.histogram(
            "permit_wait_duration_seconds", "Time that bindings wait at Permit", "result"
        )
        self.guard_answers: Final = families.counter(
            "guard_answers",
            "Decisions that Guard plugins kept from being written (kept: no cluster fits, stays: the placement is good as it is, held: otherwise), let through "
            "with eviction tasks (graceful) or with a warning (warned), or changed to return to a cluster (cancelled)",
            "answer",
        )
        self._guarded: Final = families.gauge(
            "guarded_bindings",
            "Bindings whose placement a Guard plugin keeps (kept, held; stays: good as it is), that leave clusters "
            "gracefully (leaving), whose eviction task has not been stamped for a minute, because Karmada's controller gracefulEviction does not run "
            "(unstamped), or whose annotation of this scheduler cannot be read (unreadable)",
            "state",
        )
        self.failbacks: Final = families.counter(
            "failback",
            "Proposals of Reconsider plugins: written (accepted), not wanted yet (declined), held by a Guard plugin "
            "(held), without a cluster (missed), ended by an error (failed)",
            "plugin",
            "result",
        )
        self.failback_waiting: Final = families.gauge(
            "failback_waiting",
            "Bindings for which a proposal of a Reconsider plugin succeeds and is not written yet",
        )
        self.extender_requests: Final = families.counter(
            "extender_requests", "Requests to HTTP extenders", "extender", "verb", "result"
        )
        self.extender_duration: Final = families.histogram(
            "extender_request_duration_seconds", "Duration of requests to extenders", "extender", "verb"
        )

    def expose_guarded(self, counts: Callable[[], Mapping[str, int]]) -> None:
        """Expose the bindings that Guard plugins keep or move gracefully, by state; there are no samples before."""
        expose_each(self._guarded, counts)

    def extension_point(self, point: str, code: Code, seconds: float, count: int = 1, /) -> None:
        """Count runs of all plugins of an extension point."""
        self.extension_point_duration.observe((point, code), seconds, count)

    def plugin(self, plugin: str, point: str, code: Code, seconds: float, count: int = 1, /) -> None:
        """Count runs of one plugin."""
        self.duration.observe((plugin, point, code), seconds, count)

    def step(self, step: str, seconds: float, /) -> None:
        """Count one step of the algorithm."""
        self.algorithm_duration.labels(step).observe(seconds)

    def opened(self, plugin: str, now_open: int, /) -> None:
        """Count a circuit breaker that opened."""
        self.breaker_openings.labels(plugin).inc()
        self.breakers_open.labels(plugin).set(now_open)

    def closed(self, plugin: str, now_open: int, /) -> None:
        """Count a circuit breaker that closed, or whose plugin was removed."""
        self.breakers_open.labels(plugin).set(now_open)
