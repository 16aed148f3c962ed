"""Estimators of member clusters in memory: what they respond when they are healthy, and how they fail."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from karmada_pyscheduler.estimator.pb import estimator_pb2 as pb
from karmada_pyscheduler.estimator.transport import DialEstimator, EstimatorCallError, EstimatorChannel
from karmada_pyscheduler.estimator.wire import MAX_AVAILABLE_REPLICAS
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.config.options import EstimatorOptions
from tools.simulation.faults import Faults
from tools.simulation.plugin_kit import number_of

ESTIMATOR_FAULTS: Final = (
    "estimator_silent",
    "estimator_error",
    "estimator_number",
    "estimator_garbage",
    "estimator_slow",
    "estimator_lost",
)
"""Faults of estimators; the kind of a request is ``estimator m0``.

``estimator_number`` responds with ``value``, ``estimator_slow`` takes ``value`` seconds, and with ``estimator_lost``
there is no connection.
"""

_KINDS: Final = frozenset(ESTIMATOR_FAULTS) - {"estimator_lost"}
_SECONDS: Final = 0.002


@dataclass(slots=True)
class EstimatorCall:
    """One call of an estimator.

    Attributes:
        began, ended: In seconds of virtual time; None while it lasts.
        number: What was responded; None without a number.
    """

    began: float
    ended: float | None = None
    number: int | None = None


@dataclass(slots=True)
class EstimatorCalls:
    """The calls of one process. No container, as those that a process leads to must not grow (``flat``).

    Attributes:
        by_cluster: By cluster. An end of the connection counts as a call without a response.
    """

    by_cluster: dict[str, list[EstimatorCall]] = field(default_factory=dict)


def replicas_in(cluster: str) -> int:
    """Return what a healthy estimator responds."""
    return 4 + 3 * number_of(cluster)


def dial_for(
    process: int, faults: Faults, clock: Callable[[], float], calls: EstimatorCalls
) -> DialEstimator:
    """Return what opens the channels of a process; each call is noted in ``calls``."""

    async def dial(
        address: str, settings: EstimatorOptions, /, *, seconds: float, on_failure: Callable[[], None]
    ) -> EstimatorChannel:
        cluster = address.partition(".")[0].removeprefix(f"{settings.prefix}-")
        noted = calls.by_cluster.setdefault(cluster, [])
        channel = _Channel(address, f"estimator {cluster}", process, faults, clock, noted)
        await asyncio.sleep(_SECONDS)
        if not channel.is_ready:
            on_failure()
            if not await channel.wait_ready(seconds):
                raise ConnectionError(f"dial {address} error: timeout waiting for connection")
        return channel

    return dial


class _Channel:
    def __init__(
        self,
        address: str,
        event: str,
        process: int,
        faults: Faults,
        clock: Callable[[], float],
        calls: list[EstimatorCall],
    ) -> None:
        self.address = address
        self._calls = calls
        self._event = event
        self._process = process
        self._faults = faults
        self._clock = clock

    def _lost_until(self) -> float | None:
        return self._faults.active("estimator_lost", self._process, self._event, self._clock())

    @property
    def is_ready(self) -> bool:
        return self._lost_until() is None

    async def wait_while_ready(self) -> None:
        while self.is_ready:
            now = self._clock()
            start = self._faults.next_start("estimator_lost", self._process, self._event, now)
            if start is None:
                await asyncio.get_running_loop().create_future()
            else:
                await asyncio.sleep(start - now + 0.001)

    async def wait_ready(self, seconds: float) -> bool:
        end = self._lost_until()
        if end is not None:
            await asyncio.sleep(min(seconds, end - self._clock() + 0.001))
        return self.is_ready

    async def call(self, cluster: str, method: str, request: bytes, *, timeout: float, about: str) -> bytes:
        del request, about
        call = EstimatorCall(self._clock())
        self._calls.append(call)
        try:
            async with asyncio.timeout(timeout):
                call.number = await self._respond(cluster)
        except TimeoutError:
            raise EstimatorCallError("injected: deadline exceeded", timed_out=True) from None
        finally:
            call.ended = self._clock()
        return b"\xff\xff\xff" if call.number is None else _response(method, call.number)

    async def _respond(self, cluster: str) -> int | None:
        """Return what the estimator responds, None for what cannot be read."""
        await asyncio.sleep(_SECONDS)
        if not self.is_ready:
            raise EstimatorCallError("injected: the connection is lost")
        for fault, _ in self._faults.drawn(_KINDS, self._process, self._event, self._clock()):
            match fault.kind:
                case "estimator_silent":
                    await asyncio.get_running_loop().create_future()
                case "estimator_error":
                    raise EstimatorCallError("injected: rpc error")
                case "estimator_number":
                    return int(fault.value)
                case "estimator_garbage":
                    return None
                case _:
                    await asyncio.sleep(float(fault.value))
        return replicas_in(cluster)

    async def close(self) -> None:
        self._calls.append(EstimatorCall(self._clock(), self._clock()))


def _response(method: str, number: int) -> bytes:
    response = (
        pb.MaxAvailableReplicasResponse(max_replicas=number)
        if method == MAX_AVAILABLE_REPLICAS
        else pb.MaxAvailableComponentSetsResponse(max_sets=number)
    )
    return response.SerializeToString()


class GivenEstimates:
    """Estimates for the judge: by default those of healthy estimators."""

    name = "given"

    def __init__(self, replicas: Callable[[str], int] = replicas_in) -> None:
        """Estimate by the names of clusters."""
        self._replicas = replicas

    def max_available_replicas(self, clusters: Sequence[Cluster], *_: Any) -> list[int]:
        """Return how many replicas clusters can take."""
        return [self._replicas(each.name) for each in clusters]

    def max_available_component_sets(self, clusters: Sequence[Cluster], *_: Any) -> list[int]:
        """Return how many sets of components clusters can take."""
        return [self._replicas(each.name) for each in clusters]
