"""The server: its thread, faults, and watches."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

import orjson
from aiohttp import web

from .faults import Answer, Fault, status
from .kinds import BY_PLURAL, Object
from .rest import RestHandler, ok
from .storage import Collection, Storage

_METADATA: Final = "as=PartialObjectMetadata"


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
        rest: The handler of requests that are not watches.
    """

    def __init__(self, *, tls: Any = None, version: int = 1000) -> None:
        """Start empty at a version; ``tls`` is an ``ssl.SSLContext`` for HTTPS."""
        super().__init__(version=version)
        self.token: str | None = None
        self.requests: list[Request] = []
        self.rest = RestHandler(self)
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
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=self._tls).start()
        self.port = runner.addresses[0][1]
        self._began.set()
        await self._ended.wait()
        await runner.cleanup()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        parts = request.path.strip("/").split("/")
        verb = request.method
        if verb == "GET" and parts[-1] in BY_PLURAL and (len(parts) > 2):
            verb = "WATCH" if request.query.get("watch") in ("true", "1") else "LIST"
        parsed = None
        if body:
            parsed = orjson.loads(body)
        with self.lock:
            accept = request.headers.get("Accept", "")
            self.requests.append(
                Request(
                    time.monotonic(),
                    verb,
                    request.path,
                    dict(request.query),
                    parsed,
                    accept,
                    request.headers.get("Authorization", ""),
                    request.get_extra_info("peercert"),
                )
            )
            client = request.headers.get("User-Agent", "")
            fault = next((each for each in self._faults if each.applies_to(verb, request.path, client)), None)
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
        if verb == "WATCH":
            return await self._watch(request, self.collections[BY_PLURAL[parts[-1]]])
        with self.lock:
            answer = self.rest.answer(verb, parts, request.query, parsed)
        if _METADATA in accept and answer.code == 200 and verb in ("GET", "LIST"):
            answer = ok(_metadata_of(orjson.loads(answer.body)))
        if fault is not None and fault.drop:
            return self._dropped(request)
        return _response(fault.answer if fault is not None and fault.answer is not None else answer)

    def _dropped(self, request: web.Request) -> web.Response:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    async def _watch(self, request: web.Request, collection: Collection) -> web.StreamResponse:
        since = request.query.get("resourceVersion") or ""
        with self.lock:
            version = self.version if since in ("", "0") else int(since)
            if version < self.oldest_version:
                return _response(status(410, "Expired", "too old resource version"))
            if version > self.version:
                causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
                details = {"causes": causes, "retryAfterSeconds": 1}
                return _response(status(504, "Timeout", "Too large resource version", details=details))
            queue: asyncio.Queue[bytes | None] = asyncio.Queue()
            for changed, event in collection.history:
                if changed > version:
                    queue.put_nowait(event)
            collection.watches.add(queue)
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        response.enable_chunked_encoding()
        try:
            await response.prepare(request)
            ended = False
            while not ended and (line := await queue.get()) is not None:
                waiting = [line]
                while not queue.empty():
                    following = queue.get_nowait()
                    if following is None:
                        ended = True
                        break
                    waiting.append(following)
                if _METADATA in request.headers.get("Accept", ""):
                    events = [orjson.loads(each) for each in waiting]
                    waiting = [
                        orjson.dumps({**each, "object": _metadata_of(each["object"])}) + b"\n"
                        for each in events
                    ]
                await response.write(b"".join(waiting))
            await response.write_eof()
        except ConnectionError:
            pass
        finally:
            with self.lock:
                collection.watches.discard(queue)
        return response


def _metadata_of(found: Object) -> Object:
    """Return an object or a list as PartialObjectMetadata; a Status stays as it is."""
    if "items" in found:
        return {
            **found,
            "kind": "PartialObjectMetadataList",
            "items": [_metadata_of(each) for each in found["items"]],
        }
    if found.get("kind") == "Status":
        return found
    return {
        "apiVersion": "meta.k8s.io/v1",
        "kind": "PartialObjectMetadata",
        "metadata": found["metadata"],
    }


def _response(answer: Answer) -> web.Response:
    return web.Response(
        body=answer.body, status=answer.code, content_type=answer.content_type, headers=answer.headers
    )
