"""The scopes of budgets, and the moves of a scope within its window, summed in parts of the window.

A window has a hundred parts. All moves of a part cease to count together, when the last one is older than the window, so a
move counts for up to a hundredth longer. In return, no question takes time by the number of moves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.own_annotations import RecordedMove
from karmada_scheduler.api.well_known import CLUSTER_POLICY_ID_LABEL, POLICY_ID_LABEL

PARTS: Final = 100

Scope = tuple[str, str]
"""The scope of a budget, and the namespace or the id of the policy; "" for a profile."""


def scopes_of(binding: Binding, scope: str) -> list[Scope]:
    """Return the scope of a binding by its name in a budget; none if it has no policy."""
    if scope == "profile":
        return [(scope, "")]
    if scope == "namespace":
        return [(scope, binding.key.namespace)]
    policy = binding.labels.get(POLICY_ID_LABEL) or binding.labels.get(CLUSTER_POLICY_ID_LABEL)
    return [(scope, policy)] if policy else []


class Part:
    """The moves of a hundredth of the window.

    Attributes:
        last: When the last one was decided, in seconds since 1970.
        count: Their number.
        replicas: Their replicas.
        under_way: The bindings of those that are being written.
    """

    __slots__ = ("count", "last", "replicas", "under_way")

    def __init__(self) -> None:
        """Start without moves."""
        self.last = 0.0
        self.count = 0
        self.replicas = 0
        self.under_way: set[BindingKey] = set()


class MoveWindow:
    """The moves of a scope, and how many bindings leave clusters there.

    Attributes:
        leaving: The number of bindings that leave clusters gracefully.
        bindings: The number of bindings that count in any way.
    """

    __slots__ = ("_parts", "_seconds", "bindings", "leaving")

    def __init__(self, seconds: float) -> None:
        """Start empty; ``seconds`` is the length of the window."""
        self.leaving = 0
        self.bindings = 0
        self._seconds = seconds
        self._parts: dict[int, Part] = {}

    def add(self, move: RecordedMove) -> Part:
        """Count a move, and return its part."""
        number = int(move.at * PARTS / self._seconds)
        part = self._parts.get(number) or self._parts.setdefault(number, Part())
        part.last = max(part.last, move.at)
        part.count += 1
        part.replicas += move.replicas
        return part

    def drop_old(self, now: float) -> list[BindingKey]:
        """Drop the parts that are older than the window; return the bindings with moves in them that are being written."""
        old = [number for number, part in self._parts.items() if part.last <= now - self._seconds]
        return [key for number in old for key in self._parts.pop(number).under_way]

    def parts(self) -> Sequence[Part]:
        """Return the parts in which anything has moved, the oldest first; not to be changed."""
        return [part for _, part in sorted(self._parts.items()) if part.count]
