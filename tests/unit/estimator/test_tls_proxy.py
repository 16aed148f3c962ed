"""The proxy that does TLS for gRPC: how connections end."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from karmada_pyscheduler.estimator.grpc_channel import TlsProxy
from tests.unit.estimator.fault_server import free_port, swallowing
from tools.controlplane.pki import Authority, Credentials


@pytest.fixture
def certificate(tmp_path: Path) -> Credentials:
    return Authority(tmp_path / "ca").issue("estimator", server=True)


@asynccontextmanager
async def proxied(port: int) -> AsyncIterator[TlsProxy]:
    proxy = await TlsProxy.start(f"127.0.0.1:{port}", certificate=None)
    try:
        yield proxy
    finally:
        async with asyncio.timeout(10):
            await proxy.close()


@asynccontextmanager
async def connected(proxy: TlsProxy) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Connect as gRPC does; no wait within takes longer than ten seconds."""
    reader, writer = await asyncio.open_unix_connection(proxy.target.removeprefix("unix:"))
    try:
        async with asyncio.timeout(10):
            yield reader, writer
    finally:
        writer.close()


@asynccontextmanager
async def estimator(
    certificate: Credentials, handle: Callable[[asyncio.StreamReader], Awaitable[object]]
) -> AsyncIterator[int]:
    """Serve TLS and end each connection when ``handle`` returns."""

    async def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await handle(reader)
        writer.close()

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.certificate, certificate.key)
    server = await asyncio.start_server(accepted, "127.0.0.1", 0, ssl=context)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def test_the_end_of_the_estimators_side_ends_the_other(certificate: Credentials) -> None:
    async with (
        estimator(certificate, lambda reader: reader.read(1)) as port,
        proxied(port) as proxy,
        connected(proxy) as (reader, writer),
    ):
        writer.write(b"x")
        assert await reader.read() == b""


async def test_the_end_of_grpcs_side_ends_the_other(certificate: Credentials) -> None:
    ended = asyncio.Event()

    async def until_end(reader: asyncio.StreamReader) -> None:
        try:
            await reader.read()
        finally:
            ended.set()

    async with (
        estimator(certificate, until_end) as port,
        proxied(port) as proxy,
        connected(proxy) as (_, writer),
    ):
        writer.close()
        await ended.wait()


async def test_a_connection_ends_without_an_error_if_the_estimator_cannot_be_reached() -> None:
    async with proxied(free_port()) as proxy, connected(proxy) as (reader, _):
        while not proxy._tasks:
            await asyncio.sleep(0)
        (task,) = proxy._tasks
        assert await reader.read() == b""
        await task


async def test_closing_ends_the_connections_and_the_socket() -> None:
    async with swallowing() as port, proxied(port) as proxy, connected(proxy) as (reader, _):
        while not proxy._tasks:
            await asyncio.sleep(0)
        (task,) = proxy._tasks
        await proxy.close()
        assert task.done()
        assert await reader.read() == b""
        assert proxy._server is not None
        assert not proxy._server.is_serving()
