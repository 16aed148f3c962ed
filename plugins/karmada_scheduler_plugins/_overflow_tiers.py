"""The tiers of an affinity term: its affinity, then its overflow affinities."""

from __future__ import annotations

from collections.abc import Mapping

from karmada_scheduler.api.placement import ClusterAffinityTerm
from karmada_scheduler.framework import Cluster, ReconsiderContext, Snapshot


def tier_of(term: ClusterAffinityTerm, cluster: Cluster | None) -> int | None:
    """Return the first tier of a term that a cluster belongs to, 0 for its affinity; None if it is in none."""
    if cluster is None:
        return None
    affinities = (term.affinity, *(each.affinity for each in term.overflow_affinities))
    return next((tier for tier, affinity in enumerate(affinities) if affinity.matches(cluster)), None)


def empties_higher_tiers(context: ReconsiderContext, snapshot: Snapshot) -> bool:
    """Return whether a decision leaves whole clusters of higher tiers, and no cluster that stays has less."""
    old = {each.name: each.replicas for each in context.binding.spec.clusters}
    new = {each.name: each.replicas for each in context.targets or ()}
    if any(name in new and new[name] < count for name, count in old.items()):
        return False
    placement = context.binding.spec.placement
    term = placement.affinity_term(context.affinity_name) if placement is not None else None
    if term is None:
        return False
    before, after = _replicas_up_to_each(term, old, snapshot), _replicas_up_to_each(term, new, snapshot)
    return before != after and all(a >= b for a, b in zip(after, before, strict=True))


def _replicas_up_to_each(
    term: ClusterAffinityTerm, replicas: Mapping[str, int], snapshot: Snapshot
) -> list[int]:
    """Return for each tier the replicas in it and in those before."""
    tiers = {name: tier_of(term, snapshot.get(name)) for name in replicas}
    return [
        sum(count for name, count in replicas.items() if (found := tiers[name]) is not None and found <= tier)
        for tier in range(len(term.overflow_affinities) + 1)
    ]
