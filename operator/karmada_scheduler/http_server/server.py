"""The HTTP endpoints: ``/healthz``, ``/readyz`` and ``/metrics``.

Both addresses may be the same; then one server has all paths, as upstream. ``/healthz`` fails when the main event loop
has been blocked for some time. ``/readyz`` fails then, and when a cache is not filled or its watch is down. A standby is
ready: its caches are complete.

The server runs in the supervisor's event loop, so it responds while the main loop is blocked.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from aiohttp import web

from karmada_scheduler.http_server.messages import Document
from karmada_scheduler.http_server.responses import whole

log = logging.getLogger(__name__)

_SWEEP_SECONDS: Final = 10.0

Check = Callable[[], str | None]
"""Returns None without a problem, otherwise one line that describes it."""


class ListenError(Exception):
    """The server cannot listen on an address."""


async def listen(
    runner: web.AppRunner, address: str, *, backlog: int = 128, tls: ssl.SSLContext | None = None
) -> None:
    """Listen on ``host:port``; an empty host is every interface.

    Raises:
        ListenError: The address is in use or not local; the text has it.
    """
    host, _, port = address.rpartition(":")
    try:
        site = web.TCPSite(runner, host.strip("[]") or None, int(port), backlog=backlog, ssl_context=tls)
        await site.start()
    except OSError as error:
        raise ListenError(f"cannot listen on {address}: {error.strerror or error}") from error


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
        self._sweeper: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Listen; ListenError has the address that is in use or not local."""
        self._sweeper = asyncio.create_task(self._sweep(), name="close old connections")
        for address, routes in self._routes.items():
            app = web.Application()
            for path, handler in routes.items():
                app.router.add_get(path, handler)
            runner = web.AppRunner(app, access_log=None, handle_signals=False)
            await runner.setup()
            self._runners.append(runner)
            await listen(runner, address)
            what = " and ".join(path.strip("/") for path in routes)
            log.info("Starting %s server on %s", what, address)

    async def stop(self) -> None:
        """Close the listeners and their connections."""
        if self._sweeper is not None:
            self._sweeper.cancel()
        await asyncio.gather(*(runner.cleanup() for runner in self._runners))

    async def _sweep(self) -> None:
        """Close connections that are older than 10 to 20 seconds, so that unfinished requests do not accumulate.

        A scrape takes milliseconds, and a client opens another connection when its persistent one is closed. A reader has
        10 seconds more to take a response; one that has not done so is dropped.
        """
        sweeps: dict[object, int] = {}
        while True:
            await asyncio.sleep(_SWEEP_SECONDS)
            present: dict[object, int] = {}
            for runner in self._runners:
                server = runner.server
                for connection in server.connections if server is not None else ():
                    transport = connection.transport
                    if transport is None:
                        continue
                    present[connection] = count = sweeps.get(connection, 0) + 1
                    if count > 2:
                        transport.abort()
                    elif count == 2 and not transport.get_write_buffer_size():
                        connection.force_close()
            sweeps = present
