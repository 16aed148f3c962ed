"""What PlacementGuard and FailBack count over all bindings of a profile, kept up to date by the changes of bindings.

So a call of a plugin takes the same time however many bindings there are, and however many have ever moved. All bindings
are looked at only if there were some before the plugin, as in commands.
"""

from __future__ import annotations

import heapq
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Final

from karmada_scheduler.api.binding import Binding, BindingKey, GracefulEvictionTask
from karmada_scheduler.framework import Handle

SET_BACK_SECONDS: Final = 60.0
"""By how much the clock must be set back for what is counted to be looked at again."""


class FollowedIndex(ABC):
    """An index over the bindings of a profile; the plugin lets it follow their changes (``Handle.follow``)."""

    def __init__(self, handle: Handle) -> None:
        """Start with no binding."""
        self._handle = handle
        self._is_complete = next(iter(handle.bindings()), None) is None
        self._latest = -math.inf

    def changed(self, old: Binding | None, new: Binding | None) -> None:
        """Follow a change of one binding, or of all if neither is given."""
        present = new or old
        if present is None:
            self._is_complete = False
        elif self._is_complete:
            self._update(present.key, new)

    def _refresh(self, now: float) -> None:
        """Look again at what is not known any more; to be called before the index is used."""
        if not self._is_complete:
            self._clear()
            for binding in self._handle.bindings():
                self._update(binding.key, binding)
            self._is_complete = True
        elif now < self._latest - SET_BACK_SECONDS:
            self._set_back()
        self._latest = now

    def _reconsider(self, key: BindingKey) -> None:
        self._update(key, self._handle.binding(key))

    def _is_own(self, binding: Binding) -> bool:
        return binding.spec.responsible_scheduler == self._handle.profile

    def _own_tasks(self, binding: Binding) -> list[GracefulEvictionTask]:
        tasks = binding.spec.graceful_eviction_tasks
        return [task for task in tasks if task.producer == self._handle.profile] if tasks else []

    @abstractmethod
    def _update(self, key: BindingKey, binding: Binding | None) -> None:
        """Replace what counts of a binding; None if it does not exist."""

    @abstractmethod
    def _set_back(self) -> None:
        """Look again at the bindings of which anything counts for a time, because the clock was set back."""

    @abstractmethod
    def _clear(self) -> None:
        """Forget all bindings."""


class CountedKeys:
    """Keys that count until a time."""

    def __init__(self) -> None:
        """Start empty."""
        self._until: dict[BindingKey, float] = {}
        self._ends: list[tuple[float, BindingKey]] = []

    def set(self, key: BindingKey, until: float) -> None:
        """Count a key until a time; infinity for as long as it is not discarded."""
        if self._until.get(key) != until:
            self._until[key] = until
            if until < math.inf:
                heapq.heappush(self._ends, (until, key))

    def discard(self, key: BindingKey) -> None:
        """Count a key no more."""
        self._until.pop(key, None)

    def __iter__(self) -> Iterator[BindingKey]:
        return iter(list(self._until))

    def count(self, now: float, *, without: BindingKey) -> int:
        """Return the number of other keys that count at a time."""
        while self._ends and (self._ends[0][0] <= now or not self._is_current(*self._ends[0])):
            until, key = heapq.heappop(self._ends)
            if self._is_current(until, key):
                del self._until[key]
        return len(self._until) - (without in self._until)

    def _is_current(self, until: float, key: BindingKey) -> bool:
        return self._until.get(key) == until
