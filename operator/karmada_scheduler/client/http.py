"""HTTP/1.1 to one server over persistent connections, for all requests but watches.

A placed binding takes four requests. Through aiohttp they took a third of the scheduler's CPU time; ``make bench-http``
prints the difference. httptools parses responses. There are no redirects, cookies, proxies or streams.
docs/decisions/0013-http-client.md has the measurements.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, cast
from urllib.parse import quote, urlsplit

import aiohappyeyeballs
import httptools

_IDLE_SECONDS: Final = 15.0
"""Servers and load balancers close idle connections; the shortest usual time is about 20 seconds."""

MAX_RESPONSE: Final = 512 * 1024 * 1024
"""Maximum length of a response in bytes. 500 objects at etcd's limit of 1.5 MiB each would be longer, but real objects
have a few kilobytes."""

_EYEBALLS_SECONDS: Final = 0.25
_GZIP: Final = 16 + zlib.MAX_WBITS
_UNQUOTED: Final = "/:@!$&'()*+,;=-._~%?"


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


@dataclass(frozen=True, slots=True)
class Response:
    """The response of a server; the names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class HttpConnections:
    """Persistent connections to one server, one for each request under way."""

    def __init__(
        self,
        server: str,
        *,
        tls: ssl.SSLContext | None,
        tls_name: str | None,
        agent: str,
        clock: Callable[[], float] = time.monotonic,
        max_response: int = MAX_RESPONSE,
    ) -> None:
        """Prepare; connections are opened by requests.

        Args:
            server: ``http://…`` or ``https://…``, possibly with a path in front of every request's path.
            tls: The TLS context; None for Python's default.
            tls_name: The name that the server's certificate has to have, if it is not that of the URL.
            agent: The ``User-Agent`` header.
            clock: In seconds, never running backwards.
            max_response: Bytes of the longest response that is taken in, compressed or not.
        """
        url = urlsplit(server)
        if url.scheme not in {"http", "https"} or not url.hostname:
            raise ValueError(f"{server!r} is not the URL of an HTTP server")
        self._host = url.hostname
        self._port = url.port or (443 if url.scheme == "https" else 80)
        self._tls = (tls or ssl.create_default_context()) if url.scheme == "https" else None
        self._tls_name = (tls_name or self._host) if self._tls else None
        self._prefix = url.path.rstrip("/")
        self._common = f"Host: {url.netloc.rpartition('@')[2]}\r\nUser-Agent: {agent}\r\n"
        self._clock = clock
        self._max_response = max_response
        self._is_retired = False
        self._idle: list[_PersistentConnection] = []
        self._busy: set[_PersistentConnection] = set()

    async def request(
        self, method: str, path: str, *, headers: Mapping[str, str], body: bytes = b"", timeout: float
    ) -> Response:
        """Send one request. A GET is repeated when a persistent connection turns out to have ended.

        Args:
            method: Any but HEAD and CONNECT.
            path: Path and query.
            headers: Headers besides ``Host``, ``User-Agent`` and ``Content-Length``.
            body: The body; empty for none.
            timeout: Seconds for the whole request.

        Raises:
            TimeoutError: It took longer.
            OSError: No connection, or it ended before the response did, or the response is not HTTP, or too long.
            ValueError: A header has a line break.
        """
        data = self._bytes_of(method, path, headers, body)
        async with asyncio.timeout(timeout):
            while True:
                connection = self._take() or await self._open()
                was_used = connection.was_used
                try:
                    return await self._exchange(connection, data)
                except ConnectionLostError as error:
                    if not (was_used and error.no_response and method == "GET"):
                        raise

    def retire(self) -> None:
        """Close each connection when its request has ended; new requests use other connections."""
        self._is_retired = True
        while self._idle:
            self._idle.pop().close()

    async def close(self) -> None:
        """Close every connection; requests under way fail."""
        for connection in (*self._idle, *self._busy):
            connection.close()

    async def _exchange(self, connection: _PersistentConnection, data: bytes) -> Response:
        self._busy.add(connection)
        try:
            response = await connection.send(data)
        except BaseException:
            connection.close()  # a late response must not be taken for that of the next request
            raise
        finally:
            self._busy.discard(connection)
        if connection.is_reusable and not self._is_retired:
            connection.idle_since = self._clock()
            self._idle.append(connection)
        else:
            connection.close()
        return response

    def _take(self) -> _PersistentConnection | None:
        now = self._clock()
        while self._idle:
            connection = self._idle.pop()
            if now - connection.idle_since <= _IDLE_SECONDS and not connection.is_lost:
                return connection
            connection.close()
        return None

    async def _open(self) -> _PersistentConnection:
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)
        sock = await aiohappyeyeballs.start_connection(found, happy_eyeballs_delay=_EYEBALLS_SECONDS)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        _, connection = await loop.create_connection(
            lambda: _PersistentConnection(self._max_response),
            sock=sock,
            ssl=self._tls,
            server_hostname=self._tls_name,
        )
        return connection

    def _bytes_of(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> bytes:
        lines = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
        if lines.count("\n") != len(headers) or lines.count("\r") != len(headers):
            raise ValueError("a header has a line break in it")
        target = quote(self._prefix + path, safe=_UNQUOTED)
        head = f"{method} {target} HTTP/1.1\r\n{self._common}{lines}Content-Length: {len(body)}\r\n\r\n"
        return head.encode("latin-1") + body


class _PersistentConnection(asyncio.Protocol):
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
        if self._is_final and exc is None and not self._has_length():
            self._complete()
        # With TLS 1.3 a server verifies our certificate when the first request may already have been sent.
        refused = self._is_first and not self._has_data and isinstance(exc, ssl.SSLError)
        self._fail(str(exc) if exc else "the server closed the connection", refused_tls=refused)

    def data_received(self, data: bytes) -> None:
        if (
            self._response is None
        ):  # without a request, such as a 408 before the server closes an idle connection
            self.close()
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

    def _has_length(self) -> bool:
        return "content-length" in self._headers or "transfer-encoding" in self._headers

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
