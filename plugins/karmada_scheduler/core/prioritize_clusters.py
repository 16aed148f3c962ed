"""Scores and order of the clusters that can take a binding.

Where filter results, scores and available replicas are cached, the order of the clusters is cached as well
(``core.ordering.cache``). Then only the clusters that a binding is on, or is evicted from, are scored for that
binding, and they override their entries in the cached order. Scores of plugins without a key are added for one binding.

Source: karmada v1.18.2 pkg/scheduler/core/generic_scheduler.go prioritizeClusters.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Final

from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.quantity import MAX_INT32
from karmada_scheduler.core.available_replicas import available_replicas, counts, least_by_row
from karmada_scheduler.core.cluster_groups import preferred_first, tier_of
from karmada_scheduler.core.decision_inputs import DecisionInputs
from karmada_scheduler.core.find_clusters import FilteredClusters, LazyMapping, merged_clusters
from karmada_scheduler.core.ordering.cache import OrderKey, ScoreKey
from karmada_scheduler.core.ordering.candidates import CandidateList
from karmada_scheduler.core.ordering.columnar import SharedOrder, TierScore
from karmada_scheduler.core.ordering.overrides import with_overrides
from karmada_scheduler.framework.cycle import Candidate, Cycle, ReplicaEstimate
from karmada_scheduler.framework.extension_points import Point
from karmada_scheduler.framework.runtime.extenders import scores_of_extenders
from karmada_scheduler.framework.runtime.filter_cache import FilterResults
from karmada_scheduler.framework.runtime.framework import Framework
from karmada_scheduler.framework.runtime.plugin_call import PointTimer
from karmada_scheduler.framework.scheduling_points import EstimateContext
from karmada_scheduler.structs import Struct

Scores = Mapping[str, Sequence[int]]
"""Plugin name to scores times weight, one per cluster in the order of names."""

_NONE_KNOWN: Final[Mapping[str, int]] = {}


class ScoredClusters(Struct, frozen=True):
    """Clusters with their scores for one binding, and the order of all others if it is made from cached columns.

    Attributes:
        clusters: The clusters; with an order, those of ``filtered`` that are feasible.
        scores: The scores of ``clusters``.
        order: All clusters, as for a binding that is on none of them; None if ``clusters`` are all that are feasible.
        filtered: The names of the clusters for which ``order`` does not hold.
        unkeyed: With an order: the scores of all feasible clusters by plugins without a key.
    """

    clusters: Sequence[Cluster]
    scores: Scores
    order: SharedOrder | None = None
    filtered: frozenset[str] = frozenset()
    unkeyed: UnkeyedScores | None = None


class UnkeyedScores(Struct, frozen=True):
    """Scores times weight of all feasible clusters, in the order of names, by plugins without a key."""

    clusters: Sequence[Cluster]
    scores: Scores

    def of(self, clusters: Iterable[Cluster]) -> Scores:
        """Return the scores of some of these clusters."""
        chosen = [bisect_left(self.clusters, cluster.name, key=attrgetter("name")) for cluster in clusters]
        return {name: [scores[row] for row in chosen] for name, scores in self.scores.items()}


async def prioritize_clusters(
    cycle: Cycle, found: FilteredClusters, inputs: DecisionInputs
) -> ScoredClusters:
    """Score the clusters that were filtered for this binding.

    Raises:
        SchedulingError: A plugin or an extender failed.
    """
    with PointTimer(Point.SCORE, inputs.framework.caller.observer):
        return await _scored(cycle, found, inputs)


async def _scored(cycle: Cycle, found: FilteredClusters, inputs: DecisionInputs) -> ScoredClusters:
    framework = inputs.framework
    if found.results is None:
        scores = await framework.run_score(cycle, found.feasible)
        if framework.extenders:
            scores |= await scores_of_extenders(framework.extenders, cycle, found.feasible)
        return ScoredClusters(found.feasible, scores)
    order = _shared_order(cycle, found.results, found.score_key, inputs)
    unkeyed = None
    if framework.keyed.unkeyed_scores or framework.plugins.pre_score or found.left_out:
        clusters = found.passing
        if clusters is None:
            clusters = merged_clusters(found.results, found.filtered, found.feasible)
        scores = await framework.run_score(cycle, clusters, framework.keyed.keyed_scores)
        unkeyed = UnkeyedScores(clusters, scores)
        order = _for_one(order, found, unkeyed)
    return ScoredClusters(
        found.feasible, _scores_of(framework, cycle, unkeyed, found.feasible), order, found.filtered, unkeyed
    )


def _for_one(order: SharedOrder, found: FilteredClusters, unkeyed: UnkeyedScores) -> SharedOrder:
    """Return an order without the clusters that filters without a key refuse, with the scores of plugins without one.

    Those of the clusters for which the order does not hold do not matter.
    """
    clusters, left_out, rows = unkeyed.clusters, found.left_out, order.feasible.rows
    totals = _totals(unkeyed.scores, len(clusters)) if unkeyed.scores else ()
    known = {name for name in found.filtered if name in rows and name not in left_out}
    if known != {cluster.name for cluster in found.feasible}:
        by_name = dict(zip((cluster.name for cluster in clusters), totals, strict=False))
        clusters = [cluster for cluster in order.feasible.clusters if cluster.name not in left_out]
        totals = [by_name.get(cluster.name, 0) for cluster in clusters] if totals else ()
    if left_out:
        rows = LazyMapping(lambda: {cluster.name: row for row, cluster in enumerate(clusters)})
    return order.narrowed(left_out, clusters, rows, totals)


async def candidates_of(
    cycle: Cycle, scored: ScoredClusters, inputs: DecisionInputs, needed: int
) -> CandidateList:
    """Return the candidates in the order of preference, with score, tier and available replicas.

    ``needed`` is what the chosen clusters should be able to take together.

    Raises:
        SchedulingError: The available replicas cannot be counted, a plugin failed, or the decision is over its budget.
    """
    order, names, framework = scored.order, scored.filtered, inputs.framework
    changes = framework.may_estimate and counts(cycle.binding.spec)
    overrides: list[Candidate] = []
    if order is None:
        overrides = await _candidates(cycle, scored, inputs)
    elif names:
        overrides = await _candidates(cycle, scored, inputs, order.available_of(names))
    elif not changes:
        return order
    if changes:
        estimates = framework.run_estimate_replicas(EstimateContext(cycle, needed))
        overrides = [estimated(override, estimates) for override in overrides]
        if order is not None:
            free = order.available_of({name for _, estimate in estimates for name in estimate.clusters})
            order = order.with_available({name: _changed(name, free[name], estimates) for name in free})
        if cycle.kept is not None:
            cycle.kept.estimates = estimates
    return preferred_first(overrides) if order is None else with_overrides(order, names, overrides)


def estimated(candidate: Candidate, estimates: Sequence[tuple[str, ReplicaEstimate]]) -> Candidate:
    """Return a candidate with what EstimateReplicas plugins change."""
    cluster, score, tier, available, free = candidate
    changed = _changed(cluster.name, free, estimates)
    return Candidate(cluster, score, tier, available - free + changed, changed)


def _changed(name: str, free: int, estimates: Sequence[tuple[str, ReplicaEstimate]]) -> int:
    """Return how many replicas can be added to a cluster, if without EstimateReplicas plugins ``free`` can."""
    less, at_least, most = 0, 0, MAX_INT32
    for _, estimate in estimates:
        less += estimate.less.get(name, 0)
        at_least = max(at_least, estimate.at_least.get(name, 0))
        most = min(most, estimate.most.get(name, MAX_INT32))
    return min(max(free - less, at_least), most)


def scores_of(
    cycle: Cycle,
    scored: ScoredClusters,
    candidates: Sequence[Candidate],
    framework: Framework,
) -> Scores:
    """Return the scores of all candidates by plugin; with a cached order they are computed on first use."""
    if scored.order is None:
        return scored.scores

    def read() -> Scores:
        clusters = sorted((candidate.cluster for candidate in candidates), key=attrgetter("name"))
        return _scores_of(framework, cycle, scored.unkeyed, clusters)

    return LazyMapping(read)


def _shared_order(
    cycle: Cycle, results: FilterResults, key_of_scores: Hashable, inputs: DecisionInputs
) -> SharedOrder:
    """Return the cached order for bindings like this one."""
    spec, snapshot = cycle.binding.spec, cycle.snapshot
    has_replicas = counts(spec)
    requirements = spec.replica_requirements if has_replicas else None
    request = requirements.key if requirements is not None else None
    placement = cycle.placement
    tiers = (cycle.term,) if placement.cluster_affinity is None and placement.cluster_affinities else None
    score_key = ScoreKey(results.key, key_of_scores, tiers)
    feasible = inputs.caches.refreshed_scores(
        score_key, snapshot, results, partial(_tier_scores, cycle, inputs.framework)
    )
    order = inputs.caches.order(OrderKey(*score_key, has_replicas, request), snapshot)
    order.refresh(results, lambda rows: least_by_row(spec, results, rows, inputs.estimators.local))
    # Without an estimate, the binding's replicas count as available replicas.
    return order.shared(feasible, spec.replicas if has_replicas else MAX_INT32)


def _tier_scores(cycle: Cycle, framework: Framework, clusters: Sequence[Cluster]) -> list[TierScore]:
    """Return tier and score of clusters, for bindings that are not on them."""
    unplaced = cycle.unplaced
    scores = framework.scoring.run(unplaced, clusters, framework.keyed.unkeyed_scores)
    totals = _totals(scores, len(clusters))
    return [(tier_of(unplaced, cluster), score) for cluster, score in zip(clusters, totals, strict=True)]


def _totals(scores: Scores, count: int) -> Sequence[int]:
    if len(scores) == 1:
        return next(iter(scores.values()))
    return [sum(row) for row in zip(*scores.values(), strict=True)] if scores else [0] * count


async def _candidates(
    cycle: Cycle,
    scored: ScoredClusters,
    inputs: DecisionInputs,
    known: Mapping[str, int] = _NONE_KNOWN,
) -> list[Candidate]:
    """Return the scored clusters with their score, tier and available replicas, in the same order.

    ``known`` has available replicas by cluster; those of the others are counted.
    """
    clusters = scored.clusters
    others = [cluster for cluster in clusters if cluster.name not in known] if known else clusters
    if others:
        counted = await available_replicas(
            cycle.binding.spec,
            others,
            estimators=inputs.estimators,
            gates=inputs.gates,
            assumed=inputs.assumed,
            yield_if_due=inputs.yield_if_due,
        )
        known = {**known, **{cluster.name: free for cluster, free in zip(others, counted, strict=True)}}
    totals = _totals(scored.scores, len(clusters))
    assigned: dict[str, int] = {}
    for target in cycle.binding.spec.clusters:
        assigned.setdefault(target.name, target.replicas)  # of a name listed twice, the first counts
    candidates = []
    for cluster, score in zip(clusters, totals, strict=True):
        free = known[cluster.name]
        available = free + assigned.get(cluster.name, 0)
        candidates.append(Candidate(cluster, score, tier_of(cycle, cluster), available, free))
    return candidates


def _scores_of(
    framework: Framework, cycle: Cycle, unkeyed: UnkeyedScores | None, clusters: Sequence[Cluster]
) -> Scores:
    """Return the scores of clusters by all plugins."""
    scores: Scores = framework.scoring.run(cycle, clusters, framework.keyed.unkeyed_scores)
    if unkeyed is None:
        return scores
    every = {**scores, **unkeyed.of(clusters)}
    return {plugin.name: every[plugin.name] for plugin in framework.plugins.score if plugin.name in every}
