"""The event source: kopf watches, and calls one function with every event.

Handlers are ``on.event`` alone and return nothing, so kopf writes nothing to Karmada's objects: no finalizer, no
annotation, no status. Around kopf:

- ``relist`` waits for discovery before kopf starts, since kopf never finds an aggregated API that comes up later;
- ``kopf_patches`` replaces its lists, drops events that change nothing, and supervises its connections;
- ``client.watch_requests`` sends and reads its watches and repeats them without end. kopf itself would end after a
  minute of errors, or at a line that ``json`` cannot read;
- ``kopf_settings`` keeps its memory of objects empty;
- ``KopfWatch.run`` starts it again whenever it ends.

kopf's own runner cancels every task of the event loop at exit, so its root tasks are run here instead.
docs/decisions/0003-kopf.md has the measurements behind this.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, Protocol, cast

import kopf

from karmada_scheduler.client.connection import Credentials
from karmada_scheduler.client.karmada import Resource
from karmada_scheduler.client.watch_requests import WatchRequests
from karmada_scheduler.client.watch_streams import SILENT_SECONDS, WatchStreams
from karmada_scheduler.informer import kopf_patches  # noqa: F401 (importing it patches kopf)
from karmada_scheduler.informer.kopf_settings import NoMemories, WatchSettings, watch_settings

log = logging.getLogger(__name__)

Sink = Callable[[str, str, Mapping[str, Any]], None]
"""Takes the kind, the event's type and the object's manifest."""

_RESTART_SECONDS: Final = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
_LOGIN_LIFE: Final = timedelta(minutes=5)
_REMINDER_SECONDS: Final = 120.0


@dataclass(frozen=True, kw_only=True)
class _Login(kopf.ConnectionInfo):
    """Server and credentials for kopf, with the TLS context of the scheduler's own connection.

    When a login is refused, kopf requests another one, and ends if that is equal. The expiration is not compared: a
    login that differed in nothing else would be tried again at once, without end.
    """

    tls: ssl.SSLContext
    expiration: datetime | None = field(default=None, compare=False)

    def as_ssl_context(self) -> ssl.SSLContext:
        return self.tls


class EventSource(Protocol):
    """Delivers the events of the watched kinds; see ``KopfWatch``, which is the real one."""

    @property
    def problem(self) -> str | None: ...

    def age(self, kind: str) -> float: ...

    def restart(self, kind: str) -> None: ...

    async def run(self) -> None: ...


class KopfWatch:
    """Watches kinds and hands every event to a sink, in the order of each object's changes."""

    def __init__(
        self,
        resources: Sequence[Resource],
        sink: Sink,
        *,
        identity: str,
        login: Callable[[], Awaitable[Credentials]],
        requests: WatchRequests,
        before_start: Callable[[], Awaitable[None]],
        after_start: Callable[[], None],
        start_version: Callable[[str], Awaitable[str]],
        must_relist: Callable[[str, str], Awaitable[bool]],
        clock: Callable[[], float],
        observe: Callable[[str, Mapping[str, Any]], None] = lambda *_: None,
        is_known: Callable[[str, Mapping[str, Any]], bool] = lambda *_: False,
        silent_after: float = SILENT_SECONDS,
    ) -> None:
        """Prepare the watches; ``run`` starts them.

        Args:
            resources: The kinds.
            sink: Called on the event loop for every event; must be quick and must not raise.
            identity: kopf's name for this process. Without it, kopf looks the user up, who may be in no database.
            login: Returns valid credentials, with which kopf does discovery.
            requests: Sends the requests to watch.
            before_start: Returns when every kind is served; awaited before every start.
            after_start: Called after every start; kopf has then replaced the process's signal handlers.
            start_version: Returns the resourceVersion at which the watch of a kind starts, before each watch that does
                not continue another one. The caller has listed the objects up to that version.
            must_relist: Returns whether the watch of a kind cannot continue at a version; awaited before each watch.
                If so, the watch starts from scratch.
            clock: In seconds, never running backwards.
            observe: Called with the kind and the manifest of each changed object, before ``is_known``; must be quick.
            is_known: Returns whether the change of an object is known, by kind and manifest; if so, it is dropped.
                Must be quick.
            silent_after: Seconds without an event or an accepted watch of a kind until that is a ``problem``.
        """
        self._streams = WatchStreams(
            [resource.kind for resource in resources],
            clock=clock,
            must_relist=must_relist,
            silent_after=silent_after,
        )
        self._resources = resources
        self._sink = sink
        self._identity = identity
        self._login = login
        self._requests = requests
        self._before_start = before_start
        self._after_start = after_start
        self._start_version = start_version
        self._observe = observe
        self._is_known = is_known
        self._running = False

    @property
    def problem(self) -> str | None:
        """Why events may be missing, None without a known reason. May be read from any thread."""
        if not self._running:
            return "kopf is not running"
        silent = self._streams.silent()
        if not silent:
            return None
        kinds = ", ".join(f"{kind} ({age:.0f}s)" for kind, age in sorted(silent.items()))
        return f"no event, bookmark or accepted watch of {kinds}"

    def age(self, kind: str) -> float:
        """Return the seconds since the watch of a kind last delivered an event or a bookmark, or was accepted."""
        return self._streams.ages()[kind]

    def restart(self, kind: str) -> None:
        """Restart the watch of a kind from scratch, as after a gap."""
        self._streams.restart(kind)

    async def run(self) -> None:
        """Watch until cancelled. When kopf ends, the reason is logged and kopf is started again."""
        self._streams.start()
        reminding = asyncio.create_task(self._log_problems(), name="watch reminder")
        try:
            await self._run_forever()
        finally:
            reminding.cancel()

    async def _log_problems(self) -> None:
        """Log the problem, if there is one, every two minutes."""
        while True:
            await asyncio.sleep(_REMINDER_SECONDS)
            if (problem := self.problem) is not None:
                log.warning("Changes may go unnoticed", extra={"reason": problem})

    async def _run_forever(self) -> None:
        restarts = 0
        loop = asyncio.get_running_loop()
        while True:
            await self._before_start()
            started = loop.time()
            try:
                await self._run_once()
                log.warning("kopf stopped, starting it again")
            except Exception as error:  # noqa: BLE001 (an error of kopf must not end the scheduler)
                log.warning("kopf failed, starting it again", extra={"error": repr(error)})
            restarts = 0 if loop.time() - started > 60 else restarts + 1
            await asyncio.sleep(_RESTART_SECONDS[min(restarts, len(_RESTART_SECONDS) - 1)])

    async def _run_once(self) -> None:
        tasks = await kopf.spawn_tasks(
            registry=self._registry(),
            settings=self._settings(),
            memories=NoMemories(),
            clusterwide=True,
            standalone=True,
            identity=self._identity,  # type: ignore[arg-type]  # a private subtype of str
        )
        self._after_start()
        self._running = True
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._running = False
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            _cancel_leftover_tasks()
        for task in done:
            if task.cancelled():  # by kopf itself, not by ours
                raise RuntimeError(f"kopf cancelled its task {task.get_name()!r}")
            task.result()

    def _settings(self) -> WatchSettings:
        return watch_settings(
            self._requests,
            start_version=self._start_version,
            should_deliver=self._should_deliver,
            streams=self._streams,
        )

    def _registry(self) -> kopf.OperatorRegistry:
        registry = kopf.OperatorRegistry()

        async def login(**_: Any) -> kopf.ConnectionInfo:
            found = await self._login()
            return _Login(
                server=found.server,
                tls=found.tls,
                scheme=found.scheme if found.token else None,
                token=found.token,
                proxy_url=found.proxy_url,
                expiration=datetime.now(UTC) + _LOGIN_LIFE,
            )

        kopf.on.login(registry=registry)(login)
        for resource in self._resources:
            kopf.on.event(
                resource.group,
                resource.version,
                resource.plural,
                registry=registry,
            )(self._handler(resource.kind))
        return registry

    def _should_deliver(self, kind: str, event: kopf.RawEvent) -> bool:
        # Two of a binding's three events are caused by our own writes.
        if event["type"] != "MODIFIED":
            return True
        try:
            self._observe(kind, event["object"])
            return not self._is_known(kind, event["object"])
        except Exception:
            # An exception here would end the watch of the kind. The sink logs the problem of the object.
            log.exception("Cannot determine whether a change is known", extra={"kind": kind})
            return True

    def _handler(self, kind: str) -> Callable[..., Awaitable[None]]:
        sink = self._sink

        async def deliver(*, event: kopf.RawEvent, **_: Any) -> None:
            sink(kind, cast("str", event["type"]), event["object"])  # None only for listed objects

        return deliver


def _cancel_leftover_tasks() -> None:
    """Cancel the tasks of kopf that survive its root tasks: watchers that wait for a login."""
    package = str(Path(kopf.__file__).parent)
    for task in asyncio.all_tasks():
        code = getattr(task.get_coro(), "cr_code", None)
        if code is not None and code.co_filename.startswith(package):
            task.cancel()
