"""The network between simulated processes and the API server in memory."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from random import Random
from typing import Any, Final, Protocol
from urllib.parse import parse_qsl, urlsplit

from karmada_pyscheduler.client.http_connection import OutgoingRequest, Response
from karmada_pyscheduler.client.identity import Identity
from tools.apiserver_model import ApiServerModel, Request, Watch
from tools.simulation.faults import Fate, Faults, kind_of, value_of
from tools.simulation.front_ends import FrontEnds
from tools.simulation.simulation import Simulation

_MEDIAN_DELAY: Final = 0.0015
_BOOKMARK_SECONDS: Final = 60.0
_WATCH_SECONDS: Final = (300.0, 600.0)
"""How long an API server serves a watch; it ends it after a random time."""

Item = bytes | OSError | None


class Sender(Protocol):
    """The process that sends."""

    index: int
    identity: str
    is_dead: bool


@dataclass(frozen=True, slots=True)
class Sent:
    """A request on its way, for the judge.

    Attributes:
        process: The index of the process.
        identity: The name under which the process takes part in the election.
        at: The time at which it was sent.
        kind: See ``faults.kind_of``.
        request: The request.
    """

    process: int
    identity: str
    at: float
    kind: str
    request: Request


class Network:
    """Carries requests and watch lines, with delays and faults.

    Attributes:
        sent_by_write: The request behind each write in ``model.writes``, by its index.
        requests: The number of requests by kind.
        on_request: Called with each request that is sent.
        front_ends: Where requests arrive.
    """

    def __init__(
        self,
        simulation: Simulation,
        model: ApiServerModel,
        faults: Faults,
        random: Random,
        front_ends: FrontEnds,
    ) -> None:
        """Draw delays from ``random``."""
        self.front_ends = front_ends
        self._simulation = simulation
        self._model = model
        self._faults = faults
        self._random = random
        self.sent_by_write: dict[int, Sent] = {}
        self.on_request: Callable[[Sent], None] = lambda _: None
        self.on_response: Callable[[Sent, Response | OSError], None] = lambda *_: None
        self.is_down = False
        """Whether the API server accepts no connections."""
        self._streams: list[_Lines] = []

    def transport(self, process: Sender) -> Callable[[Identity], SimulatedTransport]:
        """Return a function that makes a transport for a process."""
        return lambda _: SimulatedTransport(self, process)

    def cut_watches(self, process: int | None = None) -> None:
        """Break the connections of all watches, as when an API server ends, or of those of one process."""
        for stream in tuple(self._streams):
            if process is None or stream.process.index == process:
                stream.cut()

    def _delay(self) -> float:
        return _MEDIAN_DELAY * self._random.lognormvariate(0.0, 0.6)

    def send(
        self,
        process: Sender,
        request: Request,
        respond: Callable[[Response | OSError], None],
        carry_out: Callable[[], Response],
    ) -> None:
        """Send a request; ``carry_out`` is called when it arrives, and ``respond`` when the response does."""
        if process.is_dead:
            raise ConnectionResetError("the process has ended")
        now, kind = self._simulation.now, kind_of(request.method, request.path, request.query)
        sent = Sent(process.index, process.identity, now, kind, request)
        self.on_request(sent)
        fate = self._faults.fate(process.index, kind, now)

        def arrive() -> None:
            result = self._result(sent, fate, carry_out)
            if result is None:
                return
            self._simulation.after(self._delay(), lambda: arrived(result))

        def arrived(result: Response | OSError) -> None:
            self.on_response(sent, result)
            respond(result)

        self._simulation.after(self._delay() + fate.delay, arrive)

    def _result(self, sent: Sent, fate: Fate, carry_out: Callable[[], Response]) -> Response | OSError | None:
        if self.is_down:
            return ConnectionRefusedError("injected: connection refused")
        response: Response | OSError | None = fate.instead
        if fate.is_carried_out:
            before = len(self._model.writes)
            right = carry_out()
            for index in range(before, len(self._model.writes)):
                self.sent_by_write[index] = sent
            if response is None:
                response = right
                if fate.change is not None and 200 <= right.status < 300:
                    response = Response(right.status, right.headers, fate.change(right.body))
        return None if fate.is_silent else response

    def open_stream(self, process: Sender, request: Request, lines: _Lines) -> Response:
        """Open a watch of the model; return the response with which it begins, or that refuses it."""
        kind = kind_of(request.method, request.path, request.query)

        def on_line(line: bytes | None) -> None:
            self._on_line(process, kind, lines, line)

        found = self.front_ends.watch(process.index, request, on_line)
        if isinstance(found, Response):
            return found
        lines.watch = found
        self._streams.append(lines)
        self._simulation.after(self._random.uniform(*_WATCH_SECONDS), lines.end)
        if request.query.get("allowWatchBookmarks") == "true":
            self._simulation.after(_BOOKMARK_SECONDS, lambda: self._bookmark(lines))
        return Response(200, {"content-type": "application/json"}, b"")

    def forget(self, lines: _Lines) -> None:
        """Forget a stream that has ended."""
        if lines in self._streams:
            self._streams.remove(lines)

    def _bookmark(self, lines: _Lines) -> None:
        if lines.watch is not None:
            lines.watch.bookmark()
            self._simulation.after(_BOOKMARK_SECONDS, lambda: self._bookmark(lines))

    def _on_line(self, process: Sender, kind: str, lines: _Lines, line: bytes | None) -> None:
        now, delay = self._simulation.now, self._delay()
        items: list[Item] = [line]
        for fault in self._faults.line(process.index, kind, now) if line is not None else ():
            match fault.kind:
                case "watch_stalled":
                    lines.is_stalled = True
                case "watch_cut":
                    items = [ConnectionResetError("injected: the watch was cut")]
                case "watch_repeated":
                    items = [line, line]
                case "watch_expired":
                    items = [
                        b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}\n',
                        None,
                    ]
                case "watch_garbage":
                    items = [b'{"type":"MODIFIED","object":{"meta\n', *items]
                case "watch_late":
                    delay += float(value_of(fault, 5.0)) * self._random.uniform(0.2, 1.0)
        if lines.is_stalled:
            return
        lines.deliver_at = max(lines.deliver_at, now + delay)
        self._simulation.at(lines.deliver_at, lambda: lines.put(items))


class SimulatedTransport:
    """The transport of one connection."""

    def __init__(self, network: Network, process: Sender) -> None:
        """Send over ``network`` in the name of ``process``."""
        self._network = network
        self._process = process

    async def request(self, outgoing: OutgoingRequest) -> Response:
        outgoing.before_send()
        request = _request(
            outgoing.method, outgoing.target, outgoing.headers, outgoing.body, self._process.identity
        )
        front_ends, index = self._network.front_ends, self._process.index
        response = self._send(request, lambda: front_ends.handle(index, request))
        async with asyncio.timeout(outgoing.timeout):
            return await response

    @asynccontextmanager
    async def stream(
        self, identity: Identity, target: str, headers: Mapping[str, str]
    ) -> AsyncIterator[SimulatedStream]:
        del identity
        lines = _Lines(asyncio.get_running_loop(), self._process)
        request = _request("GET", target, headers, b"", self._process.identity)
        response = self._send(request, lambda: self._network.open_stream(self._process, request, lines))
        try:
            yield SimulatedStream(await response, lines)
        finally:
            lines.close()
            self._network.forget(lines)

    def _send(self, request: Request, carry_out: Callable[[], Response]) -> asyncio.Future[Response]:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Response] = loop.create_future()

        def set_result(result: Response | OSError) -> None:
            if future.done():
                return
            if isinstance(result, OSError):
                future.set_exception(result)
            else:
                future.set_result(result)

        self._network.send(
            self._process, request, lambda result: _post(self._process, loop, set_result, result), carry_out
        )
        return future

    def retire(self) -> None:
        return

    async def close(self) -> None:
        return


def _post(process: Sender, loop: asyncio.AbstractEventLoop, call: Callable[[Any], None], result: Any) -> None:
    if not process.is_dead and not loop.is_closed():
        loop.call_soon_threadsafe(call, result)


class _Lines:
    """The lines of one watch on their way."""

    def __init__(self, loop: asyncio.AbstractEventLoop, process: Sender) -> None:
        self._loop = loop
        self.process = process
        self._items: deque[Item] = deque()
        self._waiting: asyncio.Future[None] | None = None
        self.watch: Watch | None = None
        self.is_stalled = False
        self.deliver_at = 0.0

    def put(self, items: list[Item]) -> None:
        """Deliver lines; None for the end."""
        _post(self.process, self._loop, self._take, items)

    def _take(self, items: list[Item]) -> None:
        self._items.extend(items)
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    async def get(self) -> Item:
        """Wait for the next line."""
        while not self._items:
            self._waiting = self._loop.create_future()
            await self._waiting
        return self._items.popleft()

    def end(self) -> None:
        """End the watch as the server does after its time."""
        if self.watch is not None and not self.is_stalled:
            self.close()
            self.put([None])

    def cut(self) -> None:
        """Break the connection."""
        self.close()
        self.put([ConnectionResetError("injected: the API server has ended")])

    def close(self) -> None:
        """Let the server forget the watch."""
        if self.watch is not None:
            self.watch.close()
            self.watch = None


class SimulatedStream:
    """The response to a request to watch."""

    def __init__(self, response: Response, lines: _Lines) -> None:
        """Begin with a response."""
        self.status = response.status
        self.headers = response.headers
        self._response = response
        self._lines = lines

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        """Yield the lines as they arrive; OSError when the connection breaks."""
        if self._response.body:
            yield self._response.body
            return
        while (item := await self._lines.get()) is not None:
            if isinstance(item, OSError):
                raise item
            yield item

    async def refusal(self) -> Response:
        """Return the response that refuses the watch."""
        return self._response


def _request(method: str, target: str, headers: Mapping[str, str], body: bytes, user: str) -> Request:
    parts = urlsplit(target)
    return Request(
        method=method,
        path=parts.path,
        query=dict(parse_qsl(parts.query, keep_blank_values=True)),
        body=body,
        user=user,
        accept=headers.get("Accept", "application/json"),
    )
