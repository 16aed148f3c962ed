"""The server: its thread, faults, and watches."""

from __future__ import annotations

import asyncio
import gzip
import socket
import threading
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

import orjson
from aiohttp import web

from tests.connections import accept_no_more, turns
from tools import apiserver_model
from tools.apiserver_model import ApiServerModel, FrontEnd, Response, Watch, target_of

from .faults import Answer, Fault, status
from .storage import Storage

_GZIP_FROM: Final = 128 * 1024
"""Bytes of a response from which on kube-apiserver compresses it (k8s.io/apiserver 0.35.3, APIResponseCompression)."""


class Request(NamedTuple):
    """A received request.

    Attributes:
        time: Of ``time.monotonic``.
        verb: The HTTP method, or ``WATCH`` or ``LIST``.
        accept: The ``Accept`` header.
        authorization: The ``Authorization`` header.
        certificate: The client's certificate as ``SSLSocket.getpeercert`` returns it, None without one.
    """

    time: float
    verb: str
    path: str
    query: Mapping[str, str]
    body: Any
    accept: str = ""
    authorization: str = ""
    certificate: Any = None


class FakeApiServer(Storage):
    """An API server in a thread of its own, entered as a context; its methods may be called from any thread.

    Attributes:
        token: The bearer token that requests must have; None for any.
        requests: The received requests.
        loop: The event loop of the server, from its start.
    """

    loop: asyncio.AbstractEventLoop

    def __init__(self, *, tls: Any = None, version: int = 1000, kept_writes: int | None = None) -> None:
        """Start empty at a version; ``tls`` is an ``ssl.SSLContext`` for HTTPS. See ``Storage`` for ``kept_writes``."""
        super().__init__(version=version, kept_writes=kept_writes)
        self.token: str | None = None
        self.requests: list[Request] = []
        self._tls = tls
        self._faults: list[Fault] = []
        self._ended: asyncio.Event | None = None
        self._began = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="fake API server", daemon=True)
        self.port = 0

    def __enter__(self) -> Self:
        """Serve on a free port of 127.0.0.1."""
        self._thread.start()
        assert self._began.wait(10)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End at once; requests under way get no answer."""
        assert self._ended is not None
        self.loop.call_soon_threadsafe(self._ended.set)
        self._thread.join(10)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}"

    def fault(self, **arguments: Any) -> Fault:
        """Add a fault; see ``Fault``."""
        fault = Fault(**arguments)
        with self.lock:
            self._faults.append(fault)
        return fault

    def heal(self, *faults: Fault) -> None:
        """Remove some faults, or all."""
        with self.lock:
            self._faults = [each for each in self._faults if faults and each not in faults]

    def count(self, verb: str, path: str = "") -> int:
        """Return the number of received requests with a verb and a part of the path."""
        with self.lock:
            return sum(each.verb == verb and path in each.path for each in self.requests)

    def _serve(self) -> None:
        with asyncio.Runner() as runner:
            self.loop = runner.get_loop()
            runner.run(self._listen())

    async def _listen(self) -> None:
        self._ended = asyncio.Event()
        application = web.Application(client_max_size=1 << 28)
        application.router.add_route("*", "/{path:.*}", self._handle)
        runner = web.AppRunner(application, access_log=None, handle_signals=False, shutdown_timeout=0.1)
        await runner.setup()
        listener = socket.create_server(("127.0.0.1", 0))
        await web.SockSite(runner, listener, ssl_context=self._tls).start()
        self.port = listener.getsockname()[1]
        self._began.set()
        await self._ended.wait()
        await accept_no_more(listener)
        await runner.cleanup()
        await turns()  # closed transports close their sockets in the next turn of the loop

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        received = apiserver_model.Request(
            request.method,
            request.path,
            dict(request.query),
            await request.read(),
            request.headers.get("User-Agent", ""),
            request.headers.get("Accept", ""),
            request.headers.get("Content-Type", "") if request.can_read_body else "",
        )
        verb = _verb(received)
        fault = self._recorded(request, received, verb)
        if fault is not None:
            await asyncio.sleep(fault.delay)
            while fault.gate is not None and not fault.gate.is_open:
                await asyncio.sleep(0.01)
            if fault.drop and not fault.carried_out:
                return self._dropped(request)
            if fault.answer is not None and not fault.carried_out:
                return _response(fault.answer)
        if self.token is not None and request.headers.get("Authorization") != f"Bearer {self.token}":
            return _response(status(401, "Unauthorized"))
        front = self._front(request)
        if front is None:
            return self._dropped(request)
        if verb == "WATCH":
            return await self._watch(request, received, front)
        with self.lock:
            found = front.handle(received)
        if fault is not None and fault.drop:
            return self._dropped(request)
        if fault is not None and fault.answer is not None:
            return _response(fault.answer)
        return await _sent(found, request)

    def _front(self, request: web.Request) -> ApiServerModel | FrontEnd | None:
        """Return who processes a request; None if its connection is closed without an answer."""
        return self.model

    def _recorded(self, request: web.Request, received: apiserver_model.Request, verb: str) -> Fault | None:
        """Record a request and return the fault that applies to it."""
        with self.lock:
            self.requests.append(
                Request(
                    time.monotonic(),
                    verb,
                    received.path,
                    received.query,
                    orjson.loads(received.body) if received.body else None,
                    received.accept,
                    request.headers.get("Authorization", ""),
                    request.get_extra_info("peercert"),
                )
            )
            client = received.user
            return next((each for each in self._faults if each.applies_to(verb, received.path, client)), None)

    def _dropped(self, request: web.Request) -> web.Response:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    async def _watch(
        self, request: web.Request, received: apiserver_model.Request, front: ApiServerModel | FrontEnd
    ) -> web.StreamResponse:
        queue: asyncio.Queue[bytes | None] = asyncio.Queue()

        def on_line(line: bytes | None) -> None:
            self.loop.call_soon_threadsafe(queue.put_nowait, line)

        with self.lock:
            watch = front.watch(received, on_line)
        if not isinstance(watch, Watch):
            return await _sent(watch, request)
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        response.enable_chunked_encoding()
        try:
            await response.prepare(request)
            is_open = True
            while is_open:
                lines = [await queue.get()]
                while not queue.empty():
                    lines.append(queue.get_nowait())
                is_open = lines[-1] is not None
                await response.write(b"".join(line for line in lines if line is not None))
            await response.write_eof()
        except ConnectionError:
            pass
        finally:
            with self.lock:
                watch.close()
        return response


def _verb(request: apiserver_model.Request) -> str:
    """Return the method, or ``LIST`` or ``WATCH`` for the GET of a collection."""
    target = target_of(request.path)
    if request.method != "GET" or target is None or target.name:
        return request.method
    return "WATCH" if request.query.get("watch") in ("true", "1") else "LIST"


async def _sent(found: Response, request: web.Request) -> web.Response:
    body, headers = found.body, dict(found.headers)
    if len(body) >= _GZIP_FROM and "gzip" in request.headers.get("Accept-Encoding", ""):
        body = await asyncio.to_thread(gzip.compress, body, 1)
        headers["Content-Encoding"] = "gzip"
    return web.Response(body=body, status=found.status, headers=headers)


def _response(answer: Answer) -> web.Response:
    return web.Response(
        body=answer.body, status=answer.code, content_type=answer.content_type, headers=answer.headers
    )
