"""An HTTP server that is read by people and tools, not by the platform: no request has an effect, everything is bounded.

Its address is a loopback address, unless each request is authorized. ``kubectl port-forward`` reaches it, so the right to
forward ports of a Pod is the right to read. A page of another origin cannot read it: the ``Host`` header must be a name of this machine, which a page behind a
rebound DNS name does not send, and no response permits another origin. It cannot make the server work either
(``process.request_guard``). A POST is a question that is too long for an address.

The scheduler runs it in the supervisor's event loop, and ``karmada-pyscheduler web`` in its main thread. Responses are
written in parts, with pauses, so that a reader that is slow or reads nothing costs a connection for some seconds and no more.

``Server`` has the probes and the metrics. Both addresses may be the same; then one server has all paths, as upstream.
``/healthz`` fails when the main event loop has been blocked for some time; ``/readyz`` fails then, and when a cache is
not filled or its watch is down. A standby is ready: its caches are complete.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Final
from urllib.parse import parse_qsl

from aiohttp import web

from karmada_pyscheduler.http_server.connections import OpenConnections, sender_of
from karmada_pyscheduler.http_server.listener import Listener
from karmada_pyscheduler.http_server.request_guard import (
    MAX_BODY,
    Access,
    AnsweredRequest,
    AsyncHandler,
    Document,
    HttpRequest,
    HttpResponse,
    ProblemPage,
    Requester,
    RequestGuard,
    RequestLimits,
    RequestRefusal,
)
from karmada_scheduler.structs import IdentityStruct, field

_WRITE_SECONDS: Final = 10.0
"""How long a reader may take for a part of a response."""
_BODY_SECONDS: Final = 10.0
"""How long a reader may take for the body of a POST."""
_MAX_FIELDS: Final = 100
_FORM: Final = "application/x-www-form-urlencoded"

_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",
    "Vary": "Authorization, Cookie",
    "X-Content-Type-Options": "nosniff",
    "Server": "karmada-pyscheduler",
}
_COMPRESSED_BYTES: Final = 1024
"""Bodies of at least this size are compressed if the reader accepts it."""

_VIEWER: Final = web.RequestKey("viewer", Requester)
"""The key of a request under which its ``Requester`` is."""
_ADDRESS: Final = web.RequestKey("address", str)
"""The key of a request under which the address is that it comes from."""


async def _read_form(request: web.Request) -> Mapping[str, str]:
    """Return the fields of a form; of one that is repeated, the last.

    Raises:
        HTTPException: The body is no form, it is too large, or it does not arrive.
    """
    if request.content_type != _FORM:
        raise web.HTTPUnsupportedMediaType(reason=f"expected a form ({_FORM})")
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            body = await request.read()
        return dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=_MAX_FIELDS))
    except TimeoutError:
        raise web.HTTPRequestTimeout(reason="the body has not arrived") from None
    except ValueError as error:  # no UTF-8, or too many fields
        raise web.HTTPBadRequest(reason="the body is no form") from error


def _answered(request: web.Request, status: int, seconds: float) -> AnsweredRequest:
    """Return what is known of a request once it is answered."""
    found = request.match_info
    resource = found.route.resource
    return AnsweredRequest(
        request.method,
        "" if resource is None else resource.canonical,
        found,
        _user_of(request),
        request[_ADDRESS],
        status,
        seconds,
    )


def _user_of(request: web.Request) -> str:
    """Return the name of the user who was let in; "" without one."""
    viewer = request.get(_VIEWER)
    return "" if viewer is None else viewer.name


async def _send(request: web.Request, answer: HttpResponse) -> web.StreamResponse:
    """Send a response in parts; a reader that takes nothing of one for ``_WRITE_SECONDS`` is dropped."""
    response = web.StreamResponse(status=answer.status)
    response.content_type = answer.content_type
    response.charset = "utf-8"
    await response.prepare(request)
    try:
        async for part in answer.body:
            async with asyncio.timeout(_WRITE_SECONDS):
                await response.write(part)
        async with asyncio.timeout(_WRITE_SECONDS):
            await response.write_eof()
    except (TimeoutError, ConnectionError):
        # The reader has gone, or takes nothing: drop the connection with the data that it has not taken.
        if request.transport is not None:
            request.transport.abort()
    return response


def _whole(answer: Document) -> web.Response:
    """Return a response that is complete, compressed where it pays."""
    response = web.Response(
        body=answer.body,
        status=answer.status,
        content_type=answer.content_type,
        charset="utf-8",
        headers=answer.headers,
    )
    for cookie in answer.cookies:
        response.headers.add("Set-Cookie", cookie)
    if len(answer.body) >= _COMPRESSED_BYTES:
        response.enable_compression()
    return response


async def _add_headers(_: web.BaseRequest, response: web.StreamResponse) -> None:
    """Add the headers of every response."""
    for name, value in _HEADERS.items():
        response.headers.setdefault(name, value)
    response.headers["Server"] = _HEADERS["Server"]


def _json_problem(refused: RequestRefusal) -> web.Response:
    """Return a refusal as JSON."""
    response = web.json_response({"error": {"message": refused.whole_text}}, status=refused.status)
    response.headers.update(refused.headers)
    if refused.close:
        response.force_close()
    return response


log = logging.getLogger(__name__)

_LINGER_SECONDS: Final = 1.0
"""How long the body of a refused request is read and dropped, so that the reader gets the response."""

_LOOPBACK_ONLY: Final = Access()
_FEW: Final = RequestLimits()


class ReadOnlyServer(IdentityStruct):
    """One listener.

    Attributes:
        address: ``host:port``.
        routes: Handlers by path; ``{name}`` in a path stands for one part of it.
        posts: Handlers of POST requests with the fields of a form.
        always: Paths that are answered to everybody, whatever the number of requests: those of probes.
        tls: The context with the server's certificate; None for HTTP.
        access: Who may read.
        limits: How many requests are answered.
        name: Of the server, for its log line.
        problem_page: Makes the pages of refusals for browsers; None for JSON only.
        on_response: Gets each request when it is answered.
        on_error: Called when a handler fails.
    """

    address: str
    routes: Mapping[str, AsyncHandler]
    posts: Mapping[str, AsyncHandler] = field(default_factory=dict)
    always: frozenset[str] = frozenset()
    tls: ssl.SSLContext | None = None
    access: Access = _LOOPBACK_ONLY
    limits: RequestLimits = _FEW
    name: str = "explain"
    problem_page: ProblemPage | None = None
    on_response: Callable[[AnsweredRequest], None] = lambda _: None
    on_error: Callable[[], None] = lambda: None
    _streams: set[asyncio.Task[object]] = field(default_factory=set)
    _runner: web.AppRunner | None = None
    _listener: Listener | None = None

    def __post_init__(self) -> None:
        self._connections = OpenConnections(
            self.limits.connections, time.monotonic, proxies=self.access.proxies
        )
        self._guard = RequestGuard(self.access, self.limits, time.monotonic)

    async def start(self) -> None:
        """Listen; ListenError has the address that is in use or not local."""
        await self.access.open()
        app = web.Application(middlewares=[self._checked], client_max_size=MAX_BODY)
        for path, handler in self.routes.items():
            app.router.add_get(path, self._handle(handler), allow_head=path in self.always)
        for path, handler in self.posts.items():
            app.router.add_post(path, self._handle(handler))
        app.on_response_prepare.append(_add_headers)
        self._runner = web.AppRunner(
            app,
            access_log=None,
            handle_signals=False,
            handler_cancellation=True,  # a stream that sends nothing would not notice that its reader has gone
            shutdown_timeout=0.5,
            lingering_time=_LINGER_SECONDS,
        )
        await self._runner.setup()
        assert self._runner.server is not None  # it is set up
        self._listener = Listener(self.address, self._runner.server, self._connections, tls=self.tls)
        await self._listener.start()
        log.info("Starting %s server on %s", self.name, self.address)

    async def stop(self) -> None:
        """Close the listener and its connections."""
        if self._listener is not None:
            await self._listener.stop()
        for stream in self._streams:
            stream.cancel()
        if self._runner is not None:
            await self._runner.cleanup()
        await self.access.close()

    @web.middleware
    async def _checked(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        """Refuse requests that must not be answered, and count responses."""
        self._mark(request, busy=True)
        request[_ADDRESS] = sender_of(
            request.remote or "", request.headers.getall("X-Forwarded-For", [""])[-1], self.access.proxies
        )
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
            self.on_error()
            log.exception("Cannot answer %s", request.path[:200])
            response = self._problem(request, RequestRefusal(500, "internal error"))
        finally:
            self._mark(request, busy=False)
        self.on_response(_answered(request, response.status, asyncio.get_running_loop().time() - began))
        return response

    def _refusal(self, request: web.Request) -> web.Response | None:
        refused = self._guard.refusal(
            request.method,
            request.headers,
            request[_ADDRESS],
            has_body=bool(
                request.content_length
                or "Transfer-Encoding" in request.headers
                or "Upgrade" in request.headers
            ),
            content_length=request.content_length or 0,
            is_limited=request.path not in self.always,
        )
        return None if refused is None else _json_problem(refused)

    async def _unauthorized(self, request: web.Request) -> web.Response | None:
        if request.path in self.always:
            return None
        refused: RequestRefusal | None = None
        if self.access.authorize is not None and not self.access.is_open(request.path):
            found = await self.access.authorize(request.headers, request[_ADDRESS])
            if isinstance(found, RequestRefusal):
                refused = found
            else:
                request[_VIEWER] = found
        if refused is None:
            refused = self._guard.refusal_of(_user_of(request))
        if refused is None:
            return None
        response = self._problem(request, refused)
        if request.can_read_body:
            response.force_close()
        return response

    def _problem(self, request: web.Request, refused: RequestRefusal) -> web.Response:
        if self.problem_page is None or "text/html" not in request.headers.get("Accept", ""):
            return _json_problem(refused)
        body = self.problem_page(refused, request.path_qs)
        response = web.Response(body=body, status=refused.status, content_type="text/html", charset="utf-8")
        response.headers.update(refused.headers)
        return response

    def _handle(self, handler: AsyncHandler) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def handle(request: web.Request) -> web.StreamResponse:
            answer = await handler(
                HttpRequest(
                    request.match_info,
                    dict(request.query),
                    request.path_qs,
                    await self._form_of(request) if request.method == "POST" else {},
                    request.method,
                    _user_of(request) or request[_ADDRESS],
                    request.get(_VIEWER),
                )
            )
            if isinstance(answer, Document):
                return _whole(answer)
            if not answer.is_stream:
                return await _send(request, answer)
            task = asyncio.current_task()
            assert task is not None  # a handler runs in a task
            with self._guard.stream(_user_of(request), request[_ADDRESS]) as refused:
                if refused is not None:
                    return _json_problem(refused)
                self._streams.add(task)
                try:
                    return await _send(request, answer)
                finally:
                    self._streams.discard(task)

        return handle

    async def _form_of(self, request: web.Request) -> Mapping[str, str]:
        self._mark(request, busy=False)  # it waits for the reader
        found = await _read_form(request)
        self._mark(request, busy=True)
        return found

    def _mark(self, request: web.Request, *, busy: bool) -> None:
        assert self._listener is not None  # a request has come from it
        self._listener.mark(request.transport, busy=busy)


_ANYBODY: Final = Access(hosts=None)

Check = Callable[[], str | None]
"""Returns None without a problem, otherwise one line that describes it."""


def _probe(check: Check) -> AsyncHandler:
    async def handle(_: HttpRequest) -> Document:
        problem = check()
        return Document(f"{problem}\n".encode() if problem else b"ok", 503 if problem else 200, "text/plain")

    return handle


def scrape(exposition: Callable[[], bytes], content_type: str) -> AsyncHandler:
    """Return the handler of scrapes; ``content_type`` is that of the exposition, in UTF-8."""

    async def handle(_: HttpRequest) -> Document:
        try:
            return Document(exposition(), content_type=content_type)
        except RuntimeError as error:  # a metric was read while the main thread changed it
            return Document(f"try again: {error}\n".encode(), 503, "text/plain")

    return handle


class Server:
    """The listeners of one process. Their requests are answered to anybody, whatever their number."""

    def __init__(
        self,
        *,
        health_address: str,
        metrics_address: str,
        health: Check,
        ready: Check,
        exposition: Callable[[], bytes],
        content_type: str,
    ) -> None:
        """Addresses are ``host:port`` (an empty host is every interface), or "" for none."""
        routes: dict[str, dict[str, AsyncHandler]] = {health_address: {}, metrics_address: {}}
        routes[health_address] |= {"/healthz": _probe(health), "/readyz": _probe(ready)}
        routes[metrics_address]["/metrics"] = scrape(exposition, content_type)
        routes.pop("", None)
        self._servers = [
            ReadOnlyServer(
                address,
                handlers,
                always=frozenset(handlers),
                access=_ANYBODY,
                name=" and ".join(path.strip("/") for path in handlers),
            )
            for address, handlers in routes.items()
        ]

    async def start(self) -> None:
        """Listen; ListenError has the address that is in use or not local."""
        for server in self._servers:
            await server.start()

    async def stop(self) -> None:
        """Close the listeners and their connections."""
        await asyncio.gather(*(server.stop() for server in self._servers))
