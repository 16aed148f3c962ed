"""Accurate estimation as one thing to build and to close: connections, and what asks through them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from karmada_scheduler.config.options import EstimatorOptions
from karmada_scheduler.estimator.accurate import AccurateEstimator
from karmada_scheduler.estimator.connections import Connections, ReadService
from karmada_scheduler.metrics.metrics import EstimatingObserver, Metrics


@dataclass(frozen=True, slots=True)
class Estimation:
    """What a process that asks estimators has."""

    connections: Connections
    accurate: AccurateEstimator

    @classmethod
    def make(
        cls,
        options: EstimatorOptions,
        read_service: ReadService,
        *,
        metrics: Metrics,
        clock: Callable[[], float],
    ) -> Self:
        """Build everything; nobody is connected to until clusters are followed.

        Args:
            options: What the flags say.
            read_service: Reads Services of the Karmada API server.
            metrics: Where to count.
            clock: Monotonic, in seconds.
        """
        queue = metrics.workqueues.of("scheduler-estimator")
        connections = Connections(options, read_service, observer=queue, clock=clock)
        metrics.watch_estimators(connections.standings)
        accurate = AccurateEstimator(
            connections,
            timeout=options.timeout,
            policy=options.failure_policy,
            answer_ttl=options.answer_ttl,
            observer=EstimatingObserver(metrics),
            clock=clock,
        )
        return cls(connections, accurate)

    async def close(self) -> None:
        """Stop asking, and close all connections."""
        await self.accurate.close()
        await self.connections.close()
