"""One connection to the Karmada API server: who we are, requests, watches, errors.

Whatever the server answers, or what stands in front of it, comes back as a JSON object or as an ``ApiError``. Requests go
through ``http``, which costs less than half of a request through aiohttp; watches, and requests through a proxy that
the kubeconfig names, go through ``sessions``. Proxies and ``.netrc`` of the environment do not count.

A connection belongs to one event loop; a process may have several, each on a loop of its own.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode, urlsplit

import orjson

from karmada_scheduler import __version__
from karmada_scheduler.client import json_body
from karmada_scheduler.client.http import Answer, HttpConnections
from karmada_scheduler.client.identity import ConnectionConfigError, Identity
from karmada_scheduler.client.kubeconfig import load
from karmada_scheduler.client.login import Login
from karmada_scheduler.client.sessions import ProxiedConnections, is_tls_trouble, streaming
from karmada_scheduler.client.watch_lines import Lines
from karmada_scheduler.process.daemon_thread import in_daemon_thread

__all__ = ["ApiError", "Connection", "ConnectionConfigError", "Credentials", "connect"]

MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH: Final = "application/strategic-merge-patch+json"
JSON: Final = "application/json"
LIST_PAGE: Final = 500
LONGEST_RETRY_AFTER_SECONDS: Final = 30.0
"""A server that asks to wait longer is asked again after this time all the same."""

_AGENT: Final = f"karmada-pyscheduler/{__version__}"
_SHOWN: Final = 100
"""Characters of an answer that is none which an error shows."""


class ApiError(Exception):
    """A request that did not succeed.

    Attributes:
        code: The HTTP status, or 0 when there was no answer, or none that makes sense.
        reason: The machine-readable reason of the API's ``Status`` object, such as ``Conflict``.
        causes: The reasons of its ``details.causes``.
        name: Its ``details.name``: which object it is about.
        retry_after: Seconds that the server asked to wait, if it did; at most ``LONGEST_RETRY_AFTER_SECONDS``.
    """

    def __init__(
        self,
        message: str,
        *,
        code: int = 0,
        reason: str = "",
        causes: tuple[str, ...] = (),
        name: str = "",
        retry_after: float | None = None,
    ) -> None:
        """``message`` is what a person should read; upstream's own where the server wrote it."""
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.causes = causes
        self.name = name
        self.retry_after = None if retry_after is None else min(retry_after, LONGEST_RETRY_AFTER_SECONDS)

    @property
    def is_conflict(self) -> bool:
        """Whether the object was changed by someone else since it was read."""
        return self.code == 409 and self.reason == "Conflict"

    @property
    def is_not_found(self) -> bool:
        """Whether nothing was found under the path: no such object, no such kind, or no API server there."""
        return self.code == 404

    def says_gone(self, name: str) -> bool:
        """Tell whether the API server says that the object of this name does not exist.

        A 404 alone may come from a proxy, or from an API server that does not serve the kind yet.
        """
        return self.code == 404 and self.reason == "NotFound" and self.name == name

    @property
    def may_pass(self) -> bool:
        """Whether the server could not take the request just now: it kept silent, was too busy, or failed."""
        return self.code in (0, 429) or self.code >= 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """What another HTTP client needs in order to reach the same server as the same user."""

    server: str
    tls: ssl.SSLContext
    token: str | None
    proxy_url: str | None
    scheme: str = "Bearer"


class _Request(NamedTuple):
    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    timeout: float


class Connection:
    """Requests to one API server. Close it when done."""

    def __init__(self, login: Login, on_answer: Callable[[str, str, int], None] = lambda *_: None) -> None:
        """Take credentials; nothing is sent yet.

        Args:
            login: Where and who.
            on_answer: Told the method, the host and the status of every request; 0 when there was no answer.
        """
        self._login = login
        self._on_answer = on_answer
        self._identity = login.identity
        self._host = urlsplit(self._identity.server).netloc
        self._connections = _connections(self._identity)

    @property
    def server(self) -> str:
        """The URL of the API server."""
        return self._login.identity.server

    async def credentials(self) -> Credentials:
        """Return what kopf needs to log in; read again if that is due."""
        found = await self._login.current()
        scheme, _, token = (found.authorization or "").partition(" ")
        return Credentials(
            server=found.server,
            tls=found.tls,
            token=token or None,
            proxy_url=found.proxy_url,
            scheme=scheme or "Bearer",
        )

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        content_type: str = JSON,
        query: Mapping[str, str] | None = None,
        timeout: float = 30.0,
        accept: str = JSON,
    ) -> dict[str, Any]:
        """Send one request and return the parsed answer.

        One that is refused for its credentials (401, or an alert of TLS) was not carried out. It is sent once more,
        whatever the method, if there are other credentials by then.

        Args:
            method: The HTTP method.
            path: From the root of the server, such as ``/apis/work.karmada.io/v1alpha2/…``.
            body: Anything that JSON can hold; None sends none.
            content_type: Of the body.
            query: Query parameters.
            timeout: Seconds for the whole request.
            accept: The content types that are asked for; all of them JSON.

        Raises:
            ApiError: Any answer but 2xx with a JSON object, and no answer at all (``code`` 0).
        """
        target = f"{path}?{urlencode(query)}" if query else path
        headers = {"Content-Type": content_type, "Accept": accept}
        if method == "GET":
            headers["Accept-Encoding"] = "gzip"  # lists are long; the server leaves short answers as they are
        before = self._login.identity
        try:
            content = b"" if body is None else orjson.dumps(body)
            identity, answer = await self._answered(_Request(method, target, headers, content, timeout))
        except TypeError as error:
            raise ApiError(f"{method} {path}: the body cannot be written as JSON: {error}") from error
        except OSError as error:  # a TimeoutError is one
            raise self._unreachable(method, error, before) from error
        except ValueError as error:
            raise ApiError(f"cannot log in to {self.server}: {error}") from error
        self._on_answer(method, self._host, answer.status)
        if 200 <= answer.status < 300:
            try:
                found = orjson.loads(answer.body)
            except orjson.JSONDecodeError:
                found = await _mended(answer, f"{method} {path}")
            if type(found) is not dict:
                raise _nonsense(answer, f"{method} {path}")
            return found
        raise self._refusal(answer, f"{method} {path}", identity)

    async def _answered(self, request: _Request) -> tuple[Identity, Answer]:
        begun = time.monotonic()
        identity = self._login.ready()
        if identity is None:
            async with asyncio.timeout(request.timeout):
                identity = await self._login.current()
        failure: OSError | None = None
        try:
            answer = await self._send(identity, request)
            if answer.status != 401:
                return identity, answer
        except TimeoutError:
            raise
        except OSError as error:
            failure = error
        async with asyncio.timeout(max(0.0, begun + request.timeout - time.monotonic())):
            other = await self._instead_of(identity, failure)
            if other is not None:
                return other, await self._send(other, request)
        if failure is not None:
            raise failure
        return identity, answer

    def _send(self, identity: Identity, request: _Request) -> Coroutine[Any, Any, Answer]:
        method, target, headers, body, timeout = request
        if identity.authorization is not None:
            headers["Authorization"] = identity.authorization
        if identity is not self._identity:
            self._follow(self._login.identity)
        return self._connections.request(method, target, headers=headers, body=body, timeout=timeout)

    def _follow(self, identity: Identity) -> None:
        """Connect with new credentials from now on; what is under way ends on connections of before."""
        if identity.route != self._identity.route:
            self._connections.retire()
            self._connections = _connections(identity)
            self._host = urlsplit(identity.server).netloc
        self._identity = identity

    async def _instead_of(self, refused: Identity, failure: OSError | None) -> Identity | None:
        """Return other credentials to repeat a request with that failed; None if it is not to be repeated.

        Args:
            refused: Those that it was sent with.
            failure: What ended the connection, None for an answer of 401.
        """
        if failure is None or is_tls_trouble(failure):
            found = await self._login.renewed(refused)
            return found if found.differs_from(refused) else None
        if self._login.explain(refused):
            # Some servers end such a connection without a word. What was asked may have been done, so it is not repeated.
            await self._login.renewed(refused)
        return None

    def _unreachable(self, method: str, error: OSError, identity: Identity) -> ApiError:
        self._on_answer(method, self._host, 0)
        text = str(error) or type(error).__name__
        expired = self._login.explain(identity)
        return ApiError(f"cannot reach {self.server}: {text}{f' ({expired})' if expired else ''}")

    def _refusal(self, answer: Answer, what: str, identity: Identity) -> ApiError:
        known = ""
        if answer.status == 401:
            known = self._login.explain(identity)
            known = known or (
                f"the API server does not accept {identity.credential}" if identity.credential else ""
            )
        return refusal(answer, what, f" ({known})" if known else "")

    async def list_pages(
        self, path: str, *, accept: str = JSON
    ) -> AsyncIterator[tuple[list[dict[str, Any]], str]]:
        """Yield the items of a list page by page, each with the list's resourceVersion.

        Items that cannot be read, or have no name, are stand-ins (``json_body.unreadable``).

        Raises:
            ApiError: As ``request``, and for an object that is no list; 410 when the list took longer than the server
                keeps it.
        """
        following: asyncio.Task[Any] | None = self._ask_for_page(path, accept)
        token = ""
        try:
            while following is not None:
                items, version, continued = _page(await following, f"GET {path}")
                if continued and continued == token:
                    raise ApiError(f"GET {path}: the list has a page that is followed by itself")
                token = continued
                # The server makes the next page while this one is taken in.
                following = self._ask_for_page(path, accept, token) if token else None
                yield [json_body.checked(item) for item in items], version
        finally:
            if following is not None:
                following.cancel()

    def _ask_for_page(self, path: str, accept: str, token: str = "") -> asyncio.Task[Any]:
        query = {"limit": str(LIST_PAGE), "continue": token} if token else {"limit": str(LIST_PAGE)}
        request = self.request("GET", path, query=query, timeout=120.0, accept=accept)
        return asyncio.create_task(request, name=f"list {path}")

    async def watch(
        self, target: str, accepted: Callable[[], None] = lambda: None, *, accept: str = JSON
    ) -> AsyncGenerator[bytes, None]:
        """Yield the lines of a watch, ``LongLine`` for one that is too long, until the server ends it.

        Args:
            target: Path and query.
            accepted: Called when the API server has accepted it.
            accept: The content types that are asked for; all of them JSON.

        Raises:
            ApiError: It could not be begun, or the connection broke (``code`` 0).
        """
        lines, before = Lines(), self._login.identity
        try:
            async with aclosing(self._watched(target, accepted, accept)) as pieces:
                async for piece in pieces:
                    for line in lines.feed(piece):
                        yield line
        except OSError as error:
            raise self._unreachable("GET", error, before) from error
        except ValueError as error:
            raise ApiError(f"cannot log in to {self.server}: {error}") from error
        if line := lines.end():
            yield line

    async def _watched(
        self, target: str, accepted: Callable[[], None], accept: str
    ) -> AsyncGenerator[bytes, None]:
        identity = await self._login.current()
        is_repeated = False
        while True:
            headers = {"Accept": accept, "User-Agent": _AGENT}
            if identity.authorization is not None:
                headers["Authorization"] = identity.authorization
            failure: OSError | None = None
            try:
                async with streaming(identity, target, headers) as stream:
                    if stream.status == 200:
                        self._on_answer("GET", self._host, stream.status)
                        if not stream.headers.get("content-type", "").startswith(
                            "text/"
                        ):  # as pages of proxies are
                            accepted()
                        async with aclosing(stream.pieces()) as pieces:
                            async for piece in pieces:
                                yield piece
                        return
                    answer = await stream.refusal()
            except OSError as error:
                failure = error
            other = None
            if not is_repeated and (failure is not None or answer.status == 401):
                other = await self._instead_of(identity, failure)
            if other is None and failure is not None:
                raise failure
            if other is None:
                self._on_answer("GET", self._host, answer.status)
                raise self._refusal(answer, f"GET {target}", identity)
            identity, is_repeated = other, True

    async def close(self) -> None:
        """Close the sockets."""
        self._login.close()
        await self._connections.close()


def _connections(identity: Identity) -> HttpConnections | ProxiedConnections:
    if identity.proxy_url:
        return ProxiedConnections(identity, agent=_AGENT)
    return HttpConnections(identity.server, tls=identity.tls, tls_name=identity.tls_name, agent=_AGENT)


async def _mended(answer: Answer, what: str) -> Any:
    """Decode what orjson refuses, in a thread since that takes long; ApiError for what is no JSON."""
    try:
        return await asyncio.to_thread(json_body.decode, answer.body)
    except ValueError as error:
        raise _nonsense(answer, what) from error


def _nonsense(answer: Answer, what: str) -> ApiError:
    kind = answer.headers.get("content-type") or "without a content type"
    text = answer.body[: 4 * _SHOWN].decode(errors="replace")[:_SHOWN].strip()
    shown = repr(text) if text else "an empty body"
    return ApiError(f"{what}: expected a JSON object, got HTTP {answer.status}, {kind}: {shown}")


def _page(answer: Mapping[str, Any], what: str) -> tuple[list[Any], str, str]:
    """Return items, resourceVersion and token of a page; ApiError if it is none."""
    metadata = answer.get("metadata")
    if not isinstance(metadata, dict):
        raise _no_list(answer, what)
    items = answer.get("items", ())
    version, token = metadata.get("resourceVersion"), metadata.get("continue") or ""
    if items is None:
        items = []  # how Go writes an empty one that nobody made
    if not isinstance(items, list) or not isinstance(version, str) or not isinstance(token, str):
        raise _no_list(answer, what)
    if not json_body.is_version(version):
        raise _no_list(answer, what)
    return items, version, token


def _no_list(answer: Mapping[str, Any], what: str) -> ApiError:
    text = orjson.dumps(json_body.shallow(answer, 3), default=str)[:_SHOWN].decode(errors="replace")
    return ApiError(f"{what}: expected a list with a resourceVersion, got: {text}")


def refusal(answer: Answer, what: str, explanation: str = "") -> ApiError:
    """Make an error of an answer that is not 2xx; ``explanation`` follows its text."""
    try:
        status = orjson.loads(answer.body)
    except orjson.JSONDecodeError:
        status = None
    if not isinstance(status, dict):
        status = {"message": answer.body[:200].decode(errors="replace").strip()}
    message, reason, details = status.get("message"), status.get("reason"), status.get("details")
    details = details if isinstance(details, dict) else {}
    name, causes = details.get("name"), details.get("causes")
    reasons = [cause.get("reason") for cause in _objects(causes)]
    retry_after = answer.headers.get("retry-after", "")
    is_number = retry_after.isascii() and retry_after.isdigit() and len(retry_after) < 10
    text = message if isinstance(message, str) and message else f"{what}: HTTP {answer.status}"
    return ApiError(
        text + explanation,
        code=answer.status,
        reason=reason if isinstance(reason, str) else "",
        causes=tuple(each for each in reasons if isinstance(each, str)),
        name=name if isinstance(name, str) else "",
        retry_after=float(retry_after) if is_number else None,
    )


def _objects(value: object) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


async def connect(
    *,
    kubeconfig: str,
    master: str,
    on_answer: Callable[[str, str, int], None] = lambda *_: None,
    clock: Callable[[], float] = time.monotonic,
    now: Callable[[], float] = time.time,
) -> Connection:
    """Load credentials as karmada-scheduler does: the kubeconfig, else in-cluster, else ~/.kube.

    Args:
        kubeconfig: A path, or "".
        master: The server's address, which then overrides the kubeconfig's, or "".
        on_answer: See ``Connection``.
        clock: In seconds, never running backwards.
        now: The time of day in seconds since 1970.

    Raises:
        ConnectionConfigError: Nothing usable was found; the text says what was tried.
    """

    def read(known: Identity | None) -> Identity:
        return load(kubeconfig, master, now=now(), known=known)

    first = await in_daemon_thread(lambda: read(None), name="credentials")
    return Connection(Login(read, first, clock=clock, now=now), on_answer)
