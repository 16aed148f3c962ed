"""The queue behind the gate PriorityBasedScheduling: three sets, of which one is worked on.

- *active*: what is due, higher priority first, among equals what came first.
- *backoff*: what failed for a reason that may pass by itself, until its pause is over: 1 s after the first
  attempt, doubling to 10 s, counted from when it last became active.
- *unschedulable*: what does not fit; for five minutes, or until an event.

An event brings a key back to *active* from wherever it is. A key that is being processed stays out of all
three until it is done, and an event meanwhile means that it is processed again.

The sets are looked through once a second and every thirty seconds, as upstream's flushers do, counted
from the start of the queue: so a pause ends at the next full second after its time.

Source: karmada v1.18.2 pkg/scheduler/internal/queue/scheduling_queue.go.
Differs: the priority of a key is taken anew whenever an event adds it, even while it waits.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Rank = Callable[[Key, int, float], Any]
"""Takes a key, its priority and when it became due; what it returns can be compared."""

INITIAL_BACKOFF: Final = 1.0
MAX_BACKOFF: Final = 10.0
UNSCHEDULABLE_SECONDS: Final = 300.0
BACKOFF_FLUSH_SECONDS: Final = 1.0
UNSCHEDULABLE_FLUSH_SECONDS: Final = 30.0


@dataclass(slots=True)
class _Item(Generic[Key]):
    """One binding on its way through the sets; ``since`` is when it last became active."""

    key: Key
    priority: int
    since: float
    attempts: int = 0
    not_before: float = 0.0

    @property
    def due(self) -> float:
        """When its next try may be, unless an event comes before."""
        return max(self.since + self.pause, self.not_before)

    @property
    def pause(self) -> float:
        """Seconds between activation and the earliest next try."""
        if self.attempts == 0:
            return 0.0
        return min(INITIAL_BACKOFF * 2.0 ** min(self.attempts - 1, 30), MAX_BACKOFF)


class PrioritySchedulingQueue(Generic[Key]):
    """Keys of bindings by priority; the same operations as ``SchedulingQueue``."""

    def __init__(self, *, clock: Callable[[], float], rank: Rank[Key] | None = None) -> None:
        """Start empty; ``clock`` is in seconds and never runs backwards.

        What has the smallest ``rank`` of key, priority and time comes first; by default higher priorities do,
        and among equals what came first.
        """
        self._clock = clock
        self._rank = rank or _by_priority
        self._started = clock()
        self._active: list[tuple[Any, int, Key, int, float]] = []
        self._items: dict[Key, _Item[Key]] = {}
        self._again: dict[Key, int] = {}
        self._processing: dict[Key, _Item[Key]] = {}
        self._backoff: dict[Key, _Item[Key]] = {}
        self._unschedulable: dict[Key, _Item[Key]] = {}
        self._sequence = itertools.count()
        self._backoff_flush = self._started + BACKOFF_FLUSH_SECONDS
        self._unschedulable_flush = self._started + UNSCHEDULABLE_FLUSH_SECONDS

    def __len__(self) -> int:
        """Count the keys that are due."""
        return len(self._items)

    def __contains__(self, key: Key) -> bool:
        """Tell whether the key is due, or will be once it is done."""
        return key in self._items or key in self._again

    @property
    def in_progress(self) -> int:
        """How many keys were handed out and are not done."""
        return len(self._processing)

    @property
    def delayed(self) -> int:
        """How many keys wait for their retry."""
        return len(self._backoff) + len(self._unschedulable)

    def pending(self) -> dict[str, int]:
        """Return the size of each set, by upstream's names."""
        return {
            "active": len(self._items),
            "backoff": len(self._backoff),
            "unschedulable": len(self._unschedulable),
        }

    def add(self, key: Key, priority: int = 0) -> None:
        """Make a key due, or let it be processed again once it is done."""
        self._backoff.pop(key, None)
        self._unschedulable.pop(key, None)
        if key in self._processing:
            self._again[key] = priority
        elif key not in self._items:
            self._activate(_Item(key, priority, self._clock()))
        elif self._items[key].priority != priority:
            item = self._items[key]
            item.priority = priority
            self._push(item)

    def pop(self) -> tuple[Key, float] | None:
        """Hand out the first key and the seconds since it became due; None when none is."""
        self._flush()
        while self._active:
            _, _, key, priority, since = heapq.heappop(self._active)
            item = self._items.get(key)
            if item is None or (item.priority, item.since) != (priority, since):
                continue
            del self._items[key]
            item.attempts += 1
            self._processing[key] = item
            return key, self._clock() - item.since
        return None

    def retry(self, key: Key, *, unschedulable: bool = False) -> None:
        """Note that a key failed; it waits in the set that fits, unless an event came meanwhile."""
        item = self._processing.get(key)
        if item is None or key in self._again:
            return
        (self._unschedulable if unschedulable else self._backoff)[key] = item

    def add_after(self, key: Key, delay: float) -> None:
        """Note that a key is to wait for ``delay`` seconds, and no less than its failures have earned."""
        if key in self._processing:
            self._processing[key].not_before = self._clock() + delay
        self.retry(key)

    def forget(self, key: Key) -> None:
        """Drop what is remembered of a key's failures."""
        self._backoff.pop(key, None)

    def done(self, key: Key) -> None:
        """Return a key that was handed out; it becomes due again if an event came meanwhile."""
        item = self._processing.pop(key, None)
        priority = self._again.pop(key, None)
        if item is not None and priority is not None:
            self._activate(_Item(key, priority, self._clock(), item.attempts))

    def seconds_to_next(self) -> float | None:
        """Return how long until something may become due: 0 when something is, None when nothing waits."""
        self._flush()
        if self._items:
            return 0.0
        moments = []
        if self._backoff:
            earliest = min(item.due for item in self._backoff.values())
            tick = (
                self._started
                + math.ceil((earliest - self._started) / BACKOFF_FLUSH_SECONDS) * BACKOFF_FLUSH_SECONDS
            )
            moments.append(max(tick, self._backoff_flush))
        if self._unschedulable:
            earliest = min(item.since for item in self._unschedulable.values()) + UNSCHEDULABLE_SECONDS
            period = UNSCHEDULABLE_FLUSH_SECONDS
            tick = self._started + (math.floor((earliest - self._started) / period) + 1) * period
            moments.append(max(tick, self._unschedulable_flush))
        return max(0.0, min(moments) - self._clock()) if moments else None

    def _activate(self, item: _Item[Key]) -> None:
        self._items[item.key] = item
        self._push(item)

    def _push(self, item: _Item[Key]) -> None:
        rank = self._rank(item.key, item.priority, item.since)
        heapq.heappush(self._active, (rank, next(self._sequence), item.key, item.priority, item.since))

    def _flush(self) -> None:
        now = self._clock()
        if now >= self._backoff_flush:
            tick = (
                self._started
                + math.floor((now - self._started) / BACKOFF_FLUSH_SECONDS) * BACKOFF_FLUSH_SECONDS
            )
            self._backoff_flush = tick + BACKOFF_FLUSH_SECONDS
            due = [item for item in self._backoff.values() if item.due <= tick]
            self._release(self._backoff, due, key=lambda item: (item.due, -item.priority, item.since))
        if now >= self._unschedulable_flush:
            period = UNSCHEDULABLE_FLUSH_SECONDS
            tick = self._started + math.floor((now - self._started) / period) * period
            self._unschedulable_flush = tick + period
            due = [item for item in self._unschedulable.values() if tick - item.since > UNSCHEDULABLE_SECONDS]
            self._release(self._unschedulable, due, key=lambda item: (item.since,))

    def _release(
        self,
        waiting: dict[Key, _Item[Key]],
        due: list[_Item[Key]],
        *,
        key: Callable[[_Item[Key]], tuple[float, ...]],
    ) -> None:
        now = self._clock()
        for item in sorted(due, key=key):
            del waiting[item.key]
            if item.key not in self._items and item.key not in self._processing:
                self._activate(_Item(item.key, item.priority, now, item.attempts))


def _by_priority(key: object, priority: int, since: float) -> tuple[int, float]:  # noqa: ARG001
    return -priority, since
