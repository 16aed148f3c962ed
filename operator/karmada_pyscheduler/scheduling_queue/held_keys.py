"""The keys of decisions that a Guard plugin holds: the last ones of the queue, in lines.

The decisions of a line wait for the same thing, such as the next free place of a budget. Only the first one of a line is tried, when its
delay is over; the others follow one by one as long as each is let through. So as many are decided again as may
go on, and one more. Without a line, a key waits for its own delay only.

A held key comes after all due keys, so that new bindings do not wait behind those that are held. While the queue is not
empty, one held key per second becomes due.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Hashable
from typing import Final, Generic, NamedTuple, TypeVar

from karmada_scheduler.structs import Struct

Key = TypeVar("Key", bound=Hashable)

BUSY_SECONDS: Final = 1.0
"""How long due keys go before a held one, at most."""
_KEPT_OUTDATED: Final = 64
"""Entries that do not count any more and may stay in the heap of a line, besides one for each held key."""


class _Place(NamedTuple):
    """A place in a line: the highest priority comes first, then the key that was held first."""

    minus_priority: int
    number: int


class _Held(Struct):
    """A held key.

    Attributes:
        line: Its line.
        place: Its place in it.
        due: When it may be tried, in seconds of the queue's clock; infinity while it is decided.
    """

    line: Hashable
    place: _Place
    due: float


class HeldKeys(Generic[Key]):
    """Held keys in lines; no call takes time by their number."""

    def __init__(self) -> None:
        """Start empty."""
        self._held: dict[Key, _Held] = {}
        self._lines: dict[Hashable, list[tuple[_Place, Key]]] = {}
        self._turns: list[tuple[float, int, Key]] = []
        self._numbers = itertools.count()
        self._last_taken = -math.inf

    def __len__(self) -> int:
        """Return the number of held keys, those that are decided again at present included."""
        return len(self._held)

    def __contains__(self, key: Key) -> bool:
        return key in self._held

    def due(self, key: Key) -> float | None:
        """Return when a key may be tried if it is the first of its line; None if it is not held, or decided at present."""
        found = self._held.get(key)
        return None if found is None or found.due == math.inf else found.due

    def hold(self, key: Key, due: float, *, line: Hashable, priority: int) -> None:
        """Let a key wait until ``due``, in seconds of the queue's clock. Held again, it keeps its place.

        Args:
            key: The key.
            due: When it may be tried.
            line: Its line; None for one of its own.
            priority: Its priority, which counts within the line.
        """
        line = key if line is None else line
        found = self._held.get(key)
        if found is None or (found.line, found.place.minus_priority) != (line, -priority):
            self.release(key)
            found = self._held[key] = _Held(line, _Place(-priority, next(self._numbers)), due)
            heapq.heappush(self._lines.setdefault(line, []), (found.place, key))
        found.due = due
        if self._first(line) == key:
            self._await_turn(key)

    def release(self, key: Key) -> None:
        """Let a key wait no more: it was decided and not held, or nothing is left to decide."""
        found = self._held.get(key)
        if found is None:
            return
        was_first = self._first(found.line) == key
        del self._held[key]
        first = self._first(found.line)
        if was_first and first is not None:
            self._await_turn(first)

    def suspend(self, key: Key) -> None:
        """Keep the place of a key that is decided now. If it is the first of its line, the others wait for the end of that."""
        found = self._held.get(key)
        if found is not None:
            found.due = math.inf

    def take(self, now: float, *, is_idle: bool) -> tuple[Key, int] | None:
        """Return the key whose turn it is, with its priority, and suspend it; None if it is nobody's.

        Args:
            now: In seconds of the queue's clock.
            is_idle: Whether no other key is due.
        """
        wait = 0.0 if is_idle else BUSY_SECONDS
        due = self.next_turn()
        if due is None or now < due + wait or now < self._last_taken + wait:
            return None
        _, _, key = heapq.heappop(self._turns)
        self._last_taken = now
        self.suspend(key)
        return key, -self._held[key].place.minus_priority

    def next_turn(self) -> float | None:
        """Return when a key may be taken, in seconds of the queue's clock; None if none waits for a time."""
        while self._turns:
            due, _, key = self._turns[0]
            found = self._held.get(key)
            if found is not None and found.due == due and self._first(found.line) == key:
                return due
            heapq.heappop(self._turns)
        return None

    def _await_turn(self, key: Key) -> None:
        due = self._held[key].due
        if due < math.inf:
            heapq.heappush(self._turns, (due, next(self._numbers), key))

    def _first(self, line: Hashable) -> Key | None:
        """Return the first key of a line, None if it has none; drop what does not count any more."""
        entries = self._lines.get(line, [])
        if len(entries) > 2 * len(self._held) + _KEPT_OUTDATED:
            entries[:] = [entry for entry in entries if self._is_current(line, *entry)]
            heapq.heapify(entries)
        while entries:
            if self._is_current(line, *entries[0]):
                return entries[0][1]
            heapq.heappop(entries)
        self._lines.pop(line, None)
        return None

    def _is_current(self, line: Hashable, place: _Place, key: Key) -> bool:
        found = self._held.get(key)
        return found is not None and (found.line, found.place) == (line, place)
