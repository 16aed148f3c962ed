"""The HTTP endpoints: ``/healthz``, ``/readyz`` and ``/metrics``.

Both addresses may be the same; then one server has all paths, as upstream.
``/healthz`` fails when the event loop has not turned for a while; ``/readyz`` also when a cache is not
filled or its watch is down. A standby is ready: its caches are warm.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping

from aiohttp import web

log = logging.getLogger(__name__)

Check = Callable[[], str | None]
"""Returns None when all is well, otherwise one line that says what is not."""


class ListenError(Exception):
    """An address that cannot be listened on."""


Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def _probe(check: Check) -> Handler:
    async def handle(_: web.Request) -> web.Response:
        problem = check()
        return web.Response(text="ok") if problem is None else web.Response(status=503, text=problem + "\n")

    return handle


def _metrics(exposition: Callable[[], bytes], content_type: str) -> Handler:
    async def handle(_: web.Request) -> web.Response:
        response = web.Response(body=exposition(), headers={"Content-Type": content_type})
        response.enable_compression()
        return response

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

    async def start(self) -> None:
        """Listen; ListenError names the address that is taken or not ours."""
        for address, routes in self._routes.items():
            app = web.Application()
            for path, handler in routes.items():
                app.router.add_route("*", path, handler)
            runner = web.AppRunner(app, access_log=None, handle_signals=False)
            await runner.setup()
            self._runners.append(runner)
            host, _, port = address.rpartition(":")
            try:
                await web.TCPSite(runner, host.strip("[]") or None, int(port)).start()
            except OSError as error:
                raise ListenError(f"cannot listen on {address}: {error.strerror or error}") from error
            what = " and ".join(path.strip("/") for path in routes)
            log.info("Starting %s server on %s", what, address)

    async def stop(self) -> None:
        """Close the listeners and their connections."""
        await asyncio.gather(*(runner.cleanup() for runner in self._runners))
