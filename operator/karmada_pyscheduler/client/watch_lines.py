"""The lines of a watch, each an event in JSON."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import orjson

from karmada_scheduler import json_body

MAX_LINE: Final = 64 * 1024 * 1024
"""Maximum length of a line in bytes. An object has at most 1.5 MiB in etcd, by default."""

_KEPT_OF_LONG: Final = 64 * 1024
_SLOW: Final = 64 * 1024
"""Length of a line that is decoded in a thread if orjson refuses it; 1.5 MiB of brackets take most of a second."""
_TYPES: Final = frozenset({"ADDED", "MODIFIED", "DELETED"})


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
