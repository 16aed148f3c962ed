"""What comes back of our own writes, in a real kopf."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from typing import Any

from karmada_scheduler.client.connection import Credentials
from karmada_scheduler.client.karmada import WATCHED
from karmada_scheduler.watch import KopfWatch
from tests.watch.api_server import ApiServer, modified


async def test_a_change_that_is_known_reaches_nobody_and_the_next_one_does() -> None:
    seen: asyncio.Queue[tuple[str | None, str]] = asyncio.Queue()

    async def login() -> Credentials:
        return Credentials(
            server=api.url, tls=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), token=None, proxy_url=None
        )

    async def at_once() -> None:
        return None

    def is_known(_: str, manifest: Mapping[str, Any]) -> bool:
        return bool(manifest["metadata"]["resourceVersion"] == "8")

    async with ApiServer() as api:
        watch = KopfWatch(
            WATCHED,
            lambda _, event, manifest: seen.put_nowait((event, manifest["metadata"]["resourceVersion"])),
            identity="somebody",
            login=login,
            before_start=at_once,
            after_start=lambda: None,
            is_known=is_known,
        )
        running = asyncio.create_task(watch.run())
        try:
            async with asyncio.timeout(20):
                assert await seen.get() == (None, "7")
                for version in (8, 9):
                    api.changes.put_nowait(modified(version))
                assert await seen.get() == ("MODIFIED", "9")
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
