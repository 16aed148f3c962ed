"""The HTTP endpoints: probes, metrics, and the limit of unfinished requests."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import suppress

import aiohttp
import pytest

from karmada_pyscheduler.http_server import listener
from karmada_pyscheduler.http_server.read_only_server import Server
from tools.controlplane.processes import free_port


class FakeProcess:
    """The state that the endpoints report."""

    health: str | None = None
    ready: str | None = None
    metrics = b"x 1\n"

    def exposition(self) -> bytes:
        if not self.metrics:
            raise RuntimeError("dictionary changed size during iteration")
        return self.metrics


@pytest.fixture
async def endpoints(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[FakeProcess, int]]:
    monkeypatch.setattr(listener, "_IDLE_SECONDS", 0.05)
    process, port = FakeProcess(), free_port()
    address = f"127.0.0.1:{port}"
    server = Server(
        health_address=address,
        metrics_address=address,
        health=lambda: process.health,
        ready=lambda: process.ready,
        exposition=process.exposition,
        content_type="text/plain",
    )
    await server.start()
    yield process, port
    await server.stop()


async def _get(port: int, path: str, method: str = "GET") -> tuple[int, str]:
    async with (
        aiohttp.ClientSession() as session,
        session.request(method, f"http://127.0.0.1:{port}{path}") as answer,
    ):
        return answer.status, await answer.text()


async def test_probes_have_the_reason_of_a_failure(endpoints: tuple[FakeProcess, int]) -> None:
    process, port = endpoints
    assert await _get(port, "/healthz") == (200, "ok")
    process.health, process.ready = "the event loop has not run for 31s", "kopf is not running"
    assert await _get(port, "/healthz") == (503, "the event loop has not run for 31s\n")
    assert await _get(port, "/readyz") == (503, "kopf is not running\n")


async def test_a_scrape_during_a_change_is_answered_with_503(endpoints: tuple[FakeProcess, int]) -> None:
    process, port = endpoints
    assert await _get(port, "/metrics") == (200, "x 1\n")
    process.metrics = b""
    assert (await _get(port, "/metrics"))[0] == 503


async def test_only_get_is_supported(endpoints: tuple[FakeProcess, int]) -> None:
    _, port = endpoints
    assert (await _get(port, "/metrics", "POST"))[0] == 405


async def test_requests_that_are_never_finished_are_closed(endpoints: tuple[FakeProcess, int]) -> None:
    _, port = endpoints
    links = [await asyncio.open_connection("127.0.0.1", port) for _ in range(20)]
    for _, writer in links:
        writer.write(b"GET /metrics HTTP/1.1\r\nHost: x\r\n")
    async with asyncio.timeout(5):
        for reader, writer in links:
            assert await reader.read() == b""
            writer.close()


async def test_a_reader_that_takes_nothing_of_the_metrics_is_dropped(
    endpoints: tuple[FakeProcess, int],
) -> None:
    process, port = endpoints
    process.metrics = b"x 1\n" * 4_000_000  # more than the kernel takes
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.transport.pause_reading()  # type: ignore[attr-defined]
    writer.write(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
    await asyncio.sleep(0.5)
    assert (await _get(port, "/healthz"))[0] == 200
    writer.transport.resume_reading()  # type: ignore[attr-defined]
    taken = 0
    with suppress(ConnectionError):
        while part := await reader.read(2**20):
            taken += len(part)
    assert taken < len(process.metrics)
    writer.close()


async def test_an_empty_host_is_every_interface() -> None:
    port, process = free_port(), FakeProcess()
    server = Server(
        health_address=f":{port}",
        metrics_address="",
        health=lambda: process.health,
        ready=lambda: process.ready,
        exposition=process.exposition,
        content_type="text/plain",
    )
    await server.start()
    try:
        for address in ("127.0.0.1", "127.0.0.2", *(["::1"] if _has_ipv6() else [])):
            reader, writer = await asyncio.open_connection(address, port)
            writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            assert (await reader.read()).endswith(b"ok")
            writer.close()
    finally:
        await server.stop()


def _has_ipv6() -> bool:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False
