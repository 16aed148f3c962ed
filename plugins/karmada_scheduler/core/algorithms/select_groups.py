"""Selects a set of regions: the best by weight with enough clusters, then its shortest sufficient part.

A table over (next region, regions taken, clusters counted) has the result of upstream's enumeration, as a comparison with
that in tests/unit/core shows. A table that would take a second or more is refused.

Source: karmada v1.18.2 pkg/scheduler/core/spreadconstraint/select_groups.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from karmada_scheduler.core.algorithms import columns
from karmada_scheduler.structs import Struct

_MAX_CELLS: Final = 60_000_000
"""Cells of a table, at some 10 ns: 100 regions with a maximum of 99 and a minimum of 5,000 clusters have 50 million."""


class TooManyCellsError(ValueError):
    """The table would take too long."""


class RegionGroup(Struct, frozen=True):
    """A region.

    Attributes:
        clusters: Number of its clusters; >= 1.
        weight: Its score.
    """

    name: str
    clusters: int
    weight: int


class Limits(Struct, frozen=True):
    """Limits that a sufficient set of groups satisfies.

    Attributes:
        min_groups: Minimum number of groups.
        max_groups: Maximum number of groups.
        min_clusters: Minimum number of clusters in all groups.
    """

    min_groups: int
    max_groups: int
    min_clusters: int

    def suffice(self, groups: int, clusters: int) -> bool:
        """Return whether a number of groups, with a total number of clusters, is sufficient."""
        return self.min_groups <= groups <= self.max_groups and clusters >= self.min_clusters


def select_groups(groups: Sequence[RegionGroup], limits: Limits) -> list[RegionGroup]:
    """Return the selected groups in the order of weight and name; none if no set is sufficient.

    A set counts only if it is sufficient, and is not without its last group (in the order of clusters, weight,
    name): supersets of a sufficient set are not tried. The highest weight wins, then the most clusters, then the
    order in which upstream enumerates. The result is the shortest leading part of the winner that is such a set
    itself.

    Raises:
        TooManyCellsError: The table would take too long.
    """
    ordered = sorted(groups, key=lambda group: (group.clusters, -group.weight, group.name))
    by_weight = sorted(_winner(ordered, limits), key=lambda each: (-each[1].weight, each[1].name))
    last, clusters = -1, 0
    for taken, (place, group) in enumerate(by_weight, start=1):
        last, clusters = max(last, place), clusters + group.clusters
        before = clusters - ordered[last].clusters
        if limits.suffice(taken, clusters) and not limits.suffice(taken - 1, before):
            return [group for _, group in by_weight[:taken]]
    return [group for _, group in by_weight]


def _winner(ordered: Sequence[RegionGroup], limits: Limits) -> list[tuple[int, RegionGroup]]:
    """Return the groups of the best set with their indexes; empty if no set is sufficient.

    Clusters are counted up to the minimum, and groups up to the maximum, or up to the minimum if the maximum is not
    less than the number of groups.
    """
    enough = max(limits.min_clusters, 0)
    is_limit = limits.max_groups < len(ordered)
    most = max(0, limits.max_groups if is_limit else limits.min_groups)
    total = sum(group.clusters for group in ordered)
    if total < enough or limits.min_groups > len(ordered) or limits.max_groups < limits.min_groups:
        return []
    cells = len(ordered) * (most + 1) * (enough + 1)
    if cells > _MAX_CELLS:
        raise TooManyCellsError(
            f"spec.placement.spreadConstraints: {len(ordered)} regions, {most} groups and {enough} clusters "
            f"to choose by make {cells} cases, at most {_MAX_CELLS} are supported"
        )
    # One number for weight and, of equal weights, clusters. On a tie the group is taken: that set is enumerated earlier.
    gains = [group.weight * (total + 1) + group.clusters for group in ordered]
    sizes = [group.clusters for group in ordered]
    best = columns.best_choices(
        sizes, gains, most=most, enough=enough, ends_from=limits.min_groups, stays_at_most=not is_limit
    )
    path: list[tuple[int, RegionGroup]] = []
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
