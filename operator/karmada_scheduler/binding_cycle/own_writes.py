"""Which of our own writes the watch has brought back already.

An API server applies a patch to the object in its watch cache. Until the cache has got the write before, the patch is
computed for nothing: the server finds out, reads the object from etcd, and computes it again. The status patch of a
binding follows its spec patch at once, and three of ten came too early. A watch is fed by the same cache, so once
it has brought a write, the next patch is computed once.

Source: kubernetes 1.35 staging/src/k8s.io/apiserver/pkg/storage/cacher/delegator.go and etcd3/store.go
(GuaranteedUpdate). docs/decisions/0014-status-after-own-write.md has the measurement.
"""

from __future__ import annotations

import asyncio
from typing import Final

from karmada_scheduler.api.binding import BindingKey

ECHO_SECONDS: Final = 0.1
"""How long a write waits for the echo of the one before; a watch may be down, and nothing depends on it."""


class OwnWrites:
    """Tells when the watch has brought a version of a binding that somebody expects."""

    def __init__(self, *, seconds: float = ECHO_SECONDS) -> None:
        """``seconds`` is the longest that ``arrival`` waits; with 0 it never does."""
        self._seconds = seconds
        self._seen: dict[BindingKey, int] = {}
        self._waiting: dict[BindingKey, tuple[int, asyncio.Future[None]]] = {}

    def __len__(self) -> int:
        return len(self._seen)

    def expect(self, key: BindingKey) -> None:
        """Remember from now on what the watch brings of a binding; its echo may overtake the answer to the write."""
        self._seen[key] = 0

    def forget(self, key: BindingKey) -> None:
        """Expect nothing of a binding any more."""
        self._seen.pop(key, None)

    def saw(self, key: BindingKey, version: int) -> None:
        """Take note of a version of a binding that the watch has brought."""
        if version <= self._seen.get(key, version):
            return
        self._seen[key] = version
        wanted, arrived = self._waiting.get(key, (0, None))
        if arrived is not None and version >= wanted and not arrived.done():
            arrived.set_result(None)

    async def arrival(self, key: BindingKey, version: int) -> None:
        """Wait until the watch has brought a version of a binding or a newer one, if it is expected; but not for long."""
        if not self._seconds or self._seen.get(key, version) >= version:
            return
        arrived: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[key] = version, arrived
        try:
            async with asyncio.timeout(self._seconds):
                await arrived
        except TimeoutError:
            pass
        finally:
            del self._waiting[key]
