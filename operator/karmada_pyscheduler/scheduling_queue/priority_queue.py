"""The queue behind the gate PriorityBasedScheduling.

It has three sets, with upstream's names:

- *active*: due keys, higher priority first, in the order of arrival among equals.
- *backoff*: keys that failed for a reason that may pass, until their backoff is over: 1 s after the first attempt,
  doubling to 10 s, counted from the time at which they last became active.
- *unschedulable*: keys that did not fit; for five minutes, or until an event.

An event moves a key to *active* from any set. A key that is processed is in no set until it is done; after an event
meanwhile it is processed again.

*backoff* is flushed every second and *unschedulable* every thirty seconds, counted from the start of the queue, as
upstream's flushers do. A backoff therefore ends at the next full second after its time.

Source: karmada v1.18.2 pkg/scheduler/internal/queue/scheduling_queue.go.
Differs: an event that adds a key updates its priority, also while the key waits.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable
from typing import Any, Final, Generic

from karmada_pyscheduler.scheduling_queue.held_keys import Key
from karmada_pyscheduler.scheduling_queue.queue import (
    ABSENT,
    ACTIVE,
    BACKOFF,
    MOST_COUNTED,
    PROCESSING,
    UNSCHEDULABLE,
    KeyState,
    SchedulingQueue,
)
from karmada_scheduler.structs import Struct

SortKey = Callable[[Key, int, float], Any]
"""Returns the sort key of a key, from its priority and the time at which it became due; the smallest comes first."""

Entry = tuple[Any, int, Key, int, float]
"""Sort key, number of arrival, key, priority and the time at which it became due."""

INITIAL_BACKOFF: Final = 1.0
MAX_BACKOFF: Final = 10.0
UNSCHEDULABLE_SECONDS: Final = 300.0
BACKOFF_FLUSH_SECONDS: Final = 1.0
UNSCHEDULABLE_FLUSH_SECONDS: Final = 30.0
KEPT_OUTDATED: Final = 64
"""Entries of keys with an earlier priority that may stay in the heap, besides one for each due key."""


class _Item(Struct, Generic[Key]):
    """A key with its history.

    Attributes:
        since: When it last became active, in seconds of the queue's clock.
        attempts: How often it was taken.
        not_before: The end of a requested delay, in seconds of the queue's clock.
    """

    key: Key
    priority: int
    since: float
    attempts: int = 0
    not_before: float = 0.0

    @property
    def due(self) -> float:
        """The end of its backoff, in seconds of the queue's clock."""
        return max(self.since + self.backoff, self.not_before)

    @property
    def backoff(self) -> float:
        """Seconds between activation and the next attempt, without a requested delay; of a key that was taken."""
        return min(INITIAL_BACKOFF * 2.0 ** min(self.attempts - 1, 30), MAX_BACKOFF)


class PrioritySchedulingQueue(SchedulingQueue[Key]):
    """Keys of bindings by priority."""

    def __init__(self, *, clock: Callable[[], float], sort_key: SortKey[Key] | None = None) -> None:
        """Start empty, ordered by ``sort_key``.

        By default, higher priorities come first, and equal ones in the order of arrival. ``clock`` returns seconds
        and never runs backwards.
        """
        super().__init__(clock)
        self._sort_key = sort_key or _by_priority
        self._started = clock()
        self._active: list[Entry[Key]] = []
        self._items: dict[Key, _Item[Key]] = {}
        self._requeue: dict[Key, int] = {}
        self._processing: dict[Key, _Item[Key]] = {}
        self._backoff: dict[Key, _Item[Key]] = {}
        self._unschedulable: dict[Key, _Item[Key]] = {}
        self._sequence = itertools.count()
        self._backoff_flush = self._started + BACKOFF_FLUSH_SECONDS
        self._unschedulable_flush = self._started + UNSCHEDULABLE_FLUSH_SECONDS

    def __len__(self) -> int:
        """Return the number of due keys."""
        return len(self._items)

    def _has(self, key: Key) -> bool:
        """Return whether a key is in one of the sets, or taken and not done."""
        return any(
            key in found for found in (self._items, self._processing, self._backoff, self._unschedulable)
        )

    @property
    def _delayed_keys(self) -> int:
        """The number of keys in backoff or unschedulable."""
        return len(self._backoff) + len(self._unschedulable)

    def pending(self) -> dict[str, int]:
        """Return the size of each set, by upstream's names."""
        return {
            "active": len(self._items),
            "backoff": len(self._backoff) + len(self._held),
            "unschedulable": len(self._unschedulable),
        }

    def _state_of(self, key: Key) -> KeyState:
        """Return where a key is; may be called from any thread."""
        if key in self._processing:
            return KeyState(PROCESSING)
        now = self._clock()
        item = self._items.get(key)
        if item is not None:
            return KeyState(ACTIVE, None, self._before(item), now - item.since, item.priority)
        item = self._backoff.get(key)
        if item is not None:
            return KeyState(BACKOFF, max(0.0, item.due - now))
        item = self._unschedulable.get(key)
        if item is not None:
            return KeyState(UNSCHEDULABLE, max(0.0, item.since + UNSCHEDULABLE_SECONDS - now))
        return ABSENT

    def _before(self, item: _Item[Key]) -> int | None:
        """Return how many keys come before one; None if a plugin compares them, which no other thread may call."""
        if len(self._items) > MOST_COUNTED:
            return None
        places = {entry[2]: entry[:2] for entry in list(self._active) if self._is_current(*entry[2:])}
        mine = places.get(item.key)
        if mine is None or not isinstance(mine[0], tuple):
            return None
        return sum(place < mine for place in places.values())

    def add(self, key: Key, priority: int = 0) -> None:
        """Move a key to active, or mark it to be processed again when it is done."""
        self._backoff.pop(key, None)
        self._unschedulable.pop(key, None)
        if key in self._processing:
            self._requeue[key] = priority
        elif key not in self._items:
            self._activate(_Item(key, priority, self._clock()))
        elif self._items[key].priority != priority:
            item = self._items[key]
            item.priority = priority
            self._push(item)
            # Nobody takes keys from the queue of a standby.
            if self._entry_count() > 2 * len(self._items) + KEPT_OUTDATED:
                self._drop_outdated()

    def _add_held(self, key: Key, priority: int) -> None:
        """Add a held key whose turn has come. One that is active has the priority of a later event, which stays."""
        if key not in self._items:
            self.add(key, priority)

    def _pop(self) -> tuple[Key, float] | None:
        """Take the first key; return it with the seconds since it became due, None if no key is due."""
        self._flush()
        while (entry := self._take_entry()) is not None:
            _, _, key, priority, since = entry
            if not self._is_current(key, priority, since):
                continue
            item = self._items.pop(key)
            item.attempts += 1
            self._processing[key] = item
            return key, self._clock() - item.since
        return None

    def _take_entry(self) -> Entry[Key] | None:
        """Remove and return the first entry, None without any; it may be outdated."""
        return heapq.heappop(self._active) if self._active else None

    def _entry_count(self) -> int:
        """Return the number of entries, the outdated ones included."""
        return len(self._active)

    def _is_current(self, key: Key, priority: int, since: float) -> bool:
        """Return whether an entry of the heap is the one of a due key."""
        item = self._items.get(key)
        return item is not None and (item.priority, item.since) == (priority, since)

    def _drop_outdated(self) -> None:
        self._active = [entry for entry in self._active if self._is_current(*entry[2:])]
        heapq.heapify(self._active)

    def add_rate_limited(self, key: Key, *, unschedulable: bool = False) -> None:
        """Move a failed key to backoff or unschedulable, unless an event was added meanwhile."""
        item = self._processing.get(key)
        if item is None or key in self._requeue:
            return
        (self._unschedulable if unschedulable else self._backoff)[key] = item
        self._changed.set()

    def add_after(self, key: Key, delay: float) -> None:
        """Move a key to backoff for ``delay`` seconds, or for its own backoff if that is longer."""
        if key in self._processing:
            self._processing[key].not_before = self._clock() + delay
        self.add_rate_limited(key)

    def forget(self, key: Key) -> None:
        """Remove a key from backoff."""
        self._backoff.pop(key, None)

    def done(self, key: Key) -> None:
        """Mark a key that was taken as processed; it becomes due again if it was added meanwhile."""
        item = self._processing.pop(key, None)
        priority = self._requeue.pop(key, None)
        if item is not None and priority is not None:
            self._activate(_Item(key, priority, self._clock(), item.attempts))

    def _retain(self, is_kept: Callable[[Key], bool]) -> None:
        """Drop the due keys for which ``is_kept`` is false."""
        self._items = {key: item for key, item in self._items.items() if is_kept(key)}
        self._drop_outdated()

    def _seconds_to_next(self) -> float | None:
        """Return the seconds until a key may become due: 0 if one is, None if no key is waiting."""
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
        sort_key = self._sort_key(item.key, item.priority, item.since)
        self._add_entry((sort_key, next(self._sequence), item.key, item.priority, item.since))
        self._changed.set()

    def _add_entry(self, entry: Entry[Key]) -> None:
        heapq.heappush(self._active, entry)

    def _flush(self) -> None:
        now = self._clock()
        if now >= self._backoff_flush:
            tick = self._last_tick(now, BACKOFF_FLUSH_SECONDS, not_before=self._backoff_flush)
            self._backoff_flush = tick + BACKOFF_FLUSH_SECONDS
            due = [item for item in self._backoff.values() if item.due <= tick]
            self._activate_due(self._backoff, due, key=lambda item: (item.due, -item.priority, item.since))
        if now >= self._unschedulable_flush:
            period = UNSCHEDULABLE_FLUSH_SECONDS
            tick = self._last_tick(now, period, not_before=self._unschedulable_flush)
            self._unschedulable_flush = tick + period
            due = [item for item in self._unschedulable.values() if tick - item.since > UNSCHEDULABLE_SECONDS]
            self._activate_due(self._unschedulable, due, key=lambda item: (item.since,))

    def _last_tick(self, now: float, period: float, *, not_before: float) -> float:
        """Return the last tick up to ``now``, in seconds of the queue's clock; ``not_before`` is one that has passed.

        ``now - started`` may be rounded down to less than a whole number of periods. Without ``not_before``, the tick
        that is due now would then count as not reached, and ``seconds_to_next`` would return 0 for it.
        """
        return max(not_before, self._started + math.floor((now - self._started) / period) * period)

    def _activate_due(
        self,
        waiting: dict[Key, _Item[Key]],
        due: list[_Item[Key]],
        *,
        key: Callable[[_Item[Key]], tuple[float, ...]],
    ) -> None:
        now = self._clock()
        for item in sorted(due, key=key):
            del waiting[item.key]
            self._activate(_Item(item.key, item.priority, now, item.attempts))


def _by_priority(key: object, priority: int, since: float) -> tuple[int, float]:  # noqa: ARG001
    return -priority, since
