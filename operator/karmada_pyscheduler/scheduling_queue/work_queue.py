"""The work queue: first in, first out; each key at most once, and never twice in process.

The semantics are client-go's. A key that is added while it waits is dropped. A key that is added while it is processed
becomes due when it is ``done``. A failed key is added after a delay that doubles with every failure in a row, and all
such retries share one token bucket. An event adds a failed key at once; its delayed add then finds the key queued, or
comes later and finds nothing to do, as upstream.

The queue has no clock of its own.

Source: k8s.io/client-go 0.35.3 util/workqueue (queue.go, delaying_queue.go, default_rate_limiters.go), as set up by
karmada v1.18.2 pkg/scheduler/scheduler.go.
"""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from collections.abc import Callable
from typing import Final

from karmada_pyscheduler.metrics.work_queues import QueueMetrics, unexposed
from karmada_pyscheduler.scheduling_queue.held_keys import Key
from karmada_pyscheduler.scheduling_queue.queue import (
    ABSENT,
    ACTIVE,
    BACKOFF,
    MOST_COUNTED,
    PROCESSING,
    KeyState,
    SchedulingQueue,
)
from karmada_scheduler.config.options import RetryLimits
from karmada_scheduler.rate_limit import TokenBucket


class WorkQueue(SchedulingQueue[Key]):
    """Keys of bindings in the order in which they became due."""

    def __init__(
        self, *, limits: RetryLimits, clock: Callable[[], float], metrics: QueueMetrics | None = None
    ) -> None:
        """Start empty; ``clock`` returns seconds and never runs backwards. Without ``metrics`` none are exposed."""
        super().__init__(clock)
        self._limits: Final = limits
        self._metrics: Final = metrics or unexposed()
        self._bucket = TokenBucket(limits.qps, limits.burst, clock())
        self._queue: deque[tuple[Key, float]] = deque()
        self._dirty: set[Key] = set()
        self._processing: dict[Key, float] = {}
        self._requeues: dict[Key, int] = {}
        self._delayed: list[tuple[float, int, Key]] = []
        self._ready_at: dict[Key, float] = {}
        self._sequence = itertools.count()

    def __len__(self) -> int:
        """Return the number of due keys."""
        return len(self._queue)

    def _has(self, key: Key) -> bool:
        """Return whether a key is due, delayed, or taken and not done."""
        return key in self._dirty or key in self._processing or key in self._ready_at

    @property
    def depth(self) -> int:
        """The number of keys that are due, or will be when they are done; upstream's metric."""
        return len(self._dirty)

    def unfinished(self) -> list[float]:
        """Return for how many seconds each key has been processed."""
        now = self._clock()
        return [now - started for started in list(self._processing.values())]

    @property
    def _delayed_keys(self) -> int:
        """The number of keys whose delay is not over."""
        return len(self._ready_at)

    def _state_of(self, key: Key) -> KeyState:
        """Return where a key is; may be called from any thread."""
        if key in self._processing:
            return KeyState(PROCESSING)
        if key in self._dirty:
            return self._active_state(key)
        ready_at = self._ready_at.get(key)
        return ABSENT if ready_at is None else KeyState(BACKOFF, max(0.0, ready_at - self._clock()))

    def _active_state(self, key: Key) -> KeyState:
        due = list(self._queue) if len(self._queue) <= MOST_COUNTED else []
        for before, (waiting, added) in enumerate(due):
            if waiting == key:
                return KeyState(ACTIVE, before=before, waited=self._clock() - added)
        return KeyState(ACTIVE)

    def add(self, key: Key, priority: int = 0) -> None:  # noqa: ARG002
        """Append a key, unless it is queued already; the priority does not count."""
        if key in self._dirty:
            return
        self._metrics.added()
        self._dirty.add(key)
        if key not in self._processing:
            self._append(key)

    def _append(self, key: Key) -> None:
        self._queue.append((key, self._clock()))
        self._changed.set()

    def add_after(self, key: Key, delay: float) -> None:
        """Append a key after ``delay`` seconds; of two delays of one key the earlier end counts."""
        self._metrics.retried()
        if delay <= 0:
            self.add(key)
            return
        ready_at = self._clock() + delay
        if ready_at >= self._ready_at.get(key, float("inf")):
            return
        self._ready_at[key] = ready_at
        heapq.heappush(self._delayed, (ready_at, next(self._sequence), key))
        self._changed.set()

    def add_rate_limited(self, key: Key, *, unschedulable: bool = False) -> float:  # noqa: ARG002
        """Append a failed key after its backoff; return the backoff in seconds."""
        requeues = self._requeues.get(key, 0)
        self._requeues[key] = requeues + 1
        backoff = min(self._limits.base_delay * 2.0 ** min(requeues, 64), self._limits.max_delay)
        delay = max(backoff, self._bucket.reserve(self._clock()))
        self.add_after(key, delay)
        return delay

    def forget(self, key: Key) -> None:
        """Reset the backoff of a key."""
        self._requeues.pop(key, None)

    def _pop(self) -> tuple[Key, float] | None:
        """Take the first key; return it with the seconds that it waited, None if no key is due.

        The caller owns the key until it calls ``done``.
        """
        self._move_ready_keys()
        if not self._queue:
            return None
        key, added = self._queue.popleft()
        now = self._clock()
        self._dirty.discard(key)
        self._processing[key] = now
        self._metrics.taken(now - added)
        return key, now - added

    def done(self, key: Key) -> None:
        """Mark a key that was taken as processed; it becomes due again if it was added meanwhile."""
        started = self._processing.pop(key, None)
        if started is not None:
            self._metrics.finished(self._clock() - started)
        if key in self._dirty:
            self._append(key)

    def _retain(self, is_kept: Callable[[Key], bool]) -> None:
        """Drop the due keys for which ``is_kept`` is false."""
        dropped = {key for key, _ in self._queue if not is_kept(key)}
        if dropped:
            self._queue = deque(item for item in self._queue if item[0] not in dropped)
            self._dirty -= dropped

    def _seconds_to_next(self) -> float | None:
        """Return the seconds until a key becomes due: 0 if one is, None if no key is waiting."""
        self._move_ready_keys()
        if self._queue:
            return 0.0
        return max(0.0, self._delayed[0][0] - self._clock()) if self._delayed else None

    def _move_ready_keys(self) -> None:
        now = self._clock()
        while self._delayed and self._delayed[0][0] <= now:
            ready_at, _, key = heapq.heappop(self._delayed)
            if self._ready_at.get(key) == ready_at:
                del self._ready_at[key]
                self.add(key)
