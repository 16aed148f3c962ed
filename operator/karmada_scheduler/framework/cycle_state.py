"""Data that plugins share during an attempt with one affinity term.

It is usually written once, in PreFilter or PreScore, and read for each cluster.
"""

from __future__ import annotations

import copy
from typing import Any, Generic, TypeVar, cast

from karmada_scheduler.structs import Struct

T = TypeVar("T")


class StateKey(Struct, Generic[T], frozen=True):
    """The key of an entry, with the type of its value; a constant in the module of the plugin that writes it."""

    name: str


class CycleState:
    """The entries of one attempt, dropped when it ends."""

    def __init__(self) -> None:
        self._entries: dict[str, Any] = {}

    def write(self, key: StateKey[T], value: T) -> None:
        """Store a value; it replaces an earlier one of the same key."""
        self._entries[key.name] = value

    def read(self, key: StateKey[T]) -> T:
        """Return a value.

        Raises:
            KeyError: There is no such entry; the text names the key and those that exist.
        """
        if key.name not in self._entries:
            known = ", ".join(sorted(self._entries)) or "none"
            raise KeyError(f"no plugin wrote {key.name!r} in this cycle; written: {known}")
        return cast("T", self._entries[key.name])

    def delete(self, key: StateKey[Any]) -> None:
        """Remove an entry, if there is one."""
        self._entries.pop(key.name, None)

    def clone(self) -> CycleState:
        """Return a deep copy."""
        twin = CycleState()
        twin._entries = copy.deepcopy(self._entries)
        return twin

    def __contains__(self, key: StateKey[Any]) -> bool:
        return key.name in self._entries
