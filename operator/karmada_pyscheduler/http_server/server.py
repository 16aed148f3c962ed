"""The HTTP endpoints: ``/healthz``, ``/readyz`` and ``/metrics``.

Both addresses may be the same; then one server has all paths, as upstream. ``/healthz`` fails when the main event loop
has been blocked for some time. ``/readyz`` fails then, and when a cache is not filled or its watch is down. A standby is
ready: its caches are complete.

The server runs in the supervisor's event loop, so it responds while the main loop is blocked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from karmada_pyscheduler.http_server.messages import AsyncHandler, Document, HttpRequest
from karmada_pyscheduler.http_server.read_only_server import ReadOnlyServer
from karmada_pyscheduler.http_server.request_guard import Access

_ANYBODY: Final = Access(hosts=None)

Check = Callable[[], str | None]
"""Returns None without a problem, otherwise one line that describes it."""


def _probe(check: Check) -> AsyncHandler:
    async def handle(_: HttpRequest) -> Document:
        problem = check()
        return Document(f"{problem}\n".encode() if problem else b"ok", 503 if problem else 200, "text/plain")

    return handle


def scrape(exposition: Callable[[], bytes], content_type: str) -> AsyncHandler:
    """Return the handler of scrapes; ``content_type`` is that of the exposition, in UTF-8."""

    async def handle(_: HttpRequest) -> Document:
        try:
            return Document(exposition(), content_type=content_type)
        except RuntimeError as error:  # a metric was read while the main thread changed it
            return Document(f"try again: {error}\n".encode(), 503, "text/plain")

    return handle


class Server:
    """The listeners of one process. Their requests are answered to anybody, whatever their number."""

    def __init__(
        self,
        *,
        health_address: str,
        metrics_address: str,
        health: Check,
        ready: Check,
        exposition: Callable[[], bytes],
        content_type: str,
    ) -> None:
        """Addresses are ``host:port`` (an empty host is every interface), or "" for none."""
        routes: dict[str, dict[str, AsyncHandler]] = {health_address: {}, metrics_address: {}}
        routes[health_address] |= {"/healthz": _probe(health), "/readyz": _probe(ready)}
        routes[metrics_address]["/metrics"] = scrape(exposition, content_type)
        routes.pop("", None)
        self._servers = [
            ReadOnlyServer(
                address,
                handlers,
                always=frozenset(handlers),
                access=_ANYBODY,
                name=" and ".join(path.strip("/") for path in handlers),
            )
            for address, handlers in routes.items()
        ]

    async def start(self) -> None:
        """Listen; ListenError has the address that is in use or not local."""
        for server in self._servers:
            await server.start()

    async def stop(self) -> None:
        """Close the listeners and their connections."""
        await asyncio.gather(*(server.stop() for server in self._servers))
