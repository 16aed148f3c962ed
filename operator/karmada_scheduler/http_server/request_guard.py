"""Which requests to a server for people and tools are answered: by name, by origin, by size and by rate."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

MAX_BODY: Final = 2**20
"""Bytes of the body of a POST."""

_LOCAL: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """How many requests are answered, of all readers together.

    Attributes:
        rate: Requests per second.
        burst: Requests above that at once.
        connections: Open at the same time.
        streams: Those of them whose response does not end by itself.
    """

    rate: float = 20.0
    burst: float = 40.0
    connections: int = 32
    streams: int = 16


@dataclass(frozen=True, slots=True)
class Access:
    """Who may read.

    Attributes:
        hosts: The names in ``Host`` besides those of this machine, in lower case.
        flag: The flag that adds a name.
        authorize: Returns who asks, or why they get no answer; called with the headers of a request. None where anyone who
            reaches the address may read.
    """

    hosts: frozenset[str] = frozenset()
    flag: str = "--explain-allowed-host"
    authorize: Callable[[Mapping[str, str]], Awaitable[object]] | None = None


@dataclass(frozen=True, slots=True)
class RequestRefusal:
    """Why a request is not answered.

    Attributes:
        status: The HTTP status.
        text: One sentence.
        headers: Of the response.
        close: Whether the connection is closed, because the rest of the request is not read.
    """

    status: int
    text: str
    headers: Mapping[str, str] = field(default_factory=dict)
    close: bool = False


class RequestGuard:
    """Checks the head of each request before anything is done for it."""

    def __init__(self, access: Access, limits: RequestLimits, clock: Callable[[], float]) -> None:
        """Count requests from now on; ``clock`` returns seconds."""
        self._flag = access.flag
        self._hosts = _LOCAL | access.hosts
        self._limits = limits
        self._clock = clock
        self._tokens = limits.burst
        self._at = clock()

    def refusal(
        self,
        method: str,
        headers: Mapping[str, str],
        *,
        has_body: bool,
        content_length: int,
        is_limited: bool = True,
    ) -> RequestRefusal | None:
        """Return why a request is refused, None if it is answered.

        Args:
            method: For example ``GET``.
            headers: With names in any case.
            has_body: Whether a body follows.
            content_length: Of the body; 0 if it is not known.
            is_limited: Whether the rate of requests counts.
        """
        if _without_port(headers.get("Host", "")) not in self._hosts:
            return RequestRefusal(
                403, f"the Host header is not a name of this machine; see {self._flag}", close=has_body
            )
        if is_cross_site(method, headers):
            return RequestRefusal(403, "the request comes from a page of another site", close=has_body)
        if method == "GET" and has_body:
            return RequestRefusal(413, "requests have no body", close=True)
        if content_length > MAX_BODY:
            return RequestRefusal(413, f"the body has more than {MAX_BODY // 2**10:,} KiB", close=True)
        if is_limited and not self._take():
            return RequestRefusal(429, "too many requests", {"Retry-After": "1"}, close=has_body)
        return None

    def _take(self) -> bool:
        now = self._clock()
        self._tokens = min(self._limits.burst, self._tokens + (now - self._at) * self._limits.rate)
        self._at = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True


def is_cross_site(method: str, headers: Mapping[str, str]) -> bool:
    """Return whether a browser sends the request for a page of another site.

    A person who follows a link, or opens an address, is answered; an image, a script, a frame or a form of another
    page is not. Another port of this machine is another site, too. A client that is no browser sends neither header.
    """
    site = headers.get("Sec-Fetch-Site")
    if site is None:
        origin = headers.get("Origin")
        return origin is not None and urlsplit(origin).netloc.lower() != headers.get("Host", "").lower()
    if site in {"same-origin", "none"}:
        return False
    is_opened = headers.get("Sec-Fetch-Mode") == "navigate" and headers.get("Sec-Fetch-Dest") == "document"
    return not (method == "GET" and is_opened)


def _without_port(host: str) -> str:
    name, separator, port = host.lower().rpartition(":")
    return name if separator and port.isdigit() else host.lower()
