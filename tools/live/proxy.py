"""A TCP proxy whose connections can be slowed down, held and cut."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

from tools.controlplane.processes import free_port

_CHUNK: Final = 1 << 16

_RESET: Final = struct.pack("ii", 1, 0)
"""Linger for no time: the end of a connection is a reset."""

T = TypeVar("T")


class Proxy:
    """Forwards connections to one port of 127.0.0.1.

    TLS passes through, so the proxy sees and changes nothing of what is sent.

    Attributes:
        port: Where it listens, on 127.0.0.1.
        connections: How many connections it has accepted.
        cut_connections: How many it has cut.
    """

    def __init__(self, network: Network, upstream: int) -> None:
        """``upstream`` is the port that it forwards to."""
        self.port = free_port()
        self.connections = 0
        self.cut_connections = 0
        self._upstream = upstream
        self._network = network
        self._latency = 0.0
        self._open = asyncio.Event()
        self._open.set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._accepted = 0
        self._server: asyncio.Server | None = None

    def slow(self, latency: float) -> None:
        """Delay everything by some seconds, in each direction; 0 ends it."""
        self._network.call(self._set_latency(latency))

    def hold(self) -> None:
        """Deliver nothing, and accept no connection to the end, until ``release``."""
        self._network.call(self._set_open(False))

    def release(self) -> None:
        """Deliver what was held."""
        self._network.call(self._set_open(True))

    def cut(self) -> int:
        """Reset all connections; return how many."""
        return self._network.call(self._cut())

    async def listen(self) -> None:
        """Start to listen."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)

    async def close(self) -> None:
        """Listen no more, and end all connections."""
        if self._server is not None:
            self._server.close()
        await self._set_open(True)
        while self._accepted:
            await self._cut()
            await asyncio.sleep(0.01)

    async def _set_latency(self, latency: float) -> None:
        self._latency = latency

    async def _set_open(self, is_open: bool) -> None:
        if is_open:
            self._open.set()
        else:
            self._open.clear()

    async def _cut(self) -> int:
        open_writers = [writer for writer in self._writers if not writer.transport.is_closing()]
        number = (len(open_writers) + 1) // 2
        for writer in open_writers:
            connection = writer.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            writer.transport.abort()
        self.cut_connections += number
        return number

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._accepted += 1
        try:
            await self._forward(reader, writer)
        finally:
            self._accepted -= 1

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._open.wait()
        try:
            up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self._upstream)
        except OSError:
            writer.transport.abort()
            return
        both = {writer, up_writer}
        self._writers |= both
        try:
            await asyncio.gather(self._pump(reader, up_writer), self._pump(up_reader, writer))
        finally:
            self._writers -= both
            for each in both:
                each.transport.abort()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while chunk := await reader.read(_CHUNK):
                if self._latency:
                    await asyncio.sleep(self._latency)
                await self._open.wait()
                writer.write(chunk)
                await writer.drain()
            if writer.can_write_eof():
                writer.write_eof()
        except (OSError, RuntimeError):
            writer.transport.abort()


class Network:
    """The proxies, in a thread with an event loop of their own."""

    def __init__(self) -> None:
        self._proxies: list[Proxy] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxies", daemon=True)
        self._thread.start()

    def proxy_to(self, upstream: int) -> Proxy:
        """Start a proxy to a port of 127.0.0.1."""
        proxy = Proxy(self, upstream)
        self.call(proxy.listen())
        self._proxies.append(proxy)
        return proxy

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the loop, from another thread, and return its result."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout=10)

    def close(self) -> None:
        """End everything."""
        for proxy in self._proxies:
            self.call(proxy.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=5)
        self._loop.close()
