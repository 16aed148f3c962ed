"""The forms of a replay's responses: JSON, failures, gzip."""

from __future__ import annotations

import zlib
from typing import Any

import orjson
from aiohttp import web


def json_response(content: Any, *, status: int = 200) -> web.Response:
    """Return a response with content as JSON."""
    return web.Response(body=orjson.dumps(content), status=status, content_type="application/json")


def failure(code: int, reason: str) -> web.Response:
    """Return a failed Status."""
    content = {"kind": "Status", "status": "Failure", "reason": reason, "message": reason, "code": code}
    return json_response(content, status=code)


def gzipped(body: bytes) -> bytes:
    """Return a body as gzip, compressed as quickly as possible."""
    packer = zlib.compressobj(1, wbits=31)
    return packer.compress(body) + packer.flush()
