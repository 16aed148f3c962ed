"""A fake extender: an HTTP server on the loopback interface with the responses of a test."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import Any

import orjson
from aiohttp import web

from karmada_pyscheduler.cache.manifests import ManifestCache
from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.framework.cycle import Cycle
from karmada_scheduler.testing import BindingBuilder, binding, cluster, snapshot

Reply = Callable[[Any], Any]
"""Takes a request and returns the response: an object for JSON, bytes, or a Response."""


class FakeExtender:
    """Listens on 127.0.0.1, records requests and counts connections."""

    def __init__(self) -> None:
        self.replies: dict[str, Reply] = {}
        self.requests: list[tuple[str, Any]] = []
        self.raw: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        self.peers: set[tuple[str, int]] = set()
        self.certificates: list[dict[str, Any] | None] = []
        self.hold = asyncio.Event()
        self.hold.set()
        app = web.Application(client_max_size=1024**3)
        app.router.add_post("/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, handle_signals=False)
        self._site: web.TCPSite | None = None
        self._scheme = "http"

    async def start(self, context: ssl.SSLContext | None = None) -> None:
        self._scheme = "https" if context else "http"
        await self._runner.setup()
        self._site = web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=context)
        await self._site.start()

    async def stop(self) -> None:
        self.hold.set()
        await self._runner.cleanup()

    @property
    def port(self) -> int:
        assert self._site is not None
        return int(self._runner.addresses[0][1])

    @property
    def url(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self.port}"

    def answers(self, verb: str, answer: Any) -> None:
        """Respond to a verb always in the same way."""
        self.replies[verb] = lambda _: answer

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        self.peers.add(request.transport.get_extra_info("peername"))
        self.certificates.append(request.transport.get_extra_info("peercert"))
        body = await request.read()
        self.raw.append(body)
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        question = orjson.loads(body)
        self.requests.append((request.path, question))
        await self.hold.wait()
        answer = self.replies[request.path.rpartition("/")[2]](question)
        if isinstance(answer, web.StreamResponse):
            return answer
        content = answer if isinstance(answer, bytes) else orjson.dumps(answer)
        return web.Response(body=content, content_type="application/json")


def unknown(message: Any) -> Any:
    """Write a message with all keys of its own in lower case."""
    return {key.lower(): value for key, value in message.items()}


class Scene:
    """A binding, some clusters, and their manifests."""

    def __init__(self, *names: str, web: BindingBuilder | None = None) -> None:
        builder = web or binding("web").names(*names).replicas(2, cpu="100m")
        builders = [cluster(name).region("eu") for name in names]
        self.binding: Binding = builder.build()
        self.clusters: list[Cluster] = [each.build() for each in builders]
        self.manifests = ManifestCache(is_needed=lambda _: True, clusters=True)
        self.manifests.stored(self.binding, builder.manifest())
        for parsed, each in zip(self.clusters, builders, strict=True):
            self.manifests.stored(parsed, each.manifest())
        placement = self.binding.spec.placement
        assert placement is not None
        self.cycle = Cycle(self.binding, placement, affinity_name="near", snapshot=snapshot(*builders))
