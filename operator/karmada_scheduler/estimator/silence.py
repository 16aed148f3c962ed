"""Which estimators owe responses and send none, so that decisions wait for them without a slot.

An estimator is silent after ``_SILENT_TICKS`` ticks without any response of it, while a request to it is pending. Ticks are
counted instead of time, because a tick needs a turn of the event loop. If this process is busy, responses wait to be read,
and so do the ticks. An estimator that is slow because of many requests sends a response now and then, and is not silent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

_TICK_SECONDS: Final = 0.05
_SILENT_TICKS: Final = 5
"""More than the turns of the event loop between a response that can be read and the end of its request."""


class SilentEstimators:
    """Counts the requests that each estimator has not responded to."""

    def __init__(self, pause: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        """Start without requests; ``pause`` sleeps between ticks, for some seconds."""
        self._pause = pause
        self._pending: dict[str, int] = {}
        self._ticks: dict[str, int] = {}
        self._silent: set[str] = set()
        self._watches: dict[asyncio.Future[None], Mapping[str, asyncio.Task[object]]] = {}
        self._ticker: asyncio.Task[None] | None = None

    @property
    def clusters(self) -> frozenset[str]:
        """The clusters whose estimators are silent."""
        return frozenset(self._silent)

    def sent(self, cluster: str) -> None:
        """A request was sent to the estimator of a cluster."""
        count = self._pending[cluster] = self._pending.get(cluster, 0) + 1
        if count == 1:
            self._ticks[cluster] = 0
        if self._ticker is None:
            self._ticker = asyncio.create_task(self._tick(), name="silent estimators")

    def ended(self, cluster: str, *, responded: bool) -> None:
        """A request ended, with a response or an error of the estimator, or without."""
        left = self._pending[cluster] - 1
        if left:
            self._pending[cluster] = left
        else:
            del self._pending[cluster], self._ticks[cluster]
        if responded or not left:
            self._silent.discard(cluster)
            if left:
                self._ticks[cluster] = 0

    @contextmanager
    def watching(self, requests: Mapping[str, asyncio.Task[object]]) -> Iterator[asyncio.Future[None]]:
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
                await self._pause(_TICK_SECONDS)
                for cluster in self._ticks:
                    self._ticks[cluster] += 1
                    if self._ticks[cluster] >= _SILENT_TICKS:
                        self._silent.add(cluster)
                if self._silent:
                    self._notify()
        finally:
            self._ticker = None

    def _notify(self) -> None:
        for watch, requests in self._watches.items():
            if not watch.done() and all(
                name in self._silent or request.done() for name, request in requests.items()
            ):
                watch.set_result(None)
