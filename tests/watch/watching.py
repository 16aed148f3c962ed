"""A real kopf at a server."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from karmada_scheduler.api.meta import Manifest
from karmada_scheduler.client.connection import Credentials
from karmada_scheduler.client.karmada import WATCHED
from karmada_scheduler.watch import KopfWatch
from tests.watch.api_server import BEFORE, ApiServer


class Watching:
    """kopf at a server; every login is asked of ``login``."""

    def __init__(
        self,
        login: Callable[[], Credentials],
        *,
        is_known: Callable[[str, Manifest], bool] = lambda *_: False,
        silent_after: float = 300.0,
    ) -> None:
        self.events: list[tuple[str, str, str]] = []
        self.versions: list[str] = []
        self.raising: set[str] = set()
        self.logins = 0
        self.starts = 0
        self.begun: Counter[str] = Counter()
        self.version = 10**9
        """The API server's, as far as anybody knows."""
        self._login = login
        self.watch = KopfWatch(
            WATCHED,
            self._saw,
            identity="somebody",
            login=self._counted,
            before_start=self._started,
            after_start=lambda: None,
            begin=self._begin,
            is_ahead=self._is_ahead,
            clock=time.monotonic,
            silent_after=silent_after,
            is_known=is_known,
        )

    def _saw(self, kind: str, event: str, manifest: Manifest) -> None:
        if manifest["metadata"]["resourceVersion"] in self.raising:
            raise RuntimeError("a defect")
        self.events.append((kind, event, manifest["metadata"]["name"]))
        self.versions.append(manifest["metadata"]["resourceVersion"])

    async def _begin(self, kind: str) -> str:
        self.begun[kind] += 1
        return BEFORE

    async def _is_ahead(self, _: str, version: str) -> bool:
        return int(version) > self.version

    async def _counted(self) -> Credentials:
        self.logins += 1
        return self._login()

    async def _started(self) -> None:
        self.starts += 1

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.watch.run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def until(reached: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not reached():
            await asyncio.sleep(0.01)


def to(server: ApiServer, token: str | None = None) -> Credentials:
    return Credentials(
        server=server.url, tls=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), token=token, proxy_url=None
    )
