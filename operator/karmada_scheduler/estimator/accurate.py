"""The accurate estimator: capacity as karmada-scheduler-estimator in each member cluster counts it.

A process has one ``AccurateEstimator``, a decision one ``EstimationSession``.

Two policies define what happens when an estimator fails. ``upstream``: no estimate for the binding counts, and the
resource summaries of all clusters are used. ``partial``: the estimates that arrived count, and only the clusters without
one use their resource summaries.

Source: karmada v1.18.2 pkg/estimator/client/accurate.go.
Differs: docs/differences-from-upstream.md, "Estimators".
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from karmada_scheduler.api.binding import Binding
from karmada_scheduler.estimator.session import EstimationSession, WithoutSlot, keep_slot
from karmada_scheduler.estimator.shared_requests import FailurePolicy, RequestObserver, SharedRequests
from karmada_scheduler.estimator.silence import SilentEstimators
from karmada_scheduler.estimator.transport import EstimatorTransport


class AccurateEstimator:
    """Estimates from the estimators in the member clusters.

    Attributes:
        requests: The requests that decisions share.
    """

    def __init__(
        self,
        transport: EstimatorTransport,
        *,
        timeout: float,
        policy: FailurePolicy,
        answer_ttl: float,
        observer: RequestObserver,
        clock: Callable[[], float],
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
        silent: SilentEstimators | None = None,
    ) -> None:
        """Send no request yet.

        Args:
            transport: The connections.
            timeout: Seconds that a decision waits for all its estimates together.
            policy: ``UPSTREAM`` or ``PARTIAL``.
            answer_ttl: Seconds from a request within which decisions share it.
            observer: Counts requests.
            clock: Monotonic, in seconds.
            pause: Sleeps between probes of unresponsive estimators.
            silent: The estimators that owe responses and send none; new by default.
        """
        self.requests: Final = SharedRequests(
            transport,
            timeout=timeout,
            policy=policy,
            answer_ttl=answer_ttl,
            observer=observer,
            clock=clock,
            pause=pause,
            silent=silent or SilentEstimators(clock),
        )

    def session(self, binding: Binding, without_slot: WithoutSlot = keep_slot) -> EstimationSession:
        """Return the session for one decision about a binding.

        Args:
            binding: The binding.
            without_slot: Releases the slot of the decision, if possible, while it waits for silent estimators.
        """
        return EstimationSession(self.requests, binding, without_slot)

    async def close(self) -> None:
        """Cancel all requests and probes."""
        await self.requests.close()
