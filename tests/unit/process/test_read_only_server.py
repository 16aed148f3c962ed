"""The server for records: hosts, methods, headers, limits, and readers that do not behave."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from ipaddress import ip_network
from pathlib import Path

import aiohttp
import pytest

from karmada_pyscheduler.client.reviews import User
from karmada_pyscheduler.http_server import listener, read_only_server
from karmada_pyscheduler.http_server.connections import OpenConnection
from karmada_pyscheduler.http_server.listener import ListenError, ServerCertificate
from karmada_pyscheduler.http_server.read_only_server import ReadOnlyServer
from karmada_pyscheduler.http_server.request_guard import (
    Access,
    AnsweredRequest,
    Document,
    HttpRequest,
    HttpResponse,
    RequestLimits,
    RequestRefusal,
)
from tools.controlplane.pki import Authority
from tools.controlplane.processes import free_port

OTHER = "127.0.0.2"
"""An address of this machine that is not that of most connections here."""


class Served:
    """A server, and what it has counted."""

    def __init__(
        self,
        access: Access = Access(hosts=frozenset({"records.example"})),  # noqa: B008 (it is frozen)
        *,
        limits: RequestLimits = RequestLimits(),  # noqa: B008 (it is frozen)
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.port = free_port()
        self.answered: list[AnsweredRequest] = []
        self.errors = 0
        self.parts_taken = 0
        self.ended = 0
        self.server = ReadOnlyServer(
            f"127.0.0.1:{self.port}",
            {
                "/v1/echo/{name}": self._echo,
                "/v1/failing": lambda _: 1 // 0,  # type: ignore[dict-item,return-value]
                "/v1/large": self._large,
                "/v1/whole": self._whole,
                "/healthz": self._whole,
                "/v1/stream": self._stream,
                "/v1/quiet": self._quiet_stream,
            },
            posts={"/v1/form": self._form},
            always=frozenset({"/healthz"}),
            access=access,
            limits=limits,
            tls=tls,
            on_response=self.answered.append,
            on_error=self._error,
        )
        self.accepted = 0
        self._admit = self.server._connections.admit
        self.server._connections.admit = self._admitted  # type: ignore[method-assign]

    def _admitted(self, address: str, close: Callable[[], object]) -> OpenConnection | None:
        self.accepted += 1
        return self._admit(address, close)

    async def _large(self, _: HttpRequest) -> HttpResponse:
        return HttpResponse(self._endless())

    async def _stream(self, _: HttpRequest) -> HttpResponse:
        return HttpResponse(self._endless(0.01), is_stream=True)

    async def _quiet_stream(self, _: HttpRequest) -> HttpResponse:
        return HttpResponse(self._quiet(), is_stream=True)

    @property
    def statuses(self) -> list[int]:
        return [each.status for each in self.answered]

    @property
    def open(self) -> int:
        """The number of open connections."""
        return len(self.server._connections)

    async def _echo(self, request: HttpRequest) -> HttpResponse:
        return HttpResponse(_text(f"{request.path['name']} {request.query.get('q', '')}"))

    async def _whole(self, request: HttpRequest) -> Document:
        return Document(b"x" * (2 if request.target == "/healthz" else 32 * 2**20))

    async def _form(self, request: HttpRequest) -> Document:
        return Document(f"{request.form} {request.requester}".encode(), content_type="text/plain")

    def _error(self) -> None:
        self.errors += 1

    async def _endless(self, seconds: float = 0.0) -> AsyncIterator[bytes]:
        while True:
            self.parts_taken += 1
            yield b"x" * 16_384
            await asyncio.sleep(seconds)

    async def _quiet(self) -> AsyncIterator[bytes]:
        """Send one part, and then nothing until the reader has gone."""
        yield b":\n\n"
        try:
            await asyncio.Event().wait()
        finally:
            self.ended += 1

    async def get(
        self, path: str, method: str = "GET", *, address: str = "127.0.0.1", **arguments: object
    ) -> tuple[int, str, dict[str, str]]:
        async with (
            aiohttp.ClientSession(connector=aiohttp.TCPConnector(local_addr=(address, 0))) as session,
            session.request(method, f"http://127.0.0.1:{self.port}{path}", **arguments) as answer,  # type: ignore[arg-type]
        ):
            return answer.status, await answer.text(), dict(answer.headers)

    async def raw(self, text: str) -> str:
        """Send a request as text, and return the response until the connection is closed or quiet."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(text.encode("latin-1"))
        found = b""
        with suppress(TimeoutError):
            async with asyncio.timeout(0.5):
                while part := await reader.read(65_536):
                    found += part
        writer.close()
        return found.decode(errors="replace")

    async def idle(self, address: str = "127.0.0.1") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Open a connection on which nothing is sent, and wait until the server knows it."""
        before = self.accepted
        found = await asyncio.open_connection("127.0.0.1", self.port, local_addr=(address, 0))
        await until(lambda: self.accepted > before)
        return found


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not holds():
            await asyncio.sleep(0.005)


@asynccontextmanager
async def serving(served: Served) -> AsyncIterator[Served]:
    await served.server.start()
    try:
        yield served
    finally:
        await served.server.stop()


async def _text(text: str) -> AsyncIterator[bytes]:
    yield text.encode()


@pytest.fixture
async def served(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Served]:
    monkeypatch.setattr(read_only_server, "_WRITE_SECONDS", 0.2)
    monkeypatch.setattr(listener, "_IDLE_SECONDS", 0.1)
    async with serving(Served()) as found:
        yield found


async def test_every_response_has_the_headers_of_a_private_page(served: Served) -> None:
    for path, status in (("/v1/echo/web", 200), ("/nothing", 404), ("/v1/failing", 500)):
        found, _, headers = await served.get(path)
        assert found == status
        assert headers["Content-Security-Policy"].startswith("default-src 'none'")
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Cache-Control"] == "no-store"
        assert headers["Referrer-Policy"] == "same-origin"
        assert not any(name.startswith("Access-Control") for name in headers)


@pytest.mark.parametrize(
    "host", ["localhost", "127.0.0.1:10353", "[::1]:80", "LOCALHOST:1", "records.example:443"]
)
async def test_names_of_this_machine_and_allowed_names_are_answered(served: Served, host: str) -> None:
    assert (await served.get("/v1/echo/web?q=1", headers={"Host": host}))[:2] == (200, "web 1")


async def test_an_address_with_rules_answers_whom_they_let_in_and_probes() -> None:
    async def viewer(headers: Mapping[str, str], _: str) -> User | RequestRefusal:
        is_known = headers.get("Authorization") == "Bearer good"
        return (
            User("dev") if is_known else RequestRefusal(401, "who are you?", {"WWW-Authenticate": "Bearer"})
        )

    async with serving(Served(Access(authorize=viewer))) as served:
        for path, method in (("/v1/echo/web", "GET"), ("/nothing", "GET"), ("/v1/form", "POST")):
            status, text, headers = await served.get(path, method)
            assert (status, headers["WWW-Authenticate"]) == (401, "Bearer")
            assert "who are you?" in text
        assert (await served.get("/healthz"))[0] == 200
        assert (await served.get("/v1/echo/web", headers={"Authorization": "Bearer good"}))[0] == 200
        assert [(each.user, each.address) for each in served.answered] == [
            *[("", "127.0.0.1")] * 4,
            ("dev", "127.0.0.1"),
        ]


async def test_only_a_named_proxy_says_who_asks() -> None:
    proxies = (ip_network("127.0.0.2/32"),)
    async with serving(Served(Access(proxies=proxies))) as served:
        headers = [("X-Forwarded-For", "192.0.2.9"), ("X-Forwarded-For", "198.51.100.1, 192.0.2.1")]
        for address, expected in ((OTHER, "192.0.2.1"), ("127.0.0.1", "127.0.0.1")):
            assert (await served.get("/v1/form", "POST", data={}, headers=headers, address=address))[1] == (
                f"{{}} {expected}"
            )
        await served.get("/v1/echo/web", headers={"X-Forwarded-For": "nobody"}, address=OTHER)
    assert [each.address for each in served.answered] == ["192.0.2.1", "127.0.0.1", OTHER]


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "localhost.", "", "10.0.0.7:10353"]
)
async def test_another_host_is_refused(served: Served, host: str) -> None:
    status, text, _ = await served.get("/v1/echo/web", headers={"Host": host})
    assert status == 421
    assert "--explain-allowed-host" in text
    assert (await served.raw("GET /v1/echo/web HTTP/1.0\r\n\r\n")).startswith("HTTP/1.0 421")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH"])
async def test_only_get_is_answered(served: Served, method: str) -> None:
    status, _, headers = await served.get("/v1/echo/web", method)
    assert (status, headers["Allow"]) == (405, "GET")


async def test_a_preflight_request_of_another_origin_gets_no_permission(served: Served) -> None:
    headers = {"Origin": "http://evil.example", "Access-Control-Request-Method": "GET"}
    status, _, found = await served.get("/v1/echo/web", "OPTIONS", headers=headers)
    assert status == 403
    assert not any(name.startswith("Access-Control") for name in found)


async def test_a_request_with_a_body_is_refused_and_its_connection_closed(served: Served) -> None:
    head = "GET /v1/echo/web HTTP/1.1\r\nHost: localhost\r\n"
    for rest in ("Content-Length: 1000000000\r\n\r\nx", "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"):
        found = await served.raw(head + rest)
        assert found.startswith("HTTP/1.1 413")
        assert "Connection: close" in found


FORM = "POST /v1/form HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\n"


async def test_the_fields_of_a_form_are_read(served: Served) -> None:
    status, text, _ = await served.get("/v1/form", "POST", data={"a": "ä&b", "c": ""})
    assert (status, text) == (200, "{'a': 'ä&b', 'c': ''} 127.0.0.1")


@pytest.mark.parametrize(
    ("rest", "status"),
    [
        ("Content-Length: 1048577\r\n\r\nx", 413),
        ("Transfer-Encoding: chunked\r\n\r\n200001\r\n" + "x" * 0x200001 + "\r\n0\r\n\r\n", 413),
        ("Content-Length: 5\r\n\r\na", 408),
        ("Content-Length: 3\r\n\r\na=\xff", 400),
        ("Content-Length: 300\r\n\r\n" + "&a=" * 100, 400),
    ],
    ids=["length", "chunked", "slow", "no-text", "fields"],
)
async def test_a_form_that_cannot_be_read_is_refused_and_its_connection_closed(
    served: Served, monkeypatch: pytest.MonkeyPatch, rest: str, status: int
) -> None:
    monkeypatch.setattr(read_only_server, "_BODY_SECONDS", 0.05)
    assert (await served.raw(FORM + rest)).startswith(f"HTTP/1.1 {status}")
    assert (await served.get("/v1/echo/web"))[0] == 200


async def test_a_body_of_another_kind_is_refused(served: Served) -> None:
    assert (await served.get("/v1/form", "POST", data=b"{}"))[0] == 415
    assert (await served.get("/v1/form", "POST", json={}))[0] == 415


async def test_a_request_of_another_site_is_refused(served: Served) -> None:
    for headers in ({"Sec-Fetch-Site": "cross-site"}, {"Origin": "http://evil.example"}):
        assert (await served.get("/v1/echo/web", headers=headers))[0] == 403
        assert (await served.get("/v1/form", "POST", data={"a": "b"}, headers=headers))[0] == 403


@pytest.mark.parametrize(
    "text",
    [
        "nonsense\r\n\r\n",
        "GET /v1/echo/x HTTP/1.1\r\nHost: localhost\r\nX: " + "y" * 100_000 + "\r\n\r\n",
        "GET /" + "a" * 100_000 + " HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "GET /v1/echo/x HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\nContent-Length: x\r\n\r\n",
    ],
)
async def test_malformed_requests_are_refused(served: Served, text: str) -> None:
    assert (await served.raw(text)).startswith(("HTTP/1.0 400", "HTTP/1.1 400"))
    assert (await served.get("/v1/echo/web"))[0] == 200


async def test_a_path_does_not_leave_its_part(served: Served) -> None:
    assert (await served.get("/v1/echo/%2e%2e%2f%2e%2e%2fetc"))[1] == "../../etc "
    assert (await served.get("/v1/echo/a/b"))[0] == 404


async def test_an_error_of_a_handler_is_counted_and_not_shown(served: Served) -> None:
    status, text, _ = await served.get("/v1/failing")
    assert (status, served.errors) == (500, 1)
    assert "division" not in text


async def test_requests_above_the_rate_of_an_address_are_refused_and_those_of_others_answered() -> None:
    async with serving(Served(limits=RequestLimits(rate=0.0, burst=10.0))) as served:
        statuses = [(await served.get("/v1/echo/web"))[0] for _ in range(7)]
        assert statuses == [200] * 5 + [429, 429]
        assert served.statuses == statuses
        assert (await served.get("/v1/echo/web", address=OTHER))[0] == 200
        assert (await served.get("/healthz"))[0] == 200
        assert (await served.get("/healthz", headers={"Host": "evil.example"}))[0] == 421


async def test_a_reader_that_reads_nothing_is_dropped_and_holds_little(served: Served) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", served.port)
    writer.transport.pause_reading()  # type: ignore[attr-defined]
    writer.write(b"GET /v1/large HTTP/1.1\r\nHost: localhost\r\n\r\n")
    async with asyncio.timeout(10):
        while not served.statuses:
            await asyncio.sleep(0.01)
    # The buffers of the kernel and of the connection are all that was taken of an endless response.
    assert served.parts_taken * 16_384 < 16 * 2**20
    taken = served.parts_taken
    await asyncio.sleep(0.1)
    assert served.parts_taken == taken
    writer.close()


async def test_streams_have_a_limit_of_their_own_of_which_one_address_has_half() -> None:
    async with (
        serving(Served(limits=RequestLimits(streams=4))) as served,
        aiohttp.ClientSession() as session,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(local_addr=(OTHER, 0))) as other,
    ):
        url = f"http://127.0.0.1:{served.port}/v1/stream"
        streams = [await each.get(url) for each in (session, session, other, other)]
        assert [each.status for each in streams] == [200] * 4
        for address, whose in (("127.0.0.1", " of 127.0.0.1"), ("127.0.0.3", "")):
            status, text, _ = await served.get("/v1/stream", address=address)
            assert (status, f'"too many event streams{whose}"' in text) == (429, True)
        assert (await served.get("/v1/echo/web"))[0] == 200
        for each in streams[:2]:
            each.close()
        await until(lambda: len(served.server._streams) == 2)
        async with session.get(url) as again:
            assert again.status == 200
        for each in streams[2:]:
            each.close()


async def test_a_quiet_stream_ends_when_its_reader_has_gone() -> None:
    """A reader who goes from page to page opens a stream on each, and must not run out of them."""
    async with serving(Served(limits=RequestLimits(streams=4))) as served:
        for number in range(1, 6):
            async with aiohttp.ClientSession() as session:
                stream = await session.get(f"http://127.0.0.1:{served.port}/v1/quiet")
                assert stream.status == 200
                stream.close()
            await until(lambda number=number: served.ended == number)  # type: ignore[misc]
        assert served.errors == 0


async def test_a_stream_is_not_an_idle_connection(served: Served) -> None:
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"http://127.0.0.1:{served.port}/v1/stream") as stream,
    ):
        for _ in range(60):  # three times the time after which idle connections are closed
            assert await stream.content.readexactly(16_384)


async def test_connections_without_a_request_are_closed(served: Served) -> None:
    links = [await asyncio.open_connection("127.0.0.1", served.port) for _ in range(10)]
    for _, writer in links:
        writer.write(b"GET /v1/echo/x HTTP/1.1\r\nHost: local")
    async with asyncio.timeout(5):
        for reader, writer in links:
            assert await reader.read() == b""
            writer.close()


async def test_the_longest_idle_connection_gives_way_to_a_new_one() -> None:
    async with serving(Served(limits=RequestLimits(connections=8))) as served:
        links = [await served.idle(OTHER) for _ in range(4)]
        for number in range(3):
            links.append(await served.idle(OTHER))
            assert await links[number][0].read() == b""
        assert served.open == 4
        assert (await served.get("/v1/echo/web"))[0] == 200
        assert [reader.at_eof() for reader, _ in links] == [True] * 3 + [False] * 4
        for _, writer in links:
            writer.close()


async def test_a_connection_whose_request_is_answered_stays_and_one_that_sends_a_body_may_give_way() -> None:
    async with serving(Served(limits=RequestLimits(connections=6))) as served:
        stream, answered = await served.idle()
        answered.write(b"GET /v1/stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert await stream.readline() == b"HTTP/1.1 200 OK\r\n"
        form, half = await served.idle()
        half.write(f"{FORM}Content-Length: 10\r\n\r\na=".encode())
        links = [await served.idle() for _ in range(4)]
        assert await form.read() == b""
        assert await stream.readexactly(2**17)
        assert served.open == 3
        for _, writer in (*links, (stream, answered), (form, half)):
            writer.close()


async def test_a_connection_without_a_finished_handshake_gives_way_as_well(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "pki")
    issued = authority.issue("localhost", server=True)
    certificate = ServerCertificate(issued.certificate, issued.key)
    trusting = ssl.create_default_context(cafile=str(authority.certificate))
    async with serving(Served(limits=RequestLimits(connections=8), tls=certificate.context)) as served:
        links = [await served.idle() for _ in range(5)]
        assert await links[0][0].read() == b""
        assert served.open == 4
        links[1][1].write(b"no handshake")
        await links[1][0].read()
        await until(lambda: served.open == 3)
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", served.port, ssl=trusting, server_hostname="localhost"
        )
        writer.write(b"GET /v1/echo/web HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        writer.close()
        for _, other in links:
            other.close()
    assert served.open == 0


async def test_a_handshake_that_is_never_finished_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "_IDLE_SECONDS", 0.1)
    issued = Authority(tmp_path / "pki").issue("localhost", server=True)
    tls = ServerCertificate(issued.certificate, issued.key).context
    async with serving(Served(tls=tls)) as served:
        reader, writer = await served.idle()
        assert await reader.read() == b""
        writer.close()


async def test_connections_end_with_the_server() -> None:
    async with serving(Served()) as served:
        links = [await served.idle() for _ in range(3)]
        links[0][1].write(b"GET /v1/stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await links[0][0].readline()
    for reader, writer in links:
        await reader.read()
        writer.close()
    assert served.open == 0


async def test_a_reader_that_takes_nothing_of_a_whole_response_is_dropped(served: Served) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", served.port)
    writer.transport.pause_reading()  # type: ignore[attr-defined]
    writer.write(b"GET /v1/whole HTTP/1.1\r\nHost: localhost\r\n\r\n")
    await until(lambda: bool(served.statuses) and not served.open)
    writer.close()


async def test_a_slow_reader_of_a_whole_response_gets_it(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        listener, "_LEAST_BYTES", -(2**40)
    )  # whatever the machine lets it take between two looks
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port, limit=2**18)
    writer.write(b"GET /v1/whole HTTP/1.1\r\nHost: localhost\r\n\r\n")
    taken = 0
    while taken < 32 * 2**20:
        part = await reader.read(2**20)
        assert part
        taken += len(part)
        await asyncio.sleep(0.01)  # in all, many times longer than an idle connection stays
    writer.close()


async def test_an_address_in_use_is_named(served: Served) -> None:
    second = ReadOnlyServer(f"127.0.0.1:{served.port}", {})
    with pytest.raises(ListenError, match=f"cannot listen on 127.0.0.1:{served.port}: "):
        await second.start()
    await second.stop()
