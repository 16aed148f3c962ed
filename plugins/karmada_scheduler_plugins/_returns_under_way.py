"""The records of FailBack on bindings, and the bindings that return at present."""

from __future__ import annotations

import math
from typing import Final

from karmada_scheduler.api.binding import HEALTHY, Binding, BindingKey
from karmada_scheduler.api.own_annotations import FAIL_BACK, TermChange, Unreadable, change_in
from karmada_scheduler.framework import Handle
from karmada_scheduler_plugins._binding_index import CountedKeys, FollowedIndex
from karmada_scheduler_plugins._moves_under_way import FirstSeen, MovesUnderWay

_UNDER_WAY_SECONDS: Final = 600.0
"""The longest time for which a return without eviction tasks counts as under way."""
_UNKNOWN_RETURNS: Final = 40
"""The number of returns of a binding whose record cannot be read; its wait is the longest one."""


class ReturnsUnderWay(FollowedIndex):
    """The bindings of a profile that return to an earlier term: until they are healthy there.

    Attributes:
        being_written: The returns that are decided and not known to be stored.
    """

    def __init__(self, handle: Handle) -> None:
        """Start with none."""
        super().__init__(handle)
        self.being_written: Final = MovesUnderWay(handle, FAIL_BACK, self._reconsider)
        self._first_seen = FirstSeen()
        self._returning = CountedKeys()

    def count(self, now: float, *, without: BindingKey) -> int:
        """Return how many other bindings return now."""
        self._refresh(now)
        self.being_written.expire(now)
        return self._returning.count(now, without=without)

    def change_of(self, binding: Binding) -> TermChange | None:
        """Return the last change of the term of a binding, not in the future; None if it has none.

        A record that cannot be read stands for many returns, of which none is forgotten.
        """
        text = binding.annotations.get(FAIL_BACK, "")
        found = change_in(text) if text else None
        if found is None:
            return None
        now = self._handle.now()
        if isinstance(found, Unreadable):
            seen = self._first_seen.at(binding.key, text, now)
            return TermChange(_UNKNOWN_RETURNS, seen, "", "", left=seen)
        if max(found.at, found.left or 0.0) <= now:
            return found
        seen = self._first_seen.at(binding.key, text, now)
        return found._replace(
            at=min(found.at, seen), left=None if found.left is None else min(found.left, seen)
        )

    def _update(self, key: BindingKey, binding: Binding | None) -> None:
        if binding is None or not self._is_own(binding):
            self._first_seen.forget(key)
            until = -math.inf
        else:
            until = math.inf if self.being_written.of(key) is not None else self._until(binding)
        if until > -math.inf:
            self._returning.set(key, until)
        else:
            self._returning.discard(key)

    def _set_back(self) -> None:
        for key in self._returning:
            self._reconsider(key)

    def _clear(self) -> None:
        self._returning = CountedKeys()

    def _until(self, binding: Binding) -> float:
        """Return until when a stored return counts; infinity as long as it has tasks, and -infinity for none."""
        change = self.change_of(binding)
        if change is None or not change.is_return:
            return -math.inf
        if self._own_tasks(binding) and not binding.deleting:
            return math.inf
        healthy = {each.cluster_name for each in binding.status.aggregated_status if each.health == HEALTHY}
        return -math.inf if binding.spec.target_names <= healthy else change.at + _UNDER_WAY_SECONDS
