"""The sufficient sets of groups in the order in which upstream enumerates them.

The core finds the winner without enumerating (``core.algorithms.select_groups``). An explanation shows the others as
well, as long as there are not too many.

Source: karmada v1.18.2 pkg/scheduler/core/spreadconstraint/select_groups.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from karmada_advisor.explain.model import Combination
from karmada_scheduler.core.algorithms.select_groups import Group, Limits

_MAX_STEPS: Final = 100_000
"""Sets that are looked at; a tenth of a second."""
_SHOWN: Final = 10


class Combinations(NamedTuple):
    """The sets, the taken one first.

    Attributes:
        shown: The best.
        more: The number of the others; -1 if there are too many to enumerate.
        best_with: Group that is not taken to the criterion at which the best set with it lost.
    """

    shown: tuple[Combination, ...]
    more: int
    best_with: dict[str, str]


class _Set(NamedTuple):
    weight: int
    clusters: int
    number: int
    groups: tuple[Group, ...]


def combinations(groups: Sequence[Group], limits: Limits, taken: Sequence[str]) -> Combinations:
    """Return the sufficient sets, in the order in which the core prefers them.

    Args:
        groups: All groups.
        limits: What makes a set sufficient.
        taken: The groups that the core has chosen; without any, no set is sufficient.
    """
    if not taken:
        return Combinations((), 0, {})
    ordered = sorted(groups, key=lambda group: (group.clusters, -group.weight, group.name))
    found: list[_Set] = []
    for steps, chosen in enumerate(_sets(ordered, limits)):
        if steps > _MAX_STEPS:
            return Combinations(_only(groups, taken), -1, {})
        if chosen is not None:
            weight = sum(each.weight for each in chosen)
            clusters = sum(each.clusters for each in chosen)
            found.append(_Set(weight, clusters, len(found), chosen))
    found.sort(key=lambda each: (-each.weight, -each.clusters, each.number))
    names = frozenset(taken)
    rows, best_with = [], dict[str, str]()
    for each in found:
        is_taken = {group.name for group in each.groups} == names
        lost_by = "" if is_taken else _criterion(each, found[0])
        row = Combination(tuple(sorted(g.name for g in each.groups)), each.clusters, each.weight, lost_by)
        for group in each.groups:
            if lost_by and group.name not in names:
                best_with.setdefault(group.name, lost_by)
        rows.append(row)
    rows.sort(key=lambda row: not row.taken)
    return Combinations(tuple(rows[:_SHOWN]), max(0, len(rows) - _SHOWN), best_with)


def _sets(ordered: Sequence[Group], limits: Limits) -> Iterator[tuple[Group, ...] | None]:
    """Yield each sufficient set, and None for every other set on the way."""
    stack: list[tuple[int, tuple[Group, ...], int]] = [(0, (), 0)]
    while stack:
        begin, chosen, clusters = stack.pop()
        if limits.suffice(len(chosen), clusters):
            yield chosen
            continue
        yield None
        if len(chosen) >= limits.max_groups:
            continue
        for place in range(len(ordered) - 1, begin - 1, -1):
            group = ordered[place]
            stack.append((place + 1, (*chosen, group), clusters + group.clusters))


def _criterion(other: _Set, winner: _Set) -> str:
    """Return the criterion at which a set loses against the best one."""
    if other.number == winner.number:
        return "superset"  # a part of it is sufficient, and that part is taken
    if other.weight != winner.weight:
        return "weight"
    if other.clusters != winner.clusters:
        return "clusters"
    for one, best in zip(other.groups, winner.groups, strict=False):
        if one != best:
            if one.clusters != best.clusters:
                return "groupClusters"
            return "groupWeight" if one.weight != best.weight else "name"
    return "name"


def _only(groups: Sequence[Group], taken: Sequence[str]) -> tuple[Combination, ...]:
    chosen = [group for group in groups if group.name in taken]
    clusters, weight = sum(each.clusters for each in chosen), sum(each.weight for each in chosen)
    return (Combination(tuple(sorted(taken)), clusters, weight),)
