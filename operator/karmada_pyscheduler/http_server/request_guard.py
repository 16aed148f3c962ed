"""Requests to a server for people and tools, which of them are answered (by name, origin, size and rate), and responses."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final, NamedTuple, Protocol
from urllib.parse import urlsplit

from karmada_pyscheduler.http_server.connections import SHARE, Network, counted_as
from karmada_scheduler.rate_limit import RatesByName, TokenBucket
from karmada_scheduler.structs import Struct, field

MAX_BODY: Final = 2**20
"""Bytes of the body of a POST."""

_LOCAL: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})


class Requester(Protocol):
    """Somebody who was let in."""

    @property
    def name(self) -> str:
        """The name of the user."""


class RequestLimits(Struct, frozen=True):
    """How many requests are answered. Of each number for all, one address gets half (``connections.SHARE``).

    Attributes:
        rate: Requests per second, of all users together; as many of those who are none.
        burst: Requests above that at once.
        connections: Open at the same time.
        streams: Those of them whose response does not end by itself.
        user_rate: Requests per second of one user.
        user_burst: Requests above that at once.
        user_streams: Streams of one user.
    """

    rate: float = 40.0
    burst: float = 80.0
    connections: int = 64
    streams: int = 32
    user_rate: float = 10.0
    user_burst: float = 60.0
    user_streams: int = 20


async def _do_nothing() -> None:
    """Nothing has to be opened or closed."""


class Access(Struct, frozen=True):
    """Who may read.

    Attributes:
        hosts: The names in ``Host`` besides those of this machine, in lower case; None for any name, where readers send what no
            page of another site can: a bearer token.
        flag: The flag that adds a name.
        authorize: Returns who asks, or why they get no answer; called with the headers of a request, and the address that it
            comes from. None where anyone who reaches the address may read.
        is_open: Returns whether a path is answered to anybody; requests for it are counted all the same.
        proxies: Where proxies send requests from; their ``X-Forwarded-For`` says who asks.
        open: Called before the server listens.
        close: Called when it has stopped.
    """

    hosts: frozenset[str] | None = frozenset()
    flag: str = "--explain-allowed-host"
    authorize: Callable[[Mapping[str, str], str], Awaitable[Requester | RequestRefusal]] | None = None
    is_open: Callable[[str], bool] = lambda _: False
    proxies: tuple[Network, ...] = ()
    open: Callable[[], Awaitable[None]] = _do_nothing
    close: Callable[[], Awaitable[None]] = _do_nothing


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
    """Checks the head of each request before anything is done for it, then who asks: first the bounds of one, then those of all."""

    def __init__(self, access: Access, limits: RequestLimits, clock: Callable[[], float]) -> None:
        """Count requests from now on; ``clock`` returns seconds."""
        self._flag = access.flag
        self._hosts = None if access.hosts is None else _LOCAL | access.hosts
        self._clock = clock
        self._limits = limits
        self._of_addresses = RatesByName(limits.rate * SHARE, limits.burst * SHARE)
        self._of_users = RatesByName(limits.user_rate, limits.user_burst)
        # Who has no token cannot use up the rate of those who have one.
        self._of_all = {is_user: TokenBucket(limits.rate, limits.burst, clock()) for is_user in (False, True)}
        self._streams: Counter[tuple[str, str]] = Counter()

    def refusal(
        self,
        method: str,
        headers: Mapping[str, str],
        address: str,
        *,
        has_body: bool,
        content_length: int,
        is_limited: bool = True,
    ) -> RequestRefusal | None:
        """Return why a request is refused, None if it is answered.

        Args:
            method: For example ``GET``.
            headers: With names in any case.
            address: That it comes from.
            has_body: Whether a body follows.
            content_length: Of the body; 0 if it is not known.
            is_limited: Whether the rate of requests of the address counts.
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
        if is_limited and not self._of_addresses.take(counted_as(address), self._clock()):
            return _too_many(f"requests of {address}", close=has_body)
        return None

    def refusal_of(self, user: str) -> RequestRefusal | None:
        """Return why a request of a user, "" for anybody, is refused by its rate, None if it is answered."""
        now = self._clock()
        if user and not self._of_users.take(user, now):
            return _too_many(f"requests of {user}")
        return None if self._of_all[bool(user)].take(now) else _too_many("requests")

    @contextmanager
    def stream(self, user: str, address: str) -> Iterator[RequestRefusal | None]:
        """Count a stream of a user, "" for anybody, in the block; yield why it cannot be, None if it can."""
        bounds = {
            **({("user", user): self._limits.user_streams} if user else {}),
            ("address", counted_as(address)): self._limits.streams * SHARE,
            ("all", ""): self._limits.streams,
        }
        full = next((kind for kind, most in bounds.items() if self._streams[kind] >= most), None)
        if full is not None:
            whose = {"user": f" of {user}", "address": f" of {address}"}.get(full[0], "")
            yield _too_many(f"event streams{whose}", close=True)
            return
        self._streams.update(bounds.keys())
        try:
            yield None
        finally:
            self._streams.subtract(bounds.keys())
            self._streams = +self._streams  # without those of nobody


def _too_many(what: str, *, close: bool = False) -> RequestRefusal:
    return RequestRefusal(429, f"too many {what}", {"Retry-After": "1"}, close=close)


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


class HttpRequest(Struct, frozen=True):
    """A request.

    Attributes:
        path: The values of the variable parts of the path.
        query: The parameters; of one that is repeated, the last.
        target: Path and parameters as they were sent.
        form: The fields of the body of a POST.
        method: ``GET`` or ``POST``.
        requester: The name of the user; of others the address that the request comes from.
        viewer: Who asks, as ``Access.authorize`` says; None without it.
    """

    path: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    target: str = "/"
    form: Mapping[str, str] = field(default_factory=dict)
    method: str = "GET"
    requester: str = ""
    viewer: object = None


class HttpResponse(Struct, frozen=True):
    """A response.

    Attributes:
        body: Its parts; the next one is taken when the reader has taken the one before.
        status: The HTTP status.
        content_type: The type of the content.
        is_stream: Whether it does not end by itself.
    """

    body: AsyncIterator[bytes]
    status: int = 200
    content_type: str = "application/json"
    is_stream: bool = False


class Document(Struct, frozen=True):
    """A response that is complete; it is compressed for readers that accept that.

    Attributes:
        headers: Besides those of every response.
        cookies: The values of ``Set-Cookie`` headers.
    """

    body: bytes
    status: int = 200
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    cookies: tuple[str, ...] = ()


class AnsweredRequest(NamedTuple):
    """What is known of a request once it is answered. Neither headers nor parameters nor the body are in it.

    Attributes:
        method: For example ``GET``.
        route: The pattern of its path, such as ``/b/{namespace}/{name}``; "" if there is none.
        path: The values of the variable parts of the path.
        user: Who asked; "" if it is not known.
        address: Where the request came from.
        status: The HTTP status.
        seconds: How long the answer took; of a stream, until its end.
    """

    method: str
    route: str
    path: Mapping[str, str]
    user: str
    address: str
    status: int
    seconds: float


AsyncHandler = Callable[[HttpRequest], Awaitable[HttpResponse | Document]]
ProblemPage = Callable[[RequestRefusal, str], bytes]
"""Returns the HTML of a refusal of a request, from the refusal and the target of the request."""
