"""The response of every request is a JSON object, or an error that shows request and response."""

from __future__ import annotations

import asyncio
import datetime as dt
import ssl
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest
from aiohttp import web

from karmada_pyscheduler.client.connection import Connection, connect
from karmada_pyscheduler.client.karmada import list_pages
from karmada_scheduler.api_error import ApiError
from karmada_scheduler.json_body import unreadable
from tools.controlplane.pki import Authority

PATH = "/apis/a/v1/objects"


class FakeServer:
    """Answers every request with the function of a test."""

    def __init__(self, answer: Callable[[web.Request], web.Response]) -> None:
        self.answer = answer
        self.requests: list[tuple[str, str, str]] = []

    async def _handle(self, request: web.Request) -> web.Response:
        self.requests.append((request.method, request.path_qs, request.headers.get("Authorization", "")))
        return self.answer(request)

    @asynccontextmanager
    async def running(self, tls: ssl.SSLContext | None = None, port: int = 0) -> AsyncIterator[str]:
        application = web.Application()
        application.router.add_route("*", "/{path:.*}", self._handle)
        runner = web.AppRunner(application, handle_signals=False, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port, ssl_context=tls).start()
        try:
            yield f"{'https' if tls else 'http'}://127.0.0.1:{runner.addresses[0][1]}"
        finally:
            await runner.cleanup()


@asynccontextmanager
async def _answering(body: bytes | str, status: int = 200, **arguments: Any) -> AsyncIterator[Connection]:
    content = body.encode() if isinstance(body, str) else body
    server = FakeServer(lambda _: web.Response(body=content, status=status, **arguments))
    async with server.running() as url:
        connection = await connect(kubeconfig="", master=url)
        try:
            yield connection
        finally:
            await connection.close()


async def _list(connection: Connection) -> list[Any]:
    return [page async for page in list_pages(connection, PATH)]


@pytest.mark.parametrize(
    ("body", "content_type", "shown"),
    [
        ("<html><body>It works!</body></html>", "text/html", "text/html: '<html><body>It works!</body></html>'"),
        ("", "application/json", "application/json: an empty body"),
        ("  ", "application/json", "application/json: an empty body"),
        ("7", "application/json", "application/json: '7'"),
        ("[]", "application/json", "application/json: '[]'"),
        ("null", "application/json", "application/json: 'null'"),
        ('{"a":', "application/json", "application/json: '{\"a\":'"),
        (b"\x01\xff\x00" * 100, "application/octet-stream", "application/octet-stream: '\\x01\ufffd\\x00"),
        ("[" * 20_000, "application/json", "application/json: '" + "[" * 100 + "'"),
    ],
)  # fmt: skip
async def test_a_response_that_is_not_an_object_is_an_error_that_shows_it(
    body: bytes | str, content_type: str, shown: str
) -> None:
    async with _answering(body, content_type=content_type) as connection:
        with pytest.raises(ApiError) as caught:
            await connection.request("PATCH", PATH, body={})
    assert str(caught.value).startswith(f"PATCH {PATH}: expected a JSON object, got HTTP 200, {shown}")
    assert len(str(caught.value)) < 600
    assert caught.value.code == 0
    assert caught.value.is_transient


async def test_an_object_that_is_nested_too_deeply_is_returned_without_the_deep_values() -> None:
    deep = b'{"a":' * 5_000 + b"1" + b"}" * 5_000
    async with _answering(b'{"metadata":{"name":"x"},"status":' + deep + b"}") as connection:
        assert (await connection.request("GET", PATH))["metadata"] == {"name": "x"}


@pytest.mark.parametrize(
    "answer",
    [
        {}, {"metadata": None}, {"metadata": 7}, {"metadata": {}}, {"metadata": {"resourceVersion": ""}, "items": []},
        {"metadata": {"resourceVersion": "x"}, "items": []}, {"metadata": {"resourceVersion": 7}, "items": []},
        {"metadata": {"resourceVersion": "-7"}, "items": []}, {"metadata": {"resourceVersion": "9" * 5000}, "items": []},
        {"metadata": {"resourceVersion": "7"}}, {"metadata": {"resourceVersion": "7"}, "items": {}},
        {"metadata": {"resourceVersion": "7", "continue": 5}, "items": []},
        {"kind": "Status", "metadata": {}, "status": "Success"},
    ],
)  # fmt: skip
async def test_an_object_that_is_not_a_list_is_an_error(answer: Any) -> None:
    async with _answering(orjson.dumps(answer)) as connection:
        with pytest.raises(
            ApiError, match=f"^GET {PATH}: expected a list with a resourceVersion, got: "
        ) as caught:
            await _list(connection)
    assert caught.value.code == 0


async def test_a_list_with_null_items_is_empty() -> None:
    async with _answering('{"metadata":{"resourceVersion":"7"},"items":null}') as connection:
        assert await _list(connection) == [([], "7")]


async def test_unusable_items_become_placeholders_and_the_others_are_returned() -> None:
    good = {"metadata": {"name": "a", "resourceVersion": "5"}}
    items = [good, 7, None, {}, {"metadata": {"name": "b", "uid": 7}}, good]
    body = orjson.dumps({"metadata": {"resourceVersion": "7"}, "items": items})
    async with _answering(body) as connection:
        [(found, _)] = await _list(connection)
    assert [unreadable(item) is not None for item in found] == [False, True, True, True, True, False]
    assert found[4]["metadata"] == {"name": "b"}


async def test_a_page_that_refers_to_itself_is_an_error() -> None:
    async with _answering('{"metadata":{"resourceVersion":"7","continue":"x"},"items":[]}') as connection:
        with pytest.raises(ApiError, match="refers to itself"):
            await _list(connection)


@pytest.mark.parametrize(
    "body",
    [
        "404 page not found\n", "", "[]", "7", "null", '{"message":7,"reason":{},"details":[]}',
        '{"details":{"causes":7}}', '{"details":{"causes":[7,null,{"reason":[]}]}}', '{"a":' * 2000,
    ],
)  # fmt: skip
async def test_a_refusal_of_any_shape_is_an_error_with_its_code(body: str) -> None:
    async with _answering(body, 404, headers={"Retry-After": "٣"}) as connection:
        with pytest.raises(ApiError) as caught:
            await connection.request("GET", PATH)
    assert (caught.value.code, caught.value.reason, caught.value.causes) == (404, "", ())
    assert str(caught.value)


@pytest.mark.parametrize(
    ("body", "text"),
    [("404 page not found\n", ": HTTP 502: 404 page not found"), ("<p>no</p>", ": HTTP 502: <p>no</p>"), ("", ": HTTP 502")],
)  # fmt: skip
async def test_a_refusal_that_is_not_of_an_api_server_is_named_with_request_and_status(
    body: str, text: str
) -> None:
    async with _answering(body, 502, content_type="text/html") as connection:
        with pytest.raises(ApiError) as caught:
            await connection.request("GET", PATH)
    assert str(caught.value) == f"GET {PATH}{text}"


@pytest.mark.parametrize("body", [{"a": {1, 2}}, {"a": b""}])
async def test_a_body_that_cannot_be_sent_is_an_error(body: Any) -> None:
    async with _answering("{}") as connection:
        with pytest.raises(ApiError, match="cannot be written as JSON"):
            await connection.request("PUT", PATH, body=body)


async def test_a_response_that_is_too_long_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("karmada_pyscheduler.client.http.MAX_RESPONSE", 500)
    async with _answering(b'{"a":"' + b"x" * 1000 + b'"}') as connection:
        with pytest.raises(ApiError, match="the response is longer than 500 bytes"):
            await connection.request("GET", PATH)


class RotationHarness:
    """A server that takes one token, and a kubeconfig with a token in a file."""

    def __init__(self, folder: Path) -> None:
        self.token = "first"
        self.file = folder / "token"
        self.kubeconfig = folder / "kubeconfig"
        self.server = FakeServer(self._answer)
        self.now = time.monotonic()

    def _answer(self, request: web.Request) -> web.Response:
        if request.headers.get("Authorization") == f"Bearer {self.token}":
            return web.json_response({"metadata": {"name": "x"}})
        return web.json_response({"message": "Unauthorized", "code": 401}, status=401)

    def write(self, token: str) -> None:
        self.file.write_text(token)

    async def connected(self, url: str, **user: str) -> Connection:
        document = {
            "current-context": "c",
            "clusters": [{"name": "k", "cluster": {"server": url}}],
            "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
            "users": [{"name": "u", "user": {"tokenFile": str(self.file), **user}}],
        }
        self.kubeconfig.write_bytes(orjson.dumps(document))
        return await connect(kubeconfig=str(self.kubeconfig), master="", clock=lambda: self.now)


@pytest.mark.parametrize("method", ["GET", "PATCH", "PUT", "POST"])
async def test_a_request_that_is_refused_is_repeated_once_with_new_credentials(
    tmp_path: Path, method: str
) -> None:
    harness = RotationHarness(tmp_path)
    harness.write("first")
    async with harness.server.running() as url:
        connection = await harness.connected(url)
        harness.token = "second"
        harness.write("second")
        assert await connection.request(method, PATH, body={"a": 1})
        assert [request[2] for request in harness.server.requests] == ["Bearer first", "Bearer second"]
        assert (await connection.credentials()).authorization == "Bearer second"
        await connection.close()


async def test_a_request_that_is_refused_is_not_repeated_with_the_same_credentials(tmp_path: Path) -> None:
    harness = RotationHarness(tmp_path)
    harness.write("other")
    async with harness.server.running() as url:
        connection = await harness.connected(url)
        for _ in range(3):
            text = f"Unauthorized.*the API server does not accept the token of {harness.file} of kubeconfig"
            with pytest.raises(ApiError, match=text) as caught:
                await connection.request("GET", PATH)
            assert caught.value.code == 401
        assert len(harness.server.requests) == 3
        await connection.close()


async def test_a_changed_credential_file_is_used_before_a_request_is_refused(tmp_path: Path) -> None:
    harness = RotationHarness(tmp_path)
    harness.write("first")
    async with harness.server.running() as url:
        connection = await harness.connected(url)
        harness.write("second")
        harness.token = ""
        harness.now += 11
        assert (await connection.credentials()).authorization == "Bearer first"  # not refused yet
        async with asyncio.timeout(10):
            while (await connection.credentials()).authorization != "Bearer second":
                await asyncio.sleep(0.001)
        await connection.close()


async def test_a_refused_watch_is_repeated_with_new_credentials(tmp_path: Path) -> None:
    harness = RotationHarness(tmp_path)
    harness.write("first")
    async with harness.server.running() as url:
        connection = await harness.connected(url)
        harness.token = "second"
        harness.write("second")
        accepted: list[bool] = []
        lines = [line async for line in connection.watch(f"{PATH}?watch=true", lambda: accepted.append(True))]
        assert lines == [b'{"metadata": {"name": "x"}}']
        assert accepted == [True]
        harness.token = "third"
        with pytest.raises(ApiError) as caught:
            [line async for line in connection.watch(f"{PATH}?watch=true")]
        assert caught.value.code == 401
        await connection.close()


def _listening(authority: Authority, *, wants_certificate: bool = False) -> ssl.SSLContext:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server = authority.issue("server", server=True)
    tls.load_cert_chain(server.certificate, server.key)
    tls.load_verify_locations(authority.certificate)
    tls.verify_mode = ssl.CERT_REQUIRED if wants_certificate else ssl.CERT_NONE
    return tls


async def test_another_authority_of_the_server_is_trusted_when_the_file_has_it(tmp_path: Path) -> None:
    harness = RotationHarness(tmp_path)
    harness.write("first")
    old, new = Authority(tmp_path / "old"), Authority(tmp_path / "new")
    ca = tmp_path / "ca.crt"
    ca.write_bytes(old.certificate.read_bytes())
    async with harness.server.running(_listening(old)) as url:
        connection = await harness.connected(url)
        document = orjson.loads(harness.kubeconfig.read_bytes())
        document["clusters"][0]["cluster"]["certificate-authority"] = str(ca)
        harness.kubeconfig.write_bytes(orjson.dumps(document))
        assert await connection.request("GET", PATH)  # fails with the old authority
        port = int(url.rpartition(":")[2])
    ca.write_bytes(new.certificate.read_bytes())
    harness.now += 6
    async with harness.server.running(_listening(new), port):
        before = await connection.credentials()
        assert await connection.request("PATCH", PATH, body={})
        after = await connection.credentials()
        assert after.tls is not before.tls
    await connection.close()


async def test_a_replaced_client_certificate_is_used_and_the_expiry_of_the_old_one_reported(
    tmp_path: Path,
) -> None:
    authority = Authority(tmp_path)
    user = authority.issue("scheduler", valid_for=dt.timedelta(minutes=-1))
    kubeconfig = tmp_path / "kubeconfig"
    serials: set[str] = set()

    def answer(request: web.Request) -> web.Response:
        serials.add(request.get_extra_info("peercert")["serialNumber"])
        return web.json_response({"versions": ["v1"]})

    async with FakeServer(answer).running(_listening(authority, wants_certificate=True)) as url:
        document = {
            "current-context": "c",
            "clusters": [
                {
                    "name": "k",
                    "cluster": {"server": url, "certificate-authority": str(authority.certificate)},
                }
            ],
            "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
            "users": [
                {
                    "name": "u",
                    "user": {"client-certificate": str(user.certificate), "client-key": str(user.key)},
                }
            ],
        }
        kubeconfig.write_bytes(orjson.dumps(document))
        now = time.monotonic()
        connection = await connect(kubeconfig=str(kubeconfig), master="", clock=lambda: now)
        with pytest.raises(ApiError, match=rf"client-certificate {user.certificate}\) of .* expired on 20"):
            await connection.request("GET", "/api")
        authority.issue("scheduler")
        now += 6
        assert await connection.request("GET", "/api")
        authority.issue("scheduler")
        now += 11
        await connection.request("GET", "/api")  # notices the changed file, and does not wait for it
        async with asyncio.timeout(10):
            while len(serials) < 2:
                await connection.request("GET", "/api")
        await connection.close()


async def test_credentials_are_sent_with_their_scheme(tmp_path: Path) -> None:
    harness = RotationHarness(tmp_path)
    harness.write("first")
    connection = await harness.connected("http://127.0.0.1:1", username="a", password="b")
    found = await connection.credentials()
    assert found.authorization == "Bearer first"
    await connection.close()
