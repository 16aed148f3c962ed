"""A queue with a ``get`` that waits, around a queue that never does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic, Protocol

from karmada_scheduler.scheduling_queue.work_queue import Key, KeyState


class Queue(Protocol[Key]):
    """The operations that both queues have: ``WorkQueue`` and ``PrioritySchedulingQueue``."""

    def __len__(self) -> int: ...

    @property
    def processing(self) -> int:
        """The number of keys that were taken and are not done."""
        ...

    @property
    def delayed(self) -> int:
        """The number of keys whose delay or backoff is not over."""
        ...

    def state_of(self, key: Key) -> KeyState:
        """Return where a key is; may be called from any thread."""
        ...

    def holds(self, key: Key) -> bool:
        """Return whether a key waits, or is processed."""
        ...

    def add(self, key: Key, priority: int = 0) -> None:
        """Add a key."""
        ...

    def add_after(self, key: Key, delay: float) -> None:
        """Add a key after a delay in seconds."""
        ...

    def add_rate_limited(self, key: Key, *, unschedulable: bool = False) -> object:
        """Add a failed key after its backoff."""
        ...

    def forget(self, key: Key) -> None:
        """Reset the backoff of a key."""
        ...

    def pop(self) -> tuple[Key, float] | None:
        """Take the first key; return it with the seconds that it waited, None if no key is due."""
        ...

    def done(self, key: Key) -> None:
        """Mark a key that was taken as processed."""
        ...

    def retain(self, is_kept: Callable[[Key], bool]) -> None:
        """Drop the due keys for which ``is_kept`` is false."""
        ...

    def seconds_to_next(self) -> float | None:
        """Return the seconds until a key may become due; None if no key is waiting."""
        ...


class AsyncQueue(Generic[Key]):
    """A queue for one consumer on the event loop; must be used from this loop only."""

    def __init__(self, queue: Queue[Key]) -> None:
        """Wrap a queue, to which keys must then be added through this object only."""
        self._queue = queue
        self._changed = asyncio.Event()
        self._popped = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._has_consumer = False

    def __len__(self) -> int:
        """Return the number of due keys."""
        return len(self._queue)

    @property
    def processing(self) -> int:
        """The number of keys that were taken and are not done."""
        return self._queue.processing

    @property
    def delayed(self) -> int:
        """The number of keys whose delay or backoff is not over."""
        return self._queue.delayed

    def state_of(self, key: Key) -> KeyState:
        """Return where a key is; may be called from any thread."""
        return self._queue.state_of(key)

    def holds(self, key: Key) -> bool:
        """Return whether a key waits, or is processed."""
        return self._queue.holds(key)

    def is_shorter_than(self, limit: int) -> bool:
        """Return whether fewer than ``limit`` keys are due, or ``get`` was never called."""
        return not self._has_consumer or len(self._queue) < limit

    async def wait_shorter_than(self, limit: int) -> None:
        """Wait until ``is_shorter_than``."""
        while not self.is_shorter_than(limit):
            self._popped.clear()
            await self._popped.wait()

    async def wait_idle(self, *, timeout: float) -> None:
        """Wait until the consumer has found the queue empty, or was stopped, for ``timeout`` seconds at most."""
        try:
            async with asyncio.timeout(timeout):
                await self._idle.wait()
        except TimeoutError:
            return

    def shut_down(self) -> None:
        """Let ``wait_idle`` return from now on; call this when there is no consumer any more."""
        self._idle.set()

    def add(self, key: Key, priority: int = 0) -> None:
        """Add a key."""
        self._queue.add(key, priority)
        self._changed.set()

    def add_after(self, key: Key, delay: float) -> None:
        """Add a key after a delay in seconds."""
        self._queue.add_after(key, delay)
        self._changed.set()

    def add_rate_limited(self, key: Key, *, unschedulable: bool = False) -> None:
        """Add a failed key after its backoff."""
        self._queue.add_rate_limited(key, unschedulable=unschedulable)
        self._changed.set()

    def forget(self, key: Key) -> None:
        """Reset the backoff of a key."""
        self._queue.forget(key)

    def retain(self, is_kept: Callable[[Key], bool]) -> None:
        """Drop the due keys for which ``is_kept`` is false, unless there is a consumer, which takes them."""
        if not self._has_consumer:
            self._queue.retain(is_kept)

    def done(self, key: Key) -> None:
        """Mark a key that was taken as processed; it becomes due again if it was added meanwhile."""
        self._queue.done(key)
        self._changed.set()

    async def get(self) -> tuple[Key, float]:
        """Wait for a key and take it; return it with the seconds that it waited in the queue."""
        self._has_consumer = True
        if not self._queue:
            self._idle.set()
        while True:
            if (item := self._queue.pop()) is not None:
                self._popped.set()
                if self._queue:
                    self._idle.clear()
                return item
            self._changed.clear()
            try:
                async with asyncio.timeout(self._queue.seconds_to_next()):
                    await self._changed.wait()
            except TimeoutError:
                continue
