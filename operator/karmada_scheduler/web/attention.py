"""What needs attention: bindings that are in no good state, by state, reason and primary cause, the worst first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from karmada_scheduler.api.binding import BindingKey
from karmada_scheduler.state.model import WORST_FIRST, BindingState
from karmada_scheduler.web.answers import CauseScan
from karmada_scheduler.web.bindings import BindingRow

_NAMES: Final = 20


@dataclass(frozen=True, slots=True)
class Group:
    """Bindings with the same state, reason and primary cause.

    Attributes:
        example: The state of the first of them.
        cause: The code of the primary cause; "" if it was not looked for, or is the state itself.
        text: The cause of the first of them in one sentence; without one, what its state says.
        names: The first of them.
    """

    example: BindingState
    cause: str
    text: str
    count: int
    names: tuple[BindingKey, ...]


def groups_of(rows: Iterable[BindingRow], scan: CauseScan) -> tuple[Group, ...]:
    """Return the groups, the worst state first, the largest group of a state first.

    Args:
        rows: All bindings.
        scan: The primary causes, as far as they are known.
    """
    causes = {each.key: each for each in scan.found}
    found: dict[tuple[str, str, str], list[BindingRow]] = {}
    for row in rows:
        if not row.stored.is_good:
            cause = causes.get(row.key)
            key = row.stored.words, row.stored.reason, cause.code if cause is not None else ""
            found.setdefault(key, []).append(row)
    groups = []
    for (_, _, code), members in found.items():
        first = members[0]
        groups.append(
            Group(
                first.stored,
                code,
                causes[first.key].text if code else first.stored.text,
                len(members),
                tuple(each.key for each in members[:_NAMES]),
            )
        )
    return tuple(sorted(groups, key=lambda each: (WORST_FIRST[each.example.name], -each.count, each.cause)))
