"""An API server with one Cluster, for clients that have to find it, be recognised and watch."""

from __future__ import annotations

import asyncio
import ssl
from collections import Counter
from typing import Any, Self

import orjson
from aiohttp import web

from karmada_scheduler.client.karmada import WATCHED

BEFORE = "6"
"""A version at which there was no Cluster."""

_METADATA = {"name": "m1", "uid": "u1", "resourceVersion": "7"}


class ApiServer:
    """Listens while it is entered; ``token`` is whom it lets in, None for everybody."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.token: str | None = None
        self.refused: list[str] = []
        self.asked: Counter[str] = Counter()
        self.watches: Counter[str] = Counter()
        self.status: dict[str, int] = {}
        """What watches are refused with, by plural."""
        self.certificates: list[dict[str, Any] | None] = []
        self.changes: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._tls = tls
        app = web.Application(middlewares=[self._admit])
        app.router.add_get("/api", self._core)
        app.router.add_get("/api/v1", self._resources)
        app.router.add_get("/apis", self._groups)
        app.router.add_get("/apis/{group}/{version}", self._resources)
        app.router.add_get("/apis/{group}/{version}/{plural}", self._objects)
        self._runner = web.AppRunner(app, handle_signals=False, shutdown_timeout=0.1)

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=self._tls).start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self._runner.addresses[0][1]}"

    @web.middleware
    async def _admit(self, request: web.Request, handler: Any) -> web.StreamResponse:
        assert request.transport is not None
        self.asked[request.path] += request.query.get("watch") != "true"
        self.certificates.append(request.transport.get_extra_info("peercert"))
        shown = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if self.token is not None and shown != self.token:
            self.refused.append(shown)
            return web.json_response({"code": 401, "reason": "Unauthorized"}, status=401)
        answer: web.StreamResponse = await handler(request)
        return answer

    async def _core(self, _: web.Request) -> web.Response:
        return web.json_response({"versions": ["v1"]})

    async def _groups(self, _: web.Request) -> web.Response:
        versions = {resource.group: resource.version for resource in WATCHED}
        groups = [
            {"name": name, "preferredVersion": served, "versions": [served]}
            for name, version in versions.items()
            for served in [{"groupVersion": f"{name}/{version}", "version": version}]
        ]
        return web.json_response({"groups": groups})

    async def _resources(self, request: web.Request) -> web.Response:
        group = request.match_info.get("group")
        names = {resource.plural: resource.kind for resource in WATCHED if resource.group == group}
        resources = [
            {"name": name, "singularName": "", "kind": kind, "namespaced": False, "verbs": ["list", "watch"]}
            for name, kind in (names or {"namespaces": "Namespace"}).items()
        ]
        return web.json_response({"resources": resources})

    async def _objects(self, request: web.Request) -> web.StreamResponse:
        is_clusters = request.match_info["plural"] == "clusters"
        if request.query.get("watch") != "true":
            items = [{"metadata": _METADATA}] if is_clusters else []
            return web.json_response({"metadata": {"resourceVersion": "7"}, "items": items})
        plural = request.match_info["plural"]
        self.watches[plural] += 1
        if plural in self.status:
            return web.json_response({"code": self.status[plural]}, status=self.status[plural])
        stream = web.StreamResponse()
        await stream.prepare(request)
        if is_clusters and request.query["resourceVersion"] == BEFORE:
            await stream.write(orjson.dumps({"type": "ADDED", "object": {"metadata": _METADATA}}) + b"\n")
        while True:
            if not is_clusters:
                await asyncio.Event().wait()
            event = await self.changes.get()
            if event["type"] == "END":
                return stream
            await stream.write(orjson.dumps(event) + b"\n")
            if event["type"] == "ERROR":
                return stream


END: dict[str, Any] = {"type": "END"}
"""Ends a watch of Clusters as a server does after a while; nothing of it is sent."""


def modified(version: int, name: str = "m1") -> dict[str, Any]:
    """Return the event of a change to the Cluster, or to another one."""
    metadata = {**_METADATA, "name": name, "uid": f"of {name}", "resourceVersion": str(version)}
    return {"type": "MODIFIED", "object": {"metadata": metadata}}
