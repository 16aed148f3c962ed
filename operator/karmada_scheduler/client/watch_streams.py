"""The watch connections of each kind: when they last brought something, and how one is begun anew.

A watch goes on from the version where its last connection ended. An API server whose etcd was restored from a
backup may never have had that version: it refuses it for ever or waits for it in silence, and meanwhile nothing is
delivered. So before each further connection the server is asked for its version, a connection that is refused for a
while is given up in favour of another one, and a watch may be begun anew from outside at any time (``restart``).

Source: kubernetes 1.35 staging/src/k8s.io/apiserver/pkg/storage/cacher/cache_watcher.go (events up to the version that
a watch names are left out, bookmarks as well).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import aclosing
from typing import Any, Final

SILENT_SECONDS: Final = 300.0
"""How long a watch may bring nothing. kopf connects anew after 70 seconds without event and bookmark."""

_PATIENCE_SECONDS: Final = 2.0
_MOST_PATIENCE_SECONDS: Final = 128.0
"""For how long a connection may be refused before the server is asked for its version again: doubles each time."""

_GONE: Final = 410
EXPIRED: Final[Mapping[str, Any]] = {"type": "ERROR", "object": {"code": _GONE, "reason": "Expired"}}
"""What an API server sends on a watch that has to begin anew with a list."""

Input = Mapping[str, Any]
"""A line of a watch: ``type`` and ``object``."""


class _Watch:
    """The state of one kind's watch.

    Attributes:
        heard: When it last brought something, in seconds of the clock.
        goes_on: Whether the next connection goes on where another one ended.
        restarting: Whether it is to begin anew.
        patience: For how many seconds its next connection may be refused.
        is_accepted: Whether its connection was accepted.
        waiting: Who waits for an event of its connection just now.
        interrupted: Whether that was cancelled here.
    """

    def __init__(self, now: float) -> None:
        self.heard = now
        self.goes_on = False
        self.restarting = False
        self.patience = _PATIENCE_SECONDS
        self.is_accepted = False
        self.waiting: asyncio.Task[Any] | None = None
        self.interrupted = False

    def interrupt(self) -> None:
        """End the wait for an event."""
        if self.waiting is not None and not self.interrupted:
            self.interrupted = True
            self.waiting.cancel()

    def give_up(self) -> None:
        """End a connection that was not accepted."""
        if not self.is_accepted:
            self.patience = min(2 * self.patience, _MOST_PATIENCE_SECONDS)
            self.interrupt()


class WatchStreams:
    """The watches of some kinds. ``ages`` and ``silent`` may be called from any thread, the rest on the event loop."""

    def __init__(
        self,
        kinds: Iterable[str],
        *,
        clock: Callable[[], float],
        is_ahead: Callable[[str, str], Awaitable[bool]],
        silent_after: float = SILENT_SECONDS,
    ) -> None:
        """Take what is watched.

        Args:
            kinds: The kinds.
            clock: In seconds, never running backwards.
            is_ahead: Tells whether a version of a kind is ahead of the API server's; returns when that has answered.
            silent_after: Seconds without event, bookmark or accepted request after which a watch counts as silent.
        """
        now = clock()
        self._clock = clock
        self._is_ahead = is_ahead
        self._silent_after = silent_after
        self._watches = {kind: _Watch(now) for kind in kinds}

    def ages(self) -> dict[str, float]:
        """Return for each kind how many seconds ago its watch brought an event or a bookmark, or was accepted."""
        now = self._clock()
        return {kind: max(0.0, now - watch.heard) for kind, watch in self._watches.items()}

    def silent(self) -> dict[str, float]:
        """Return the ages of the kinds whose watches are silent."""
        return {kind: age for kind, age in self.ages().items() if age > self._silent_after}

    def start(self) -> None:
        """Count the time of silence from now on."""
        for watch in self._watches.values():
            watch.heard = self._clock()

    def accepted(self, kind: str) -> None:
        """Take note that the API server answers a request to watch a kind."""
        watch = self._watches[kind]
        watch.heard, watch.is_accepted, watch.patience = self._clock(), True, _PATIENCE_SECONDS

    def begins(self, kind: str) -> None:
        """Take note that the next connection begins where a list ends that is made after this call."""
        watch = self._watches[kind]
        watch.goes_on = watch.restarting = False

    def restart(self, kind: str) -> None:
        """End the connection of a kind, whatever it is doing; its watch begins anew with a list."""
        watch = self._watches[kind]
        watch.restarting = True
        watch.interrupt()

    async def connection(
        self, kind: str, since: str | None, connect: Callable[[], AsyncIterator[Input]]
    ) -> AsyncIterator[Input]:
        """Yield what a connection brings, and ``EXPIRED`` at the end if the watch is to begin anew.

        Args:
            kind: The kind.
            since: The version from which it is watched.
            connect: Opens the connection.
        """
        watch = self._watches[kind]
        if watch.goes_on and since is not None and await self._is_ahead(kind, since):
            yield EXPIRED
            return
        watch.goes_on, watch.is_accepted = True, False
        giving_up = asyncio.get_running_loop().call_later(watch.patience, watch.give_up)
        stream: AsyncGenerator[Input, None] = connect()  # type: ignore[assignment]  # kopf annotates the iterator
        try:
            async with aclosing(stream) as events:
                while not watch.restarting:
                    if (event := await self._next(watch, events)) is None:
                        break
                    yield event
        finally:
            giving_up.cancel()
        if watch.restarting:
            yield EXPIRED

    async def _next(self, watch: _Watch, events: AsyncGenerator[Input, None]) -> Input | None:
        """Return the next event of a connection, None when there is none."""
        task = asyncio.current_task()
        assert task is not None  # a coroutine runs in a task
        try:
            # Not asyncio.timeout, which does the same and costs more than all the rest of an event here.
            watch.waiting = task
            event = await anext(events)
        except StopAsyncIteration:
            return None
        except asyncio.CancelledError:
            if not watch.interrupted or task.uncancel() > 0:
                raise
            return None
        except Exception as error:
            # "410 Gone" as an HTTP status: kopf knows it as an event only, and would end.
            if getattr(error, "status", None) != _GONE:
                raise
            watch.restarting = True
            return None
        finally:
            watch.waiting, watch.interrupted = None, False
        if event["type"] != "ERROR":
            watch.heard = self._clock()
        return event
