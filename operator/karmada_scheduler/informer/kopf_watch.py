"""The event source: kopf watches, and everything it delivers leaves through one function.

The only importer of kopf. Handlers are ``on.event`` alone and return nothing, so that kopf writes nothing
to Karmada's objects: no finalizer, no annotation, no status. What kopf does not do is done around it:

- discovery is awaited before kopf starts (``resync``), since it never finds an aggregated API that comes
  up later;
- kopf lists nothing: what there is has been listed, and its watch begins where that list ended (``_begun``);
- events that are no news end before kopf's machinery (``_news``), which costs far more than reading them;
- each of its connections goes through ``watch_streams``, which notes that it works and may begin it anew;
- its watches are requested and read by ``client.watch_requests``, whose back-off never runs out: it would otherwise end
  after a minute of errors, or at a line that ``json`` cannot read;
- its memory of objects stays empty (``_NoMemories``);
- when it ends all the same, ``run`` starts it again.

kopf's own runner regards every task of the loop as its own and cancels it at exit, so its root tasks are
run here instead. docs/decisions/0003-kopf.md has the measurements behind this.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Mapping,
    Sequence,
)
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final, cast

import kopf
from kopf._cogs.clients import api as kopf_api
from kopf._cogs.clients import fetching as kopf_fetching
from kopf._cogs.clients import watching as kopf_watching
from kopf._core.reactor import inventory as kopf_inventory

from karmada_scheduler.client.connection import Credentials
from karmada_scheduler.client.karmada import Resource
from karmada_scheduler.client.watch_requests import WatchRequests
from karmada_scheduler.client.watch_streams import SILENT_SECONDS, WatchStreams

log = logging.getLogger(__name__)

Sink = Callable[[str, str, Mapping[str, Any]], None]
"""Takes the kind, the event's type and the object's manifest."""

_BACKOFFS: Final = (0.2, 0.5, 1.0, 2.0, 5.0)
_RESTART_SECONDS: Final = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
_IDLE_SECONDS: Final = 0.1
_LOGIN_LIFE: Final = timedelta(minutes=5)
_REMINDER_SECONDS: Final = 120.0


class _NoProgress(kopf.ProgressStorage):
    """Keeps no progress of handlers: those here have none, and taking it out of every object is costly."""

    def fetch(self, **_: Any) -> None:
        return None

    def store(self, **_: Any) -> None:
        return None

    def purge(self, **_: Any) -> None:
        return None

    def touch(self, **_: Any) -> None:
        return None

    def clear(self, *, essence: kopf.BodyEssence) -> kopf.BodyEssence:
        return essence


class _NoDiff(kopf.DiffBaseStorage):
    """Keeps no last-handled state: no handler here looks at differences, and computing them is costly."""

    def build(self, **_: Any) -> kopf.BodyEssence:
        return kopf.BodyEssence({})

    def fetch(self, **_: Any) -> kopf.BodyEssence | None:
        return None

    def store(self, **_: Any) -> None:
        return None


class _NoMemories(kopf_inventory.ResourceMemories):
    """Remembers no object: no handler here asks, and a kilobyte each would stay for what is deleted unseen."""

    async def recall(self, *args: Any, **rest: Any) -> kopf_inventory.ResourceMemory:
        return await super().recall(*args, **{**rest, "ephemeral": True})


@dataclass
class _Settings(kopf.OperatorSettings):
    """kopf's settings, where a kind's watch begins, and what of its events is news.

    kopf hands them to whatever it starts.
    """

    requests: WatchRequests = field(kw_only=True)
    begin: Callable[[str], Awaitable[str]] = field(kw_only=True)
    is_news: Callable[[str, kopf.RawEvent], bool] = field(kw_only=True)
    streams: WatchStreams = field(kw_only=True)
    accepted: Callable[[], None] = lambda: None


_all_objects = kopf_fetching.fetch_objs
_all_events = kopf_watching.infinite_watch
_any_connection = kopf_watching.watch_objs
_any_stream = kopf_api.stream


async def _begun(*, settings: Any, resource: Any, **rest: Any) -> AsyncIterator[tuple[Collection[Any], str]]:
    """Be a list of a kind, of no objects, at the version from which kopf is to watch it.

    kopf lists before each watch that does not go on where another one ended. docs/decisions/0012-own-writes.md has
    why it need not.
    """
    if not isinstance(settings, _Settings):  # another operator in this process
        async for page in _all_objects(settings=settings, resource=resource, **rest):
            yield page
        return
    settings.streams.begins(resource.kind)
    yield (), await settings.begin(resource.kind)


async def _news(*, settings: Any, resource: Any, **rest: Any) -> AsyncIterator[Any]:
    """Yield the events of a kind as kopf does, but for those that are no news.

    kopf asks handlers' filters only when each event has a queue, a task and three loggers.
    docs/decisions/0012-own-writes.md has the measurement, and why this is where it is done.
    """
    is_ours = isinstance(settings, _Settings)
    stream = cast("AsyncGenerator[Any, None]", _all_events(settings=settings, resource=resource, **rest))
    async with aclosing(stream) as events:
        async for event in events:
            is_object = is_ours and isinstance(event, dict) and event.get("type") != "BOOKMARK"
            if is_object and not settings.is_news(resource.kind, event):
                continue
            yield event


def _connection(*, settings: Any, resource: Any, since: str | None = None, **rest: Any) -> AsyncIterator[Any]:
    """Return what one connection of a watch brings; docs/decisions/0019-resource-version-rollback.md has why."""
    if not isinstance(settings, _Settings):
        return _any_connection(settings=settings, resource=resource, since=since, **rest)
    kind, streams = resource.kind, settings.streams
    told = replace(settings, accepted=partial(streams.accepted, kind))
    connect = partial(_any_connection, settings=told, resource=resource, since=since, **rest)
    return streams.connection(kind, since, connect)


def _events(url: str, *, settings: Any, **rest: Any) -> AsyncIterator[Any]:
    """Return what one request to watch a kind brings; docs/decisions/0018-api-server-input.md has why it is not kopf's."""
    if not isinstance(settings, _Settings):
        return _any_stream(url=url, settings=settings, **rest)
    return settings.requests.events(url, settings.accepted)


kopf_fetching.fetch_objs = _begun
kopf_watching.infinite_watch = _news
kopf_watching.watch_objs = _connection
kopf_api.stream = _events


@dataclass(frozen=True, kw_only=True)
class _Login(kopf.ConnectionInfo):
    """Where kopf connects and as whom, with TLS as the other connection has it.

    kopf asks for another login when one is refused, and ends if it gets an equal one; a login that differs in
    nothing but its time would be tried again at once, without end.
    """

    tls: ssl.SSLContext
    expiration: datetime | None = field(default=None, compare=False)

    def as_ssl_context(self) -> ssl.SSLContext:
        return self.tls


class KopfWatch:
    """Watches kinds and hands every event to a sink, in the order in which each object changed."""

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
        begin: Callable[[str], Awaitable[str]],
        is_ahead: Callable[[str, str], Awaitable[bool]],
        clock: Callable[[], float],
        is_known: Callable[[str, Mapping[str, Any]], bool] = lambda *_: False,
        silent_after: float = SILENT_SECONDS,
    ) -> None:
        """Take what is watched and who is told.

        Args:
            resources: The kinds.
            sink: Called on the event loop for every event; must be quick and must not raise.
            identity: What kopf calls this process; left alone, it asks the user database, which need not know us.
            login: Returns credentials that are valid now, with which kopf finds out what is served.
            requests: Sends the requests to watch.
            before_start: Returns when every kind is served; awaited before every start.
            after_start: Called after every start; kopf has then taken over the process's signal handlers.
            begin: Returns the version from which a kind is to be watched, before each watch that does not go on where
                another one ended. What there was up to it is its business.
            is_ahead: Tells whether a version of a kind is ahead of the API server's; asked before each watch that goes
                on where another one ended. True begins it anew.
            clock: In seconds, never running backwards.
            is_known: Tells whether an object that changed, by kind and manifest, is no news; it is not handed on
                then. Must be quick.
            silent_after: Seconds after which a watch that brings nothing and is not accepted is a ``problem``.
        """
        self._streams = WatchStreams(
            [resource.kind for resource in resources],
            clock=clock,
            is_ahead=is_ahead,
            silent_after=silent_after,
        )
        self._resources = resources
        self._sink = sink
        self._identity = identity
        self._login = login
        self._requests = requests
        self._before_start = before_start
        self._after_start = after_start
        self._begin = begin
        self._is_known = is_known
        self._running = False

    @property
    def problem(self) -> str | None:
        """What keeps events from arriving, None if nothing that is known of. May be asked from any thread."""
        if not self._running:
            return "kopf is not running"
        silent = self._streams.silent()
        if not silent:
            return None
        kinds = ", ".join(f"{kind} ({age:.0f}s)" for kind, age in sorted(silent.items()))
        return f"no event, bookmark or accepted watch of {kinds}"

    def age(self, kind: str) -> float:
        """Return how many seconds ago the watch of a kind brought an event or a bookmark, or was accepted."""
        return self._streams.ages()[kind]

    def restart(self, kind: str) -> None:
        """Begin the watch of a kind anew, as after a gap."""
        self._streams.restart(kind)

    async def run(self) -> None:
        """Watch until cancelled; whatever ends kopf is logged and kopf is started again."""
        self._streams.start()
        reminding = asyncio.create_task(self._remind(), name="watch reminder")
        try:
            await self._run_for_ever()
        finally:
            reminding.cancel()

    async def _remind(self) -> None:
        """Say every now and then what keeps events from arriving."""
        while True:
            await asyncio.sleep(_REMINDER_SECONDS)
            if (problem := self.problem) is not None:
                log.warning("Changes may go unnoticed", extra={"reason": problem})

    async def _run_for_ever(self) -> None:
        restarts = 0
        loop = asyncio.get_running_loop()
        while True:
            await self._before_start()
            started = loop.time()
            try:
                await self._run_once()
                log.warning("kopf stopped, starting it again")
            except Exception as error:  # noqa: BLE001 (whatever ends kopf must not end the scheduler)
                log.warning("kopf failed, starting it again", extra={"error": repr(error)})
            restarts = 0 if loop.time() - started > 60 else restarts + 1
            await asyncio.sleep(_RESTART_SECONDS[min(restarts, len(_RESTART_SECONDS) - 1)])

    async def _run_once(self) -> None:
        tasks = await kopf.spawn_tasks(
            registry=self._registry(),
            settings=_settings(self._requests, self._begin, self._is_news, self._streams),
            memories=_NoMemories(),
            clusterwide=True,
            standalone=True,
            identity=self._identity,  # type: ignore[arg-type]  # its own name for str, which it keeps to itself
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
            _cancel_what_kopf_left()
        for task in done:
            if task.cancelled():  # by kopf itself, and not because this is to end
                raise RuntimeError(f"kopf cancelled its task {task.get_name()!r}")
            task.result()

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

    def _is_news(self, kind: str, event: kopf.RawEvent) -> bool:
        # Two of a binding's three events are echoes of our own writes.
        try:
            return event["type"] != "MODIFIED" or not self._is_known(kind, event["object"])
        except Exception:
            # An exception here would end the watch of the kind; whatever takes the object in says what is wrong.
            log.exception("Cannot tell whether a change is known", extra={"kind": kind})
            return True

    def _handler(self, kind: str) -> Callable[..., Awaitable[None]]:
        sink = self._sink

        async def deliver(*, event: kopf.RawEvent, **_: Any) -> None:
            sink(kind, cast("str", event["type"]), event["object"])  # None is for what kopf lists: nothing

        return deliver


def _cancel_what_kopf_left() -> None:
    """Cancel kopf's tasks that survive its root tasks: watchers of its own scheduler that wait for a login."""
    package = str(Path(kopf.__file__).parent)
    for task in asyncio.all_tasks():
        code = getattr(task.get_coro(), "cr_code", None)
        if code is not None and code.co_filename.startswith(package):
            task.cancel()


def _settings(
    requests: WatchRequests,
    begin: Callable[[str], Awaitable[str]],
    is_news: Callable[[str, kopf.RawEvent], bool],
    streams: WatchStreams,
) -> kopf.OperatorSettings:
    settings = _Settings(requests=requests, begin=begin, is_news=is_news, streams=streams)
    settings.scanning.disabled = True
    settings.posting.enabled = False
    settings.persistence.diffbase_storage = _NoDiff()
    settings.persistence.progress_storage = _NoProgress()
    settings.networking.error_backoffs = (
        _BACKOFFS  # of discovery; then kopf ends, and starts with fresh credentials
    )
    # By default kopf keeps a queue, two tasks and the object for 5 seconds after each event.
    settings.queueing.idle_timeout = _IDLE_SECONDS
    settings.process.ultimate_exiting_timeout = None
    return settings
