"""Whether somebody looks at the page, and when the objects are to be read again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

_UNSEEN_SECONDS: Final = 60.0
"""Without a request for this long, nobody looks."""


class Visits:
    """Requests as they come in; for use from the thread of the server."""

    def __init__(self, refresh: float, clock: Callable[[], float] = time.monotonic) -> None:
        """Read every ``refresh`` seconds while somebody looks; ``clock`` is in seconds."""
        self._refresh = refresh
        self._clock = clock
        self._seen = 0.0
        self._read = 0.0
        self._wake: asyncio.Event | None = None

    def seen(self) -> None:
        """Note a request. If the last reading is older than ``refresh``, the next one is due at once."""
        self._seen = self._clock()
        if self._wake is not None and self._seen - self._read > self._refresh:
            self._wake.set()

    def reading(self) -> None:
        """Note that a reading begins."""
        self._read = self._clock()

    async def next(self) -> bool:
        """Wait until a reading may be due; return whether somebody looks."""
        if self._wake is None:
            self._wake = asyncio.Event()
        with suppress(TimeoutError):
            async with asyncio.timeout(self._refresh):
                await self._wake.wait()
        self._wake.clear()
        return self._clock() - self._seen <= _UNSEEN_SECONDS
