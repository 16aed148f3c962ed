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


async def _connected(folder: Path, proxy: str, *, scheme: str = "http") -> Connection:
    document = {
        "current-context": "c",
        "clusters": [{"name": "k", "cluster": {"server": f"{scheme}://karmada.example", "proxy-url": proxy}}],
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


async def _texts(connection: Connection) -> set[str]:
    """Return the texts of the errors of a request and of a watch."""
    with pytest.raises(ApiError) as of_request:
        await connection.request("GET", "/x")
    with pytest.raises(ApiError) as of_watch:
        [line async for line in connection.watch("/x")]
    await connection.close()
    return {str(of_request.value), str(of_watch.value)}


@pytest.mark.parametrize(
    ("status", "what"),
    [
        (b"403 Forbidden", "it answers 403 Forbidden"),
        (b"407 Proxy Authentication Required", "it answers 407 Proxy Authentication Required"),
        (b"", "Server disconnected"),
    ],
)
@pytest.mark.parametrize("named_by", ["kubeconfig", "environment"])
async def test_a_proxy_that_refuses_is_named_without_its_password_and_with_the_setting_that_has_it(
    status: bytes, what: str, named_by: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bytes] = []

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readline())
        if status:
            writer.write(b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as server:
        address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        url = f"http://user:s3cret@{address}"
        if named_by == "environment":
            monkeypatch.setenv("HTTPS_PROXY", url)
        connection = await _connected(tmp_path, url if named_by == "kubeconfig" else "", scheme="https")
        setting = (
            "clusters: proxy-url" if named_by == "kubeconfig" else "HTTPS_PROXY; NO_PROXY has exceptions"
        )
        named = f"through the proxy http://{address} ({setting})"
        assert await _texts(connection) == {f"cannot reach https://karmada.example {named}: {what}"}
    assert {line.split()[0] for line in asked} == {b"CONNECT"}


async def test_a_proxy_that_does_not_exist_is_named(tmp_path: Path) -> None:
    for text in await _texts(await _connected(tmp_path, "http://user:s3cret@127.0.0.1:1", scheme="https")):
        begin = "cannot reach https://karmada.example through the proxy http://127.0.0.1:1 (clusters: proxy-url): "
        assert text.startswith(begin)
        assert "s3cret" not in text
