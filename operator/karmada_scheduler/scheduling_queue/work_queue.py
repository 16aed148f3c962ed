"""The work queue: first in, first out, keys only, each at most once and never twice in progress.

The semantics are client-go's work queue's. A key that is added while it waits is dropped; one that is
added while it is being processed comes back when that is ``done``. A key that failed is added again
after a delay that doubles with every failure in a row, and all such retries share one token bucket.
A fresh event adds a failed key at once; its pending delayed add then finds it queued or comes later
and finds nothing to do, as upstream.

Nothing here waits or reads a clock of its own: ``SchedulingQueue`` is driven by the clock it is given,
``WaitingQueue`` puts an event loop around it.

Source: k8s.io/client-go 0.35.3 util/workqueue (queue.go, delaying_queue.go,
default_rate_limiters.go), as set up by karmada v1.18.2 pkg/scheduler/scheduler.go.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar

Key = TypeVar("Key", bound=Hashable)
Clock = Callable[[], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryLimits:
    """How long failed keys wait; durations in seconds, defaults are upstream's."""

    base_delay: float = 0.005
    max_delay: float = 1000.0
    qps: float = 10.0
    burst: int = 100


class QueueObserver(Protocol):
    """Told what happens in a queue, for upstream's workqueue metrics; seconds where there are numbers."""

    def added(self) -> None:
        """A key that did not wait already was added."""
        ...

    def retried(self) -> None:
        """A key is to be added after a delay."""
        ...

    def taken(self, waited: float) -> None:
        """A key was handed out."""
        ...

    def finished(self, worked: float) -> None:
        """A key was returned."""
        ...


class _Unobserved:
    """The observer of a queue that nobody watches."""

    def added(self) -> None: ...

    def retried(self) -> None: ...

    def taken(self, waited: float) -> None: ...

    def finished(self, worked: float) -> None: ...


_UNOBSERVED: Final = _Unobserved()


class TokenBucket:
    """A bucket that is reserved from: a caller learns how long to wait and has its token then."""

    def __init__(self, *, rate: float, burst: int, clock: Clock) -> None:
        """Start full. ``rate`` is in tokens per second, ``burst`` in tokens."""
        self._rate = rate
        self._burst = burst
        self._clock = clock
        self._tokens = float(burst)
        self._last = clock()

    def reserve(self) -> float:
        """Take one token and return the seconds until it may be used; 0 when there was one."""
        now = self._clock()
        self._tokens = min(self._burst, self._tokens + (now - self._last) * self._rate)
        self._last = now
        self._tokens -= 1
        return max(0.0, -self._tokens / self._rate)


class SchedulingQueue(Generic[Key]):
    """Keys of bindings in the order in which they became due."""

    def __init__(self, *, limits: RetryLimits, clock: Clock, observer: QueueObserver = _UNOBSERVED) -> None:
        """Start empty; ``clock`` is in seconds and never runs backwards."""
        self._limits: Final = limits
        self._observer: Final = observer
        self._clock = clock
        self._bucket = TokenBucket(rate=limits.qps, burst=limits.burst, clock=clock)
        self._waiting: deque[tuple[Key, float]] = deque()
        self._dirty: set[Key] = set()
        self._processing: dict[Key, float] = {}
        self._failures: dict[Key, int] = {}
        self._delayed: list[tuple[float, int, Key]] = []
        self._ready_at: dict[Key, float] = {}
        self._sequence = itertools.count()

    def __len__(self) -> int:
        """Count the keys that wait to be processed, delayed ones not included."""
        return len(self._waiting)

    def __contains__(self, key: Key) -> bool:
        """Tell whether the key waits, or will again once it is done."""
        return key in self._dirty

    @property
    def in_progress(self) -> int:
        """How many keys were handed out and are not done."""
        return len(self._processing)

    @property
    def depth(self) -> int:
        """How many keys wait or will wait once they are done."""
        return len(self._dirty)

    def unfinished(self) -> list[float]:
        """Return for how many seconds each key in progress has been so."""
        now = self._clock()
        return [now - started for started in list(self._processing.values())]

    @property
    def delayed(self) -> int:
        """How many keys wait for their retry."""
        return len(self._ready_at)

    def add(self, key: Key, priority: int = 0) -> None:  # noqa: ARG002
        """Append a key, unless it waits already; priorities do not count here."""
        if key in self._dirty:
            return
        self._observer.added()
        self._dirty.add(key)
        if key not in self._processing:
            self._waiting.append((key, self._clock()))

    def add_after(self, key: Key, delay: float) -> None:
        """Append a key in ``delay`` seconds; of two delays of one key the earlier counts."""
        self._observer.retried()
        if delay <= 0:
            self.add(key)
            return
        due = self._clock() + delay
        if due >= self._ready_at.get(key, float("inf")):
            return
        self._ready_at[key] = due
        heapq.heappush(self._delayed, (due, next(self._sequence), key))

    def retry(self, key: Key, *, unschedulable: bool = False) -> float:  # noqa: ARG002
        """Append a key that failed after the delay its failures have earned; return that delay in seconds."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        own = min(self._limits.base_delay * 2.0 ** min(failures, 64), self._limits.max_delay)
        delay = max(own, self._bucket.reserve())
        self.add_after(key, delay)
        return delay

    def forget(self, key: Key) -> None:
        """Let the next failure of a key count as its first."""
        self._failures.pop(key, None)

    def failures(self, key: Key) -> int:
        """Return how often a key failed in a row."""
        return self._failures.get(key, 0)

    def pop(self) -> tuple[Key, float] | None:
        """Hand out the first key and the seconds it waited; None when none is due.

        The caller owns the key until it calls ``done``.
        """
        self._release_due()
        if not self._waiting:
            return None
        key, added = self._waiting.popleft()
        now = self._clock()
        self._dirty.discard(key)
        self._processing[key] = now
        self._observer.taken(now - added)
        return key, now - added

    def done(self, key: Key) -> None:
        """Return a key that was handed out; it waits again if it was added meanwhile."""
        started = self._processing.pop(key, None)
        now = self._clock()
        if started is not None:
            self._observer.finished(now - started)
        if key in self._dirty:
            self._waiting.append((key, now))

    def seconds_to_next(self) -> float | None:
        """Return how long until a delayed key is due: 0 when something waits, None when nothing does."""
        self._release_due()
        if self._waiting:
            return 0.0
        return max(0.0, self._delayed[0][0] - self._clock()) if self._delayed else None

    def _release_due(self) -> None:
        now = self._clock()
        while self._delayed and self._delayed[0][0] <= now:
            due, _, key = heapq.heappop(self._delayed)
            if self._ready_at.get(key) == due:
                del self._ready_at[key]
                self.add(key)


class Queue(Protocol[Key]):
    """What the loop needs of a queue; ``SchedulingQueue`` and ``PrioritySchedulingQueue`` are two."""

    def __len__(self) -> int: ...

    def add(self, key: Key, priority: int = 0) -> None:
        """Make a key due."""
        ...

    def add_after(self, key: Key, delay: float) -> None:
        """Make a key due in some seconds."""
        ...

    def retry(self, key: Key, *, unschedulable: bool = False) -> object:
        """Make a failed key due after a pause that depends on its failures."""
        ...

    def forget(self, key: Key) -> None:
        """Forget a key's failures."""
        ...

    def pop(self) -> tuple[Key, float] | None:
        """Hand out the first key and the seconds it waited."""
        ...

    def done(self, key: Key) -> None:
        """Return a key that was handed out."""
        ...

    def seconds_to_next(self) -> float | None:
        """Return how long until a key may become due, None when none waits."""
        ...


class WaitingQueue(Generic[Key]):
    """A queue with a ``get`` that waits on the event loop; to be used from one event loop."""

    def __init__(self, queue: Queue[Key]) -> None:
        """Put waiting around a queue, which must then be used through this only."""
        self._queue = queue
        self._changed = asyncio.Event()
        self._taken = asyncio.Event()
        self._is_consumed = False

    def __len__(self) -> int:
        """Count the keys that are due."""
        return len(self._queue)

    def has_room(self, most: int) -> bool:
        """Tell whether fewer than ``most`` keys are due, or nobody takes any yet, so that there is nothing to wait for."""
        return not self._is_consumed or len(self._queue) < most

    async def room(self, most: int) -> None:
        """Wait until ``has_room``."""
        while not self.has_room(most):
            self._taken.clear()
            await self._taken.wait()

    def add(self, key: Key, priority: int = 0) -> None:
        """Make a key due and wake whoever waits for one."""
        self._queue.add(key, priority)
        self._changed.set()

    def add_after(self, key: Key, delay: float) -> None:
        """Make a key due later."""
        self._queue.add_after(key, delay)
        self._changed.set()

    def retry(self, key: Key, *, unschedulable: bool = False) -> None:
        """Make a failed key due after its pause."""
        self._queue.retry(key, unschedulable=unschedulable)
        self._changed.set()

    def forget(self, key: Key) -> None:
        """Forget a key's failures."""
        self._queue.forget(key)

    def done(self, key: Key) -> None:
        """Return a key; if it is due again, wake whoever waits for one."""
        self._queue.done(key)
        self._changed.set()

    async def get(self) -> tuple[Key, float]:
        """Wait for a key; return it with the seconds it waited in the queue."""
        self._is_consumed = True
        while True:
            if (item := self._queue.pop()) is not None:
                self._taken.set()
                return item
            self._changed.clear()
            try:
                async with asyncio.timeout(self._queue.seconds_to_next()):
                    await self._changed.wait()
            except TimeoutError:
                continue
