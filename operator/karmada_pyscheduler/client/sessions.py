"""The part of the HTTP transport that uses aiohttp: watches, and requests through a proxy.

Errors of aiohttp are raised as OSErrors.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager

import aiohttp

from karmada_pyscheduler.client.http import AGENT, MAX_RESPONSE
from karmada_pyscheduler.client.http_connection import OutgoingRequest, Response
from karmada_pyscheduler.client.identity import Identity

_CONNECT_SECONDS = 30.0
_MAX_REFUSAL = 64 * 1024
_MAX_CONNECTIONS = 256


@contextmanager
def _os_errors() -> Iterator[None]:
    """Raise errors of aiohttp as OSErrors; many of them are."""
    try:
        yield
    except aiohttp.ClientHttpProxyError as error:  # its own text has the password
        raise OSError(f"it answers {error.status} {error.message}") from None
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

    async def request(self, request: OutgoingRequest) -> Response:
        """Send one request; as ``HttpConnections.request``, but an exception of ``before_send`` is raised as OSError."""
        if self._session is None:
            self._session = _session(self._identity, aiohttp.ClientTimeout(total=None))
        self._in_flight += 1
        try:
            with _os_errors():
                async with self._session.request(
                    request.method,
                    f"{self._identity.server}{request.target}",
                    headers={
                        **request.headers,
                        "User-Agent": AGENT,
                        "Content-Length": str(len(request.body)),
                    },
                    data=_checked(request) if request.body else None,
                    proxy=self._identity.proxy_url,
                    server_hostname=self._identity.tls_name,
                    allow_redirects=False,
                    timeout=aiohttp.ClientTimeout(total=request.timeout),
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


async def _checked(request: OutgoingRequest) -> AsyncIterator[bytes]:
    """Yield a body, which aiohttp sends when it has a connection. A request without its body is not carried out."""
    request.before_send()
    yield request.body


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
