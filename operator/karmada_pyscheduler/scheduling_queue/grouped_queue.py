"""The priority queue of a QueueSort plugin that orders groups of bindings, such as tenants."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

from karmada_pyscheduler.scheduling_queue.held_keys import Key
from karmada_pyscheduler.scheduling_queue.priority_queue import (
    KEPT_OUTDATED,
    Entry,
    PrioritySchedulingQueue,
    SortKey,
)


class GroupedSchedulingQueue(PrioritySchedulingQueue[Key]):
    """A heap for each group, and one of the groups by the keys that they had when those were read last."""

    def __init__(
        self,
        *,
        clock: Callable[[], float],
        sort_key: SortKey[Key] | None,
        group_of: Callable[[Key, int, float], str],
        key_of: Callable[[str, Key, int, float], tuple[float, ...] | None],
        fallen: set[str] | None = None,
    ) -> None:
        """Start empty.

        Args:
            clock: As for ``PrioritySchedulingQueue``.
            sort_key: The same.
            group_of: Returns the group of a key.
            key_of: Returns the key of a group now, from its next binding; None if it is not known.
            fallen: Groups whose keys may have fallen; it is emptied when they were read. None if nobody tells.
        """
        super().__init__(clock=clock, sort_key=sort_key)
        self._group_of, self._key_of, self._fallen = group_of, key_of, fallen
        self._groups: dict[str, list[Entry[Key]]] = {}
        self._keys: dict[str, tuple[float, ...]] = {}
        self._order: list[tuple[tuple[float, ...], str]] = []

    def _read_key(self, group: str) -> tuple[float, ...]:
        found = self._key_of(group, *self._groups[group][0][2:])
        return found if found is not None else self._keys.get(group, ())

    def _place(self, group: str, key: tuple[float, ...]) -> None:
        if self._keys.get(group) != key:
            self._keys[group] = key
            heapq.heappush(self._order, (key, group))
            if len(self._order) > 2 * len(self._keys) + KEPT_OUTDATED:  # nobody takes keys on a standby
                self._order = [(key, group) for group, key in self._keys.items()]
                heapq.heapify(self._order)

    def _add_entry(self, entry: Entry[Key]) -> None:
        group = self._group_of(entry[2], entry[3], entry[4])
        heapq.heappush(self._groups.setdefault(group, []), entry)
        self._place(group, self._read_key(group))

    def _take_entry(self) -> Entry[Key] | None:
        while self._fallen:
            if (group := self._fallen.pop()) in self._groups:
                self._place(group, self._read_key(group))
        while self._order:
            key, group = self._order[0]
            if self._keys.get(group) == key and key < (now := self._read_key(group)):
                self._place(group, now)
            if self._keys.get(group) != key:
                heapq.heappop(self._order)  # it has another place
                continue
            entries = self._groups[group]
            entry = heapq.heappop(entries)
            if not entries:
                heapq.heappop(self._order)
                del self._groups[group], self._keys[group]
            elif self._fallen is not None:
                self._fallen.add(group)  # its next binding may have another key
            return entry
        return None

    def _entry_count(self) -> int:
        return sum(map(len, self._groups.values()))

    def _drop_outdated(self) -> None:
        entries = [
            entry for found in self._groups.values() for entry in found if self._is_current(*entry[2:])
        ]
        self._groups, self._keys, self._order = {}, {}, []
        for entry in entries:
            self._add_entry(entry)

    def _before(self, item: Any) -> None:
        """Return None: the order of the groups changes."""
