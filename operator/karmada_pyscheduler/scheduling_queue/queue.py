"""What both queues have in common: ``WorkQueue`` and ``PrioritySchedulingQueue``.

Each decides about the order of its keys. Their one consumer, the scheduling loop, waits for the next key here.
"""

from __future__ import annotations

import asyncio
import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping
from typing import Final, Generic, NamedTuple

from karmada_pyscheduler.scheduling_queue.held_keys import HeldKeys, Key

ACTIVE: Final = "active"
BACKOFF: Final = "backoff"
PROCESSING: Final = "processing"
UNSCHEDULABLE: Final = "unschedulable"


class KeyState(NamedTuple):
    """Where a key is.

    Attributes:
        state: ``active`` (due), ``processing``, ``backoff`` or ``unschedulable``; "" if it is not in the queue.
        due_in: The seconds until it is due, of the last two.
        before: How many keys come first, if it is active; None if that is not known.
        waited: For how many seconds it has been active.
        priority: Its priority, in a queue that has some.
    """

    state: str
    due_in: float | None = None
    before: int | None = None
    waited: float | None = None
    priority: int | None = None


ABSENT: Final = KeyState("")
MOST_COUNTED: Final = 20_000
"""Due keys up to which the keys before one are counted, which takes some milliseconds."""


class SchedulingQueue(ABC, Generic[Key]):
    """Keys of bindings that may have to be scheduled; for one consumer, to be used from its event loop only."""

    _processing: Mapping[Key, object]
    """The keys that were taken and are not done."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Start empty; ``clock`` returns seconds and never runs backwards."""
        self._clock = clock
        self._held = HeldKeys[Key]()
        self._changed = asyncio.Event()
        """Set when a key becomes due, or due at another time."""
        self._popped = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._has_consumer = False

    async def get(self) -> tuple[Key, float]:
        """Wait for a key and take it; return it with the seconds that it waited in the queue.

        The caller owns the key until it calls ``done``.
        """
        self._has_consumer = True
        if not self:
            self._idle.set()
        while True:
            if (item := self.pop()) is not None:
                self._popped.set()
                if self:
                    self._idle.clear()
                return item
            self._changed.clear()
            try:
                async with asyncio.timeout(self.seconds_to_next()):
                    await self._changed.wait()
            except TimeoutError:
                continue

    def is_shorter_than(self, limit: int) -> bool:
        """Return whether fewer than ``limit`` keys are due, or ``get`` was never called."""
        return not self._has_consumer or len(self) < limit

    async def wait_shorter_than(self, limit: int) -> None:
        """Wait until ``is_shorter_than``."""
        while not self.is_shorter_than(limit):
            self._popped.clear()
            await self._popped.wait()

    async def wait_idle(self, *, timeout: float) -> None:
        """Wait until the consumer has found the queue empty, or was stopped, for ``timeout`` seconds at most."""
        if not self._idle.is_set():  # a timeout takes longer than all else that an Event waits for
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(timeout):
                    await self._idle.wait()

    def shut_down(self) -> None:
        """Let ``wait_idle`` return from now on; call this when there is no consumer any more."""
        self._idle.set()

    def retain(self, is_kept: Callable[[Key], bool]) -> None:
        """Drop the due keys for which ``is_kept`` is false, unless there is a consumer, which takes them."""
        if not self._has_consumer:
            self._retain(is_kept)

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of due keys."""

    @property
    def processing(self) -> int:
        """The number of keys that were taken and are not done."""
        return len(self._processing)

    @property
    def delayed(self) -> int:
        """The number of keys whose delay or backoff is not over, or that are held."""
        return self._delayed_keys + len(self._held)

    def state_of(self, key: Key) -> KeyState:
        """Return where a key is; may be called from any thread."""
        found, due = self._state_of(key), self._held.due(key)
        if found is not ABSENT or due is None:
            return found
        return KeyState(BACKOFF, max(0.0, due - self._clock()))

    def holds(self, key: Key) -> bool:
        """Return whether a key waits, or is processed."""
        return key in self._held or self._has(key)

    def hold(self, key: Key, delay: float, *, line: Hashable = None, priority: int = 0) -> None:
        """Let the key of a decision that a Guard plugin holds wait; see ``HeldKeys``.

        Args:
            key: The key.
            delay: In seconds; as the first one of its line it is due after that.
            line: Its line; None for one of its own.
            priority: Its priority.
        """
        self._held.hold(key, self._clock() + delay, line=line, priority=priority)
        self._changed.set()

    def release(self, key: Key) -> None:
        """Let a key that was held wait no more; the next one of its line follows."""
        if key in self._held:
            self._held.release(key)
            self._changed.set()

    def pop(self) -> tuple[Key, float] | None:
        """Take the first key; return it with the seconds that it waited, None if no key is due.

        The caller owns the key until it calls ``done``. A held key comes after all due ones.
        """
        if self._held and (held := self._held.take(self._clock(), is_idle=not self)) is not None:
            self._add_held(*held)
        item = self._pop()
        if item is not None:
            self._held.suspend(item[0])
        return item

    def seconds_to_next(self) -> float | None:
        """Return the seconds until a key may become due: 0 if one is, None if no key is waiting."""
        seconds, turn = self._seconds_to_next(), self._held.next_turn()
        if turn is None:
            return seconds
        held = max(0.0, turn - self._clock())
        return held if seconds is None else min(seconds, held)

    @abstractmethod
    def add(self, key: Key, priority: int = 0) -> None:
        """Add a key because of an event; if it is processed, it becomes due when it is done."""

    def _add_held(self, key: Key, priority: int) -> None:
        """Add a held key whose turn has come; ``priority`` is the one with which it was held."""
        self.add(key, priority)

    @abstractmethod
    def add_after(self, key: Key, delay: float) -> None:
        """Add a key after a delay in seconds."""

    @abstractmethod
    def add_rate_limited(self, key: Key, *, unschedulable: bool = False) -> object:
        """Add a failed key after its backoff."""

    @abstractmethod
    def forget(self, key: Key) -> None:
        """Reset the backoff of a key."""

    @property
    @abstractmethod
    def _delayed_keys(self) -> int:
        """The number of keys whose delay or backoff is not over."""

    @abstractmethod
    def _state_of(self, key: Key) -> KeyState:
        """Return where a key is that is not held; may be called from any thread."""

    @abstractmethod
    def _has(self, key: Key) -> bool:
        """Return whether a key is due, delayed, or taken and not done."""

    @abstractmethod
    def _pop(self) -> tuple[Key, float] | None:
        """Take the first due key; return it with the seconds that it waited."""

    @abstractmethod
    def done(self, key: Key) -> None:
        """Mark a key that was taken as processed; it becomes due again if it was added meanwhile."""

    @abstractmethod
    def _seconds_to_next(self) -> float | None:
        """Return the seconds until a key that is not held may become due."""

    @abstractmethod
    def _retain(self, is_kept: Callable[[Key], bool]) -> None:
        """Drop the due keys for which ``is_kept`` is false."""
