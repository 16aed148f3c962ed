"""Listens on an address: one place for the connections of all servers of a process, with a certificate that is replaced.

Connections are accepted here, and not by ``loop.create_server``: that one has no bound, and knows a connection with TLS
only after its handshake, for which the other side may take a minute.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import socket
import ssl
from collections.abc import Callable, Coroutine, Iterable
from functools import partial
from pathlib import Path
from typing import Any, Final, cast

from karmada_pyscheduler.http_server.connections import OpenConnection, OpenConnections
from karmada_scheduler.structs import IdentityStruct, field

_CHECK_SECONDS: Final = 10.0

log = logging.getLogger(__name__)

_IDLE_SECONDS: Final = 10.0
"""How long a connection may be open without a complete request; it is closed within as much again."""
_LEAST_BYTES: Final = 2**16
"""What a reader takes of a response in that time at least."""
_BACKLOG: Final = 1024
_PAUSE_SECONDS: Final = 0.5
"""Until a connection is accepted again after the process could not open one, and none was idle."""
_OUT_OF: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
"""Errors of a process that can open no more."""
_ABSENT: Final = frozenset({errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL})
"""Errors for one of several addresses, such as that of IPv6 on a machine without it."""


class CertificateError(Exception):
    """Certificate and key cannot be used; the text says why."""


class ServerCertificate:
    """A certificate chain and its key in PEM files, such as those of a Secret."""

    def __init__(self, certificate: Path, key: Path) -> None:
        """Load the files. Raises CertificateError."""
        self._paths = certificate, key
        self._loaded = self._contents()
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        """The context for the server; new connections use what was loaded last."""
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        self._load()
        self._problem = ""

    @property
    def chain(self) -> bytes:
        """The chain that is served, in PEM, the certificate of the server first."""
        return self._loaded[0]

    def refresh(self) -> None:
        """Load the files if they have changed. A pair that cannot be used is logged, and the one before stays."""
        try:
            found = self._contents()
            if found == self._loaded:
                return
            self._load()
        except CertificateError as error:
            if str(error) != self._problem:
                log.error("The certificate stays the one before: %s", error)  # noqa: TRY400 (the text says it)
            self._problem = str(error)
        else:
            self._loaded, self._problem = found, ""
            log.info("Loaded the certificate %s", self._paths[0])

    async def keep_fresh(self) -> None:
        """Look for new files every 10 seconds, until cancelled."""
        while True:
            await asyncio.sleep(_CHECK_SECONDS)
            self.refresh()

    def _contents(self) -> tuple[bytes, ...]:
        try:
            return tuple(path.read_bytes() for path in self._paths)
        except OSError as error:
            raise CertificateError(f"{error.filename}: {error.strerror}") from error

    def _load(self) -> None:
        # A context of its own is tried first: a pair that does not match would leave half of it in the one that is used.
        for context in (ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), self.context):
            try:
                context.load_cert_chain(*self._paths, password=lambda: "")
            except OSError as error:  # an SSLError is one
                raise CertificateError(
                    f"{' and '.join(map(str, self._paths))} are no certificate with its key in PEM: {error}"
                ) from error


class ListenError(Exception):
    """The server cannot listen on an address."""


class Listener(IdentityStruct):
    """Listens while a server runs.

    Attributes:
        address: ``host:port``; an empty host is every interface.
        protocol: Makes what answers the requests of a connection.
        connections: Those that are open.
        tls: The context with the server's certificate; None for HTTP.
    """

    address: str
    protocol: Callable[[], asyncio.Protocol]
    connections: OpenConnections
    tls: ssl.SSLContext | None = None
    _sockets: list[socket.socket] = field(default_factory=list)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def start(self) -> None:
        """Listen.

        Raises:
            ListenError: The address is in use or not local; the text has it.
        """
        host, _, port = self.address.rpartition(":")
        try:
            found = await asyncio.get_running_loop().getaddrinfo(
                host.strip("[]") or None, int(port), type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )
            self._sockets = _listening(dict.fromkeys((family, where) for family, _, _, _, where in found))
        except OSError as error:
            raise ListenError(f"cannot listen on {self.address}: {error.strerror or error}") from error
        for listening in self._sockets:
            asyncio.get_running_loop().add_reader(listening, self._accept, listening)
        self._run(self._sweep())

    async def stop(self) -> None:
        """Accept no more. Connections are closed by the server, apart from those that are not yet its own."""
        for listening in self._sockets:
            asyncio.get_running_loop().remove_reader(listening)
            listening.close()
        tasks = [*self._tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def mark(self, transport: asyncio.BaseTransport | None, *, busy: bool) -> None:
        """Note that a request of a connection is answered from now on, or no more."""
        protocol = None if transport is None else cast("asyncio.Transport", transport).get_protocol()
        if isinstance(protocol, _Protocol):
            self.connections.mark(protocol.connection, busy=busy)

    def _run(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _accept(self, listening: socket.socket) -> None:
        try:
            link, peer = listening.accept()
        except OSError as error:
            # Otherwise the other side has gone, or a file descriptor is free again.
            if error.errno in _OUT_OF and not self.connections.give_way():
                log.warning("Cannot accept a connection on %s: %s", self.address, error)
                loop = asyncio.get_running_loop()
                loop.remove_reader(listening)
                loop.call_later(_PAUSE_SECONDS, self._accept_again, listening)
            return
        connection = self.connections.admit(peer[0], link.close)
        if connection is None:
            link.close()
            return
        link.setblocking(False)
        task = self._run(self._connect(link, connection))
        connection.close = task.cancel
        task.add_done_callback(partial(_close_if_cancelled, link))

    def _accept_again(self, listening: socket.socket) -> None:
        if listening.fileno() >= 0:  # it was not stopped meanwhile
            asyncio.get_running_loop().add_reader(listening, self._accept, listening)

    async def _connect(self, link: socket.socket, connection: OpenConnection) -> None:
        made = _Protocol(self.protocol(), connection, self.connections)
        try:
            await asyncio.get_running_loop().connect_accepted_socket(lambda: made, link, ssl=self.tls)
        except OSError:  # it has gone, or its handshake has failed
            link.close()
        finally:
            if not made.is_connected:
                self.connections.remove(connection)

    async def _sweep(self) -> None:
        """Close connections that are idle for long. A response that its reader takes goes on."""
        unsent_before: dict[OpenConnection, int] = {}
        while True:
            await asyncio.sleep(_IDLE_SECONDS)
            unsent: dict[OpenConnection, int] = {}
            for connection in self.connections.idle_for(_IDLE_SECONDS):
                unsent[connection] = size = connection.unsent()
                if not size or unsent_before.get(connection, size + _LEAST_BYTES) - size < _LEAST_BYTES:
                    self.connections.remove(connection)
                    connection.close()
            unsent_before = unsent


class _Protocol(asyncio.Protocol):
    """Hands everything to the protocol of the server, and notes when the connection begins and ends."""

    def __init__(
        self, of_server: asyncio.Protocol, connection: OpenConnection, among: OpenConnections
    ) -> None:
        self._of_server = of_server
        self._among = among
        self.connection = connection
        self.is_connected = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        found = cast("asyncio.Transport", transport)  # uvloop's are none by inheritance
        self.is_connected = True
        self.connection.close = found.abort
        self.connection.unsent = found.get_write_buffer_size
        self._of_server.connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._among.remove(self.connection)
        self._of_server.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._of_server.data_received(data)

    def eof_received(self) -> bool | None:
        return self._of_server.eof_received()

    def pause_writing(self) -> None:
        self._of_server.pause_writing()

    def resume_writing(self) -> None:
        self._of_server.resume_writing()


def _close_if_cancelled(link: socket.socket, task: asyncio.Task[None]) -> None:
    """Close what a task had, which may not have begun."""
    if task.cancelled():
        link.close()


def _listening(addresses: Iterable[tuple[int, Any]]) -> list[socket.socket]:
    """Return sockets that listen on addresses, at least on one. Raises OSError."""
    with contextlib.ExitStack() as stack:
        found, absent = list[socket.socket](), OSError("no address")
        for family, where in addresses:
            try:
                made = socket.create_server(where, family=family, backlog=_BACKLOG)
            except OSError as error:
                if error.errno not in _ABSENT:
                    raise
                absent = error
                continue
            stack.callback(made.close)
            made.setblocking(False)
            found.append(made)
        if not found:
            raise absent
        stack.pop_all()
    return found
