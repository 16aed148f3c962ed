"""Builds and closes the connections to estimators together with the accurate estimator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

from karmada_pyscheduler.estimator.accurate import AccurateEstimator
from karmada_pyscheduler.estimator.connections import Connections, ReadService
from karmada_pyscheduler.estimator.grpc_channel import GrpcChannel
from karmada_pyscheduler.estimator.transport import DialEstimator
from karmada_pyscheduler.metrics.metrics import Metrics
from karmada_scheduler.config.options import EstimatorOptions
from karmada_scheduler.structs import Struct


class Estimation(Struct, frozen=True):
    """The parts of a process with estimators in the member clusters."""

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
        dial: DialEstimator = GrpcChannel.dial,
    ) -> Self:
        """Build everything. Connections are made when clusters are added (``Connections.on_cluster``).

        Args:
            options: The flags of estimators.
            read_service: Reads Services of the Karmada API server.
            metrics: The metrics of the process.
            clock: Monotonic, in seconds.
            dial: Opens channels.
        """
        queue = metrics.workqueues.of("scheduler-estimator")
        connections = Connections(options, read_service, observer=queue, clock=clock, dial=dial)
        metrics.estimators.expose_states(connections.count_by_state)
        accurate = AccurateEstimator(
            connections,
            timeout=options.timeout,
            policy=options.failure_policy,
            answer_ttl=options.answer_ttl,
            observer=metrics.estimators,
            clock=clock,
        )
        return cls(connections, accurate)

    async def close(self) -> None:
        """Cancel all requests, and close all connections."""
        await self.accurate.close()
        await self.connections.close()
