"""Metrics of estimators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from karmada_scheduler.metrics.families import Families, expose_each


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
