"""The HTTP transport of a connection.

aiohttp takes as long to import as a short answer of a command takes to compute. It is imported for the first watch, and for
requests through a proxy.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Protocol

from karmada_pyscheduler.client.http import HttpConnections
from karmada_pyscheduler.client.http_connection import OutgoingRequest, Response
from karmada_pyscheduler.client.identity import Identity

if TYPE_CHECKING:
    from karmada_pyscheduler.client.sessions import ProxiedConnections

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
