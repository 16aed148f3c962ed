"""Requests to watch a kind, with pauses after failures, and the lines of a watch, each an event in JSON.

An object with more than 1,000 levels ends no watch, a refused request is repeated with other credentials, and there is a
pause when a proxy answers instead of the API server: docs/decisions/0018-api-server-input.md.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any, Final

import orjson

from karmada_scheduler import json_body
from karmada_scheduler.api_error import ApiError
from karmada_scheduler.structs import IdentityStruct, field

MAX_LINE: Final = 64 * 1024 * 1024
"""Maximum length of a line in bytes. An object has at most 1.5 MiB in etcd, by default."""

_KEPT_OF_LONG: Final = 64 * 1024
_SLOW: Final = 64 * 1024
"""Length of a line that is decoded in a thread if orjson refuses it; 1.5 MiB of brackets take most of a second."""
_TYPES: Final = frozenset({"ADDED", "MODIFIED", "DELETED"})

log = logging.getLogger(__name__)

Event = dict[str, Any]
"""``type`` and ``object``; see ``event_of``."""

Connect = Callable[[str, Callable[[], None]], AsyncGenerator[bytes, None]]
"""Opens a watch: path and query, and a function to call when it is accepted. As ``Connection.watch``."""

_GONE: Final = 410
_PAUSES: Final = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
"""Seconds between requests after failures."""

_WORKED_SECONDS: Final = 5.0
"""A request that lasted this long has worked, even without an event."""

_REMIND_AT: Final = frozenset({4, 8})
_REMIND_EVERY: Final = 16
"""The same error is logged again after these numbers of failures in a row; finally about every three minutes."""


class LongLine(bytes):
    """The start of a line that was too long."""

    __slots__ = ()


class Lines:
    """Splits the received data into lines."""

    def __init__(self, longest: int = MAX_LINE) -> None:
        """``longest`` is the maximum length of a line in bytes."""
        self._longest = longest
        self._pieces: list[bytes] = []
        self._length = 0

    def feed(self, piece: bytes) -> list[bytes]:
        """Add received data and return the lines that it completes, without empty ones."""
        *ended, rest = piece.split(b"\n")
        lines = []
        for part in ended:
            self._add(part)
            if line := self.end():
                lines.append(line)
        self._add(rest)
        return lines

    def end(self) -> bytes:
        """Return the line that the data so far has; at the end of a watch it has no line break."""
        line = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        if self._length > self._longest:
            line = LongLine(line[:_KEPT_OF_LONG])
        self._pieces, self._length = [], 0
        return line

    def _add(self, part: bytes) -> None:
        remaining = self._longest - self._length
        self._length += len(part)
        if part and remaining > 0:
            self._pieces.append(part[:remaining])


async def read_event(line: bytes) -> dict[str, Any]:
    """Decode one event as ``event_of`` does; if that takes long, in a thread."""
    try:
        event = orjson.loads(line)
    except orjson.JSONDecodeError:
        return await asyncio.to_thread(event_of, line) if len(line) >= _SLOW else event_of(line)
    return _checked(event)


def event_of(line: bytes) -> dict[str, Any]:
    """Decode one event and check its structure.

    The type is a string. The object of an ADDED, MODIFIED or DELETED event is an API object, or a placeholder for one
    that cannot be read (``json_body.unreadable``). That of a BOOKMARK has a version, and that of an ERROR a code.

    Raises:
        ValueError: The event cannot be read, and has no name of an object.
    """
    try:
        event = _decoded(line)
    except ValueError as problem:
        placeholder = json_body.placeholder_for(line, str(problem))
        if placeholder is None:
            raise
        return {"type": "MODIFIED", "object": placeholder}
    return _checked(event)


def _checked(event: Any) -> dict[str, Any]:
    if type(event) is not dict:
        raise ValueError(f"expected an event, got {type(event).__name__}")
    kind, found = event.get("type"), event.get("object")
    if kind in _TYPES:
        return {"type": kind, "object": json_body.checked(found)}
    if kind == "ERROR":
        status = found if isinstance(found, dict) else {}
        code = status.get("code")
        return {"type": kind, "object": {**status, "code": code if isinstance(code, int) else 500}}
    metadata = found.get("metadata") if isinstance(found, dict) else None
    version = metadata.get("resourceVersion") if isinstance(metadata, dict) else None
    if kind != "BOOKMARK" or not json_body.is_version(version):
        raise ValueError(f"expected an event, got type {kind!r} at version {version!r}")
    return event


def _decoded(line: bytes) -> Any:
    if type(line) is LongLine:
        raise ValueError(f"the line is longer than {MAX_LINE} bytes")
    return json_body.decode(line)


class WatchRequests(IdentityStruct):
    """The requests of one process to watch kinds; failures are counted by path."""

    connect: Connect
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    _failures: dict[str, int] = field(default_factory=dict)
    _logged: dict[str, str] = field(default_factory=dict)

    async def events(
        self, target: str, accepted: Callable[[], None] = lambda: None
    ) -> AsyncGenerator[Event, None]:
        """Yield the events of one request; ends when the next one may be sent.

        A line that cannot be read is logged and skipped, unless it has the name of its object. An ERROR event always
        has the code 410, whatever the reason was, so that the watch starts again with a list.

        Args:
            target: Path and query.
            accepted: Called when the API server has accepted the request.
        """
        path = target.partition("?")[0]
        started = self.clock()
        problem = ""
        is_expired = worked = False
        try:
            async with aclosing(self.connect(target, accepted)) as lines:
                async for line in lines:
                    event = await self._event(path, line)
                    if event is None:
                        continue
                    if event["type"] == "ERROR":
                        problem, is_expired = _text(event), True
                        break
                    if not worked:
                        worked = True
                        self._record_success(path)
                    yield event
        except ApiError as error:
            problem, is_expired = str(error), error.code == _GONE
        if worked or self.clock() - started >= _WORKED_SECONDS:
            self._failures.pop(path, None)
        else:
            failures = self._failed(path, problem or "it ended without an event")
            await self.sleep(_PAUSES[min(failures, len(_PAUSES)) - 1])
        if is_expired:
            yield {"type": "ERROR", "object": {"code": _GONE, "message": problem}}

    async def _event(self, path: str, line: bytes) -> Event | None:
        try:
            return await read_event(line)
        except ValueError as problem:
            text = f"{problem}, in: {line[:100].decode(errors='replace')}"
            self._log_once(path, "A line of a watch cannot be read, it is skipped", text)
            return None

    def _record_success(self, path: str) -> None:
        if self._failures.pop(path, 0) and self._logged.pop(path, ""):
            log.info("The watch works again", extra={"path": path})

    def _failed(self, path: str, problem: str) -> int:
        failures = self._failures[path] = self._failures.get(path, 0) + 1
        if failures in _REMIND_AT or failures % _REMIND_EVERY == 0:
            self._logged.pop(path, None)
        if failures > 1:  # every restart of an API server causes one
            self._log_once(path, "Cannot watch, trying again", problem)
        return failures

    def _log_once(self, path: str, message: str, text: str) -> None:
        if self._logged.get(path) != text:
            self._logged[path] = text
            log.warning("%s", message, extra={"path": path, "error": text})


def _text(event: Event) -> str:
    found = event["object"]
    return f"{found['code']} {found.get('reason') or ''}: {found.get('message') or ''}"
