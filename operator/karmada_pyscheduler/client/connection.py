"""One connection to the Karmada API server: credentials, requests, lists, watches.

Every request returns a JSON object or raises ``ApiError``, whatever the server or a proxy in front of it responds with.
Requests go through ``http``, which takes less than half of aiohttp's CPU time. Watches, and requests through a proxy
that the kubeconfig names, go through aiohttp (``sessions``). ``.netrc`` is not read.

A connection belongs to one event loop; a process may have several, each on a loop of its own.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing, nullcontext
from typing import Any, Final, Protocol, TypeVar
from urllib.parse import urlencode, urlsplit

from karmada_pyscheduler.client.http import HttpTransport, ResponseStream, Transport, is_tls_refusal
from karmada_pyscheduler.client.http_connection import OutgoingRequest, Response, decoded, refusal
from karmada_pyscheduler.client.identity import Identity
from karmada_pyscheduler.client.kubeconfig import load
from karmada_pyscheduler.client.kubeconfig_file import NO_OVERRIDES, ConfigOverrides
from karmada_pyscheduler.client.login import Login
from karmada_pyscheduler.client.watch_requests import Lines
from karmada_scheduler import json_body
from karmada_scheduler.api_error import ApiError
from karmada_scheduler.process.daemon_thread import in_daemon_thread
from karmada_scheduler.structs import IdentityStruct

MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH: Final = "application/strategic-merge-patch+json"
JSON: Final = "application/json"

T = TypeVar("T", bound="Response | ResponseStream")


class ApiConnection(Protocol):
    """What reviews, Events and Leases are read with."""

    async def request(self, method: str, path: str, *, body: Any = None, timeout: float) -> dict[str, Any]:
        """Send a request. Raises ApiError."""


class Connection(IdentityStruct):
    """Requests to one API server. Close it when done.

    Attributes:
        login: Server and credentials.
        on_response: Called with the method, the host and the status of every request; 0 without a response.
        transport: Makes a transport that uses these credentials.
        clock: In seconds, never running backwards.
    """

    login: Login
    on_response: Callable[[str, str, int], None] = lambda *_: None
    transport: Callable[[Identity], Transport] = HttpTransport
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._identity = self.login.identity
        self._host = urlsplit(self._identity.server).netloc
        self._connections = self.transport(self._identity)

    @property
    def server(self) -> str:
        """The URL of the API server."""
        return self.login.identity.server

    async def credentials(self) -> Identity:
        """Return the current credentials, for kopf's login."""
        return await self.login.current()

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
        before_send: Callable[[], None] = lambda: None,
    ) -> dict[str, Any]:
        """Send one request and return the parsed response.

        A request that is refused for its credentials (401, or a TLS alert) was not carried out. It is repeated once,
        whatever the method, if there are newer credentials.

        Args:
            method: The HTTP method.
            path: The path from the root of the server, such as ``/apis/work.karmada.io/v1alpha2/…``.
            body: JSON; None for no body.
            content_type: The type of the body.
            query: Query parameters.
            timeout: Seconds for the whole request.
            accept: The ``Accept`` header; all types of JSON.
            before_send: Called just before each attempt is sent, after all waits; an exception ends the request unsent.

        Raises:
            ApiError: Any response but 2xx with a JSON object, and no response (``code`` 0).
        """
        target = f"{path}?{urlencode(query)}" if query else path
        headers = {"Content-Type": content_type, "Accept": accept}
        if method == "GET":
            # Lists are long; the server does not compress short responses.
            headers["Accept-Encoding"] = "gzip"
        before = self.login.identity
        try:
            content = b"" if body is None else json_body.encode(body)
        except ValueError as error:
            raise ApiError(f"{method} {path}: the body cannot be written as JSON: {error}") from error
        request = OutgoingRequest(method, target, headers, content, timeout, before_send)
        deadline = self.clock() + timeout
        try:
            identity = self.login.ready()
            if identity is None:
                async with asyncio.timeout(timeout):
                    identity = await self.login.current()
            identity, response = await self._authorized(
                identity,
                lambda used: self._send(used, request),
                lambda: asyncio.timeout(max(0.0, deadline - self.clock())),
            )
        except OSError as error:  # a TimeoutError is one
            raise self._unreachable(method, error, before) from error
        except ValueError as error:
            raise ApiError(f"cannot log in to {self.server}: {error}") from error
        self.on_response(method, self._host, response.status)
        if 200 <= response.status < 300:
            return await decoded(response, f"{method} {path}")
        raise self._refusal(response, f"{method} {path}", identity)

    def _send(self, identity: Identity, request: OutgoingRequest) -> Coroutine[Any, Any, Response]:
        if identity.authorization is not None:
            request.headers["Authorization"] = identity.authorization
        if identity is not self._identity:
            self._reconnect(self.login.identity)
        return self._connections.request(request)

    def _reconnect(self, identity: Identity) -> None:
        """Use new credentials from now on; requests under way end on the old connections."""
        if identity.route != self._identity.route:
            self._connections.retire()
            self._connections = self.transport(identity)
            self._host = urlsplit(identity.server).netloc
        self._identity = identity

    async def _authorized(
        self,
        identity: Identity,
        send: Callable[[Identity], Awaitable[T]],
        again: Callable[[], AbstractAsyncContextManager[object]] = nullcontext,
    ) -> tuple[Identity, T]:
        """Send a request, and once more with newer credentials if these are refused, and there are others.

        Args:
            identity: The credentials.
            send: Sends it, and returns what has a status.
            again: Entered for the second attempt, with the reading of credentials.

        Returns:
            The credentials that were used last, and the response.

        Raises:
            OSError: There is no response.
        """
        failure: OSError | None = None
        try:
            response = await send(identity)
        except TimeoutError:
            raise
        except OSError as error:
            failure = error
        if failure is None and response.status != 401:
            return identity, response
        async with again():
            other = await self._renewed_credentials(identity, failure)
            if other is not None:
                return other, await send(other)
        if failure is not None:
            raise failure
        return identity, response

    async def _renewed_credentials(self, refused: Identity, failure: OSError | None) -> Identity | None:
        """Return other credentials with which a failed request may be repeated; None if it may not.

        Args:
            refused: The credentials of the failed request.
            failure: The error of the connection, None for a response of 401.
        """
        if failure is None or is_tls_refusal(failure):
            found = await self.login.renewed(refused)
            return found if found.differs_from(refused) else None
        if self.login.explain(refused):
            # Some servers close such a connection without an alert. The request may have been carried out: no repetition.
            await self.login.renewed(refused)
        return None

    def _unreachable(self, method: str, error: OSError, identity: Identity) -> ApiError:
        self.on_response(method, self._host, 0)
        text = str(error) or type(error).__name__
        expired = self.login.explain(identity)
        through = f" through {identity.proxy}" if identity.proxy else ""
        return ApiError(f"cannot reach {self.server}{through}: {text}{f' ({expired})' if expired else ''}")

    def _refusal(self, response: Response, what: str, identity: Identity) -> ApiError:
        known = ""
        if response.status == 401:
            known = self.login.explain(identity)
            known = known or (
                f"the API server does not accept {identity.credential}" if identity.credential else ""
            )
        return refusal(response, what, f" ({known})" if known else "")

    async def watch(
        self, target: str, accepted: Callable[[], None] = lambda: None, *, accept: str = JSON
    ) -> AsyncGenerator[bytes, None]:
        """Yield the lines of a watch, ``LongLine`` for one that is too long, until the server ends it.

        Args:
            target: Path and query.
            accepted: Called when the API server has accepted the watch.
            accept: The ``Accept`` header; all types of JSON.

        Raises:
            ApiError: The watch was not accepted, or the connection broke (``code`` 0).
        """
        lines, before = Lines(), self.login.identity
        try:
            async with aclosing(self._watch_pieces(target, accepted, accept)) as pieces:
                async for piece in pieces:
                    # Responses that arrived at the same time are read first: events of own writes are then known.
                    await asyncio.sleep(0)
                    for line in lines.feed(piece):
                        yield line
        except OSError as error:
            raise self._unreachable("GET", error, before) from error
        except ValueError as error:
            raise ApiError(f"cannot log in to {self.server}: {error}") from error
        if line := lines.end():
            yield line

    async def _watch_pieces(
        self, target: str, accepted: Callable[[], None], accept: str
    ) -> AsyncGenerator[bytes, None]:
        async with AsyncExitStack() as stack:

            async def send(used: Identity) -> ResponseStream | Response:
                headers = {"Accept": accept}
                if used.authorization is not None:
                    headers["Authorization"] = used.authorization
                stream = await stack.enter_async_context(self._connections.stream(used, target, headers))
                if stream.status == 200:
                    return stream
                try:
                    return await stream.refusal()
                finally:
                    await stack.aclose()

            identity, found = await self._authorized(await self.login.current(), send)
            self.on_response("GET", self._host, found.status)
            if isinstance(found, Response):
                raise self._refusal(found, f"GET {target}", identity)
            # Error pages of proxies are text.
            if not found.headers.get("content-type", "").startswith("text/"):
                accepted()
            async with aclosing(found.pieces()) as pieces:
                async for piece in pieces:
                    yield piece

    async def close(self) -> None:
        """Close the sockets."""
        self.login.close()
        await self._connections.close()


async def connect(
    *,
    kubeconfig: str,
    master: str,
    overrides: ConfigOverrides = NO_OVERRIDES,
    has_default: bool = True,
    on_response: Callable[[str, str, int], None] = lambda *_: None,
    clock: Callable[[], float] = time.monotonic,
) -> Connection:
    """Load credentials as karmada-scheduler does: the kubeconfig, else in-cluster, else ~/.kube.

    Args:
        kubeconfig: A path, or "".
        master: The server's address, which overrides the kubeconfig's, or "".
        overrides: What replaces parts of the kubeconfig.
        has_default: Whether ~/.kube is read.
        on_response: See ``Connection``.
        clock: In seconds, never running backwards.

    Raises:
        ConnectionConfigError: There are no usable credentials; the text lists what was tried.
    """

    def read(known: Identity | None) -> Identity:
        return load(
            kubeconfig, master, now=time.time(), known=known, overrides=overrides, has_default=has_default
        )

    first = await in_daemon_thread(lambda: read(None), name="credentials")
    return Connection(Login(read, first, clock=clock), on_response)
