"""The HTTP endpoints that serve records as JSON. They compute nothing: a reader takes no time from decisions.

All run in the thread of the HTTP server, and read what the main thread has stored.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import Any, Final

from karmada_pyscheduler.http_server.request_guard import AsyncHandler, Document, HttpRequest, HttpResponse
from karmada_pyscheduler.records.recorder import RecordStore
from karmada_scheduler.api.binding import CLUSTER_RESOURCE_BINDING, RESOURCE_BINDING, BindingKey
from karmada_scheduler.records.record import VERSION, encode, timestamp
from karmada_scheduler.structs import Struct

AUDIENCE: Final = "karmada-pyscheduler-records"
"""Of the bearer tokens with which records are read on an address that other machines reach. A token for it reads
nothing else: the API server refuses it."""
PATH: Final = "/karmada-pyscheduler/records"
"""Who may ``get`` this path of the Karmada API server gets all records. It is not served there; it stands for the records in
rules of a ClusterRole (``nonResourceURLs``)."""

DEFAULT_LIMIT: Final = 100
MAX_LIMIT: Final = 500
"""Records in one response."""

_PART_BYTES: Final = 16_384
_STREAM_SECONDS: Final = 300.0
"""How long a stream of events lasts; browsers and tools connect again."""
_EVENT_SECONDS: Final = 1.0
"""The shortest time between two events."""
_KEEPALIVE_EVENTS: Final = 15


class Endpoints(Struct, frozen=True, kw_only=True):
    """The handlers of all paths.

    Attributes:
        process: The name of this process.
        started: When it started, in seconds since 1970; its records have numbers from 1.
        store: The last record of each binding.
        leader: Returns None if this process leads, else the name of the process that does, "" if it is unknown.
        state: Returns the state of the process; called in the thread of the server.
        queue_state: Returns where a binding is in the queue; called in the thread of the server.
        cluster_times: Returns by cluster when its spec and its summary changed, in seconds since 1970.
    """

    process: str
    started: float
    store: RecordStore
    leader: Callable[[], str | None]
    state: Callable[[], Mapping[str, Any]]
    queue_state: Callable[[BindingKey], Mapping[str, Any]]
    cluster_times: Callable[[], Mapping[str, tuple[float, float]]]

    def routes(self) -> Mapping[str, AsyncHandler]:
        """Return the handlers by path."""
        return {
            "/v1/decisions": self._on_leader(self._decisions, "since", "limit"),
            "/v1/decisions/{name}": self._on_leader(self._decision),
            "/v1/decisions/{namespace}/{name}": self._on_leader(self._decision),
            "/v1/events": self._on_leader(self._events),
            "/v1/state": _with_parameters(self._process_state, "clusters"),
        }

    def _on_leader(self, handler: AsyncHandler, *parameters: str) -> AsyncHandler:
        """Return a handler that refuses to answer in a process that does not lead: it decides nothing."""
        checked = _with_parameters(handler, *parameters)

        async def handle(request: HttpRequest) -> HttpResponse | Document:
            leader = self.leader()
            if leader is None:
                return await checked(request)
            text = f"{self.process} does not lead; {leader or 'no process'} does"
            return _error(503, "NotLeading", text, leader=leader or None)

        return handle

    def _about(self) -> dict[str, Any]:
        return {
            "v": VERSION,
            "process": self.process,
            "started": timestamp(self.started),
            "last": self.store.last_seq,
        }

    async def _decisions(self, request: HttpRequest) -> HttpResponse | Document:
        """Return the records after ``since``, the oldest first, or the last ones without it."""
        try:
            limit = _number(request, "limit", least=1, most=MAX_LIMIT)
            since = _number(request, "since", least=0, most=2**63)
        except ValueError as error:
            return _error(400, "BadRequest", str(error))
        limit = DEFAULT_LIMIT if limit is None else limit
        found = self.store.last(limit) if since is None else self.store.since(since, limit)
        following = found[-1].seq if found else (since if since is not None else self.store.last_seq)
        about = self._about() | {"next": following}
        return HttpResponse(_list_parts(about, "items", (record.body for record in found)))

    async def _decision(self, request: HttpRequest) -> Document:
        """Return the last record of a binding."""
        namespace, name = request.path.get("namespace", ""), request.path["name"]
        key = BindingKey(RESOURCE_BINDING if namespace else CLUSTER_RESOURCE_BINDING, namespace, name)
        stored = self.store.get(key)
        if stored is None:
            text = f"no record of {key.kind} {key} since {timestamp(self.started)}"
            fields = self._about() | {"queue": self.queue_state(key)}
            return _error(404, "NoRecord", text, about=fields)
        about = encode(self._about() | {"queue": self.queue_state(key)})[:-1]
        return Document(about + b',"record":' + stored.body + b"}")

    async def _process_state(self, request: HttpRequest) -> Document:
        """Return the configuration, the queue, and all else that the API server does not know."""
        wanted = request.query.get("clusters", "false")
        if wanted not in ("true", "false"):
            return _error(400, "BadRequest", "clusters must be true or false")
        leader = self.leader()
        about = self._about() | {"leading": leader is None, "leader": leader or None} | dict(self.state())
        if times := self.cluster_times() if wanted == "true" else {}:
            about["clusterChanges"] = {
                name: {"spec": timestamp(spec), "summary": timestamp(summary)}
                for name, (spec, summary) in times.items()
            }
        return Document(encode(about))

    async def _events(self, request: HttpRequest) -> HttpResponse:  # noqa: ARG002
        """Return a stream with an event whenever there are new records, once a second at most, without their content."""
        return HttpResponse(self._event_parts(), content_type="text/event-stream", is_stream=True)

    async def _event_parts(self) -> AsyncIterator[bytes]:
        yield b"retry: 2000\n\n"
        seen, quiet = -1, 0
        for _ in range(round(_STREAM_SECONDS / _EVENT_SECONDS)):
            now = self.store.last_seq
            if now != seen:
                seen, quiet = now, 0
                yield b"id: %d\nevent: decisions\ndata: changed\n\n" % now
            elif quiet == _KEEPALIVE_EVENTS:
                quiet = 0
                yield b":\n\n"
            quiet += 1
            await asyncio.sleep(_EVENT_SECONDS)


def _with_parameters(handler: AsyncHandler, *known: str) -> AsyncHandler:
    """Return a handler that refuses unknown parameters."""

    async def handle(request: HttpRequest) -> HttpResponse | Document:
        unknown = next((parameter for parameter in request.query if parameter not in known), None)
        if unknown is None:
            return await handler(request)
        names = ", ".join(known) or "none"
        return _error(400, "BadRequest", f"unknown parameter {unknown[:100]!r}; known: {names}")

    return handle


def _number(request: HttpRequest, name: str, *, least: int, most: int) -> int | None:
    """Return a parameter as a number, None if it is not given.

    Raises:
        ValueError: It is not a number, or out of range; the text names it.
    """
    text = request.query.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 20 and least <= int(text) <= most):
        raise ValueError(f"{name} must be a number from {least} to {most}")
    return int(text)


async def _list_parts(about: Mapping[str, Any], name: str, items: Iterable[bytes]) -> AsyncIterator[bytes]:
    """Yield a JSON object with a list, in parts."""
    part = bytearray(encode(about)[:-1] + b',"%b":[' % name.encode())
    separator = b""
    for item in items:
        part += separator + item
        separator = b","
        if len(part) >= _PART_BYTES:
            yield bytes(part)
            part.clear()
            await asyncio.sleep(0)
    yield bytes(part + b"]}")


def _error(
    status: int, code: str, text: str, *, about: Mapping[str, Any] | None = None, **more: Any
) -> Document:
    return Document(encode({"error": {"code": code, "message": text} | more, **(about or {})}), status)
