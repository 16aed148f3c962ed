"""Faults, and the requests that they apply to."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson


@dataclass(frozen=True, slots=True)
class Answer:
    """A response that is sent instead of the right one."""

    code: int = 200
    body: bytes = b""
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)


class Gate:
    """Holds requests until it is opened."""

    def __init__(self) -> None:
        """Start closed."""
        self._open = threading.Event()

    def open(self) -> None:
        """Let held and later requests pass."""
        self._open.set()

    @property
    def is_open(self) -> bool:
        """Whether requests pass."""
        return self._open.is_set()


@dataclass(slots=True)
class Fault:
    """A fault for the requests that match; the first matching fault counts.

    Attributes:
        method: ``GET``, ``PATCH`` ... or ``WATCH`` and ``LIST``, which are GETs of a collection; "" for all.
        path: A regular expression that is searched for in the path.
        times: The number of requests that it applies to; None for all until it is removed.
        answer: Sent instead of the right response; None lets the request be processed.
        carried_out: Whether the request takes effect although ``answer`` or ``drop`` hide it.
        delay: Seconds before the request is processed.
        gate: Holds the request as long as it is closed.
        drop: Close the connection instead of answering. A watch is dropped as soon as it begins.
        client: A regular expression that is searched for in the User-Agent.
        hits: The number of requests that it was applied to.
    """

    method: str = ""
    path: str = ""
    times: int | None = None
    answer: Answer | None = None
    carried_out: bool = False
    delay: float = 0.0
    gate: Gate | None = None
    drop: bool = False
    client: str = ""
    hits: int = 0

    def applies_to(self, method: str, path: str, client: str) -> bool:
        """Return whether the fault applies to a request, and count it if so."""
        if self.times is not None and self.hits >= self.times:
            return False
        if self.method and self.method != method and not (self.method == "GET" and method == "LIST"):
            return False
        if not re.search(self.path, path) or not re.search(self.client, client):
            return False
        self.hits += 1
        return True


def status(
    code: int, reason: str = "", message: str = "", *, details: Any = None, retry_after: int | None = None
) -> Answer:
    """Return a Status as an API server sends it; ``retry_after`` is in seconds."""
    body = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message or reason,
        "reason": reason,
        "code": code,
        **({"details": details} if details else {}),
    }
    headers = {"Retry-After": str(retry_after)} if retry_after is not None else {}
    return Answer(code, orjson.dumps(body), headers=headers)


def html(code: int = 200) -> Answer:
    """Return a page as a proxy sends it."""
    return Answer(code, b"<html><body>It works!</body></html>", "text/html")
