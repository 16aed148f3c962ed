"""One HTTP/1.1 connection: requests as bytes, responses that httptools parses, and the object, page or error in them."""

from __future__ import annotations

import asyncio
import ssl
import zlib
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, cast

import httptools
import orjson

from karmada_scheduler import json_body
from karmada_scheduler.api_error import ApiError
from karmada_scheduler.structs import Struct

_GZIP: Final = 16 + zlib.MAX_WBITS


class ConnectionLostError(ConnectionError):
    """The connection ended before the response did.

    Attributes:
        no_response: Whether no byte of a response had arrived.
        refused_tls: Whether the server ended it with a TLS alert before it read any request, as when it does not
            accept our certificate.
    """

    def __init__(self, message: str, *, no_response: bool, refused_tls: bool = False) -> None:
        """``message`` is the reason."""
        super().__init__(message)
        self.no_response = no_response
        self.refused_tls = refused_tls


class Response(Struct, frozen=True):
    """The response of a server; the names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class OutgoingRequest(NamedTuple):
    """A request for a server.

    Attributes:
        method: Any but HEAD and CONNECT.
        target: Path and query.
        headers: Headers besides ``Host``, ``User-Agent`` and ``Content-Length``.
        body: The body; empty for none.
        timeout: Seconds for the whole request.
        before_send: Called when there is a connection, just before the request is sent. An exception of it is raised, and
            nothing is sent.
    """

    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    timeout: float
    before_send: Callable[[], None] = lambda: None


class PersistentConnection(asyncio.Protocol):
    """One connection, which carries one request at a time."""

    def __init__(self, max_response: int) -> None:
        self.is_lost = False
        self.was_used = False
        self.idle_since = 0.0
        self._max_response = max_response
        self._received = 0
        self._is_first = True
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._response: asyncio.Future[Response] | None = None
        self._keeps_alive = False
        self._has_data = False
        self._is_final = False
        self._headers: dict[str, str] = {}
        self._pieces: list[bytes] = []

    @property
    def is_reusable(self) -> bool:
        """Whether the server accepts another request."""
        return self._keeps_alive and not self.is_lost

    def send(self, data: bytes) -> asyncio.Future[Response]:
        """Send a request and return its response; a caller that stops waiting has to close the connection."""
        self._response = asyncio.get_running_loop().create_future()
        self._is_first = not self.was_used
        self._has_data, self._is_final, self.was_used = False, False, True
        self._received = 0
        if self._transport is None or self.is_lost:
            self._fail("the server closed the connection")
        else:
            self._transport.write(data)
        return self._response

    def close(self) -> None:
        self.is_lost = True
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's are none by inheritance

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_lost = True
        has_length = "content-length" in self._headers or "transfer-encoding" in self._headers
        if self._is_final and exc is None and not has_length:
            self._complete()
        # With TLS 1.3 a server verifies our certificate when the first request may already have been sent.
        refused = self._is_first and not self._has_data and isinstance(exc, ssl.SSLError)
        self._fail(str(exc) if exc else "the server closed the connection", refused_tls=refused)
        # Both refer to the connection, and cyclic garbage is collected rarely (process.memory).
        self._transport = None
        del self._parser

    def data_received(self, data: bytes) -> None:
        if self._response is None:
            self.close()  # without a request, such as a 408 before the server closes an idle connection
            return
        self._has_data = True
        self._received += len(data)
        if self._received > self._max_response:
            self._fail(self._too_long())
            self.close()
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._fail(f"the response is not HTTP/1.1: {error}")
            self.close()

    def on_message_begin(self) -> None:
        self._headers, self._pieces = {}, []
        if self._response is None:
            self.close()  # a second response to one request: the connection cannot be trusted

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self._is_final = self._parser.get_status_code() >= 200

    def on_body(self, body: bytes) -> None:
        self._pieces.append(body)

    def on_message_complete(self) -> None:
        if self._is_final:  # else an interim response such as 100 Continue
            self._keeps_alive = self._parser.should_keep_alive()
            self._complete()

    def _complete(self) -> None:
        response, self._response, self._is_final = self._response, None, False
        if response is None or response.done():
            return
        body = b"".join(self._pieces)
        try:
            if self._headers.get("content-encoding") == "gzip":
                body = self._unpacked(body)
            response.set_result(Response(self._parser.get_status_code(), self._headers, body))
        except (EOFError, zlib.error) as error:
            response.set_exception(OSError(f"the response's gzip is broken: {error}"))
        except OSError as too_long:
            response.set_exception(too_long)

    def _unpacked(self, body: bytes) -> bytes:
        unpacker = zlib.decompressobj(_GZIP)
        plain = unpacker.decompress(body, self._max_response)
        if unpacker.unconsumed_tail:
            raise OSError(self._too_long())
        if not unpacker.eof:
            raise EOFError("it ends too early")
        return plain

    def _too_long(self) -> str:
        return f"the response is longer than {self._max_response} bytes"

    def _fail(self, why: str, *, refused_tls: bool = False) -> None:
        response, self._response = self._response, None
        if response is not None and not response.done():
            lost = ConnectionLostError(why, no_response=not self._has_data, refused_tls=refused_tls)
            response.set_exception(lost)


_SHOWN: Final = 100
"""Characters of an unexpected response that an error shows."""


async def decoded(response: Response, what: str) -> dict[str, Any]:
    """Return the JSON object of a response with a 2xx status; ApiError for anything else than an object.

    Args:
        response: The response.
        what: The request, for the error.
    """
    try:
        found = orjson.loads(response.body)
    except orjson.JSONDecodeError:
        found = await _decoded_slowly(response, what)
    if type(found) is not dict:
        raise _unexpected(response, what)
    return found


async def _decoded_slowly(response: Response, what: str) -> Any:
    """Decode JSON that orjson refuses, in a thread because that takes long; ApiError if it is not JSON."""
    try:
        return await asyncio.to_thread(json_body.decode, response.body)
    except ValueError as error:
        raise _unexpected(response, what) from error


def _unexpected(response: Response, what: str) -> ApiError:
    kind = response.headers.get("content-type") or "without a content type"
    text = response.body[: 4 * _SHOWN].decode(errors="replace")[:_SHOWN].strip()
    shown = repr(text) if text else "an empty body"
    return ApiError(f"{what}: expected a JSON object, got HTTP {response.status}, {kind}: {shown}")


def list_page(response: Mapping[str, Any], what: str) -> tuple[list[Any], str, str]:
    """Return the items, the resourceVersion and the continue token of a page; ApiError if it is not a list."""
    metadata = response.get("metadata")
    if not isinstance(metadata, dict):
        raise _not_a_list(response, what)
    items = response.get("items", ())
    version, token = metadata.get("resourceVersion"), metadata.get("continue") or ""
    if items is None:
        items = []  # Go writes a nil slice as null
    if not isinstance(items, list) or not isinstance(token, str):
        raise _not_a_list(response, what)
    if not isinstance(version, str) or not json_body.is_version(version):
        raise _not_a_list(response, what)
    return items, version, token


def _not_a_list(response: Mapping[str, Any], what: str) -> ApiError:
    text = orjson.dumps(json_body.shallow(response, 3), default=str)[:_SHOWN].decode(errors="replace")
    return ApiError(f"{what}: expected a list with a resourceVersion, got: {text}")


def refusal(response: Response, what: str, explanation: str = "") -> ApiError:
    """Return the error of a response without a 2xx status; ``explanation`` follows its text."""
    try:
        status = orjson.loads(response.body)
    except orjson.JSONDecodeError:
        status = None
    if not isinstance(status, dict):
        body = response.body[:200].decode(errors="replace").strip()
        status = {"message": f"{what}: HTTP {response.status}: {body}"} if body else {}
    message, reason, details = status.get("message"), status.get("reason"), status.get("details")
    details = details if isinstance(details, dict) else {}
    name, causes = details.get("name"), details.get("causes")
    reasons = [cause.get("reason") for cause in _objects(causes)]
    retry_after = response.headers.get("retry-after", "")
    is_number = retry_after.isascii() and retry_after.isdigit() and len(retry_after) < 10
    text = message if isinstance(message, str) and message else f"{what}: HTTP {response.status}"
    return ApiError(
        text + explanation,
        code=response.status,
        reason=reason if isinstance(reason, str) else "",
        causes=tuple(cause for cause in reasons if isinstance(cause, str)),
        name=name if isinstance(name, str) else "",
        retry_after=float(retry_after) if is_number else None,
    )


def _objects(value: object) -> list[dict[str, Any]]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []
