"""HTTP/1.1 to one server over connections that are kept: what every placement and every Event is sent through.

A placed binding is four requests, and through aiohttp they were a third of what the scheduler's CPU was used for.
httptools parses answers, asyncio does the rest; there are no redirects, cookies, proxies or streams here.
docs/decisions/0013-http-client.md has the measurements.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, cast
from urllib.parse import quote, urlsplit

import aiohappyeyeballs
import httptools

_IDLE_SECONDS: Final = 15.0
"""Servers and what is in front of them close idle connections; the shortest time in use is 20 seconds or so."""

MAX_ANSWER: Final = 512 * 1024 * 1024
"""Bytes of the longest answer that is taken in. A page of 500 objects at etcd's limit of 1.5 MiB each is longer, but
no real one is: objects are a few kilobytes."""

_EYEBALLS_SECONDS: Final = 0.25
_GZIP: Final = 16 + zlib.MAX_WBITS
_UNQUOTED: Final = "/:@!$&'()*+,;=-._~%?"


class ConnectionLostError(ConnectionError):
    """The connection ended before the answer did.

    Attributes:
        untouched: Whether nothing of an answer had arrived.
        refused_tls: Whether the server ended it by a TLS alert before it looked at any request, as when it does not
            take our certificate.
    """

    def __init__(self, message: str, *, untouched: bool, refused_tls: bool = False) -> None:
        """``message`` says what ended it."""
        super().__init__(message)
        self.untouched = untouched
        self.refused_tls = refused_tls


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server answered; the names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class HttpConnections:
    """Connections to one server, as many as requests are under way at a time."""

    def __init__(
        self,
        server: str,
        *,
        tls: ssl.SSLContext | None,
        tls_name: str | None,
        agent: str,
        clock: Callable[[], float] = time.monotonic,
        max_answer: int = MAX_ANSWER,
    ) -> None:
        """Take where to connect; nothing is connected yet.

        Args:
            server: ``http://…`` or ``https://…``, perhaps with a path that every request's path follows.
            tls: How to verify the server and what to show it; None for what Python does by itself.
            tls_name: The name that the server's certificate has to be for, if not that of the URL.
            agent: What to be called.
            clock: In seconds, never running backwards.
            max_answer: Bytes of the longest answer that is taken in, compressed or not.
        """
        url = urlsplit(server)
        if url.scheme not in {"http", "https"} or not url.hostname:
            raise ValueError(f"{server!r} is not the URL of an HTTP server")
        self._host = url.hostname
        self._port = url.port or (443 if url.scheme == "https" else 80)
        self._tls = (tls or ssl.create_default_context()) if url.scheme == "https" else None
        self._tls_name = (tls_name or self._host) if self._tls else None
        self._prefix = url.path.rstrip("/")
        self._common = f"Host: {url.netloc.rpartition('@')[2]}\r\nUser-Agent: {agent}\r\n"
        self._clock = clock
        self._max_answer = max_answer
        self._is_retired = False
        self._idle: list[_Link] = []
        self._busy: set[_Link] = set()

    async def request(
        self, method: str, path: str, *, headers: Mapping[str, str], body: bytes = b"", timeout: float
    ) -> Answer:
        """Send one request; one that may be repeated is, when a kept connection turns out to have ended.

        Args:
            method: Any but HEAD and CONNECT.
            path: With the query, if there is one.
            headers: Besides ``Host``, ``User-Agent`` and ``Content-Length``.
            body: Empty for none.
            timeout: Seconds for the whole of it.

        Raises:
            TimeoutError: It took longer.
            OSError: No connection, or it ended before the answer did, or what arrived is no HTTP, or too long.
            ValueError: A header with a line break.
        """
        data = self._bytes_of(method, path, headers, body)
        async with asyncio.timeout(timeout):
            while True:
                link = self._take() or await self._open()
                was_used = link.was_used
                try:
                    return await self._exchange(link, data)
                except ConnectionLostError as error:
                    if not (was_used and error.untouched and method == "GET"):
                        raise

    def retire(self) -> None:
        """Close connections as soon as nothing is under way on them: others have taken their place."""
        self._is_retired = True
        while self._idle:
            self._idle.pop().close()

    async def close(self) -> None:
        """Close every connection; requests under way fail."""
        for link in (*self._idle, *self._busy):
            link.close()

    async def _exchange(self, link: _Link, data: bytes) -> Answer:
        self._busy.add(link)
        try:
            answer = await link.ask(data)
        except BaseException:
            link.close()  # whatever is still to come on it answers nobody's question
            raise
        finally:
            self._busy.discard(link)
        if link.is_reusable and not self._is_retired:
            link.idle_since = self._clock()
            self._idle.append(link)
        else:
            link.close()
        return answer

    def _take(self) -> _Link | None:
        now = self._clock()
        while self._idle:
            link = self._idle.pop()
            if now - link.idle_since <= _IDLE_SECONDS and not link.is_lost:
                return link
            link.close()
        return None

    async def _open(self) -> _Link:
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)
        sock = await aiohappyeyeballs.start_connection(found, happy_eyeballs_delay=_EYEBALLS_SECONDS)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        _, link = await loop.create_connection(
            lambda: _Link(self._max_answer), sock=sock, ssl=self._tls, server_hostname=self._tls_name
        )
        return link

    def _bytes_of(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> bytes:
        lines = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
        if lines.count("\n") != len(headers) or lines.count("\r") != len(headers):
            raise ValueError("a header has a line break in it")
        target = quote(self._prefix + path, safe=_UNQUOTED)
        head = f"{method} {target} HTTP/1.1\r\n{self._common}{lines}Content-Length: {len(body)}\r\n\r\n"
        return head.encode("latin-1") + body


class _Link(asyncio.Protocol):
    """One connection, which carries one request at a time."""

    def __init__(self, max_answer: int) -> None:
        self.is_lost = False
        self.was_used = False
        self.idle_since = 0.0
        self._max_answer = max_answer
        self._received = 0
        self._is_first = True
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._answer: asyncio.Future[Answer] | None = None
        self._keeps = False
        self._touched = False
        self._begun = False
        self._headers: dict[str, str] = {}
        self._pieces: list[bytes] = []

    @property
    def is_reusable(self) -> bool:
        """Whether the server will take another request."""
        return self._keeps and not self.is_lost

    def ask(self, data: bytes) -> asyncio.Future[Answer]:
        """Send a request; whoever gives up waiting has to close the connection."""
        self._answer = asyncio.get_running_loop().create_future()
        self._is_first = not self.was_used
        self._touched, self._begun, self.was_used = False, False, True
        self._received = 0
        if self._transport is None or self.is_lost:
            self._fail("the server closed the connection")
        else:
            self._transport.write(data)
        return self._answer

    def close(self) -> None:
        self.is_lost = True
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's are none by inheritance

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_lost = True
        if self._begun and exc is None and not self._has_length():
            self._complete()
        # With TLS 1.3 a server looks at our certificate when the first request may already have been sent.
        refused = self._is_first and not self._touched and isinstance(exc, ssl.SSLError)
        self._fail(str(exc) if exc else "the server closed the connection", refused_tls=refused)

    def data_received(self, data: bytes) -> None:
        if self._answer is None:  # nobody asked, as when a server says why it closes an idle connection
            self.close()
            return
        self._touched = True
        self._received += len(data)
        if self._received > self._max_answer:
            self._fail(self._too_long())
            self.close()
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._fail(f"the answer is not HTTP/1.1: {error}")
            self.close()

    def on_message_begin(self) -> None:
        self._headers, self._pieces = {}, []
        if self._answer is None:
            self.close()  # a second answer to one question: nothing on this connection can be trusted

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self._begun = self._parser.get_status_code() >= 200

    def on_body(self, body: bytes) -> None:
        self._pieces.append(body)

    def on_message_complete(self) -> None:
        if self._begun:  # else it was 100 Continue or the like, and the answer is still to come
            self._keeps = self._parser.should_keep_alive()
            self._complete()

    def _has_length(self) -> bool:
        return "content-length" in self._headers or "transfer-encoding" in self._headers

    def _complete(self) -> None:
        answer, self._answer, self._begun = self._answer, None, False
        if answer is None or answer.done():
            return
        body = b"".join(self._pieces)
        try:
            if self._headers.get("content-encoding") == "gzip":
                body = self._unpacked(body)
            answer.set_result(Answer(self._parser.get_status_code(), self._headers, body))
        except (EOFError, zlib.error) as error:
            answer.set_exception(OSError(f"the answer's gzip is broken: {error}"))
        except OSError as too_long:
            answer.set_exception(too_long)

    def _unpacked(self, body: bytes) -> bytes:
        unpacker = zlib.decompressobj(_GZIP)
        plain = unpacker.decompress(body, self._max_answer)
        if unpacker.unconsumed_tail:
            raise OSError(self._too_long())
        if not unpacker.eof:
            raise EOFError("it ends too early")
        return plain

    def _too_long(self) -> str:
        return f"the answer is longer than {self._max_answer} bytes"

    def _fail(self, why: str, *, refused_tls: bool = False) -> None:
        answer, self._answer = self._answer, None
        if answer is not None and not answer.done():
            lost = ConnectionLostError(why, untouched=not self._touched, refused_tls=refused_tls)
            answer.set_exception(lost)
