"""The accurate estimator: capacity as karmada-scheduler-estimator in each member cluster counts it.

A process has one ``AccurateEstimator``, whose requests decisions share; a decision has one ``EstimationSession``.

Two policies define what happens when an estimator fails. ``upstream``: no estimate for the binding counts, and the
resource summaries of all clusters are used. ``partial``: the estimates that arrived count, and only the clusters without
one use their resource summaries. A cluster whose estimator has missed a deadline is then not waited for, neither by later
decisions nor by those that wait already. A background task repeats its last request until it responds.

Source: karmada v1.18.2 pkg/estimator/client/accurate.go.
Differs: docs/differences-from-upstream.md, "Estimators".
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, Self

from karmada_pyscheduler.estimator.connections import Connections, ReadService
from karmada_pyscheduler.estimator.grpc_channel import GrpcChannel
from karmada_pyscheduler.estimator.session import (
    PARTIAL,
    UPSTREAM,
    EstimationSession,
    EstimatorResponse,
    FailurePolicy,
    WithoutSlot,
    keep_slot,
)
from karmada_pyscheduler.estimator.silence import SilentEstimators
from karmada_pyscheduler.estimator.transport import ConnectionState, DialEstimator, EstimatorCallError
from karmada_pyscheduler.metrics.metrics import Metrics
from karmada_scheduler.api.binding import Binding
from karmada_scheduler.config.options import EstimatorOptions
from karmada_scheduler.core.available_replicas import NO_OPINION
from karmada_scheduler.structs import IdentityStruct, Struct, field

if TYPE_CHECKING:
    from karmada_pyscheduler.estimator.wire import EstimatorRequest

log = logging.getLogger(__name__)

_PROBE_PAUSES: Final = (1.0, 2.0, 4.0, 8.0, 15.0, 30.0)
"""Seconds between two probes of an unresponsive estimator; the last one repeats."""
_RECONNECT_AFTER: Final = 3
"""Probes without a response after which the connection is replaced."""


class RequestObserver(Protocol):
    """Counts requests to estimators."""

    def request_ended(self, method: str, result: str, seconds: float, /) -> None:
        """A request to one cluster ended: ``success``, ``error`` or ``timeout``."""

    def request_shared(self, method: str, /) -> None:
        """A request was not sent because an equal one was sent a moment before."""


class _SentRequest(NamedTuple):
    """A request that other decisions can share.

    Attributes:
        since: Time of sending, in seconds of the clock.
    """

    since: float
    estimate: asyncio.Task[EstimatorResponse]


class AccurateEstimator(IdentityStruct):
    """Estimates from the estimators in the member clusters, by requests that decisions share.

    Attributes:
        connections: The connections to the estimators.
        timeout: Seconds that a decision waits for all its estimates together.
        policy: ``UPSTREAM`` or ``PARTIAL``.
        answer_ttl: Seconds from a request within which decisions share it.
        observer: Counts requests.
        clock: Monotonic, in seconds.
        pause: Sleeps between probes of unresponsive estimators.
        silent: The estimators that owe responses and send none.
    """

    connections: Connections
    timeout: float
    policy: FailurePolicy
    answer_ttl: float
    observer: RequestObserver
    clock: Callable[[], float]
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep
    _sent: OrderedDict[tuple[str, str, bytes], _SentRequest] = field(default_factory=OrderedDict)
    _pending: dict[str, set[asyncio.Task[EstimatorResponse]]] = field(default_factory=dict)
    _probes: set[asyncio.Task[None]] = field(default_factory=set)
    _unresponsive: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.silent = SilentEstimators(self.clock)

    @property
    def unresponsive(self) -> frozenset[str]:
        """The clusters that decisions do not wait for at present."""
        return frozenset(self._unresponsive)

    def session(self, binding: Binding, without_slot: WithoutSlot = keep_slot) -> EstimationSession:
        """Return the session for one decision about a binding.

        Args:
            binding: The binding.
            without_slot: Releases the slot of the decision, if possible, while it waits for silent estimators.
        """
        return EstimationSession(self, binding, without_slot)

    async def close(self) -> None:
        """Cancel all requests and probes."""
        tasks = [*self._probes, *(task for pending in self._pending.values() for task in pending)]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.silent.close()

    def known_problem(self, cluster: str) -> str:
        """Return why a request to a cluster would fail; empty if that is not known beforehand."""
        state = self.connections.state(cluster)
        if state is ConnectionState.ABSENT:
            return f"cluster {cluster} does not exist in estimator cache"
        if self.policy == PARTIAL:
            if state is ConnectionState.LOST:
                return f"the connection to the estimator of cluster {cluster} is lost"
            if cluster in self._unresponsive:
                return f"the estimator of cluster {cluster} did not respond before and is being probed"
        return ""

    def request(
        self, cluster: str, request: EstimatorRequest, payload: bytes, about: str
    ) -> asyncio.Task[EstimatorResponse]:
        """Send a request, or share an equal one that was sent within ``answer_ttl``.

        The task never fails. It is cancelled when another request to the cluster has passed its deadline (``partial``).
        """
        now = self.clock()
        while self._sent and next(iter(self._sent.values())).since < now - self.answer_ttl:
            self._sent.popitem(last=False)
        key = (cluster, request.method, payload)
        sent = self._sent.get(key)
        if sent is not None and not sent.estimate.cancelled():
            self.observer.request_shared(request.method)
            return sent.estimate
        task = asyncio.create_task(self._send(cluster, request, payload, about))
        self._pending.setdefault(cluster, set()).add(task)
        task.add_done_callback(partial(self._ended, cluster))
        if self.answer_ttl > 0:
            self._sent[key] = _SentRequest(now, task)
            self._sent.move_to_end(key)
        return task

    def release(self, tasks: Iterable[asyncio.Task[EstimatorResponse]]) -> None:
        """Cancel requests that a decision no longer waits for, if no other decision can share them."""
        if self.answer_ttl <= 0 and self.policy == UPSTREAM:
            for task in tasks:
                task.cancel()

    def _ended(self, cluster: str, task: asyncio.Task[EstimatorResponse]) -> None:
        pending = self._pending[cluster]
        pending.discard(task)
        if not pending:
            del self._pending[cluster]

    async def _send(
        self, cluster: str, request: EstimatorRequest, payload: bytes, about: str
    ) -> EstimatorResponse:
        """Send a request to one cluster, and start probing the cluster if it does not respond."""
        began = self.clock()
        try:
            timeout = self.timeout
            if self.connections.state(cluster) is ConnectionState.NEW:
                async with asyncio.timeout(timeout):
                    await self.connections.wait_first_attempt(cluster)
                timeout = max(0.0, began + timeout - self.clock())
            response = await self._call(cluster, request.method, payload, timeout=timeout, about=about)
            estimate = EstimatorResponse(request.decode(response))
        except TimeoutError:
            estimate = EstimatorResponse(
                NO_OPINION, f"not connected within {self.timeout:g}s", timed_out=True
            )
        except EstimatorCallError as error:
            estimate = EstimatorResponse(NO_OPINION, str(error), timed_out=error.timed_out)
        except ValueError as error:
            estimate = EstimatorResponse(
                NO_OPINION, f"gRPC request cluster({cluster}) estimator error: {error}"
            )
        except asyncio.CancelledError:
            if cluster in self._unresponsive:
                self.observer.request_ended(request.method, "timeout", self.clock() - began)
            raise
        result = "timeout" if estimate.timed_out else "error" if estimate.problem else "success"
        self.observer.request_ended(request.method, result, self.clock() - began)
        if estimate.timed_out and self.policy == PARTIAL and cluster not in self._unresponsive:
            self._give_up(cluster, request, payload, estimate.problem)
        return estimate

    async def _call(self, cluster: str, method: str, payload: bytes, *, timeout: float, about: str) -> bytes:
        """Call a method of a cluster's estimator, and note whether it responded."""
        responded = False
        number = self.silent.sent(cluster)
        try:
            response = await self.connections.call(cluster, method, payload, timeout=timeout, about=about)
            responded = True
        except EstimatorCallError as error:
            responded = not error.timed_out
            raise
        finally:
            self.silent.ended(cluster, number, responded=responded)
        return response

    def _give_up(self, cluster: str, request: EstimatorRequest, payload: bytes, problem: str) -> None:
        """End all waits for an estimator that has not responded, and start probing it."""
        self._unresponsive.add(cluster)
        log.warning(
            "The estimator of a cluster does not respond; its resource summary is used until it does",
            extra={"cluster": cluster, "error": problem},
        )
        for other in self._pending.get(cluster, ()):
            if other is not asyncio.current_task():
                other.cancel()
        task = asyncio.create_task(self._probe(cluster, request, payload))
        self._probes.add(task)
        task.add_done_callback(self._probes.discard)

    async def _probe(self, cluster: str, request: EstimatorRequest, payload: bytes) -> None:
        """Repeat a request until the estimator responds, even with an error, or the cluster is deleted."""
        probes = 0
        try:
            while True:
                await self.pause(_PROBE_PAUSES[min(probes, len(_PROBE_PAUSES) - 1)])
                if self.connections.state(cluster) is ConnectionState.ABSENT:
                    return
                estimate = await self._send(cluster, request, payload, "probe")
                if not estimate.timed_out:
                    log.info("The estimator of a cluster responds again", extra={"cluster": cluster})
                    return
                probes += 1
                if probes % _RECONNECT_AFTER == 0:
                    self.connections.reconnect(cluster)
        finally:
            self._unresponsive.discard(cluster)


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
