"""What a response of the API server, or of a proxy in front of it, contains: an object, a page of a list, or an error."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

import orjson

from karmada_pyscheduler.client.http_connection import Response
from karmada_scheduler import json_body
from karmada_scheduler.api_error import ApiError

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
        status = {"message": response.body[:200].decode(errors="replace").strip()}
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
        causes=tuple(each for each in reasons if isinstance(each, str)),
        name=name if isinstance(name, str) else "",
        retry_after=float(retry_after) if is_number else None,
    )


def _objects(value: object) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
