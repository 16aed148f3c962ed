"""Sets of edits: which go together, and the order in which they are applied."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from karmada_scheduler.framework.edits import Edit, PatchAction

_ORDER: Final = {PatchAction.SET: 0, PatchAction.APPEND: 1, PatchAction.REMOVE: 2}


def compatible(one: Edit, other: Edit) -> bool:
    """Return whether two edits can be in one set: neither changes what the other one is based on."""
    (first, path), (second, other_path) = one.slot, other.slot
    if first != second:
        return True
    if path == other_path:
        return one.action is other.action is PatchAction.APPEND and one.identity != other.identity
    shorter, longer = sorted((path, other_path), key=len)
    return longer[: len(shorter)] != shorter


def ordered(edits: Iterable[Edit]) -> list[Edit]:
    """Return edits in the order in which they are applied."""

    def key(each: Edit) -> tuple[Any, ...]:
        indexes = tuple(-part if isinstance(part, int) else 0 for part in each.path)
        names = tuple(str(part) for part in each.path if not isinstance(part, int))
        return _ORDER[each.action], each.target, -len(each.path), names, indexes, each.identity

    return sorted(edits, key=key)
