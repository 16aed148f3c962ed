"""Requests and watches through the proxy that a kubeconfig names."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from karmada_pyscheduler.client.connection import Connection, connect
from karmada_scheduler.api_error import ApiError


async def _connected(folder: Path, proxy: str) -> Connection:
    document = {
        "current-context": "c",
        "clusters": [{"name": "k", "cluster": {"server": "http://karmada.example", "proxy-url": proxy}}],
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
    }
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(json.dumps(document))
    return await connect(kubeconfig=str(kubeconfig), master="")


async def test_requests_and_watches_go_through_the_proxy_of_the_kubeconfig(tmp_path: Path) -> None:
    requests: list[tuple[str, str, str, bytes]] = []

    async def handle(request: web.BaseRequest) -> web.Response:
        shown = request.headers.get("Authorization", "")
        requests.append(
            (request.method, request.headers["Host"] + request.path_qs, shown, await request.read())
        )
        return web.Response(body=b'{"a":1}\n')

    runner = web.ServerRunner(web.Server(handle), handle_signals=False, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    connection = await _connected(tmp_path, f"http://127.0.0.1:{runner.addresses[0][1]}")
    assert await connection.request("PATCH", "/x", body={"b": 2}, query={"c": "d"}) == {"a": 1}
    assert [line async for line in connection.watch("/y?watch=true")] == [b'{"a":1}']
    assert requests == [
        ("PATCH", "karmada.example/x?c=d", "Bearer t", b'{"b":2}'),
        ("GET", "karmada.example/y?watch=true", "Bearer t", b""),
    ]
    transport: Any = connection._connections
    transport.retire()
    async with asyncio.timeout(10):
        while not transport._connections._session.closed:
            await asyncio.sleep(0)
    await connection.close()
    await runner.cleanup()


async def test_a_write_through_a_proxy_is_not_carried_out_if_its_permission_has_ended(tmp_path: Path) -> None:
    bodies: list[bytes] = []

    async def handle(request: web.BaseRequest) -> web.Response:
        bodies.append(await request.read())
        return web.Response(body=b"{}")

    def check() -> None:
        if is_over:
            raise RuntimeError("the term has ended")

    runner = web.ServerRunner(web.Server(handle), handle_signals=False, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    connection = await _connected(tmp_path, f"http://127.0.0.1:{runner.addresses[0][1]}")
    is_over = False
    assert await connection.request("PATCH", "/x", body={"b": 2}, before_send=check) == {}
    is_over = True
    with pytest.raises(ApiError, match="cannot reach"):
        await connection.request("PATCH", "/x", body={"b": 3}, before_send=check)
    await connection.close()
    await runner.cleanup()
    assert bodies == [b'{"b":2}']


async def test_an_unreachable_proxy_is_an_api_error(tmp_path: Path) -> None:
    connection = await _connected(tmp_path, "http://127.0.0.1:1")
    with pytest.raises(ApiError, match="cannot reach"):
        await connection.request("GET", "/x")
    with pytest.raises(ApiError, match="cannot reach"):
        [line async for line in connection.watch("/x")]
    await connection.close()
