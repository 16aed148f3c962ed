"""The order of candidates, and their regions with a score per region.

Source: karmada v1.18.2 pkg/scheduler/core/spreadconstraint group_clusters.go, util.go.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.placement import SPREAD_BY_CLUSTER, SPREAD_BY_REGION, Placement, SpreadConstraint
from karmada_scheduler.api.quantity import quotient, wrap64
from karmada_scheduler.core.ordering.candidates import (
    CandidateList,
    Region,
    candidate_list,
    sort_key,
)
from karmada_scheduler.framework.cycle import Candidate, Cycle

_WEIGHT_UNIT: Final = 1000
_NO_TIER: Final = 1000


def preferred_first(candidates: Iterable[Candidate]) -> CandidateList:
    """Return candidates in the order of preference: by tier, score, available replicas, and name."""
    return CandidateList(sorted(candidates, key=sort_key))


def tier_of(cycle: Cycle, cluster: Cluster) -> int:
    """Return the tier of a cluster in the affinity term in use: 0 for its affinity, then 1 per overflow affinity."""
    if cycle.placement.cluster_affinity is not None or not cycle.placement.cluster_affinities:
        return 0
    if cycle.term is None:
        return _NO_TIER
    if cycle.term.affinity.matches(cluster):
        return 0
    for index, overflow in enumerate(cycle.term.overflow_affinities):
        if overflow.affinity.matches(cluster):
            return index + 1
    return _NO_TIER


def last_constraint(placement: Placement, field: str) -> SpreadConstraint | None:
    """Return the constraint on a field, None without one; as in upstream, the last of several counts."""
    for constraint in reversed(placement.spread_constraints):
        if constraint.spread_by_field == field:
            return constraint
    return None


def group_by_region(placement: Placement, replicas: int, ordered: Sequence[Candidate]) -> list[Region]:
    """Return the regions of the candidates with their scores, in the order of names.

    Args:
        placement: Has a constraint on regions.
        replicas: Replicas of the binding.
        ordered: Candidates in the order of preference; those without region belong to none.
    """
    region = last_constraint(placement, SPREAD_BY_REGION)
    cluster = last_constraint(placement, SPREAD_BY_CLUSTER)

    def score_of(members: CandidateList) -> int:
        if placement.is_duplicated:
            return duplicated_score(replicas, members)
        return divided_score(
            replicas,
            members,
            min_groups=region.min_groups if region is not None else 0,
            min_clusters=cluster.min_groups if cluster is not None else 0,
        )

    key = (region, cluster, placement.is_duplicated, replicas)
    return list(candidate_list(ordered).regions(key, score_of).values())


def duplicated_score(replicas: int, members: CandidateList) -> int:
    """Return the score of a group in which every cluster gets all replicas: mainly how many clusters can take them."""
    valid = members.scores_with(replicas)
    return _WEIGHT_UNIT * len(valid) + quotient(sum(valid), len(valid)) if valid else 0


def divided_score(replicas: int, members: Sequence[Candidate], *, min_groups: int, min_clusters: int) -> int:
    """Return the score of a group that gets a part of the replicas: mainly whether that part fits.

    Args:
        replicas: Replicas of the binding.
        members: The group, in the order of preference.
        min_groups: Minimum number of groups to spread over.
        min_clusters: Minimum number of clusters to spread over.
    """
    # min_groups is 0 only without Karmada's webhook; the value is what Go converts +Inf to on amd64.
    target = math.ceil(replicas / min_groups) if min_groups else -(2**63)
    walked = available = score = 0
    for member in members:
        walked += 1
        available += member.available
        score += member.score
        if walked >= max(min_clusters, min_groups) and available >= target:
            break
    if available < target:
        return wrap64(_WEIGHT_UNIT * available) + quotient(score, len(members))
    return wrap64(_WEIGHT_UNIT * target) + quotient(score, walked)
