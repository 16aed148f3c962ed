"""An HTTP server that is read by people and tools, not by the platform: no request has an effect, everything is bounded.

Its address is a loopback address, unless each request is authorized. ``kubectl port-forward`` reaches it, so the right to
forward ports of a Pod is the right to read. A page of another origin cannot read it: the ``Host`` header must be a name of this machine, which a page behind a
rebound DNS name does not send, and no response permits another origin. It cannot make the server work either
(``process.request_guard``). A POST is a question that is too long for an address.

The scheduler runs it in the supervisor's event loop, and ``karmada-pyscheduler web`` in a thread of its own. Responses are
written in parts, with pauses, so that a reader that is slow or reads nothing costs a connection for some seconds and no more.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from aiohttp import web

from karmada_scheduler.http_server.messages import (
    AnsweredRequest,
    AsyncHandler,
    Document,
    Handler,
    HttpRequest,
    HttpResponse,
    ProblemPage,
)
from karmada_scheduler.http_server.request_guard import (
    MAX_BODY,
    Access,
    RequestGuard,
    RequestLimits,
    RequestRefusal,
)
from karmada_scheduler.http_server.responses import (
    VIEWER,
    add_headers,
    answered,
    form_of,
    problem,
    requester_of,
    send,
    whole,
)
from karmada_scheduler.http_server.server import listen

log = logging.getLogger(__name__)

_IDLE_SECONDS: Final = 10.0
"""How long a connection may be open without a complete request."""
_LEAST_BYTES: Final = 2**16
"""What a reader takes of a response in that time at least."""
_LINGER_SECONDS: Final = 1.0
"""How long the body of a refused request is read and dropped, so that the reader gets the response."""

_LOOPBACK_ONLY: Final = Access()
_FEW: Final = RequestLimits()


class ReadOnlyServer:
    """One listener."""

    def __init__(
        self,
        address: str,
        routes: Mapping[str, Handler | AsyncHandler],
        *,
        posts: Mapping[str, AsyncHandler] | None = None,
        always: frozenset[str] = frozenset(),
        tls: ssl.SSLContext | None = None,
        access: Access = _LOOPBACK_ONLY,
        limits: RequestLimits = _FEW,
        name: str = "explain",
        problem_page: ProblemPage | None = None,
        on_response: Callable[[AnsweredRequest], None] = lambda _: None,
        on_error: Callable[[], None] = lambda: None,
    ) -> None:
        """Prepare; ``start`` listens.

        Args:
            address: ``host:port``.
            routes: Handlers by path; ``{name}`` in a path stands for one part of it.
            posts: Handlers of POST requests with the fields of a form.
            always: Paths that are answered to everybody, whatever the number of requests and connections: those of probes.
            tls: The context with the server's certificate; None for HTTP.
            access: Who may read.
            limits: How many requests are answered.
            name: Of the server, for its log line.
            problem_page: Makes the pages of refusals for browsers; None for JSON only.
            on_response: Gets each request when it is answered.
            on_error: Called when a handler fails.
        """
        self._address = address
        self._routes = routes
        self._posts = posts or {}
        self._always = always
        self._tls = tls
        self._access = access
        self._limits = limits
        self._name = name
        self._problem_page = problem_page
        self._on_response = on_response
        self._on_error = on_error
        self._streams: set[asyncio.Task[object]] = set()
        self._busy: set[object] = set()
        self._runner: web.AppRunner | None = None
        self._sweeper: asyncio.Task[None] | None = None
        self._guard = RequestGuard(access, limits, time.monotonic)

    async def start(self) -> None:
        """Listen; ListenError has the address that is in use or not local."""
        app = web.Application(middlewares=[self._checked], client_max_size=MAX_BODY)
        for path, handler in self._routes.items():
            app.router.add_get(path, self._handle(handler), allow_head=False)
        for path, handler in self._posts.items():
            app.router.add_post(path, self._handle(handler))
        app.on_response_prepare.append(add_headers)
        self._runner = web.AppRunner(
            app,
            access_log=None,
            handle_signals=False,
            handler_cancellation=True,  # a stream that sends nothing would not notice that its reader has gone
            shutdown_timeout=0.5,
            lingering_time=_LINGER_SECONDS,
        )
        await self._runner.setup()
        await listen(self._runner, self._address, backlog=self._limits.connections, tls=self._tls)
        self._sweeper = asyncio.create_task(self._sweep(), name="close idle readers")
        log.info("Starting %s server on %s", self._name, self._address)

    async def stop(self) -> None:
        """Close the listener and its connections."""
        if self._sweeper is not None:
            self._sweeper.cancel()
        for stream in self._streams:
            stream.cancel()
        if self._runner is not None:
            await self._runner.cleanup()

    @web.middleware
    async def _checked(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        """Refuse requests that must not be answered, and count responses."""
        self._busy.add(request.protocol)
        began = asyncio.get_running_loop().time()
        try:
            response = self._refusal(request) or await self._unauthorized(request) or await handler(request)
        except web.HTTPException as refusal:
            response = self._problem(request, RequestRefusal(refusal.status, refusal.reason))
            if "Allow" in refusal.headers:
                response.headers["Allow"] = refusal.headers["Allow"]
            if request.can_read_body:
                response.force_close()
        except Exception:
            self._on_error()
            log.exception("Cannot answer %s", request.path[:200])
            response = self._problem(request, RequestRefusal(500, "internal error"))
        finally:
            self._busy.discard(request.protocol)
        self._on_response(answered(request, response.status, asyncio.get_running_loop().time() - began))
        return response

    def _refusal(self, request: web.Request) -> web.Response | None:
        refused = self._guard.refusal(
            request.method,
            request.headers,
            has_body=bool(
                request.content_length
                or "Transfer-Encoding" in request.headers
                or "Upgrade" in request.headers
            ),
            content_length=request.content_length or 0,
            is_limited=request.path not in self._always,
        )
        if refused is not None:
            response = problem(refused.status, refused.text, close=refused.close)
            response.headers.update(refused.headers)
            return response
        server = self._runner.server if self._runner is not None else None
        if (
            server is not None
            and len(server.connections) > self._limits.connections
            and request.path not in self._always
        ):
            return problem(503, "too many connections", close=True)
        return None

    async def _unauthorized(self, request: web.Request) -> web.Response | None:
        is_open = request.path in self._always or self._access.is_open(request.path)
        if self._access.authorize is None or is_open:
            return None
        found = await self._access.authorize(request.headers)
        refused: RequestRefusal | None
        if isinstance(found, RequestRefusal):
            refused = found
        else:
            request[VIEWER] = found
            refused = self._guard.refusal_of_user(found)
        if refused is None:
            return None
        response = self._problem(request, refused)
        if request.can_read_body:
            response.force_close()
        return response

    def _problem(self, request: web.Request, refused: RequestRefusal) -> web.Response:
        if self._problem_page is None or "text/html" not in request.headers.get("Accept", ""):
            response = problem(refused.status, refused.whole_text)
        else:
            body = self._problem_page(refused, request.path_qs)
            response = web.Response(
                body=body, status=refused.status, content_type="text/html", charset="utf-8"
            )
        response.headers.update(refused.headers)
        return response

    def _handle(
        self, handler: Handler | AsyncHandler
    ) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def handle(request: web.Request) -> web.StreamResponse:
            found = handler(
                HttpRequest(
                    request.match_info,
                    dict(request.query),
                    request.path_qs,
                    await form_of(request) if request.method == "POST" else {},
                    request.method,
                    requester_of(request),
                    request.get(VIEWER),
                )
            )
            answer = found if isinstance(found, HttpResponse) else await found
            if isinstance(answer, Document):
                return whole(answer)
            if not answer.is_stream:
                return await send(request, answer)
            if len(self._streams) >= self._limits.streams:
                return problem(503, "too many event streams", close=True)
            task = asyncio.current_task()
            assert task is not None  # a handler runs in a task
            self._streams.add(task)
            try:
                return await send(request, answer)
            finally:
                self._streams.discard(task)

        return handle

    async def _sweep(self) -> None:
        """Close connections that were without a request twice in a row, so that they do not accumulate.

        A response that its reader takes goes on; a connection whose reader takes nothing is dropped with the rest of it.
        """
        untaken_before: dict[object, int] = {}
        while True:
            await asyncio.sleep(_IDLE_SECONDS)
            server = self._runner.server if self._runner is not None else None
            untaken: dict[object, int] = {}
            for connection in server.connections if server is not None else ():
                transport = connection.transport
                if connection in self._busy or transport is None:
                    continue
                untaken[connection] = size = transport.get_write_buffer_size()
                before = untaken_before.get(connection)
                if before is None:
                    continue
                if not size:
                    connection.force_close()
                elif before - size < _LEAST_BYTES:
                    transport.abort()
            untaken_before = untaken
