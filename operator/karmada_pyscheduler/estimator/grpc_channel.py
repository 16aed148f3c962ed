"""One gRPC channel to the estimator at one address; the only importer of grpc.

TLS without verification (``--insecure-skip-estimator-verify``) is not offered by grpc in Python: it uses plain HTTP/2 on a
Unix socket that only this user can open. A proxy forwards the bytes over TLS and accepts any certificate.

Source: karmada v1.18.2 pkg/util/grpcconnection.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import ssl
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Self

import grpc
import grpc.aio

from karmada_pyscheduler.estimator.transport import EstimatorCallError
from karmada_pyscheduler.estimator.wire import SERVICE
from karmada_scheduler.config.options import EstimatorOptions

_CHUNK: Final = 1 << 16

_CHANNEL_OPTIONS: Final = (
    ("grpc.enable_http_proxy", 0),
    ("grpc.max_reconnect_backoff_ms", 10_000),
    ("grpc.use_local_subchannel_pool", 1),  # a dial is a new connection, also to an address used before
)


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
            for copy in copies:
                copy.cancel()
            sink.transport.abort()  # the peer determines how long a graceful close takes
            await asyncio.gather(*copies, return_exceptions=True)


async def _copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while chunk := await source.read(_CHUNK):
            sink.write(chunk)
            await sink.drain()


class GrpcChannel:
    """A channel, with its TLS proxy if certificates are not verified.

    Attributes:
        address: ``host:port`` of the estimator.
    """

    def __init__(self, address: str, channel: grpc.aio.Channel, proxy: TlsProxy | None) -> None:
        """Use ``dial``."""
        self.address: Final = address
        self._channel = channel
        self._proxy = proxy
        self._methods: dict[str, Any] = {}

    @classmethod
    async def dial(
        cls,
        address: str,
        settings: EstimatorOptions,
        *,
        seconds: float,
        on_failure: Callable[[], None],
    ) -> Self:
        """Open a channel and wait until it is ready.

        Args:
            address: ``host:port`` of the estimator.
            settings: TLS settings.
            seconds: How long to wait.
            on_failure: Called after each failed attempt; gRPC goes on trying.

        Raises:
            ConnectionError: The channel is not ready in time.
            OSError: A certificate file cannot be read.
            ValueError: A file does not hold a certificate.
        """
        proxy = None
        if settings.skip_verify:
            proxy = await TlsProxy.start(address, certificate=settings.certificate)
            options = (*_CHANNEL_OPTIONS, ("grpc.default_authority", address))
            channel = grpc.aio.insecure_channel(proxy.target, options=options)
        elif settings.ca_file:
            channel = grpc.aio.secure_channel(address, _credentials(settings), options=_CHANNEL_OPTIONS)
        else:
            channel = grpc.aio.insecure_channel(address, options=_CHANNEL_OPTIONS)
        dialed = cls(address, channel, proxy)
        try:
            is_ready = await dialed.wait_ready(seconds, on_failure)
        except BaseException:
            await dialed.close()
            raise
        if not is_ready:
            state = channel.get_state().name
            await dialed.close()
            text = f"dial {address} error: timeout waiting for connection to {address}, state is {state}"
            raise ConnectionError(text)
        return dialed

    @property
    def is_ready(self) -> bool:
        """Whether the channel is connected; if not, gRPC tries to connect."""
        return self._channel.get_state(try_to_connect=True) is grpc.ChannelConnectivity.READY

    async def wait_while_ready(self) -> None:
        """Return when the channel is no longer connected."""
        while self.is_ready:
            await self._channel.wait_for_state_change(grpc.ChannelConnectivity.READY)

    async def wait_ready(self, seconds: float, on_failure: Callable[[], None] = lambda: None) -> bool:
        """Wait until the channel is connected, at most some seconds; return whether it is.

        ``on_failure`` is called after each failed attempt.
        """
        state = self._channel.get_state(try_to_connect=True)
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while state is not grpc.ChannelConnectivity.READY:
                    await self._channel.wait_for_state_change(state)
                    state = self._channel.get_state(try_to_connect=True)
                    if state is grpc.ChannelConnectivity.TRANSIENT_FAILURE:
                        on_failure()
        return state is grpc.ChannelConnectivity.READY

    async def call(self, cluster: str, method: str, request: bytes, *, timeout: float, about: str) -> bytes:
        """Call a method; see ``Connections.call``."""
        call = self._methods.get(method)
        if call is None:
            call = self._methods[method] = self._channel.unary_unary(f"/{SERVICE}/{method}")
        try:
            response: bytes = await call(request, timeout=timeout, metadata=(("object", about),))
        except grpc.aio.AioRpcError as error:
            code = error.code()
            raise EstimatorCallError(
                f"gRPC request cluster({cluster}) estimator error when calling {method}: "
                f"rpc error: code = {_go_name(code)} desc = {error.details()}",
                timed_out=code is grpc.StatusCode.DEADLINE_EXCEEDED,
            ) from error
        except (asyncio.CancelledError, grpc.aio.UsageError) as error:
            if _cancels_the_task(error):
                raise
            raise EstimatorCallError(
                f"gRPC request cluster({cluster}) estimator error: connection closed"
            ) from error
        return response

    async def close(self) -> None:
        """Close the channel; calls under way fail."""
        await self._channel.close()
        if self._proxy is not None:
            await self._proxy.close()


def _cancels_the_task(error: BaseException) -> bool:
    """Return whether a cancellation is that of the calling task, not that of the call."""
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0


def _credentials(settings: EstimatorOptions) -> grpc.ChannelCredentials:
    """Read the certificates. They are read for each dial, as they are replaced while this process runs."""
    certificate = settings.certificate
    chain, key = (Path(path).read_bytes() for path in certificate) if certificate else (None, None)
    authorities = Path(settings.ca_file).read_bytes() if settings.ca_file else None
    return grpc.ssl_channel_credentials(
        root_certificates=authorities, private_key=key, certificate_chain=chain
    )


def _go_name(code: grpc.StatusCode) -> str:
    """Return the name of a status as Go writes it: ``DeadlineExceeded``."""
    special = {"OK": "OK", "CANCELLED": "Canceled"}
    return special.get(code.name, code.name.replace("_", " ").title().replace(" ", ""))
