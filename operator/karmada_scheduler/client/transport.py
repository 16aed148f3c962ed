"""Bytes to and from one API server: the lowest layer of a connection, which a simulation replaces."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from karmada_scheduler.client.http import HttpConnections
from karmada_scheduler.client.http_connection import Response
from karmada_scheduler.client.identity import Identity
from karmada_scheduler.client.sessions import ProxiedConnections, streaming


class ResponseStream(Protocol):
    """A response whose body ends when the server ends it; see ``sessions.ResponseStream``."""

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

    def __init__(self, identity: Identity, *, agent: str) -> None:
        """Prepare; connections are opened by requests. ``agent`` is the User-Agent."""
        self._agent = agent
        self._connections = connections = _connections(identity, agent)
        # Requests are the hot path: they go to the connections without a method in between.
        self.request = connections.request
        self.retire = connections.retire
        self.close = connections.close

    def stream(
        self, identity: Identity, target: str, headers: Mapping[str, str]
    ) -> AbstractAsyncContextManager[ResponseStream]:
        """Send a GET on a connection of its own and yield the response as a stream; OSError without a response."""
        return streaming(identity, target, {**headers, "User-Agent": self._agent})


def _connections(identity: Identity, agent: str) -> HttpConnections | ProxiedConnections:
    if identity.proxy_url:
        return ProxiedConnections(identity, agent=agent)
    return HttpConnections(identity.server, tls=identity.tls, tls_name=identity.tls_name, agent=agent)
