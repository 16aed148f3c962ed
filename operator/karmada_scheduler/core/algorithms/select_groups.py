"""Which set of regions to take: the best by weight that has enough clusters, then its shortest sufficient part.

Upstream enumerates every set of regions, which explodes beyond some twenty of them. The same answer comes
out of a table over (next region, regions taken, clusters counted), as proved by comparison with the
enumeration in tests/unit/core. What makes a table that takes a second or more is refused.

Source: karmada v1.18.2 pkg/scheduler/core/spreadconstraint/select_groups.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from karmada_scheduler.core.algorithms import columns
from karmada_scheduler.framework.diagnosis import OverBudgetError
from karmada_scheduler.framework.runtime.filter_cache import LRUCache

_MOST_CELLS: Final = 60_000_000
"""Cases in a table, at some 10 ns: 100 regions with a maximum of 99 and a minimum of 5,000 clusters have 50 million."""


class Group(NamedTuple):
    """A region as the search sees it.

    Attributes:
        clusters: How many it has; >= 1.
        weight: Its score.
    """

    name: str
    clusters: int
    weight: int


class Limits(NamedTuple):
    """When a set of groups suffices.

    Attributes:
        min_groups: At least so many groups.
        max_groups: At most so many.
        min_clusters: At least so many clusters in all.
    """

    min_groups: int
    max_groups: int
    min_clusters: int

    def suffice(self, groups: int, clusters: int) -> bool:
        """Tell whether so many groups with so many clusters are enough, and not too many."""
        return self.min_groups <= groups <= self.max_groups and clusters >= self.min_clusters


_ANSWERS: Final = 20_000
_REMEMBERED: Final[LRUCache[Sequence[Group]]] = LRUCache(size_of=len)
"""Weights are mostly the replicas times a thousand, so the same question comes again and again."""


def select_groups(groups: Sequence[Group], limits: Limits) -> list[Group]:
    """Return the chosen groups in the order of weight and name; none if no set suffices.

    A set counts only if it suffices and would not without its last group (in the order of clusters, weight,
    name): supersets of what suffices are not tried. Among those, the highest weight wins, then the most
    clusters, then the order in which they would be enumerated. Of the winner, the shortest leading part
    that is such a set itself is taken.

    Raises:
        OverBudgetError: There are too many sets to tell.
    """
    return list(_REMEMBERED.get((tuple(groups), limits), lambda: _selected(groups, limits), most=_ANSWERS))


def _selected(groups: Sequence[Group], limits: Limits) -> Sequence[Group]:
    ordered = sorted(groups, key=lambda group: (group.clusters, -group.weight, group.name))
    by_weight = sorted(_winner(ordered, limits), key=lambda each: (-each[1].weight, each[1].name))
    last, clusters = -1, 0
    for taken, (place, group) in enumerate(by_weight, start=1):
        last, clusters = max(last, place), clusters + group.clusters
        before = clusters - ordered[last].clusters
        if limits.suffice(taken, clusters) and not limits.suffice(taken - 1, before):
            return [group for _, group in by_weight[:taken]]
    return [group for _, group in by_weight]


def _winner(ordered: Sequence[Group], limits: Limits) -> list[tuple[int, Group]]:
    """Return the best set, with the places of its groups; empty if none suffices.

    Only what may still be missing counts: clusters up to the minimum, and groups up to the maximum, or to the
    minimum where the maximum is no limit.
    """
    enough = max(limits.min_clusters, 0)
    is_limit = limits.max_groups < len(ordered)
    most = max(0, limits.max_groups if is_limit else limits.min_groups)
    total = sum(group.clusters for group in ordered)
    if total < enough or limits.min_groups > len(ordered) or limits.max_groups < limits.min_groups:
        return []
    cells = len(ordered) * (most + 1) * (enough + 1)
    if cells > _MOST_CELLS:
        raise OverBudgetError(
            f"spec.placement.spreadConstraints: {len(ordered)} regions, {most} groups and {enough} clusters "
            f"to choose by make {cells} cases, at most {_MOST_CELLS} are supported"
        )
    # Weight decides, then clusters: one number for both. Ties fall to taking: that set is enumerated earlier.
    gains = [group.weight * (total + 1) + group.clusters for group in ordered]
    sizes = [group.clusters for group in ordered]
    best = columns.best_choices(
        sizes, gains, most=most, enough=enough, ends_from=limits.min_groups, stays_at_most=not is_limit
    )
    path: list[tuple[int, Group]] = []
    taken = clusters = 0
    if not best.exist:
        return []
    for place, group in enumerate(ordered):
        if limits.suffice(taken, clusters):
            break
        if best.takes(place, min(taken, most), min(clusters, enough)):
            path.append((place, group))
            taken, clusters = taken + 1, clusters + group.clusters
    return path
