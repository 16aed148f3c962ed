"""The HTTP transport of a connection, and its part that uses aiohttp: watches, and requests through a proxy.

Errors of aiohttp are raised as OSErrors.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import Protocol

import aiohttp

from karmada_scheduler.client.http import AGENT, MAX_RESPONSE, HttpConnections
from karmada_scheduler.client.http_connection import Response
from karmada_scheduler.client.identity import Identity

_CONNECT_SECONDS = 30.0
_MAX_REFUSAL = 64 * 1024
_MAX_CONNECTIONS = 256
_CHAIN = 10


def is_tls_refusal(error: BaseException | None) -> bool:
    """Return whether a connection failed because one side did not accept the other's certificate."""
    for _ in range(_CHAIN):
        if error is None:
            break
        if isinstance(error, ssl.SSLError) or getattr(error, "refused_tls", False):
            return True
        error = error.__cause__ or error.__context__
    return False


@contextmanager
def _os_errors() -> Iterator[None]:
    """Raise errors of aiohttp as OSErrors; many of them are."""
    try:
        yield
    except aiohttp.ClientError as error:
        if isinstance(error, OSError):
            raise
        raise OSError(str(error) or type(error).__name__) from error


class Stream:
    """A response whose body ends when the server ends it."""

    def __init__(self, status: int, headers: Mapping[str, str], response: aiohttp.ClientResponse) -> None:
        """``streaming`` makes it."""
        self.status = status
        self.headers = headers
        self._response = response

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        """Yield the body in pieces as they arrive; OSError when the connection breaks."""
        with _os_errors():
            async for piece in self._response.content.iter_any():
                yield piece

    async def refusal(self) -> Response:
        """Return the response with the beginning of its body."""
        with _os_errors():
            body = await self._response.content.read(_MAX_REFUSAL)
        return Response(self.status, self.headers, body)


@asynccontextmanager
async def streaming(identity: Identity, target: str, headers: Mapping[str, str]) -> AsyncIterator[Stream]:
    """Send a GET on a connection of its own and yield the response as a stream; OSError without a response."""
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS)
    async with _session(identity, timeout) as session:
        with _os_errors():
            response = await session.get(
                f"{identity.server}{target}",
                headers={**headers, "User-Agent": AGENT},
                proxy=identity.proxy_url,
                server_hostname=identity.tls_name,
                allow_redirects=False,
            )
        async with response:
            yield Stream(response.status, _lower(response.headers), response)


class ProxiedConnections:
    """Requests through the proxy of a kubeconfig; has the methods of ``HttpConnections``."""

    def __init__(self, identity: Identity) -> None:
        """Prepare; connections are opened by requests."""
        self._identity = identity
        self._in_flight = 0
        self._is_retired = False
        self._closing: asyncio.Task[None] | None = None
        self._session: aiohttp.ClientSession | None = None

    async def request(
        self, method: str, path: str, *, headers: Mapping[str, str], body: bytes = b"", timeout: float
    ) -> Response:
        """Send one request; as ``HttpConnections.request``."""
        if self._session is None:
            self._session = _session(self._identity, aiohttp.ClientTimeout(total=None))
        self._in_flight += 1
        try:
            with _os_errors():
                async with self._session.request(
                    method,
                    f"{self._identity.server}{path}",
                    headers={**headers, "User-Agent": AGENT},
                    data=body,
                    proxy=self._identity.proxy_url,
                    server_hostname=self._identity.tls_name,
                    allow_redirects=False,
                    timeout=aiohttp.ClientTimeout(total=timeout),
                ) as response:
                    content = await _whole(response)
                    return Response(response.status, _lower(response.headers), content)
        finally:
            self._in_flight -= 1
            if self._is_retired and not self._in_flight:
                await self.close()

    def retire(self) -> None:
        """Close the connections when no request is under way; new requests use other connections."""
        self._is_retired = True
        if not self._in_flight:
            self._closing = asyncio.create_task(self.close())

    async def close(self) -> None:
        """Close every connection; requests under way fail."""
        if self._session is not None:
            await self._session.close()


async def _whole(response: aiohttp.ClientResponse) -> bytes:
    pieces: list[bytes] = []
    length = 0
    async for piece in response.content.iter_any():
        pieces.append(piece)
        length += len(piece)
        if length > MAX_RESPONSE:
            raise OSError(f"the response is longer than {MAX_RESPONSE} bytes")
    return b"".join(pieces)


def _session(identity: Identity, timeout: aiohttp.ClientTimeout) -> aiohttp.ClientSession:
    connector = aiohttp.TCPConnector(ssl=identity.tls, limit=_MAX_CONNECTIONS)
    return aiohttp.ClientSession(connector=connector, timeout=timeout, trust_env=False)


def _lower(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


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

    async def request(
        self, method: str, path: str, *, headers: Mapping[str, str], body: bytes = b"", timeout: float
    ) -> Response: ...

    def stream(
        self, identity: Identity, target: str, headers: Mapping[str, str]
    ) -> AbstractAsyncContextManager[ResponseStream]: ...

    def retire(self) -> None:
        """Close the connections when no request is under way; new requests use another transport."""
        ...

    async def close(self) -> None:
        """Close every connection; requests under way fail."""
        ...


class HttpTransport:
    """The transport over HTTP, through the proxy of the kubeconfig if there is one."""

    def __init__(self, identity: Identity) -> None:
        """Prepare; connections are opened by requests."""
        self._connections = connections = _connections(identity)
        # Requests are the hot path: they go to the connections without a method in between.
        self.request = connections.request
        self.retire = connections.retire
        self.close = connections.close
        self.stream = streaming


def _connections(identity: Identity) -> HttpConnections | ProxiedConnections:
    if identity.proxy_url:
        return ProxiedConnections(identity)
    return HttpConnections(identity.server, tls=identity.tls, tls_name=identity.tls_name)
