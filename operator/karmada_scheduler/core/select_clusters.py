"""Which clusters to use, of those that passed the filters: spread constraints.

Source: karmada v1.18.2 pkg/scheduler/core/spreadconstraint select_clusters.go, select_clusters_by_*.go.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Final

from karmada_scheduler.api.placement import (
    DIVIDED,
    SPREAD_BY_CLUSTER,
    SPREAD_BY_REGION,
    WEIGHTED,
    Placement,
    SpreadConstraint,
)
from karmada_scheduler.core.algorithms.select_groups import Group, Limits, select_groups
from karmada_scheduler.core.cluster_groups import Region, group_by_region, last_constraint
from karmada_scheduler.core.ordering.candidates import sort_key
from karmada_scheduler.core.ordering.columnar import SharedOrder
from karmada_scheduler.framework.cycle import Candidate
from karmada_scheduler.framework.diagnosis import SchedulingError

_ANY: Final = SpreadConstraint()
_MAX_SELECTIONS: Final = 512
"""Candidates in all cached selections from one order; a selection mostly has a handful."""


def ignores_spread(placement: Placement) -> bool:
    """Tell whether spread constraints do not count: fixed or equal weights go to all clusters."""
    strategy = placement.replica_scheduling
    if strategy is None or (strategy.replica_scheduling_type, strategy.replica_division_preference) != (
        DIVIDED,
        WEIGHTED,
    ):
        return False
    weights = strategy.weight_preference
    return weights is None or bool(weights.static_weight_list and not weights.dynamic_weight)


def select_clusters(
    placement: Placement, ordered: Sequence[Candidate], *, replicas: int, needed: int
) -> Sequence[Candidate]:
    """Choose clusters.

    Args:
        placement: Whose spread constraints hold.
        ordered: All candidates in the order of preference.
        replicas: What the binding asks for; it decides which region is better.
        needed: What the chosen clusters have to have room for; the same, or 1 set of components.

    Raises:
        SchedulingError: The constraints cannot be satisfied.
    """
    if not placement.spread_constraints or ignores_spread(placement):
        return ordered
    region = last_constraint(placement, SPREAD_BY_REGION)
    cluster = last_constraint(placement, SPREAD_BY_CLUSTER)
    if region is not None:
        return _select_by_region(placement, ordered, replicas, region, cluster)
    if cluster is not None:
        return select_by_cluster(ordered, cluster, None if placement.is_duplicated else needed)
    raise SchedulingError("just support cluster and region spread constraint")


def select_by_cluster(
    ordered: Sequence[Candidate], constraint: SpreadConstraint, needed: int | None
) -> list[Candidate]:
    """Choose the most preferred clusters, with room for ``needed`` replicas together if that is given.

    A maximum of 0 is no maximum of none: it selects nothing, as upstream never defaults it.
    """
    if len(ordered) < constraint.min_groups:
        raise SchedulingError("the number of feasible clusters is less than spreadConstraint.MinGroups")
    count = min(len(ordered), constraint.max_groups)
    if needed is None:
        return list(ordered[:count])
    chosen = _with_room(ordered, count, needed)
    if not chosen:
        raise SchedulingError(f"no enough resource when selecting {count} clusters")
    return chosen


def _with_room(ordered: Sequence[Candidate], count: int, needed: int) -> list[Candidate]:
    """Replace chosen clusters, the least preferred first, by the roomiest others until there is room."""
    chosen = list(ordered[:count])
    room = sum(each.available for each in chosen)
    if room >= needed:
        return chosen
    rest = list(ordered[count:])
    # The roomiest first, of equal ones that which stands first; a replaced one stands where its successor stood.
    roomiest = [(-each.available, index) for index, each in enumerate(rest)]
    heapq.heapify(roomiest)
    for slot in range(count - 1, -1, -1):
        if room >= needed or not roomiest:
            break
        available, best = -roomiest[0][0], roomiest[0][1]
        if available > chosen[slot].available:
            room += available - chosen[slot].available
            chosen[slot], rest[best] = rest[best], chosen[slot]
            heapq.heapreplace(roomiest, (-rest[best].available, best))
    return chosen if room >= needed else []


def _select_by_region(
    placement: Placement,
    ordered: Sequence[Candidate],
    replicas: int,
    region: SpreadConstraint,
    cluster: SpreadConstraint | None,
) -> Sequence[Candidate]:
    """Select by region. Many bindings with a shared order make the same selection, so it is cached."""

    def select() -> Sequence[Candidate]:
        return tuple(select_by_region(group_by_region(placement, replicas, ordered), region, cluster or _ANY))

    if not isinstance(ordered, SharedOrder):
        return select()
    key = (region, cluster, placement.is_duplicated, replicas)
    return ordered.selections.get(key, select, most=_MAX_SELECTIONS)


def select_by_region(
    regions: Sequence[Region], region: SpreadConstraint, cluster: SpreadConstraint
) -> list[Candidate]:
    """Choose regions, then the best cluster of each, then the best of all others up to the maximum.

    Room is not looked at, and more regions than the maximum of clusters give more clusters than that.
    """
    if len(regions) < region.min_groups:
        raise SchedulingError("the number of feasible region is less than spreadConstraint.MinGroups")
    groups = [Group(each.name, len(each.candidates), each.score) for each in regions]
    chosen = select_groups(groups, Limits(region.min_groups, region.max_groups, cluster.min_groups))
    if not chosen:
        raise SchedulingError("the number of clusters is less than the cluster spreadConstraint.MinGroups")
    by_name = {each.name: each.candidates for each in regions}
    selected = [by_name[group.name][0] for group in chosen]
    extra = max(0, cluster.max_groups - len(selected))
    others = [candidate for group in chosen for candidate in by_name[group.name][1 : 1 + extra]]
    return selected + heapq.nsmallest(extra, others, key=sort_key)
