"""Servers of tests whose connections all end with them."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager


async def turns(number: int = 4) -> None:
    """Let the event loop finish what it has begun: a connection is accepted, and closed, over several turns."""
    for _ in range(number):
        await asyncio.sleep(0)


async def accept_no_more(*listeners: socket.socket) -> None:
    """Stop accepting, and wait for the connections that are being accepted, before a server is closed.

    asyncio.Server loses a connection that it has accepted and not yet attached when it closes (Python 3.11: an
    assertion in ``Server._attach``). The garbage collector finds its socket, and fails the test that runs then.
    """
    for listener in listeners:
        asyncio.get_running_loop().remove_reader(listener)
    await turns()


@asynccontextmanager
async def listening(
    serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[object, object, None]],
) -> AsyncIterator[int]:
    """Serve connections on a port of the loopback interface.

    At the end each handler is cancelled and each connection closed, also one whose handler has not begun.
    """
    tasks: set[asyncio.Task[None]] = set()

    def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(serve(reader, writer))
        tasks.add(task)
        task.add_done_callback(lambda _: writer.close())  # also if it is cancelled before it starts

    server = await asyncio.start_server(accepted, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        await accept_no_more(*server.sockets)
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()
        await turns()
