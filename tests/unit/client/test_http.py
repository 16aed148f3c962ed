"""Requests over persistent connections, to a server on the loopback interface with prepared behaviours."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import gzip
import socket
import ssl
import threading
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import uvloop

from karmada_pyscheduler.client.http import AGENT, HttpConnections, is_tls_refusal
from karmada_pyscheduler.client.http_connection import (
    ConnectionLostError,
    OutgoingRequest,
    PersistentConnection,
    Response,
)
from karmada_pyscheduler.client.identity import verify_as_go_does
from tests.connections import listening
from tools.controlplane.pki import Authority

Behaviour = Callable[[bytes, asyncio.StreamWriter], Awaitable[None]]
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class FakeServer:
    """Reads requests and answers each with the next behaviour, or with 200."""

    def __init__(self) -> None:
        self.requests: list[bytes] = []
        self.connections = 0
        self.behaviours: list[Behaviour | bytes] = []
        self.ended = asyncio.Event()
        self.url = ""
        self.now = 0.0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().partition(b"content-length:")[2].split()[0])
                request = head + await reader.readexactly(length)
                self.requests.append(request)
                behaviour = self.behaviours.pop(0) if self.behaviours else OK
                if isinstance(behaviour, bytes):
                    writer.write(behaviour)
                else:
                    await behaviour(request, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            self.ended.set()


@asynccontextmanager
async def served(path: str = "") -> AsyncIterator[tuple[FakeServer, HttpConnections]]:
    """A server, and connections to it."""
    server = FakeServer()
    async with listening(server.serve) as port:
        server.url = f"http://127.0.0.1:{port}{path}"
        connections = HttpConnections(server.url, tls=None, tls_name=None, clock=lambda: server.now)
        try:
            yield server, connections
        finally:
            await connections.close()


async def request(
    connections: HttpConnections, method: str = "PATCH", path: str = "/it", timeout: float = 20.0
) -> Response:
    return await connections.request(OutgoingRequest(method, path, {"Accept": "a/b"}, b"{}", timeout))


async def hang_up(request: bytes, writer: asyncio.StreamWriter) -> None:
    writer.close()


async def never(request: bytes, writer: asyncio.StreamWriter) -> None:
    await asyncio.Event().wait()


async def test_requests_one_after_the_other_share_a_connection() -> None:
    async with served() as (server, connections):
        for _ in range(3):
            assert (await request(connections)).body == b"ok"
    assert server.connections == 1


async def test_requests_at_the_same_time_have_a_connection_each() -> None:
    async with served() as (server, connections):
        await asyncio.gather(*(request(connections) for _ in range(3)))
    assert server.connections == 3


async def test_a_request_has_its_method_path_query_headers_and_body() -> None:
    async with served("/base/") as (server, connections):
        await request(connections, "POST", "/a b/c?limit=5&continue=x%3D")
    head, _, body = server.requests[0].partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    assert lines[0] == "POST /base/a%20b/c?limit=5&continue=x%3D HTTP/1.1"
    host = server.url.removeprefix("http://").removesuffix("/base/")
    assert lines[1:] == [f"Host: {host}", f"User-Agent: {AGENT}", "Accept: a/b", "Content-Length: 2"]
    assert body == b"{}"


async def test_a_response_has_its_status_headers_and_body() -> None:
    async with served() as (server, connections):
        server.behaviours = [b"HTTP/1.1 429 No\r\nRETRY-After: 7\r\nContent-Length: 4\r\n\r\nlate"]
        assert await request(connections) == Response(
            429, {"retry-after": "7", "content-length": "4"}, b"late"
        )


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n" + OK,
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 22\r\n\r\n"
        + gzip.compress(b"ok", mtime=0),
    ],
    ids=["chunked", "after-100", "gzip"],
)
@pytest.mark.parametrize("piece", [1, 1000])
async def test_a_response_may_arrive_in_any_pieces(answer: bytes, piece: int) -> None:
    async def slowly(request: bytes, writer: asyncio.StreamWriter) -> None:
        for begin in range(0, len(answer), piece):
            writer.write(answer[begin : begin + piece])
            await writer.drain()
            await asyncio.sleep(0)

    async with served() as (server, connections):
        server.behaviours = [slowly]
        assert (await request(connections)).body == b"ok"
        assert (await request(connections)).body == b"ok"
    assert server.connections == 1


async def test_a_response_without_a_length_ends_with_its_connection() -> None:
    async def answer(request: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\nall there is")
        writer.close()

    async with served() as (server, connections):
        server.behaviours = [answer]
        assert (await request(connections)).body == b"all there is"


async def test_a_connection_that_the_server_wants_closed_is_not_used_again() -> None:
    async with served() as (server, connections):
        server.behaviours = [b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"]
        await request(connections)
        await request(connections)
    assert server.connections == 2


@pytest.mark.parametrize(("seconds", "connections_made"), [(15.0, 1), (15.1, 2)])
async def test_a_connection_that_was_idle_for_long_is_not_used_again(
    seconds: float, connections_made: int
) -> None:
    async with served() as (server, connections):
        await request(connections)
        server.now += seconds
        await request(connections)
    assert server.connections == connections_made


async def test_a_connection_that_the_server_closed_meanwhile_is_not_used_again() -> None:
    async def answer_and_close(request: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(OK)
        writer.close()

    async with served() as (server, connections):
        server.behaviours = [answer_and_close]
        await request(connections)
        async with asyncio.timeout(20):
            while not connections._idle[0].is_lost:
                await asyncio.sleep(0)
        assert (await request(connections)).body == b"ok"
    assert server.connections == 2


async def test_a_read_is_sent_again_when_its_kept_connection_turns_out_to_have_ended() -> None:
    async with served() as (server, connections):
        server.behaviours = [OK, hang_up]
        await request(connections)
        assert (await request(connections, "GET")).body == b"ok"
    assert server.connections == 2


async def test_a_write_is_not_sent_again_when_its_connection_ends() -> None:
    async with served() as (server, connections):
        server.behaviours = [OK, hang_up]
        await request(connections)
        with pytest.raises(ConnectionLostError, match="closed the connection"):
            await request(connections)
    assert len(server.requests) == 2


async def test_a_read_is_not_sent_again_over_and_over() -> None:
    async with served() as (server, connections):
        server.behaviours = [hang_up]
        with pytest.raises(ConnectionLostError):
            await request(connections, "GET")
    assert server.connections == 1


async def test_an_incomplete_response_is_an_error() -> None:
    async def half(request: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
        writer.close()

    async with served() as (server, connections):
        server.behaviours = [OK, half]
        await request(connections)
        with pytest.raises(ConnectionLostError):
            await request(connections, "GET")
    assert len(server.requests) == 2


async def test_a_late_response_closes_the_connection_and_is_not_used_for_another_request() -> None:
    async with served() as (server, connections):
        await request(connections)
        server.behaviours = [never]
        with pytest.raises(TimeoutError):
            await request(connections, timeout=0.01)
        assert (await request(connections)).body == b"ok"
    assert server.connections == 2


async def test_a_connection_that_ended_is_in_no_reference_cycle() -> None:
    async with served() as (_, connections):
        await request(connections)
        connection = connections._idle.pop()
        ended = weakref.ref(connection)
        gc.disable()
        try:
            connection.close()
            del connection
            async with asyncio.timeout(20):
                while ended() is not None:
                    await asyncio.sleep(0)
        finally:
            gc.enable()


async def test_a_request_that_is_cancelled_closes_its_connection() -> None:
    async with served() as (server, connections):
        server.behaviours = [never]
        task = asyncio.create_task(request(connections))
        async with asyncio.timeout(20):
            while not server.requests:
                await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert connections._busy == set()
        assert connections._idle == []


@pytest.mark.parametrize(
    "answer",
    [b"SSH-2.0-OpenSSH_9.2\r\n", b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\nok"],
    ids=["another-protocol", "broken-gzip"],
)
async def test_an_invalid_response_is_an_error_with_a_reason(answer: bytes) -> None:
    async with served() as (server, connections):
        server.behaviours = [answer]
        with pytest.raises(OSError, match=r"not HTTP/1.1|gzip is broken"):
            await request(connections)


@pytest.mark.parametrize("together", [True, False], ids=["with-the-answer", "later"])
async def test_unrequested_data_closes_the_connection(*, together: bool) -> None:
    more = b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n"

    async def twice(request: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(OK + more if together else OK)
        await writer.drain()
        await asyncio.sleep(0)
        writer.write(b"" if together else more)

    async with served() as (server, connections):
        server.behaviours = [twice]
        await request(connections)
        async with asyncio.timeout(20):
            await server.ended.wait()
        assert (await request(connections)).status == 200
    assert server.connections == 2


async def test_a_header_with_a_line_break_is_refused() -> None:
    async with served() as (server, connections):
        with pytest.raises(ValueError, match="line break"):
            await connections.request(OutgoingRequest("GET", "/", {"Authorization": "a\r\nb: c"}, b"", 1))
    assert server.requests == []


async def test_a_refused_connection_is_an_os_error() -> None:
    connections = HttpConnections("http://127.0.0.1:1", tls=None, tls_name=None)
    with pytest.raises(OSError, match=r"refused|failed|Connect"):
        await request(connections)


@pytest.mark.parametrize("server", ["127.0.0.1:80", "ftp://host", "https://"])
def test_an_invalid_url_is_refused(server: str) -> None:
    with pytest.raises(ValueError, match="not the URL"):
        HttpConnections(server, tls=None, tls_name=None)


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n" + b"x" * 5000,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1388\r\n" + b"x" * 5000 + b"\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nLong: " + b"x" * 5000 + b"\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 40\r\n\r\n"
        + gzip.compress(b"x" * 5000, mtime=0),
    ],
    ids=["length", "chunked", "header", "gzip"],
)
async def test_a_response_that_is_too_long_is_not_read(
    answer: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("karmada_pyscheduler.client.http.MAX_RESPONSE", 1000)
    async with served() as (server, connections):
        server.behaviours = [answer]
        with pytest.raises(OSError, match="the response is longer than 1000 bytes"):
            await request(connections)
        assert (await request(connections)).body == b"ok"


async def test_a_write_is_not_sent_if_its_permission_ends_while_a_connection_is_opened() -> None:
    async with served() as (server, connections):
        opened: list[PersistentConnection] = []
        open_one = connections._open

        async def opens() -> PersistentConnection:
            opened.append(await open_one())
            return opened[-1]

        def check() -> None:
            if opened:
                raise PermissionError("the term has ended")

        connections._open = opens  # type: ignore[method-assign]
        with pytest.raises(PermissionError):
            await connections.request(OutgoingRequest("PATCH", "/it", {}, b"", 20.0, check))
        assert opened[0].is_lost, "the connection is closed"
    assert server.requests == []


async def test_retired_connections_end_with_their_requests() -> None:
    go_on = asyncio.Event()

    async def later(request: bytes, writer: asyncio.StreamWriter) -> None:
        await go_on.wait()
        writer.write(OK)

    async with served() as (server, connections):
        await request(connections)
        server.behaviours = [later]
        task = asyncio.create_task(request(connections))
        async with asyncio.timeout(20):
            while len(server.requests) < 2:
                await asyncio.sleep(0)
        connections.retire()
        go_on.set()
        assert (await task).body == b"ok"
        assert connections._idle == []
        async with asyncio.timeout(20):
            await server.ended.wait()


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_refused_certificate_is_distinguished_from_a_lost_connection(
    tmp_path: Path, new_loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    authority = Authority(tmp_path)
    credentials = authority.issue("server", server=True)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(credentials.certificate, credentials.key)
    tls.load_verify_locations(authority.certificate)
    tls.verify_mode = ssl.CERT_REQUIRED
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        sock, _ = listener.accept()
        secure = tls.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)
        with contextlib.suppress(ssl.SSLError):
            secure.do_handshake()
        with socket.socket(
            fileno=secure.detach()
        ) as plain:  # closed at once, it would reset and take back the alert
            while plain.recv(1000):
                pass

    thread = threading.Thread(target=serve)
    thread.start()
    trusting = ssl.create_default_context(cafile=str(authority.certificate))
    verify_as_go_does(trusting)
    url = f"https://127.0.0.1:{listener.getsockname()[1]}"

    async def refused() -> None:
        connections = HttpConnections(url, tls=trusting, tls_name=None)
        with pytest.raises(OSError) as caught:
            await request(connections)
        assert is_tls_refusal(caught.value)
        await connections.close()

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(refused())
    thread.join(10)
    listener.close()
