"""Which set of regions to take: the best by weight that has enough clusters, then its shortest sufficient part.

Upstream enumerates every set of regions, which explodes beyond some twenty of them. The same answer comes
out of a table over (next region, regions taken, clusters counted), as proved by comparison with the
enumeration in tests/core.

Source: karmada v1.18.2 pkg/scheduler/core/spreadconstraint/select_groups.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

_REMEMBERED: Final = 256
"""Weights are mostly the replicas times a thousand, so the same question comes again and again."""


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


class _Best(NamedTuple):
    """The best continuation from somewhere: larger is better, and the first index to take, -1 for none."""

    weight: int
    clusters: int
    take: bool


def select_groups(groups: Sequence[Group], limits: Limits) -> list[Group]:
    """Return the chosen groups in the order of weight and name; none if no set suffices.

    A set counts only if it suffices and would not without its last group (in the order of clusters, weight,
    name): supersets of what suffices are not tried. Among those, the highest weight wins, then the most
    clusters, then the order in which they would be enumerated. Of the winner, the shortest leading part
    that is such a set itself is taken.
    """
    return list(_selected(tuple(groups), limits))


@lru_cache(maxsize=_REMEMBERED)
def _selected(groups: tuple[Group, ...], limits: Limits) -> Sequence[Group]:
    ordered = sorted(groups, key=lambda group: (group.clusters, -group.weight, group.name))
    winner = _winner(ordered, limits)
    by_weight = sorted(winner, key=lambda group: (-group.weight, group.name))
    for length in range(1, len(by_weight)):
        part = set(by_weight[:length])
        if _counts([group for group in ordered if group in part], limits):
            return by_weight[:length]
    return by_weight


def _counts(path: Sequence[Group], limits: Limits) -> bool:
    clusters = sum(group.clusters for group in path)
    return limits.suffice(len(path), clusters) and not (
        path and limits.suffice(len(path) - 1, clusters - path[-1].clusters)
    )


def _winner(ordered: Sequence[Group], limits: Limits) -> list[Group]:
    """Follow the best choices through the table, from the first group on."""
    enough = max(limits.min_clusters, 0)
    table = _table(ordered, limits, enough)
    path: list[Group] = []
    taken = clusters = 0
    for index, group in enumerate(ordered):
        if limits.suffice(taken, clusters):
            break
        best = table[index].get((taken, clusters))
        if best is None:
            return []
        if best.take:
            path.append(group)
            taken, clusters = taken + 1, min(clusters + group.clusters, enough)
    return path if limits.suffice(taken, clusters) else []


def _table(ordered: Sequence[Group], limits: Limits, enough: int) -> list[dict[tuple[int, int], _Best]]:
    """For each group on, each number of groups taken and clusters counted before it: how to go on best.

    Clusters are counted up to ``enough`` only, as more makes no difference to what suffices.
    """
    states = _reachable(ordered, limits, enough)
    table: list[dict[tuple[int, int], _Best]] = [{} for _ in range(len(ordered) + 1)]
    for taken, clusters in states[len(ordered)]:
        if limits.suffice(taken, clusters):
            table[len(ordered)][taken, clusters] = _Best(0, 0, take=False)
    for index in range(len(ordered) - 1, -1, -1):
        group, following = ordered[index], table[index + 1]
        for taken, clusters in states[index]:
            if limits.suffice(taken, clusters):
                table[index][taken, clusters] = _Best(0, 0, take=False)
                continue
            options = []
            if taken < limits.max_groups:
                rest = following.get((taken + 1, min(clusters + group.clusters, enough)))
                if rest is not None:
                    # Ties fall to taking the group: that set is enumerated earlier.
                    options.append(
                        _Best(rest.weight + group.weight, rest.clusters + group.clusters, take=True)
                    )
            rest = following.get((taken, clusters))
            if rest is not None:
                options.append(_Best(rest.weight, rest.clusters, take=False))
            if options:
                table[index][taken, clusters] = max(options)
    return table


def _reachable(ordered: Sequence[Group], limits: Limits, enough: int) -> list[set[tuple[int, int]]]:
    states: list[set[tuple[int, int]]] = [{(0, 0)}]
    for group in ordered:
        following = set(states[-1])
        for taken, clusters in states[-1]:
            if taken < limits.max_groups and not limits.suffice(taken, clusters):
                following.add((taken + 1, min(clusters + group.clusters, enough)))
        states.append(following)
    return states
