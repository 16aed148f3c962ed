"""The list and the watch of one kind, as client-go's Reflector; kopf gets the events from here.

A watch continues at the version where its last connection ended. An API server whose etcd was restored from a backup
may never have had that version. It refuses it for ever, or waits for it and sends nothing, and no event is delivered
meanwhile. The same happens after a restore between a list and its watch. Three measures prevent that: the server's
version is read before each connection; a connection that is refused for a while is replaced; and ``restart`` starts
again with a list.

Source: kubernetes 1.35 staging/src/k8s.io/apiserver/pkg/storage/cacher/cache_watcher.go (it omits events and bookmarks
up to the version that a watch names).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from typing import Any, Final, Protocol

from karmada_pyscheduler.client.karmada import Resource
from karmada_pyscheduler.client.watch_requests import Event, WatchRequests
from karmada_scheduler.structs import Struct

log = logging.getLogger(__name__)

IDLE_SECONDS: Final = 70.0
"""How long a connection may deliver nothing; API servers send a bookmark a minute."""

_REFUSED_SECONDS: Final = 2.0
"""How long a connection may be refused before the server's version is read again; doubles each time."""

_RELIST_PAUSE: Final = 0.1
"""Seconds between the end of a watch and the next list."""


class Lists(Protocol):
    """The lists of all kinds; see ``Relister``."""

    async def list_and_start_version(self, kind: str, /) -> str:
        """Return the version at which a watch of a kind is to start; the caches are complete up to it."""

    async def must_relist(self, kind: str, version: str, /) -> bool:
        """Return whether the watch of a kind cannot continue at a version, once the API server has answered."""


class KnownVersions(Protocol):
    """The versions of objects that the caches have; see ``EventHandlers``. Both functions must be quick."""

    def observe(self, kind: str, manifest: Mapping[str, Any], /) -> None:
        """Take note of a changed object, whether its change is known or not."""

    def is_known(self, kind: str, manifest: Mapping[str, Any], /) -> bool:
        """Return whether the change of an object is known, so that its event is dropped."""


class Reflector(Struct):
    """Lists and watches one kind. ``age`` may be called from any thread, the rest on the event loop."""

    resource: Resource
    lists: Lists
    known: KnownVersions
    requests: WatchRequests
    clock: Callable[[], float]
    _last_event: float = 0.0
    _is_restarting: bool = False
    _is_accepted: bool = False
    _patience: float = _REFUSED_SECONDS
    _timer: asyncio.TimerHandle | None = None
    _waiting: asyncio.Task[Any] | None = None
    _is_interrupted: bool = False

    def __post_init__(self) -> None:
        self.reset_age()

    @property
    def age(self) -> float:
        """The seconds since the last event, bookmark or accepted request."""
        return max(0.0, self.clock() - self._last_event)

    def reset_age(self) -> None:
        """Start to count the time of silence."""
        self._last_event = self.clock()

    def restart(self) -> None:
        """End the connection; the watch starts again with a list."""
        self._is_restarting = True
        self._interrupt()

    async def events(self) -> AsyncGenerator[Event, None]:
        """Yield the events of the kind without end: not those whose change is known, and no bookmarks."""
        while True:
            self._is_restarting = False  # what has requested a list before, gets the next one
            version = await self.lists.list_and_start_version(self.resource.kind)
            while not await self.lists.must_relist(self.resource.kind, version):
                async with aclosing(self._connection(version)) as events:
                    async for event in events:
                        version = event["object"].get("metadata", {}).get("resourceVersion", version)
                        if event["type"] != "BOOKMARK" and not self._is_known(event):
                            yield event
                if self._is_restarting:
                    break
            await asyncio.sleep(_RELIST_PAUSE)

    async def _connection(self, version: str) -> AsyncGenerator[Event, None]:
        """Yield the events of one connection; the watch is restarting if the version cannot be watched any more."""
        target = f"{self.resource.path}?watch=true&allowWatchBookmarks=true&resourceVersion={version}"
        self._is_accepted = False
        self._check_after(self._patience)
        try:
            async with aclosing(self.requests.events(target, self._accepted)) as events:
                while not self._is_restarting and (event := await self._next(events)) is not None:
                    if event["type"] == "ERROR":
                        self._is_restarting = True
                        return
                    self._last_event = self.clock()
                    yield event
        finally:
            self._check_after(None)

    async def _next(self, events: AsyncGenerator[Event, None]) -> Event | None:
        """Return the next event of a connection, None when there is none."""
        task = asyncio.current_task()
        assert task is not None  # a coroutine runs in a task
        try:
            # asyncio.timeout would do the same, and takes more CPU time than the rest of this function.
            self._waiting = task
            return await anext(events)
        except StopAsyncIteration:
            return None
        except asyncio.CancelledError:
            if not self._is_interrupted or task.uncancel() > 0:
                raise
            return None
        finally:
            self._waiting, self._is_interrupted = None, False

    def _accepted(self) -> None:
        """Note that the API server has accepted the request of the connection."""
        self._last_event, self._is_accepted, self._patience = self.clock(), True, _REFUSED_SECONDS

    def _check_after(self, seconds: float | None) -> None:
        """Check the connection after some seconds instead of the time that was set before; None: not at all."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        if seconds is not None:
            self._timer = asyncio.get_running_loop().call_later(seconds, self._check)

    def _check(self) -> None:
        """End the connection if it was not accepted in time, or has delivered nothing for a while."""
        if not self._is_accepted:
            self._patience = min(2 * self._patience, IDLE_SECONDS)
            self._interrupt()
            return
        idle_in = self._last_event + IDLE_SECONDS - self.clock()
        if idle_in <= 0:
            self._interrupt()
        self._check_after(idle_in if idle_in > 0 else IDLE_SECONDS)

    def _interrupt(self) -> None:
        """End the wait for an event."""
        if self._waiting is not None and not self._is_interrupted:
            self._is_interrupted = True
            self._waiting.cancel()

    def _is_known(self, event: Event) -> bool:
        # Two of a binding's three events are caused by our own writes.
        if event["type"] != "MODIFIED":
            return False
        try:
            self.known.observe(self.resource.kind, event["object"])
            return self.known.is_known(self.resource.kind, event["object"])
        except Exception:
            # An exception here would end the watch of the kind. The handler logs the problem of the object.
            log.exception("Cannot determine whether a change is known", extra={"kind": self.resource.kind})
            return False
