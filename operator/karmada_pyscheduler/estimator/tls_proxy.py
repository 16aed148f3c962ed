"""TLS without verification (``--insecure-skip-estimator-verify``), which grpc does not offer in Python.

gRPC uses plain HTTP/2 on a Unix socket that only this user can open. The proxy forwards the bytes over TLS and accepts any
certificate.
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
    """A proxy for one address."""

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
        """Listen on a Unix socket; each connection to it opens a connection to the estimator.

        Args:
            address: ``host:port`` of the estimator.
            certificate: The files of the client certificate and key, or None.

        Raises:
            OSError: A file cannot be read, or the socket cannot be created.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        context.set_alpn_protocols(["h2"])
        if certificate is not None:
            context.load_cert_chain(*certificate)
        proxy = cls(Path(tempfile.mkdtemp(prefix="karmada-")), address, context)
        proxy._server = await asyncio.start_unix_server(proxy._accepted, proxy._folder / "s")
        return proxy

    @property
    def target(self) -> str:
        """The address for gRPC to connect to."""
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
        """Handle a connection, which may arrive while the proxy closes."""
        if self._is_closed:
            writer.close()
            return
        task = asyncio.create_task(self._forward(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: writer.close())  # also if it was cancelled before it started

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            source, sink = await asyncio.open_connection(
                self._host, self._port, ssl=self._context, server_hostname=self._host
            )
        except OSError:
            return  # gRPC's connection ends, and gRPC retries
        copies = [asyncio.create_task(_copy(reader, sink)), asyncio.create_task(_copy(source, writer))]
        try:
            await asyncio.wait(copies, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in copies:
                each.cancel()
            sink.transport.abort()  # the peer determines how long a graceful close takes
            await asyncio.gather(*copies, return_exceptions=True)


async def _copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while chunk := await source.read(_CHUNK):
            sink.write(chunk)
            await sink.drain()
