"""Divides the replicas of a binding over the selected clusters.

The strategies that depend on available replicas have two modes: *steady* keeps the current division and adds or removes the
difference, *fresh* (an explicit reschedule) divides from scratch.

Source: karmada v1.18.2 pkg/scheduler/core assignment.go, division_algorithm.go, overflow handling in
common.go; pkg/util/helper/binding.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Final

from karmada_scheduler.api.binding import BindingSpec, TargetCluster
from karmada_scheduler.api.placement import AGGREGATED, DIVIDED, WEIGHTED, Placement, StaticClusterWeight
from karmada_scheduler.api.quantity import wrap32, wrap64
from karmada_scheduler.core.algorithms import webster
from karmada_scheduler.core.algorithms.go_sort import sort_descending
from karmada_scheduler.core.algorithms.webster import SortedVotes
from karmada_scheduler.core.ordering.candidates import CandidateList, candidate_list
from karmada_scheduler.framework.cycle import Candidate, Cycle, KeptDivision
from karmada_scheduler.framework.diagnosis import NotEnoughReplicasError, SchedulingError
from karmada_scheduler.structs import replace

DUPLICATED: Final = "Duplicated"
STATIC_WEIGHT: Final = "StaticWeight"
DYNAMIC_WEIGHT: Final = "DynamicWeight"
NO_REPLICAS: Final = "none"
DOWN: Final = "failed to scale down"
UP: Final = "failed to scale up"
FRESH: Final = "failed to do fresh scale"
"""The kinds of a division by available replicas, as errors name them."""

Targets = list[TargetCluster]


def assign_replicas(cycle: Cycle, candidates: Sequence[Candidate]) -> Targets:
    """Divide the binding's replicas over the selected clusters.

    A workload without replicas, or with several components, goes to all of them without numbers.

    Raises:
        NotEnoughReplicasError: The clusters cannot take all replicas.
        SchedulingError: There is no cluster, or the strategy is unknown.
    """
    divisions: list[KeptDivision] | None = None
    if cycle.kept is not None:
        divisions = cycle.kept.divisions = []
    if not candidates:
        raise SchedulingError("no clusters available to schedule")
    spec = cycle.binding.spec
    has_replicas = spec.replicas > 0 or spec.replica_requirements is not None
    if not has_replicas or len(spec.components) > 1:
        targets = [TargetCluster(candidate.name) for candidate in candidates]
        if divisions is not None:
            divisions.append(KeptDivision(NO_REPLICAS, candidates, spec.replicas, seats=targets))
        return targets
    if divides_by_tiers(cycle):
        return _assign_by_tiers(cycle, candidates, divisions)
    return _assign(cycle, spec, candidates, divisions)


def divides_by_tiers(cycle: Cycle) -> bool:
    """Return whether the affinity term in use has overflow affinities; if several have its name, any may have them."""
    name, placement = cycle.affinity_name, cycle.placement
    if not name or placement.cluster_affinity is not None:
        return False
    return any(term.divides_by_tiers for term in placement.cluster_affinities if term.affinity_name == name)


def attach_empty(targets: Sequence[TargetCluster], candidates: Sequence[Candidate]) -> Targets:
    """Append the selected clusters without replicas, with 0."""
    present = {target.name for target in targets}
    return [*targets, *(TargetCluster(each.name) for each in candidates if each.name not in present)]


def strategy_of(placement: Placement) -> str:
    """Return the name of a placement's strategy.

    Raises:
        SchedulingError: The strategy is unknown.
    """
    strategy = placement.replica_scheduling
    if strategy is None or placement.is_duplicated:
        return DUPLICATED
    type_, preference = strategy.replica_scheduling_type, strategy.replica_division_preference
    if type_ == DIVIDED and preference == AGGREGATED:
        return AGGREGATED
    if type_ == DIVIDED and preference == WEIGHTED:
        weights = strategy.weight_preference
        return DYNAMIC_WEIGHT if weights is not None and weights.dynamic_weight else STATIC_WEIGHT
    raise SchedulingError(
        f"unsupported replica scheduling strategy, replicaSchedulingType: {type_}, "
        f"replicaDivisionPreference: {preference}, please try another scheduling strategy"
    )


def _assign_by_tiers(
    cycle: Cycle, candidates: Sequence[Candidate], divisions: list[KeptDivision] | None
) -> Targets:
    """Fill the clusters tier by tier."""
    spec = cycle.binding.spec
    remaining = spec.replicas
    targets: Targets = []
    for tier in sorted({candidate.tier for candidate in candidates}):
        members = [candidate for candidate in candidates if candidate.tier == tier]
        available = sum(member.available for member in members)
        share = wrap32(min(remaining, available))
        targets += _assign(cycle, replace(spec, replicas=share), members, divisions)
        remaining = wrap32(remaining - share)
        if remaining <= 0:
            return targets
    raise NotEnoughReplicasError("Clusters available replicas are not enough to schedule.")


def _assign(
    cycle: Cycle, spec: BindingSpec, candidates: Sequence[Candidate], divisions: list[KeptDivision] | None
) -> Targets:
    division = KeptDivision(strategy_of(cycle.placement), candidates, spec.replicas, divided=spec.replicas)
    if divisions is not None:
        divisions.append(division)
    if division.strategy == DUPLICATED:
        targets = division.seats = [TargetCluster(candidate.name, spec.replicas) for candidate in candidates]
    elif division.strategy == STATIC_WEIGHT:
        weights = static_weights(cycle.placement, candidates)
        if not wrap64(sum(weights.values())):
            weights = {candidate.name: 1 for candidate in candidates}
        targets = _apportion(division, list(weights.items()), spec.resource.uid)
    else:
        fast = divisions is None and isinstance(candidates, CandidateList)
        fresh = cycle.binding.reschedule_triggered
        targets = _by_available_replicas(spec, division, fresh=fresh, fast=fast)
    return [target for target in targets if target.replicas > 0]


def static_weights(placement: Placement, candidates: Sequence[Candidate]) -> dict[str, int]:
    """Return the weights of the clusters that a rule names; of several rules for a cluster the largest counts."""
    named: dict[str, int] = {}
    selecting: list[StaticClusterWeight] = []
    for rule in placement.static_weights:
        if rule.target_cluster.only_names:
            # Mostly there is a rule per cluster, so rules by name are not matched with every cluster.
            for name in rule.target_cluster.cluster_names:
                named[name] = max(rule.weight, named.get(name, 0))
        else:
            selecting.append(rule)
    weights: dict[str, int] = {}
    for candidate in candidates:
        matching = [rule.weight for rule in selecting if rule.target_cluster.matches(candidate.cluster)]
        weight = max(named.get(candidate.name, 0), *matching, 0)
        if weight > 0:
            weights[candidate.name] = weight
    return weights


def _apportion(division: KeptDivision, weights: Sequence[tuple[str, int]], uid: str) -> Targets:
    """Divide by weight, in the order of names; without weights, nothing is divided.

    Of a name listed twice the last weight counts, but all of them count as weight.
    """
    division.votes = weights
    if not wrap64(sum(weight for _, weight in weights)):
        return []
    descending = webster.prefers_descending_names(uid)
    seats = webster.allocate(division.divided, dict(weights), descending_names=descending)
    targets = division.seats = [TargetCluster(name, count) for name, count in seats.items()]
    return targets


def _by_available_replicas(spec: BindingSpec, division: KeptDivision, *, fresh: bool, fast: bool) -> Targets:
    """Divide by available replicas: add, remove, keep, or divide from scratch.

    With ``fast``, a division over all clusters takes their cached votes, which cannot be kept.
    """
    candidates = candidate_list(division.members)
    scheduled = candidates.only_candidates(spec.clusters) if spec.clusters else []
    uid = spec.resource.uid
    if fresh:
        return _fresh(spec, division, scheduled, fast=fast)
    assigned = wrap32(sum(target.replicas for target in scheduled))
    if assigned > spec.replicas:
        # By the current replicas, so that every cluster loses in proportion and none gains.
        division.step = DOWN
        return _divide(division, sort_descending(scheduled, lambda target: target.replicas), uid)
    division.divided, division.scheduled = spec.replicas - assigned, scheduled
    if not division.divided:
        return scheduled
    division.step = UP
    if fast and division.strategy != AGGREGATED:
        return _merged(scheduled, _divided_over_all(division, candidates.votes(), uid))
    return _divide(division, candidates.by_available, uid)


def _divided_over_all(division: KeptDivision, votes: SortedVotes, uid: str) -> Targets:
    """Divide as ``_divide`` does where the order of clusters does not matter, with sorted votes.

    Of the clusters without replicas, only scheduled ones are in the result.
    """
    _check_total(division, votes.total)
    if not wrap64(votes.total):
        return []
    descending = webster.prefers_descending_names(uid)
    seats = votes.allocate(division.divided, descending_names=descending)
    for target in division.scheduled:
        seats.setdefault(target.name, 0)
    return [TargetCluster(name, seats[name]) for name in sorted(seats)]


def _check_total(division: KeptDivision, available: int) -> None:
    """Raise NotEnoughReplicasError, which names the step, if the clusters cannot take all replicas."""
    division.available = wrap32(available)
    if division.available < division.divided:
        text = f"Clusters available replicas {division.available} are not enough to schedule."
        raise NotEnoughReplicasError(text).within(division.step)


def _fresh(
    spec: BindingSpec, division: KeptDivision, scheduled: Sequence[TargetCluster], *, fast: bool
) -> Targets:
    held: dict[str, int] = {}
    for target in scheduled:
        held[target.name] = held.get(target.name, 0) + target.replicas
    division.step, uid = FRESH, spec.resource.uid
    if fast and spec.replicas > 0:
        votes = candidate_list(division.members).votes(held)
        if division.strategy != AGGREGATED:
            return _divided_over_all(division, votes, uid)
        _check_total(division, votes.total)
        chosen = votes.fewest(spec.replicas)
        if chosen is not None:
            return _apportion(division, list(chosen.items()), uid)
    available = [
        TargetCluster(member.name, wrap32(member.allocatable + held.get(member.name, 0)))
        for member in division.members
    ]
    return _divide(division, sort_descending(available, lambda target: target.replicas), uid)


def _divide(division: KeptDivision, available: Sequence[TargetCluster], uid: str) -> Targets:
    """Divide replicas by available replicas and add the current ones.

    Aggregated: over the fewest clusters that can take them together, those in use first.

    Raises:
        UnschedulableError: The clusters cannot take all replicas; the text names the step.
    """
    _check_total(division, sum(target.replicas for target in available))
    if division.strategy == AGGREGATED:
        in_use = {target.name for target in division.scheduled if target.replicas > 0}
        available = fewest_clusters(division.divided, available, in_use)
    return _merged(division.scheduled, _apportion(division, available, uid))


def fewest_clusters(replicas: int, available: Sequence[TargetCluster], in_use: set[str]) -> Targets:
    """Return the first clusters that can take all replicas together, those in use before the others."""
    first = [target for target in available if target.name in in_use] if in_use else []
    chosen: Targets = []
    total = 0
    for target in chain(first, (target for target in available if target.name not in in_use)):
        chosen.append(target)
        total = wrap32(total + target.replicas)
        if total >= replicas:
            break
    return chosen


def _merged(scheduled: Sequence[TargetCluster], seats: Targets) -> Targets:
    """Add the current replicas to those that were divided.

    Current clusters without new replicas follow in the order of their names; upstream appends them in random order.
    """
    if not scheduled or not seats:
        return list(scheduled) or seats
    held = {target.name: target.replicas for target in scheduled}
    merged = [TargetCluster(seat.name, wrap32(seat.replicas + held.pop(seat.name, 0))) for seat in seats]
    return merged + [TargetCluster(name, held[name]) for name in sorted(held)]
