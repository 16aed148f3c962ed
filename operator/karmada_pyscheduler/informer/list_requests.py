"""Requests for lists before their time, from whatever finds the caches incomplete; the relister makes the lists."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable


async def first_of(*waits: Awaitable[object]) -> None:
    """Wait for one of several, and cancel the others."""
    futures = {asyncio.ensure_future(wait) for wait in waits}
    try:
        await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for future in futures:
            future.cancel()


class ListRequests:
    """The kinds whose caches are to be compared with a list; for use from one event loop."""

    def __init__(self) -> None:
        """Start without requests."""
        self._kinds: set[str] = set()
        self._requested = asyncio.Event()

    def soon(self, kinds: Iterable[str]) -> None:
        """Request lists of some kinds."""
        self._kinds.update(kinds)
        self._requested.set()

    def after(self, seconds: float, kinds: Iterable[str]) -> None:
        """Request lists of some kinds after some seconds."""
        asyncio.get_running_loop().call_later(seconds, self.soon, kinds)

    async def take(self, seconds: float, sleep: Callable[[float], Awaitable[None]]) -> set[str]:
        """Wait for requests, for some seconds at most; return the requested kinds, and forget them."""
        await first_of(sleep(seconds), self._requested.wait())
        kinds, self._kinds = self._kinds, set()
        self._requested.clear()
        return kinds
