"""A real kopf on a fake API server."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

from karmada_pyscheduler.client.connection import Connection
from karmada_pyscheduler.client.identity import Identity
from karmada_pyscheduler.client.karmada import WATCHED
from karmada_pyscheduler.client.login import Login
from karmada_pyscheduler.client.watch_requests import WatchRequests
from karmada_pyscheduler.informer.kopf_watch import KopfWatch
from karmada_scheduler.api.manifest import Manifest
from tests.fake_apiserver import FakeApiServer, cluster

BEFORE = 6
"""The version at which the API server has no Cluster."""


GONE = b'{"type": "ERROR", "object": {"code": 410}}'
"""The event that ends a watch whose version is gone."""


@contextmanager
def api_server(tls: ssl.SSLContext | None = None) -> Iterator[FakeApiServer]:
    """Serve an API server with the Cluster m1 at version 7."""
    with FakeApiServer(tls=tls, version=BEFORE) as api:
        api.put(cluster("m1"))
        yield api


def touch(api: FakeApiServer, name: str = "m1") -> None:
    """Create a Cluster or change it, which takes the next version."""
    api.put(cluster(name, labels={"version": str(api.version + 1)}))


class WatchHarness:
    """A kopf watch with its handlers and lists; ``load`` reads its credentials."""

    def __init__(
        self,
        load: Callable[[], Identity],
        *,
        is_known: Callable[[str, Manifest], bool] = lambda *_: False,
        silent_after: float = 300.0,
    ) -> None:
        self.events: list[tuple[str, str, str]] = []
        self.versions: list[str] = []
        self.raising: set[str] = set()
        self.loads = 0
        self.starts = 0
        self.begun: Counter[str] = Counter()
        self.version = 10**9
        """The version that the API server is taken to have."""
        self._read = load
        self.connection = Connection(Login(self._load, load()))
        self._is_known = is_known
        self.watch = KopfWatch(
            WATCHED,
            self,  # type: ignore[arg-type]
            self,  # type: ignore[arg-type]
            WatchRequests(self.connection.watch),
            identity="tests",
            login=self.connection.credentials,
            after_start=lambda: None,
            clock=time.monotonic,
            silent_after=silent_after,
        )

    def on_event(self, kind: str, event: str, manifest: Manifest) -> None:
        if manifest["metadata"]["resourceVersion"] in self.raising:
            raise RuntimeError("a defect")
        self.events.append((kind, event, manifest["metadata"]["name"]))
        self.versions.append(manifest["metadata"]["resourceVersion"])

    def observe(self, kind: str, manifest: Manifest) -> None:
        pass

    def is_known(self, kind: str, manifest: Manifest) -> bool:
        return self._is_known(kind, manifest)

    async def wait_until_served(self) -> None:
        self.starts += 1

    async def list_and_start_version(self, kind: str) -> str:
        self.begun[kind] += 1
        return str(BEFORE)

    async def must_relist(self, _: str, version: str) -> bool:
        return int(version) > self.version

    def _load(self, _: Identity) -> Identity:
        self.loads += 1
        return self._read()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.watch.run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await self.connection.close()


async def until(reached: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not reached():
            await asyncio.sleep(0.01)


_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def to(server: FakeApiServer, token: str | None = None) -> Identity:
    """Credentials for a server."""
    return Identity(
        server=server.url,
        authorization=f"Bearer {token}" if token else None,
        tls=_TLS,
        tls_name=None,
        proxy_url=None,
        material=b"",
        files=(),
        loaded_at=time.time(),
    )
