"""The HTTP transport of a connection, and HTTP/1.1 to one server over persistent connections, for all requests but watches.

A placed binding takes four requests. Through aiohttp they took a third of the scheduler's CPU time; ``make bench-http``
prints the difference. httptools parses responses. There are no redirects, cookies, proxies or streams.
docs/decisions/0013-http-client.md has the measurements.

aiohttp takes as long to import as a short answer of a command takes to compute. It is imported for the first watch, and for
requests through a proxy.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Final, Protocol
from urllib.parse import quote, urlsplit

import aiohappyeyeballs

from karmada_pyscheduler.client.identity import Identity
from karmada_scheduler import __version__

if TYPE_CHECKING:
    from karmada_pyscheduler.client.sessions import ProxiedConnections
import zlib
from typing import Any, NamedTuple, cast

import httptools
import orjson

from karmada_scheduler import json_body
from karmada_scheduler.api_error import ApiError
from karmada_scheduler.structs import Struct

_GZIP: Final = 16 + zlib.MAX_WBITS


class ConnectionLostError(ConnectionError):
    """The connection ended before the response did.

    Attributes:
        no_response: Whether no byte of a response had arrived.
        refused_tls: Whether the server ended it with a TLS alert before it read any request, as when it does not
            accept our certificate.
    """

    def __init__(self, message: str, *, no_response: bool, refused_tls: bool = False) -> None:
        """``message`` is the reason."""
        super().__init__(message)
        self.no_response = no_response
        self.refused_tls = refused_tls


class Response(Struct, frozen=True):
    """The response of a server; the names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class OutgoingRequest(NamedTuple):
    """A request for a server.

    Attributes:
        method: Any but HEAD and CONNECT.
        target: Path and query.
        headers: Headers besides ``Host``, ``User-Agent`` and ``Content-Length``.
        body: The body; empty for none.
        timeout: Seconds for the whole request.
        before_send: Called when there is a connection, just before the request is sent. An exception of it is raised, and
            nothing is sent.
    """

    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    timeout: float
    before_send: Callable[[], None] = lambda: None


class PersistentConnection(asyncio.Protocol):
    """One connection, which carries one request at a time."""

    def __init__(self, max_response: int) -> None:
        self.is_lost = False
        self.was_used = False
        self.idle_since = 0.0
        self._max_response = max_response
        self._received = 0
        self._is_first = True
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._response: asyncio.Future[Response] | None = None
        self._keeps_alive = False
        self._has_data = False
        self._is_final = False
        self._headers: dict[str, str] = {}
        self._pieces: list[bytes] = []

    @property
    def is_reusable(self) -> bool:
        """Whether the server accepts another request."""
        return self._keeps_alive and not self.is_lost

    def send(self, data: bytes) -> asyncio.Future[Response]:
        """Send a request and return its response; a caller that stops waiting has to close the connection."""
        self._response = asyncio.get_running_loop().create_future()
        self._is_first = not self.was_used
        self._has_data, self._is_final, self.was_used = False, False, True
        self._received = 0
        if self._transport is None or self.is_lost:
            self._fail("the server closed the connection")
        else:
            self._transport.write(data)
        return self._response

    def close(self) -> None:
        self.is_lost = True
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's are none by inheritance

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_lost = True
        has_length = "content-length" in self._headers or "transfer-encoding" in self._headers
        if self._is_final and exc is None and not has_length:
            self._complete()
        # With TLS 1.3 a server verifies our certificate when the first request may already have been sent.
        refused = self._is_first and not self._has_data and isinstance(exc, ssl.SSLError)
        self._fail(str(exc) if exc else "the server closed the connection", refused_tls=refused)
        # Both refer to the connection, and cyclic garbage is collected rarely (process.memory).
        self._transport = None
        del self._parser

    def data_received(self, data: bytes) -> None:
        if self._response is None:
            self.close()  # without a request, such as a 408 before the server closes an idle connection
            return
        self._has_data = True
        self._received += len(data)
        if self._received > self._max_response:
            self._fail(self._too_long())
            self.close()
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._fail(f"the response is not HTTP/1.1: {error}")
            self.close()

    def on_message_begin(self) -> None:
        self._headers, self._pieces = {}, []
        if self._response is None:
            self.close()  # a second response to one request: the connection cannot be trusted

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self._is_final = self._parser.get_status_code() >= 200

    def on_body(self, body: bytes) -> None:
        self._pieces.append(body)

    def on_message_complete(self) -> None:
        if self._is_final:  # else an interim response such as 100 Continue
            self._keeps_alive = self._parser.should_keep_alive()
            self._complete()

    def _complete(self) -> None:
        response, self._response, self._is_final = self._response, None, False
        if response is None or response.done():
            return
        body = b"".join(self._pieces)
        try:
            if self._headers.get("content-encoding") == "gzip":
                body = self._unpacked(body)
            response.set_result(Response(self._parser.get_status_code(), self._headers, body))
        except (EOFError, zlib.error) as error:
            response.set_exception(OSError(f"the response's gzip is broken: {error}"))
        except OSError as too_long:
            response.set_exception(too_long)

    def _unpacked(self, body: bytes) -> bytes:
        unpacker = zlib.decompressobj(_GZIP)
        plain = unpacker.decompress(body, self._max_response)
        if unpacker.unconsumed_tail:
            raise OSError(self._too_long())
        if not unpacker.eof:
            raise EOFError("it ends too early")
        return plain

    def _too_long(self) -> str:
        return f"the response is longer than {self._max_response} bytes"

    def _fail(self, why: str, *, refused_tls: bool = False) -> None:
        response, self._response = self._response, None
        if response is not None and not response.done():
            lost = ConnectionLostError(why, no_response=not self._has_data, refused_tls=refused_tls)
            response.set_exception(lost)


_SHOWN: Final = 100
"""Characters of an unexpected response that an error shows."""


async def decoded(response: Response, what: str) -> dict[str, Any]:
    """Return the JSON object of a response with a 2xx status; ApiError for anything else than an object.

    Args:
        response: The response.
        what: The request, for the error.
    """
    try:
        found = orjson.loads(response.body)
    except orjson.JSONDecodeError:
        found = await _decoded_slowly(response, what)
    if type(found) is not dict:
        raise _unexpected(response, what)
    return found


async def _decoded_slowly(response: Response, what: str) -> Any:
    """Decode JSON that orjson refuses, in a thread because that takes long; ApiError if it is not JSON."""
    try:
        return await asyncio.to_thread(json_body.decode, response.body)
    except ValueError as error:
        raise _unexpected(response, what) from error


def _unexpected(response: Response, what: str) -> ApiError:
    kind = response.headers.get("content-type") or "without a content type"
    text = response.body[: 4 * _SHOWN].decode(errors="replace")[:_SHOWN].strip()
    shown = repr(text) if text else "an empty body"
    return ApiError(f"{what}: expected a JSON object, got HTTP {response.status}, {kind}: {shown}")


def list_page(response: Mapping[str, Any], what: str) -> tuple[list[Any], str, str]:
    """Return the items, the resourceVersion and the continue token of a page; ApiError if it is not a list."""
    metadata = response.get("metadata")
    if not isinstance(metadata, dict):
        raise _not_a_list(response, what)
    items = response.get("items", ())
    version, token = metadata.get("resourceVersion"), metadata.get("continue") or ""
    if items is None:
        items = []  # Go writes a nil slice as null
    if not isinstance(items, list) or not isinstance(token, str):
        raise _not_a_list(response, what)
    if not isinstance(version, str) or not json_body.is_version(version):
        raise _not_a_list(response, what)
    return items, version, token


def _not_a_list(response: Mapping[str, Any], what: str) -> ApiError:
    text = orjson.dumps(json_body.shallow(response, 3), default=str)[:_SHOWN].decode(errors="replace")
    return ApiError(f"{what}: expected a list with a resourceVersion, got: {text}")


def refusal(response: Response, what: str, explanation: str = "") -> ApiError:
    """Return the error of a response without a 2xx status; ``explanation`` follows its text."""
    try:
        status = orjson.loads(response.body)
    except orjson.JSONDecodeError:
        status = None
    if not isinstance(status, dict):
        body = response.body[:200].decode(errors="replace").strip()
        status = {"message": f"{what}: HTTP {response.status}: {body}"} if body else {}
    message, reason, details = status.get("message"), status.get("reason"), status.get("details")
    details = details if isinstance(details, dict) else {}
    name, causes = details.get("name"), details.get("causes")
    reasons = [cause.get("reason") for cause in _objects(causes)]
    retry_after = response.headers.get("retry-after", "")
    is_number = retry_after.isascii() and retry_after.isdigit() and len(retry_after) < 10
    text = message if isinstance(message, str) and message else f"{what}: HTTP {response.status}"
    return ApiError(
        text + explanation,
        code=response.status,
        reason=reason if isinstance(reason, str) else "",
        causes=tuple(each for each in reasons if isinstance(each, str)),
        name=name if isinstance(name, str) else "",
        retry_after=float(retry_after) if is_number else None,
    )


def _objects(value: object) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


_CHAIN = 10

AGENT: Final = f"karmada-pyscheduler/{__version__}"
"""The ``User-Agent`` header."""

_IDLE_SECONDS: Final = 15.0
"""Servers and load balancers close idle connections; the shortest usual time is about 20 seconds."""

MAX_RESPONSE: Final = 512 * 1024 * 1024
"""Maximum length of a response in bytes. 500 objects at etcd's limit of 1.5 MiB each would be longer, but real objects
have a few kilobytes."""

_EYEBALLS_SECONDS: Final = 0.25
_UNQUOTED: Final = "/:@!$&'()*+,;=-._~%?"


def is_tls_refusal(error: BaseException | None) -> bool:
    """Return whether a connection failed because one side did not accept the other's certificate."""
    for _ in range(_CHAIN):
        if error is None:
            break
        if isinstance(error, ssl.SSLError) or getattr(error, "refused_tls", False):
            return True
        error = error.__cause__ or error.__context__
    return False


class ResponseStream(Protocol):
    """A response whose body ends when the server ends it; see ``Stream``."""

    status: int
    headers: Mapping[str, str]

    def pieces(self) -> AsyncGenerator[bytes, None]: ...

    async def refusal(self) -> Response: ...


class Transport(Protocol):
    """Sends requests with the credentials that it was made with, and watches with those of the call.

    ``request`` is described at ``HttpConnections.request``, ``stream`` at ``sessions.streaming``.
    """

    async def request(self, request: OutgoingRequest) -> Response: ...

    def stream(
        self, identity: Identity, target: str, headers: Mapping[str, str]
    ) -> AbstractAsyncContextManager[ResponseStream]: ...

    def retire(self) -> None:
        """Close the connections when no request is under way; new requests use another transport."""

    async def close(self) -> None:
        """Close every connection; requests under way fail."""


class HttpTransport:
    """The transport over HTTP, through the proxy of the kubeconfig if there is one."""

    def __init__(self, identity: Identity) -> None:
        """Prepare; connections are opened by requests."""
        self._connections = connections = _connections(identity)
        # Requests are the hot path: they go to the connections without a method in between.
        self.request = connections.request
        self.retire = connections.retire
        self.close = connections.close

    def stream(
        self, identity: Identity, target: str, headers: Mapping[str, str]
    ) -> AbstractAsyncContextManager[ResponseStream]:
        """Send a GET on a connection of its own, see ``sessions.streaming``."""
        from karmada_pyscheduler.client.sessions import streaming  # commands watch nothing

        return streaming(identity, target, headers)


def _connections(identity: Identity) -> HttpConnections | ProxiedConnections:
    if identity.proxy_url:
        from karmada_pyscheduler.client.sessions import ProxiedConnections

        return ProxiedConnections(identity)
    return HttpConnections(identity.server, tls=identity.tls, tls_name=identity.tls_name)


class HttpConnections:
    """Persistent connections to one server, one for each request under way."""

    def __init__(
        self,
        server: str,
        *,
        tls: ssl.SSLContext | None,
        tls_name: str | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare; connections are opened by requests.

        Args:
            server: ``http://…`` or ``https://…``, possibly with a path in front of every request's path.
            tls: The TLS context; None for Python's default.
            tls_name: The name that the server's certificate has to have, if it is not that of the URL.
            clock: In seconds, never running backwards.
        """
        url = urlsplit(server)
        if url.scheme not in {"http", "https"} or not url.hostname:
            raise ValueError(f"{server!r} is not the URL of an HTTP server")
        self._host = url.hostname
        self._port = url.port or (443 if url.scheme == "https" else 80)
        self._tls = (tls or ssl.create_default_context()) if url.scheme == "https" else None
        self._tls_name = (tls_name or self._host) if self._tls else None
        self._prefix = url.path.rstrip("/")
        self._common = f"Host: {url.netloc.rpartition('@')[2]}\r\nUser-Agent: {AGENT}\r\n"
        self._clock = clock
        self._is_retired = False
        self._idle: list[PersistentConnection] = []
        self._busy: set[PersistentConnection] = set()

    async def request(self, request: OutgoingRequest) -> Response:
        """Send one request. A GET is repeated when a persistent connection turns out to have ended.

        Raises:
            TimeoutError: It took longer.
            OSError: No connection, or it ended before the response did, or the response is not HTTP, or too long.
            ValueError: A header has a line break.
        """
        data = self._bytes_of(request)
        async with asyncio.timeout(request.timeout):
            while True:
                connection = self._take() or await self._open()
                was_used = connection.was_used
                self._busy.add(connection)
                try:
                    request.before_send()
                    response = await connection.send(data)
                except BaseException as error:
                    connection.close()  # a late response must not be taken for that of the next request
                    lost = isinstance(error, ConnectionLostError) and error.no_response
                    if not (lost and was_used and request.method == "GET"):
                        raise
                else:
                    self._release(connection)
                    return response
                finally:
                    self._busy.discard(connection)

    def retire(self) -> None:
        """Close each connection when its request has ended; new requests use other connections."""
        self._is_retired = True
        while self._idle:
            self._idle.pop().close()

    async def close(self) -> None:
        """Close every connection; requests under way fail."""
        for connection in (*self._idle, *self._busy):
            connection.close()

    def _release(self, connection: PersistentConnection) -> None:
        """Keep a connection whose request has ended for the next one, or close it."""
        if connection.is_reusable and not self._is_retired:
            connection.idle_since = self._clock()
            self._idle.append(connection)
        else:
            connection.close()

    def _take(self) -> PersistentConnection | None:
        now = self._clock()
        while self._idle:
            connection = self._idle.pop()
            if now - connection.idle_since <= _IDLE_SECONDS and not connection.is_lost:
                return connection
            connection.close()
        return None

    async def _open(self) -> PersistentConnection:
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)
        sock = await aiohappyeyeballs.start_connection(found, happy_eyeballs_delay=_EYEBALLS_SECONDS)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        _, connection = await loop.create_connection(
            lambda: PersistentConnection(MAX_RESPONSE),
            sock=sock,
            ssl=self._tls,
            server_hostname=self._tls_name,
        )
        return connection

    def _bytes_of(self, request: OutgoingRequest) -> bytes:
        method, path, headers, body, _, _ = request
        lines = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
        if lines.count("\n") != len(headers) or lines.count("\r") != len(headers):
            raise ValueError("a header has a line break in it")
        target = quote(self._prefix + path, safe=_UNQUOTED)
        head = f"{method} {target} HTTP/1.1\r\n{self._common}{lines}Content-Length: {len(body)}\r\n\r\n"
        return head.encode("latin-1") + body
