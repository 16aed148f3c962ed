"""The event source: kopf runs the handlers of all kinds.

The handlers are ``on.event`` alone and return nothing, so kopf writes nothing to Karmada's objects: no finalizer, no
annotation, no status. Around kopf:

- ``relist`` waits for discovery before kopf starts, since kopf never finds an aggregated API that comes up later;
- ``reflector`` lists and watches, without end;
- ``kopf_watcher`` hands its events to kopf, and keeps kopf's memory of objects empty;
- ``KopfWatch.run`` starts kopf again whenever it ends.

kopf's own runner cancels every task of the event loop at exit, so its root tasks are run here instead.
docs/decisions/0045-one-seam-to-kopf.md has the reasons.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import ssl
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, Protocol, cast

import kopf

from karmada_pyscheduler.client.identity import Identity
from karmada_pyscheduler.client.karmada import Resource
from karmada_pyscheduler.client.watch_requests import WatchRequests
from karmada_pyscheduler.informer.event_handlers import EventHandlers
from karmada_pyscheduler.informer.kopf_watcher import NoMemories, watch_settings
from karmada_pyscheduler.informer.reflector import Reflector
from karmada_pyscheduler.informer.relist import Relister
from karmada_scheduler.structs import Struct, field

log = logging.getLogger(__name__)

SILENT_SECONDS: Final = 300.0
"""How long a watch may deliver nothing. After 70 seconds without an event or a bookmark it is connected again."""

_RESTART_SECONDS: Final = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
_LOGIN_LIFE: Final = timedelta(minutes=5)
_REMINDER_SECONDS: Final = 120.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Login(kopf.ConnectionInfo):
    """Server and credentials for kopf, with the TLS context of the scheduler's own connection.

    When a login is refused, kopf requests another one, and ends if that is equal. The expiration is not compared: a
    login that differed in nothing else would be tried again at once, without end.
    """

    tls: ssl.SSLContext
    expiration: datetime | None = dataclasses.field(default=None, compare=False)

    def as_ssl_context(self) -> ssl.SSLContext:
        return self.tls


class EventSource(Protocol):
    """Delivers the events of the watched kinds; see ``KopfWatch``, which is the real one."""

    @property
    def problem(self) -> str | None: ...

    def age(self, kind: str) -> float: ...

    def restart(self, kind: str) -> None: ...

    async def run(self) -> None: ...


class KopfWatch(Struct):
    """Watches kinds and hands every event to the handlers, in the order of each object's changes.

    Attributes:
        resources: The kinds.
        handlers: Called on the event loop for every event.
        lists: Fill the caches of the handlers; kopf starts when they are served.
        requests: Sends the requests to watch.
        identity: kopf's name for this process. Without it, kopf looks the user up, who may be in no database.
        login: Returns valid credentials, with which kopf does discovery.
        after_start: Called after every start; kopf has then replaced the process's signal handlers.
        clock: In seconds, never running backwards.
        silent_after: Seconds without an event or an accepted watch of a kind until that is a ``problem``.
    """

    resources: Sequence[Resource]
    handlers: EventHandlers
    lists: Relister
    requests: WatchRequests
    identity: str
    login: Callable[[], Awaitable[Identity]]
    after_start: Callable[[], None]
    clock: Callable[[], float]
    silent_after: float = SILENT_SECONDS
    _reflectors: dict[str, Reflector] = field(default_factory=dict)
    _running: bool = False

    def __post_init__(self) -> None:
        for resource in self.resources:
            self._reflectors[resource.kind] = Reflector(
                resource, self.lists, self.handlers, self.requests, clock=self.clock
            )

    @property
    def problem(self) -> str | None:
        """Why events may be missing, None without a known reason. May be read from any thread."""
        if not self._running:
            return "kopf is not running"
        ages = {kind: reflector.age for kind, reflector in self._reflectors.items()}
        silent = [f"{kind} ({age:.0f}s)" for kind, age in sorted(ages.items()) if age > self.silent_after]
        return f"no event, bookmark or accepted watch of {', '.join(silent)}" if silent else None

    def age(self, kind: str) -> float:
        """Return the seconds since the watch of a kind last delivered an event or a bookmark, or was accepted."""
        return self._reflectors[kind].age

    def restart(self, kind: str) -> None:
        """Restart the watch of a kind from scratch, as after a gap."""
        self._reflectors[kind].restart()

    async def run(self) -> None:
        """Watch until cancelled. When kopf ends, the reason is logged and kopf is started again."""
        for reflector in self._reflectors.values():
            reflector.reset_age()
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
            await self.lists.wait_until_served()
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
            settings=watch_settings(lambda kind: self._reflectors[kind].events()),
            memories=NoMemories(),
            clusterwide=True,
            standalone=True,
            identity=self.identity,  # type: ignore[arg-type]  # a private subtype of str
        )
        self.after_start()
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

    def _registry(self) -> kopf.OperatorRegistry:
        registry = kopf.OperatorRegistry()

        async def login(**_: Any) -> kopf.ConnectionInfo:
            found = await self.login()
            scheme, _space, credential = (found.authorization or "").partition(" ")
            return _Login(
                server=found.server,
                tls=found.tls,
                scheme=scheme or None,
                token=credential or None,
                proxy_url=found.proxy_url,
                expiration=datetime.now(UTC) + _LOGIN_LIFE,
            )

        kopf.on.login(registry=registry)(login)
        for resource in self.resources:
            kopf.on.event(
                resource.group,
                resource.version,
                resource.plural,
                registry=registry,
            )(self._handler(resource.kind))
        return registry

    def _handler(self, kind: str) -> Callable[..., Awaitable[None]]:
        on_event = self.handlers.on_event

        async def deliver(*, event: kopf.RawEvent, **_: Any) -> None:
            on_event(
                kind, cast("str", event["type"]), event["object"]
            )  # None only for objects that kopf lists

        return deliver


def _cancel_leftover_tasks() -> None:
    """Cancel the tasks of kopf that survive its root tasks: watchers that wait for a login."""
    package = str(Path(kopf.__file__).parent)
    for task in asyncio.all_tasks():
        code = getattr(task.get_coro(), "cr_code", None)
        if code is not None and code.co_filename.startswith(package):
            task.cancel()
