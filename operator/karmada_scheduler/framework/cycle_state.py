"""Notes that plugins leave for each other during one attempt at one affinity term.

Written once, early (a plugin computes what all clusters have in common), and read many times.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

T = TypeVar("T")


@dataclass(frozen=True)  # no slots: they break generic frozen dataclasses before Python 3.13
class StateKey(Generic[T]):
    """Names a note and the type of its value; a constant beside the plugin that writes it."""

    name: str


class CycleState:
    """The notes of one attempt; gone when it ends."""

    def __init__(self) -> None:
        self._notes: dict[str, Any] = {}

    def write(self, key: StateKey[T], value: T) -> None:
        """Leave a note; a later one of the same key replaces it."""
        self._notes[key.name] = value

    def read(self, key: StateKey[T]) -> T:
        """Return a note.

        Raises:
            KeyError: Nobody wrote it; the message names the key and those that exist.
        """
        if key.name not in self._notes:
            known = ", ".join(sorted(self._notes)) or "none"
            raise KeyError(f"no plugin wrote {key.name!r} in this cycle; written: {known}")
        return cast("T", self._notes[key.name])

    def delete(self, key: StateKey[Any]) -> None:
        """Remove a note, if there is one."""
        self._notes.pop(key.name, None)

    def clone(self) -> CycleState:
        """Return a copy for a what-if: what is changed in its notes does not show in these."""
        twin = CycleState()
        twin._notes = copy.deepcopy(self._notes)
        return twin

    def __contains__(self, key: StateKey[Any]) -> bool:
        return key.name in self._notes
