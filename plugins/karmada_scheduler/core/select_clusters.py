"""Selects clusters of the candidates, as spread constraints require.

Source: karmada v1.18.2 pkg/scheduler/core/spreadconstraint select_clusters.go, select_clusters_by_*.go.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from operator import attrgetter
from typing import Final

from karmada_scheduler.api.content_cache import LRUCache
from karmada_scheduler.api.placement import (
    DIVIDED,
    SPREAD_BY_CLUSTER,
    SPREAD_BY_REGION,
    WEIGHTED,
    Placement,
    SpreadConstraint,
)
from karmada_scheduler.core.algorithms.select_groups import (
    Limits,
    RegionGroup,
    TooManyCellsError,
    select_groups,
)
from karmada_scheduler.core.cluster_groups import group_by_region, last_constraint
from karmada_scheduler.core.ordering.candidates import Region, sort_key
from karmada_scheduler.core.ordering.columnar import SharedOrder
from karmada_scheduler.framework.cycle import Candidate, KeptRegion, KeptSteps
from karmada_scheduler.framework.diagnosis import NotEnoughCapacityError, OverBudgetError, SchedulingError
from karmada_scheduler.structs import Struct

Candidates = Sequence[Candidate]

_ANY: Final = SpreadConstraint()
_MAX_SELECTIONS: Final = 512
"""Candidates in all cached selections from one order; most selections have a few."""
_MAX_GROUPS: Final = 20_000


class _SelectedGroups(Struct, frozen=True):
    """The selection from some groups.

    Attributes:
        chosen: The selected groups.
        size: The number of groups in the key and in the selection.
    """

    chosen: Sequence[RegionGroup]
    size: int


_selected_groups: Final[LRUCache[_SelectedGroups]] = LRUCache(size_of=attrgetter("size"))
"""Selected regions by regions and limits; at most ``_MAX_GROUPS`` in all, keys included. Weights are mostly the replicas
times a thousand, so many bindings have the same regions."""


def ignores_spread(placement: Placement) -> bool:
    """Return whether spread constraints are ignored: static or equal weights use all clusters."""
    strategy = placement.replica_scheduling
    if strategy is None or (strategy.replica_scheduling_type, strategy.replica_division_preference) != (
        DIVIDED,
        WEIGHTED,
    ):
        return False
    weights = strategy.weight_preference
    return weights is None or bool(weights.static_weight_list and not weights.dynamic_weight)


def select_clusters(
    placement: Placement, ordered: Candidates, *, replicas: int, needed: int, kept: KeptSteps | None = None
) -> Candidates:
    """Return the selected clusters.

    Args:
        placement: Its spread constraints are applied.
        ordered: All candidates in the order of preference.
        replicas: Replicas of the binding; the scores of regions depend on them.
        needed: Replicas, or sets of components (1), that must fit on the selected clusters.
        kept: Gets the regions; None if nobody asked for them.

    Raises:
        SchedulingError: The constraints cannot be satisfied.
    """
    is_ignored = not placement.spread_constraints or ignores_spread(placement)
    region = None if is_ignored else last_constraint(placement, SPREAD_BY_REGION)
    if kept is not None:
        regions = group_by_region(placement, replicas, ordered) if region is not None else ()
        kept.regions = [KeptRegion(each.name, each.score, each.candidates) for each in regions]
    if is_ignored:
        return ordered
    cluster = last_constraint(placement, SPREAD_BY_CLUSTER)
    if region is not None:
        return _select_by_region(placement, ordered, replicas, region, cluster)
    if cluster is not None:
        return select_by_cluster(ordered, cluster, None if placement.is_duplicated else needed)
    raise SchedulingError("just support cluster and region spread constraint")


def select_by_cluster(ordered: Candidates, constraint: SpreadConstraint, needed: int | None) -> Candidates:
    """Return the most preferred clusters that can take ``needed`` replicas together, or any number if it is None.

    A maximum of 0 selects nothing: upstream has no default for it.
    """
    if len(ordered) < constraint.min_groups:
        raise SchedulingError("the number of feasible clusters is less than spreadConstraint.MinGroups")
    count = min(len(ordered), constraint.max_groups)
    if needed is None:
        return list(ordered[:count])
    chosen = _with_capacity(ordered, count, needed)
    if not chosen:
        raise NotEnoughCapacityError(f"no enough resource when selecting {count} clusters")
    return chosen


def _with_capacity(ordered: Candidates, count: int, needed: int) -> list[Candidate]:
    """Replace clusters, the least preferred first, by those with the most available replicas until all fit."""
    chosen = list(ordered[:count])
    total = sum(candidate.available for candidate in chosen)
    if total >= needed:
        return chosen
    rest = list(ordered[count:])
    # The most available replicas first, then the order of preference. A replaced cluster takes the place of the other.
    most_available = [(-candidate.available, index) for index, candidate in enumerate(rest)]
    heapq.heapify(most_available)
    for slot in range(count - 1, -1, -1):
        if total >= needed or not most_available:
            break
        available, best = -most_available[0][0], most_available[0][1]
        if available > chosen[slot].available:
            total += available - chosen[slot].available
            chosen[slot], rest[best] = rest[best], chosen[slot]
            heapq.heapreplace(most_available, (-rest[best].available, best))
    return chosen if total >= needed else []


def _select_by_region(
    placement: Placement,
    ordered: Candidates,
    replicas: int,
    region: SpreadConstraint,
    cluster: SpreadConstraint | None,
) -> Candidates:
    """Select by region. Many bindings with a shared order make the same selection, so it is cached."""

    def select() -> Candidates:
        return tuple(select_by_region(group_by_region(placement, replicas, ordered), region, cluster or _ANY))

    if not isinstance(ordered, SharedOrder):
        return select()
    key = (region, cluster, placement.is_duplicated, replicas)
    return ordered.selections.get(key, select, max_size=_MAX_SELECTIONS)


def select_by_region(
    regions: Sequence[Region], region: SpreadConstraint, cluster: SpreadConstraint
) -> list[Candidate]:
    """Return the best cluster of each selected region, then the best of all others up to the maximum.

    Available replicas are not considered, and more regions than the maximum of clusters give more clusters than that.
    """
    if len(regions) < region.min_groups:
        raise SchedulingError("the number of feasible region is less than spreadConstraint.MinGroups")
    groups = tuple([each.group for each in regions])
    chosen = _select_groups(groups, Limits(region.min_groups, region.max_groups, cluster.min_groups))
    if not chosen:
        raise SchedulingError("the number of clusters is less than the cluster spreadConstraint.MinGroups")
    by_name = {each.group.name: each.candidates for each in regions}
    selected = [by_name[group.name][0] for group in chosen]
    extra = max(0, cluster.max_groups - len(selected))
    others = [candidate for group in chosen for candidate in by_name[group.name][1 : 1 + extra]]
    return selected + heapq.nsmallest(extra, others, key=sort_key)


def _select_groups(groups: tuple[RegionGroup, ...], limits: Limits) -> Sequence[RegionGroup]:
    def select() -> _SelectedGroups:
        chosen = select_groups(groups, limits)
        return _SelectedGroups(chosen, len(groups) + len(chosen))

    try:
        return _selected_groups.get((groups, limits), select, max_size=_MAX_GROUPS).chosen
    except TooManyCellsError as error:
        raise OverBudgetError(str(error)) from None
