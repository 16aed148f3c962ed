"""Waits for the watch to deliver this process's own writes, and knows the conditions that it is writing.

An API server applies a patch to the object in its watch cache. Before the cache has the previous write, the server
computes the patch in vain: it detects the conflict, reads the object from etcd, and computes the patch again. The
status patch of a binding follows its spec patch at once, and three of ten came too early. A watch is fed by the same
cache, so a patch that follows after the watch event is computed once.

Source: kubernetes 1.35 staging/src/k8s.io/apiserver/pkg/storage/cacher/delegator.go and etcd3/store.go
(GuaranteedUpdate). docs/decisions/0005-writes.md has the measurement.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

from karmada_scheduler.api.binding import Binding, BindingKey

WAIT_SECONDS: Final = 0.1
"""How long a write waits for the watch event of the previous one. The event only saves work, and a watch may be down."""


class OwnWrites:
    """The newest version that the watch has delivered of each binding that this process writes."""

    def __init__(self, *, seconds: float = WAIT_SECONDS) -> None:
        """Track nothing; ``seconds`` limits ``wait_observed``, 0 disables it."""
        self._seconds = seconds
        self._observed: dict[BindingKey, int] = {}
        self._conditions: dict[BindingKey, Sequence[Mapping[str, Any]]] = {}
        self._waiting: dict[BindingKey, tuple[int, asyncio.Future[None]]] = {}

    def __len__(self) -> int:
        return len(self._observed)

    def expect(self, key: BindingKey) -> None:
        """Track a binding from now on; its watch event may arrive before the answer to the write."""
        self._observed[key] = 0

    def forget(self, key: BindingKey) -> None:
        """Stop tracking a binding."""
        self._observed.pop(key, None)

    def begin_status(self, key: BindingKey, conditions: Sequence[Mapping[str, Any]]) -> None:
        """Note the conditions that a status has, before it is written: its watch event may arrive before the answer."""
        self._conditions[key] = conditions

    def end_status(self, key: BindingKey) -> None:
        """Forget the conditions of a binding, whose status is in the cache now."""
        self._conditions.pop(key, None)

    def has_conditions_of(self, binding: Binding) -> bool:
        """Return whether a binding has the conditions that this process is writing."""
        return list(self._conditions.get(binding.key, ())) == list(binding.status.conditions)

    def observe(self, key: BindingKey, version: int) -> None:
        """Record a version that the watch has delivered, if the binding is tracked."""
        if version <= self._observed.get(key, version):
            return
        self._observed[key] = version
        wanted, delivered = self._waiting.get(key, (0, None))
        if delivered is not None and version >= wanted and not delivered.done():
            delivered.set_result(None)

    async def wait_observed(self, key: BindingKey, version: int) -> None:
        """Wait until the watch has delivered this version of a tracked binding, or a newer one, or the time is up."""
        if not self._seconds or self._observed.get(key, version) >= version:
            return
        delivered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[key] = version, delivered
        try:
            async with asyncio.timeout(self._seconds):
                await delivered
        except TimeoutError:
            pass
        finally:
            del self._waiting[key]
