"""Which estimators owe responses that others would have sent, so that decisions wait for them without a slot.

An estimator is silent if a request to it is pending, another estimator has responded to a later request, and it has sent no
response for ``_SILENT_TICKS`` ticks. Ticks that come late do not count: this process is busy then, and responses may wait
to be read. An estimator that is slow because of many requests sends a response now and then, and is not silent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from karmada_scheduler.structs import IdentityStruct, Struct, field

_TICK_SECONDS: Final = 0.05
_LATE_SECONDS: Final = 0.1
_SILENT_TICKS: Final = 10


class _PendingRequests(Struct):
    """The pending requests to one estimator.

    Attributes:
        oldest: The number of the first request after the last response.
        count: Requests that have not ended.
        ticks: Ticks in which it was overtaken, since its last response.
    """

    oldest: int
    count: int = 1
    ticks: int = 0


class SilentEstimators(IdentityStruct):
    """Counts the requests that each estimator has not responded to.

    Attributes:
        clock: Monotonic, in seconds.
        pause: Sleeps between ticks, for some seconds.
    """

    clock: Callable[[], float]
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep
    _sent: int = 0
    _newest_answered: int = 0
    _pending: dict[str, _PendingRequests] = field(default_factory=dict)
    _silent: set[str] = field(default_factory=set)
    _watches: dict[asyncio.Future[None], Mapping[str, asyncio.Task[Any]]] = field(default_factory=dict)
    _ticker: asyncio.Task[None] | None = None

    @property
    def clusters(self) -> frozenset[str]:
        """The clusters whose estimators are silent."""
        return frozenset(self._silent)

    def sent(self, cluster: str) -> int:
        """Return the number of a request to a cluster, which is sent now."""
        self._sent += 1
        pending = self._pending.get(cluster)
        if pending is None:
            self._pending[cluster] = _PendingRequests(self._sent)
        else:
            pending.count += 1
        if self._ticker is None:
            self._ticker = asyncio.create_task(self._tick(), name="silent estimators")
        return self._sent

    def ended(self, cluster: str, number: int, *, responded: bool) -> None:
        """A request ended, with a response or an error of the estimator, or without."""
        pending = self._pending[cluster]
        pending.count -= 1
        if responded:
            self._newest_answered = max(self._newest_answered, number)
            pending.ticks, pending.oldest = 0, self._sent
        if not pending.count:
            del self._pending[cluster]
        if responded or not pending.count:
            self._silent.discard(cluster)

    @contextmanager
    def watching(self, requests: Mapping[str, asyncio.Task[Any]]) -> Iterator[asyncio.Future[None]]:
        """Return a future that is done as soon as all requests that have not ended are to silent estimators.

        Args:
            requests: Requests by cluster name.
        """
        watch: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._watches[watch] = requests
        try:
            yield watch
        finally:
            del self._watches[watch]

    async def close(self) -> None:
        """Stop the ticks."""
        if self._ticker is not None:
            self._ticker.cancel()
            await asyncio.gather(self._ticker, return_exceptions=True)

    async def _tick(self) -> None:
        try:
            while self._pending:
                began = self.clock()
                await self.pause(_TICK_SECONDS)
                if self.clock() - began <= _LATE_SECONDS:
                    self._count_tick()
                if self._silent:
                    self._notify()
        finally:
            self._ticker = None

    def _count_tick(self) -> None:
        for cluster, pending in self._pending.items():
            if self._newest_answered > pending.oldest:
                pending.ticks += 1
                if pending.ticks >= _SILENT_TICKS:
                    self._silent.add(cluster)

    def _notify(self) -> None:
        for watch, requests in self._watches.items():
            if not watch.done() and all(
                name in self._silent or request.done() for name, request in requests.items()
            ):
                watch.set_result(None)
