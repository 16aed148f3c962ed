"""Lists in pages."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Final

from karmada_scheduler.client import json_body
from karmada_scheduler.client.api_error import ApiError
from karmada_scheduler.client.connection import JSON, Connection
from karmada_scheduler.client.responses import list_page

LIST_PAGE: Final = 250
"""Objects per page; a page of bindings takes some 4 MB decoded, and the next one is there meanwhile."""


async def list_pages(
    connection: Connection, path: str, *, accept: str = JSON
) -> AsyncIterator[tuple[list[dict[str, Any]], str]]:
    """Yield the items of a list page by page, each with the list's resourceVersion.

    Items that cannot be read, or have no name, are placeholders (``json_body.unreadable``).

    Raises:
        ApiError: As ``request``, and for an object that is not a list; 410 when the list took longer than the
            server keeps it.
    """
    next_page: asyncio.Task[Any] | None = _request_page(connection, path, accept)
    token = ""
    try:
        while next_page is not None:
            items, version, continued = list_page(await next_page, f"GET {path}")
            if continued and continued == token:
                raise ApiError(f"GET {path}: the list has a page that refers to itself as the next one")
            token = continued
            # The server prepares the next page while this one is processed.
            next_page = _request_page(connection, path, accept, token) if token else None
            yield [json_body.checked(item) for item in items], version
    finally:
        if next_page is not None:
            next_page.cancel()


def _request_page(connection: Connection, path: str, accept: str, token: str = "") -> asyncio.Task[Any]:
    query = {"limit": str(LIST_PAGE), "continue": token} if token else {"limit": str(LIST_PAGE)}
    request = connection.request("GET", path, query=query, timeout=120.0, accept=accept)
    return asyncio.create_task(request, name=f"list {path}")
