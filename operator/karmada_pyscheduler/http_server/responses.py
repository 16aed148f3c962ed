"""Between aiohttp and the messages of a server: forms, requesters, and responses that a slow reader cannot hold."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qsl

from aiohttp import web

from karmada_pyscheduler.http_server.request_guard import (
    AnsweredRequest,
    Document,
    HttpResponse,
    Requester,
    RequestRefusal,
)

_WRITE_SECONDS: Final = 10.0
"""How long a reader may take for a part of a response."""
_BODY_SECONDS: Final = 10.0
"""How long a reader may take for the body of a POST."""
_MAX_FIELDS: Final = 100
_FORM: Final = "application/x-www-form-urlencoded"

_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",
    "Vary": "Authorization, Cookie",
    "X-Content-Type-Options": "nosniff",
    "Server": "karmada-pyscheduler",
}
_COMPRESSED_BYTES: Final = 1024
"""Bodies of at least this size are compressed if the reader accepts it."""

VIEWER: Final = web.RequestKey("viewer", Requester)
"""The key of a request under which its ``Requester`` is."""
ADDRESS: Final = web.RequestKey("address", str)
"""The key of a request under which the address is that it comes from."""


async def form_of(request: web.Request) -> Mapping[str, str]:
    """Return the fields of a form; of one that is repeated, the last.

    Raises:
        HTTPException: The body is no form, it is too large, or it does not arrive.
    """
    if request.content_type != _FORM:
        raise web.HTTPUnsupportedMediaType(reason=f"expected a form ({_FORM})")
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            body = await request.read()
        return dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=_MAX_FIELDS))
    except TimeoutError:
        raise web.HTTPRequestTimeout(reason="the body has not arrived") from None
    except ValueError as error:  # no UTF-8, or too many fields
        raise web.HTTPBadRequest(reason="the body is no form") from error


def answered(request: web.Request, status: int, seconds: float) -> AnsweredRequest:
    """Return what is known of a request once it is answered."""
    found = request.match_info
    resource = found.route.resource
    return AnsweredRequest(
        request.method,
        "" if resource is None else resource.canonical,
        found,
        user_of(request),
        request[ADDRESS],
        status,
        seconds,
    )


def user_of(request: web.Request) -> str:
    """Return the name of the user who was let in; "" without one."""
    viewer = request.get(VIEWER)
    return "" if viewer is None else viewer.name


async def send(request: web.Request, answer: HttpResponse) -> web.StreamResponse:
    """Send a response in parts; a reader that takes nothing of one for ``_WRITE_SECONDS`` is dropped."""
    response = web.StreamResponse(status=answer.status)
    response.content_type = answer.content_type
    response.charset = "utf-8"
    await response.prepare(request)
    try:
        async for part in answer.body:
            async with asyncio.timeout(_WRITE_SECONDS):
                await response.write(part)
        async with asyncio.timeout(_WRITE_SECONDS):
            await response.write_eof()
    except (TimeoutError, ConnectionError):
        # The reader has gone, or takes nothing: drop the connection with the data that it has not taken.
        if request.transport is not None:
            request.transport.abort()
    return response


def whole(answer: Document) -> web.Response:
    """Return a response that is complete, compressed where it pays."""
    response = web.Response(
        body=answer.body,
        status=answer.status,
        content_type=answer.content_type,
        charset="utf-8",
        headers=answer.headers,
    )
    for cookie in answer.cookies:
        response.headers.add("Set-Cookie", cookie)
    if len(answer.body) >= _COMPRESSED_BYTES:
        response.enable_compression()
    return response


async def add_headers(_: web.BaseRequest, response: web.StreamResponse) -> None:
    """Add the headers of every response."""
    for name, value in _HEADERS.items():
        response.headers.setdefault(name, value)
    response.headers["Server"] = _HEADERS["Server"]


def problem(refused: RequestRefusal) -> web.Response:
    """Return a refusal as JSON."""
    response = web.json_response({"error": {"message": refused.whole_text}}, status=refused.status)
    response.headers.update(refused.headers)
    if refused.close:
        response.force_close()
    return response
