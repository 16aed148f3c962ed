"""Which requests to a server for people and tools are answered: by name, by origin, by size and by rate."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Protocol
from urllib.parse import urlsplit

from karmada_scheduler.rate_limit import TokenBucket
from karmada_scheduler.structs import Struct, field

MAX_BODY: Final = 2**20
"""Bytes of the body of a POST."""

_LOCAL: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})
_MAX_RATES: Final = 10_000
"""Requesters whose rate is known; of more, those who asked least recently start with a whole burst."""
_MAX_NAME: Final = 253
"""Characters of what tells requesters apart; a part of it may be a header, which may be long."""


class Requester(Protocol):
    """Somebody who was let in."""

    @property
    def name(self) -> str:
        """The name of the user."""


class RequestLimits(Struct, frozen=True):
    """How many requests are answered.

    Attributes:
        rate: Requests per second, of all readers together.
        burst: Requests above that at once.
        connections: Open at the same time.
        streams: Those of them whose response does not end by itself.
        user_rate: Requests per second of one user.
        user_burst: Requests above that at once.
    """

    rate: float = 20.0
    burst: float = 40.0
    connections: int = 32
    streams: int = 16
    user_rate: float = 10.0
    user_burst: float = 60.0


class RequestRates:
    """Counts the requests of each requester against the same rate."""

    def __init__(self, rate: float, burst: float) -> None:
        """Allow each of them ``burst`` requests at once, and ``rate`` per second."""
        self._rate, self._burst = rate, burst
        self._rates: OrderedDict[str, TokenBucket] = OrderedDict()

    def allows(self, name: str, now: float) -> bool:
        """Return whether a request of a requester would be within the rate."""
        known = self._rates.get(name[:_MAX_NAME])
        return known is None or known.allows(now)

    def take(self, name: str, now: float) -> bool:
        """Count a request of a requester; return whether it is within the rate."""
        key = name[:_MAX_NAME]
        known = self._rates.pop(key, None) or TokenBucket(self._rate, self._burst, now)
        self._rates[key] = known
        if len(self._rates) > _MAX_RATES:
            self._rates.popitem(last=False)
        return known.take(now)


class Access(Struct, frozen=True):
    """Who may read.

    Attributes:
        hosts: The names in ``Host`` besides those of this machine, in lower case; None for any name, where readers send what no
            page of another site can: a bearer token.
        flag: The flag that adds a name.
        authorize: Returns who asks, or why they get no answer; called with the headers of a request. None where anyone who
            reaches the address may read.
        is_open: Returns whether a path is answered to anybody; requests for it are counted all the same.
    """

    hosts: frozenset[str] | None = frozenset()
    flag: str = "--explain-allowed-host"
    authorize: Callable[[Mapping[str, str]], Awaitable[Requester | RequestRefusal]] | None = None
    is_open: Callable[[str], bool] = lambda _: False


class RequestRefusal(Struct, frozen=True):
    """Why a request is not answered.

    Attributes:
        status: The HTTP status.
        text: Why, as a sentence.
        hint: What to do about it, as a sentence; "" without one. A page may offer it instead.
        headers: Of the response.
        close: Whether the connection is closed, because the rest of the request is not read.
    """

    status: int
    text: str
    headers: Mapping[str, str] = field(default_factory=dict)
    close: bool = False
    hint: str = ""

    @property
    def whole_text(self) -> str:
        """Why, and what to do about it."""
        return f"{self.text} {self.hint}" if self.hint else self.text


class RequestGuard:
    """Checks the head of each request before anything is done for it."""

    def __init__(self, access: Access, limits: RequestLimits, clock: Callable[[], float]) -> None:
        """Count requests from now on; ``clock`` returns seconds."""
        self._flag = access.flag
        self._hosts = None if access.hosts is None else _LOCAL | access.hosts
        self._clock = clock
        self._rate = TokenBucket(limits.rate, limits.burst, clock())
        self._of_users = RequestRates(limits.user_rate, limits.user_burst)

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
        if self._hosts is not None and _without_port(headers.get("Host", "")) not in self._hosts:
            return RequestRefusal(
                421, f"the Host header is not a name of this machine; see {self._flag}", close=has_body
            )
        if is_cross_site(method, headers):
            return RequestRefusal(403, "the request comes from a page of another site", close=has_body)
        if method == "GET" and has_body:
            return RequestRefusal(413, "requests have no body", close=True)
        if content_length > MAX_BODY:
            return RequestRefusal(413, f"the body has more than {MAX_BODY // 2**10:,} KiB", close=True)
        if is_limited and not self._rate.take(self._clock()):
            return RequestRefusal(429, "too many requests", {"Retry-After": "1"}, close=has_body)
        return None

    def refusal_of_user(self, requester: Requester) -> RequestRefusal | None:
        """Return why a request of somebody is refused whom the rate of all together lets in, None if it is answered."""
        if self._of_users.take(requester.name, self._clock()):
            return None
        return RequestRefusal(429, f"too many requests of {requester.name}", {"Retry-After": "1"})


def is_cross_site(method: str, headers: Mapping[str, str]) -> bool:
    """Return whether a browser sends the request for a page of another site.

    A person who follows a link, or opens an address, is answered; an image, a script, a frame or a form of another
    page is not. Another port of this machine is another site, too. A client that is no browser sends neither header, and
    no cookie; with one, a POST needs the origin of this page.
    """
    site, origin = headers.get("Sec-Fetch-Site"), headers.get("Origin")
    is_ours = origin is not None and _host_of(origin) == headers.get("Host", "").lower()
    if method == "POST" and "Cookie" in headers and not is_ours:
        return True
    if site is None:
        return origin is not None and not is_ours
    if site in {"same-origin", "none"}:
        return False
    is_opened = headers.get("Sec-Fetch-Mode") == "navigate" and headers.get("Sec-Fetch-Dest") == "document"
    return not (method == "GET" and is_opened)


def bearer_token(headers: Mapping[str, str]) -> str:
    """Return the bearer token of a request; "" without one."""
    scheme, _, token = headers.get("Authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _host_of(origin: str) -> str | None:
    """Return host and port of an Origin header; None for ``null`` and what is no URL."""
    try:
        return urlsplit(origin).netloc.lower() or None
    except ValueError:
        return None


def _without_port(host: str) -> str:
    name, separator, port = host.lower().rpartition(":")
    return name if separator and port.isdigit() else host.lower()
