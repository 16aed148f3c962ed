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

from karmada_pyscheduler.client.http_connection import (
    ConnectionLostError,
    OutgoingRequest,
    PersistentConnection,
    Response,
)
from karmada_pyscheduler.client.identity import Identity
from karmada_scheduler import __version__

if TYPE_CHECKING:
    from karmada_pyscheduler.client.sessions import ProxiedConnections

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
