"""TLS without verification (``--insecure-skip-estimator-verify``), which grpc does not offer in Python.

grpc speaks plain HTTP/2 to a socket that only this user can open, and what it says goes on over TLS that takes
any certificate.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import ssl
import tempfile
from pathlib import Path
from typing import Final, Self

_CHUNK: Final = 1 << 16


class TlsProxy:
    """One way to one estimator."""

    def __init__(self, folder: Path, address: str, context: ssl.SSLContext) -> None:
        """Use ``start``."""
        self._folder = folder
        host, _, port = address.rpartition(":")
        self._host, self._port = host, int(port)
        self._context = context
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_closed = False
        self._server: asyncio.Server | None = None

    @classmethod
    async def start(cls, address: str, *, certificate: tuple[str, str] | None) -> Self:
        """Listen for grpc; connections to the estimator are made as grpc makes its own.

        Args:
            address: ``host:port`` of the estimator.
            certificate: The files of our own certificate and key, or None.

        Raises:
            OSError: A file cannot be read, or there is no place for a socket.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        context.set_alpn_protocols(["h2"])
        if certificate is not None:
            context.load_cert_chain(*certificate)
        relay = cls(Path(tempfile.mkdtemp(prefix="karmada-")), address, context)
        relay._server = await asyncio.start_unix_server(relay._accepted, relay._folder / "s")
        return relay

    @property
    def target(self) -> str:
        """What grpc has to connect to."""
        return f"unix:{self._folder / 's'}"

    async def close(self) -> None:
        """Close the socket and all connections."""
        self._is_closed = True
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take a connection of grpc's; it may come while all is being closed."""
        if self._is_closed:
            writer.close()
            return
        task = asyncio.create_task(self._relay(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: writer.close())  # also if it was cancelled before it began

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, beyond = await asyncio.open_connection(
                self._host, self._port, ssl=self._context, server_hostname=self._host
            )
        except OSError:
            return  # grpc sees its connection end, and tries again
        ways = [asyncio.create_task(_pour(reader, beyond)), asyncio.create_task(_pour(there, writer))]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            beyond.transport.abort()  # a polite end takes as long as the other side likes
            await asyncio.gather(*ways, return_exceptions=True)


async def _pour(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while chunk := await source.read(_CHUNK):
            sink.write(chunk)
            await sink.drain()
