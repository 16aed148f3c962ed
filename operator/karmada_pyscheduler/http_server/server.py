"""The HTTP endpoints: ``/healthz``, ``/readyz`` and ``/metrics``.

Both addresses may be the same; then one server has all paths, as upstream. ``/healthz`` fails when the main event loop
has been blocked for some time. ``/readyz`` fails then, and when a cache is not filled or its watch is down. A standby is
ready: its caches are complete.

The server runs in the supervisor's event loop, so it responds while the main loop is blocked.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from aiohttp import web

from karmada_pyscheduler.http_server.connections import OpenConnections
from karmada_pyscheduler.http_server.listener import Listener
from karmada_pyscheduler.http_server.messages import Document
from karmada_pyscheduler.http_server.responses import whole

log = logging.getLogger(__name__)

_CONNECTIONS: Final = 64
"""Of each address. A scrape takes milliseconds, and a client opens another connection when its persistent one is closed."""

Check = Callable[[], str | None]
"""Returns None without a problem, otherwise one line that describes it."""


Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def _probe(check: Check) -> Handler:
    async def handle(_: web.Request) -> web.Response:
        problem = check()
        return web.Response(text="ok") if problem is None else web.Response(status=503, text=problem + "\n")

    return handle


def scrape(exposition: Callable[[], bytes], content_type: str) -> Document:
    """Return the response to a scrape; ``content_type`` is that of the exposition, in UTF-8."""
    try:
        return Document(exposition(), content_type=content_type)
    except RuntimeError as error:  # a metric was read while the main thread changed it
        return Document(f"try again: {error}\n".encode(), 503, "text/plain")


def _metrics(exposition: Callable[[], bytes], content_type: str) -> Handler:
    async def handle(_: web.Request) -> web.Response:
        return whole(scrape(exposition, content_type))

    return handle


class Server:
    """The listeners of one process."""

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
        routes: dict[str, dict[str, Handler]] = {}
        if health_address:
            routes.setdefault(health_address, {}).update(
                {"/healthz": _probe(health), "/readyz": _probe(ready)}
            )
        if metrics_address:
            routes.setdefault(metrics_address, {})["/metrics"] = _metrics(exposition, content_type)
        self._routes: Mapping[str, Mapping[str, Handler]] = routes
        self._runners: list[web.AppRunner] = []
        self._listeners: list[Listener] = []

    async def start(self) -> None:
        """Listen; ListenError has the address that is in use or not local."""
        for address, routes in self._routes.items():
            app = web.Application()
            for path, handler in routes.items():
                app.router.add_get(path, handler)
            runner = web.AppRunner(app, access_log=None, handle_signals=False)
            await runner.setup()
            self._runners.append(runner)
            assert runner.server is not None  # it is set up
            listener = Listener(address, runner.server, OpenConnections(_CONNECTIONS, time.monotonic))
            await listener.start()
            self._listeners.append(listener)
            what = " and ".join(path.strip("/") for path in routes)
            log.info("Starting %s server on %s", what, address)

    async def stop(self) -> None:
        """Close the listeners and their connections."""
        await asyncio.gather(*(listener.stop() for listener in self._listeners))
        await asyncio.gather(*(runner.cleanup() for runner in self._runners))
