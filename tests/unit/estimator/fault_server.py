"""An estimator with chosen responses and faults, over real gRPC on 127.0.0.1."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import grpc
import grpc.aio

from karmada_pyscheduler.estimator.pb import estimator_pb2 as pb
from karmada_pyscheduler.estimator.wire import MAX_AVAILABLE_REPLICAS
from tests.connections import listening
from tools.controlplane.pki import Credentials

T = TypeVar("T")


class FaultServer:
    """One estimator.

    Attributes:
        answer: Its response: a number, raw bytes, or an error status.
        hangs: Whether it does not respond.
        requests: Method, request and the metadata ``object`` of each call.
    """

    def __init__(self, port: int) -> None:
        self.port = port
        self.answer: int | bytes | grpc.StatusCode = 7
        self.hangs = False
        self.requests: list[tuple[str, bytes, str]] = []
        self._let_go = asyncio.Event()

    def let_go(self) -> None:
        """Respond to all pending calls."""
        self.hangs = False
        self._let_go.set()

    def requests_received(self) -> list[pb.MaxAvailableReplicasRequest]:
        """Return the requests for replicas."""
        return [
            pb.MaxAvailableReplicasRequest.FromString(body)
            for method, body, _ in self.requests
            if method.endswith(MAX_AVAILABLE_REPLICAS)
        ]

    async def handle(self, request: bytes, context: Any, method: str) -> bytes:
        about = dict(context.invocation_metadata()).get("object", "")
        self.requests.append((method, request, about))
        while self.hangs:
            await self._let_go.wait()
        answer = self.answer
        if isinstance(answer, int):
            return pb.MaxAvailableReplicasResponse(max_replicas=answer).SerializeToString()
        if isinstance(answer, grpc.StatusCode):
            await context.abort(answer, "as configured")
        assert isinstance(answer, bytes)
        return answer


class _AnyMethod(grpc.GenericRpcHandler):
    def __init__(self, server: FaultServer) -> None:
        self._server = server

    def service(self, handler_call_details: Any) -> Any:
        async def handle(request: bytes, context: Any) -> bytes:
            return await self._server.handle(request, context, handler_call_details.method)

        return grpc.unary_unary_rpc_method_handler(handle)


def free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@asynccontextmanager
async def serving(
    *, port: int = 0, tls: Credentials | None = None, clients_of: Path | None = None
) -> AsyncIterator[FaultServer]:
    """Serve while the block runs.

    Args:
        port: Port to listen on; 0 for any.
        tls: The server's certificate; without it, no TLS.
        clients_of: The authority of client certificates; without it, clients need none.
    """
    roots = clients_of.read_bytes() if clients_of else None  # noqa: ASYNC240
    server = grpc.aio.server(options=(("grpc.so_reuseport", 0),))
    fault = FaultServer(port)
    server.add_generic_rpc_handlers((_AnyMethod(fault),))
    address = f"127.0.0.1:{port}"
    if tls is None:
        fault.port = server.add_insecure_port(address)
    else:
        credentials = grpc.ssl_server_credentials(
            [(tls.key.read_bytes(), tls.certificate.read_bytes())],
            root_certificates=roots,
            require_client_auth=clients_of is not None,
        )
        fault.port = server.add_secure_port(address, credentials)
    await server.start()
    try:
        yield fault
    finally:
        fault.let_go()
        await server.stop(grace=None)


@contextmanager
def in_thread(servers: AbstractAsyncContextManager[T]) -> Iterator[tuple[T, asyncio.AbstractEventLoop]]:
    """Serve from a thread while the block runs, so that the test may block; yield what serves, and its event loop."""
    entered: list[T] = []
    started, ended = threading.Event(), asyncio.Event()
    loop = asyncio.new_event_loop()

    async def serve() -> None:
        async with servers as found:
            entered.append(found)
            started.set()
            await ended.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),), daemon=True)
    thread.start()
    assert started.wait(20)
    try:
        yield entered[0], loop
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join(20)
        loop.close()


@asynccontextmanager
async def speaking_garbage() -> AsyncIterator[int]:
    """Listen on a port and send bytes that are not HTTP/2."""

    async def babble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mail.example.com ESMTP\r\n" * 100)
        await reader.read(1024)

    async with listening(babble) as port:
        yield port


@asynccontextmanager
async def swallowing() -> AsyncIterator[int]:
    """Listen on a port and never send anything."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]
