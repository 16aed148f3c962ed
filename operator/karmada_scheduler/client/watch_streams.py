"""The watch connections of each kind: supervision and restart.

A watch continues at the version where its last connection ended. An API server whose etcd was restored from a backup
may never have had that version. It refuses it for ever, or waits for it and sends nothing, and no event is delivered
meanwhile. The same happens after a restore between a list and its watch. Three measures prevent that: the server's
version is read before each connection; a connection that is refused for a while is replaced; and ``restart`` restarts
a watch from scratch.

Source: kubernetes 1.35 staging/src/k8s.io/apiserver/pkg/storage/cacher/cache_watcher.go (it omits events and bookmarks
up to the version that a watch names).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import aclosing
from typing import Any, Final

SILENT_SECONDS: Final = 300.0
"""How long a watch may deliver nothing. After 70 seconds without an event or a bookmark it is connected again."""

_REFUSED_SECONDS: Final = 2.0
_MAX_REFUSED_SECONDS: Final = 128.0
"""How long a connection may be refused before the server's version is read again; doubles each time."""

_GONE: Final = 410
EXPIRED: Final[Mapping[str, Any]] = {"type": "ERROR", "object": {"code": _GONE, "reason": "Expired"}}
"""The event of an API server for a watch that has to start again with a list."""

Input = Mapping[str, Any]
"""A line of a watch: ``type`` and ``object``."""


class _Watch:
    """The state of one kind's watch.

    Attributes:
        last_event: Time of the last event, bookmark or acceptance, in seconds of the clock.
        restarting: Whether the watch is to start from scratch.
        patience: How long the next connection may be refused, in seconds.
        is_accepted: Whether the API server has accepted the connection.
        waiting: The task that waits for an event of the connection; None if none does.
        interrupted: Whether ``interrupt`` cancelled that task.
    """

    def __init__(self, now: float) -> None:
        self.last_event = now
        self.restarting = False
        self.patience = _REFUSED_SECONDS
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
            self.patience = min(2 * self.patience, _MAX_REFUSED_SECONDS)
            self.interrupt()


class WatchStreams:
    """The watches of some kinds. ``ages`` and ``silent`` may be called from any thread, the rest on the event loop."""

    def __init__(
        self,
        kinds: Iterable[str],
        *,
        clock: Callable[[], float],
        must_relist: Callable[[str, str], Awaitable[bool]],
        silent_after: float = SILENT_SECONDS,
    ) -> None:
        """Supervise the watches of these kinds.

        Args:
            kinds: The kinds.
            clock: In seconds, never running backwards.
            must_relist: Returns whether the watch of a kind cannot continue at a version, once the API server has
                answered.
            silent_after: Seconds without an event, a bookmark or an accepted request until a watch counts as silent.
        """
        now = clock()
        self._clock = clock
        self._must_relist = must_relist
        self._silent_after = silent_after
        self._watches = {kind: _Watch(now) for kind in kinds}

    def ages(self) -> dict[str, float]:
        """Return the seconds since the last event, bookmark or acceptance of each kind's watch."""
        now = self._clock()
        return {kind: max(0.0, now - watch.last_event) for kind, watch in self._watches.items()}

    def silent(self) -> dict[str, float]:
        """Return the ages of the kinds whose watches are silent."""
        return {kind: age for kind, age in self.ages().items() if age > self._silent_after}

    def start(self) -> None:
        """Start to count the time of silence."""
        for watch in self._watches.values():
            watch.last_event = self._clock()

    def accepted(self, kind: str) -> None:
        """Note that the API server has accepted a request to watch a kind."""
        watch = self._watches[kind]
        watch.last_event, watch.is_accepted, watch.patience = self._clock(), True, _REFUSED_SECONDS

    def starts(self, kind: str) -> None:
        """Record that the next connection starts at the version of a list that is requested after this call."""
        watch = self._watches[kind]
        watch.restarting = False

    def restart(self, kind: str) -> None:
        """End the connection of a kind; its watch starts from scratch with a list."""
        watch = self._watches[kind]
        watch.restarting = True
        watch.interrupt()

    async def connection(
        self, kind: str, since: str | None, connect: Callable[[], AsyncIterator[Input]]
    ) -> AsyncIterator[Input]:
        """Yield the events of a connection, and ``EXPIRED`` at the end if the watch is to start from scratch.

        Args:
            kind: The kind.
            since: The version at which the connection starts.
            connect: Opens the connection.
        """
        watch = self._watches[kind]
        if since is not None and await self._must_relist(kind, since):
            yield EXPIRED
            return
        watch.is_accepted = False
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
            # asyncio.timeout would do the same, and takes more CPU time than the rest of this function.
            watch.waiting = task
            event = await anext(events)
        except StopAsyncIteration:
            return None
        except asyncio.CancelledError:
            if not watch.interrupted or task.uncancel() > 0:
                raise
            return None
        except Exception as error:
            # "410 Gone" as an HTTP status: kopf handles it only as an event, and would end.
            if getattr(error, "status", None) != _GONE:
                raise
            watch.restarting = True
            return None
        finally:
            watch.waiting, watch.interrupted = None, False
        if event["type"] != "ERROR":
            watch.last_event = self._clock()
        return event
