"""The clusters that can take a binding, with their scores and their room.

Asked for of every cluster, or of those alone that a binding is on or being moved off, where the rest is
remembered (``framework.memo``, ``core.ranking``).
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import cast

from karmada_scheduler.api.binding import BindingSpec
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.quantity import MAX_INT32
from karmada_scheduler.api.workload import WorkloadAnswer
from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.core.available_replicas import (
    Assumed,
    LocalEstimator,
    ReplicaEstimator,
    available_replicas,
    counts,
    counts_component_sets,
    least_by_row,
)
from karmada_scheduler.core.budget import Budget
from karmada_scheduler.core.cluster_groups import preferred_first, tier_of
from karmada_scheduler.core.ordering.cache import OrderCache, ScoreCache
from karmada_scheduler.core.ordering.candidates import CandidateList
from karmada_scheduler.core.ordering.columnar import Merit, SharedOrder
from karmada_scheduler.framework.cycle import Candidate, Cycle, InFlight, Peers
from karmada_scheduler.framework.diagnosis import Diagnosis
from karmada_scheduler.framework.runtime.extenders import filter_by_extenders, scores_of_extenders
from karmada_scheduler.framework.runtime.filter_cache import FilterResults
from karmada_scheduler.framework.runtime.framework import Framework
from karmada_scheduler.framework.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class DecisionInputs:
    """What stays the same over all runs of one decision."""

    snapshot: Snapshot
    framework: Framework
    estimators: Sequence[ReplicaEstimator]
    gates: FeatureGates
    empty_workload_propagation: bool
    assumed: Assumed
    peers: Peers | None
    in_flight: Sequence[InFlight]
    budget: Budget | None = None
    workload: WorkloadAnswer | None = None

    def is_due(self) -> bool:
        """Tell whether it is time for a ``turn`` of others."""
        return self.budget is not None and self.budget.is_due()

    async def turn(self) -> None:
        """Let others have a turn where that is due; OverBudgetError ends the decision."""
        if self.budget is not None:
            await self.budget.turn()

    def remembers_room(self, spec: BindingSpec) -> bool:
        """Tell whether the room of a cluster depends on nothing but that cluster and the request."""
        return (
            not self.assumed
            and not counts_component_sets(spec, self.gates)
            and all(hasattr(estimator, "replicas_by_row") for estimator in self.estimators)
        )


@dataclass(frozen=True, slots=True)
class Found:
    """The clusters that can take a binding.

    Attributes:
        feasible: Those that pass, in the order of names; with ``verdicts``, only those that were asked about now.
        diagnosis: What keeps the others out.
        verdicts: What is remembered of the clusters that the binding is not on, where the order of preference is
            remembered, too; else None.
        score_key: What their scores depend on.
        asked: The clusters that were asked about now.
        skipped: The plugins whose PreFilter skipped.
        left_out: The clusters that PreFilter plugins have refused.
    """

    feasible: Sequence[Cluster]
    diagnosis: Diagnosis
    verdicts: FilterResults | None = None
    score_key: Hashable = None
    asked: frozenset[str] = frozenset()
    skipped: frozenset[str] = frozenset()
    left_out: Container[str] = ()

    @property
    def any(self) -> bool:
        """Whether there is one."""
        if self.feasible or self.verdicts is None:
            return bool(self.feasible)
        passing = self.verdicts.rows
        return len(passing) > sum(1 for name in self.asked if name in passing)


async def find(cycle: Cycle, recipe: DecisionInputs) -> Found:
    """Return the clusters that can take the binding, and what keeps the others out."""
    framework = recipe.framework
    verdicts = framework.remembered_verdicts(cycle)
    if verdicts is not None:
        return _recall(cycle, verdicts, recipe)
    clusters: Sequence[Cluster] = cycle.snapshot.living
    clusters, refused, skipped = await framework.run_pre_filter(cycle, clusters, recipe.in_flight)
    left_out = frozenset(refused)
    feasible, judged = framework.run_filter(cycle, clusters, skipped)
    refused.update(judged)
    if framework.extenders:
        feasible, rejected = await filter_by_extenders(framework.extenders, cycle, feasible)
        refused.update(rejected)
    return Found(feasible, Diagnosis(refused), skipped=skipped, left_out=left_out)


def _recall(cycle: Cycle, verdicts: FilterResults, recipe: DecisionInputs) -> Found:
    """Ask about the clusters that the binding is on or being moved off, and remember the others."""
    asked = cycle.current_clusters | cycle.evicted
    own: list[Cluster] = []
    refused = verdicts.refused
    if asked:
        known = [each for name in sorted(asked) if (each := cycle.snapshot.get(name)) and not each.deleting]
        own, judged = recipe.framework.run_filter(cycle, known)
        if judged or any(name in refused for name in asked):
            changed = dict(refused)
            for name in asked:
                changed.pop(name, None)
            changed.update(judged)
            refused = changed
    score_key = recipe.framework.score_key(cycle) if recipe.remembers_room(cycle.binding.spec) else None
    if score_key is not None:
        return Found(own, Diagnosis(refused), verdicts, score_key, asked)
    feasible: Sequence[Cluster] = verdicts.feasible
    if asked:
        rest = (cluster for cluster in feasible if cluster.name not in asked)
        feasible = sorted((*rest, *own), key=lambda cluster: cluster.name)
    return Found(feasible, Diagnosis(refused))


async def scores_of(
    cycle: Cycle, found: Found, recipe: DecisionInputs
) -> tuple[Mapping[str, Sequence[int]], SharedOrder | None]:
    """Return the scores by plugin of ``found.feasible``, and the remembered order of the other clusters."""
    framework = recipe.framework
    scores = await framework.run_score(cycle, found.feasible)
    if framework.extenders:
        scores |= await scores_of_extenders(framework.extenders, cycle, found.feasible)
    return scores, None if found.verdicts is None else _ranking(
        cycle, found.verdicts, found.score_key, recipe
    )


async def candidates_of(
    cycle: Cycle,
    found: Found,
    scores: Mapping[str, Sequence[int]],
    ranking: SharedOrder | None,
    recipe: DecisionInputs,
) -> CandidateList:
    """Join score, tier and room of the clusters that passed, in the order of preference."""
    if ranking is not None and not found.asked:
        return ranking
    own = _appraised(cycle, found.feasible, scores, await _room(cycle, found.feasible, recipe))
    return preferred_first(own) if ranking is None else ranking.with_moved(found.asked, own)


async def _room(cycle: Cycle, clusters: Sequence[Cluster], recipe: DecisionInputs) -> Sequence[int]:
    return await available_replicas(
        cycle.binding.spec,
        clusters,
        estimators=recipe.estimators,
        gates=recipe.gates,
        assumed=recipe.assumed,
        turn=recipe.turn,
    )


def _ranking(
    cycle: Cycle, verdicts: FilterResults, score_key: Hashable, recipe: DecisionInputs
) -> SharedOrder:
    """Return the remembered order for bindings like this one."""
    spec, framework = cycle.binding.spec, recipe.framework
    requirements = spec.replica_requirements if counts(spec) else None
    request = requirements.key if requirements is not None else None
    tiers = (cycle.placement, cycle.affinity_name) if cycle.placement.cluster_affinities else None
    key = (verdicts.key, score_key, tiers, counts(spec), request, recipe.estimators)
    estimators = cast("Sequence[LocalEstimator]", recipe.estimators)

    rankings, snapshot = framework.rankings, cycle.snapshot
    standings = cast("ScoreCache", rankings.get_for(key[:3], ScoreCache, snapshot))
    standings.refresh(verdicts, partial(_merits, cycle, framework))
    ranking = cast("OrderCache", rankings.get_for(key, OrderCache, snapshot))
    ranking.refresh(verdicts, lambda rows: least_by_row(spec, verdicts, rows, estimators))
    # The binding's replicas stand for room that nobody knows.
    return ranking.ranked(standings.field, spec.replicas if counts(spec) else MAX_INT32)


def _merits(cycle: Cycle, framework: Framework, clusters: Sequence[Cluster]) -> list[Merit]:
    """Return tier and score of clusters for bindings that are not on them."""
    unplaced = cycle.unplaced
    totals = _totals(framework.scores_of(unplaced, clusters), len(clusters))
    return [(tier_of(unplaced, each), score) for each, score in zip(clusters, totals, strict=True)]


def _totals(scores: Mapping[str, Sequence[int]], count: int) -> list[int]:
    return [sum(each) for each in zip(*scores.values(), strict=True)] if scores else [0] * count


def _appraised(
    cycle: Cycle, clusters: Sequence[Cluster], scores: Mapping[str, Sequence[int]], room: Sequence[int]
) -> list[Candidate]:
    """Give clusters their score, tier and room."""
    totals = _totals(scores, len(clusters))
    assigned: dict[str, int] = {}
    for target in cycle.binding.spec.clusters:
        assigned.setdefault(target.name, target.replicas)  # of a name listed twice, the first counts
    return [
        Candidate(cluster, score, tier_of(cycle, cluster), free + assigned.get(cluster.name, 0), free)
        for cluster, score, free in zip(clusters, totals, room, strict=True)
    ]


class Scores(Mapping[str, Sequence[int]]):
    """The scores of a decision whose clusters were mostly remembered, worked out when somebody asks."""

    def __init__(self, framework: Framework, cycle: Cycle, candidates: Sequence[Candidate]) -> None:
        self._framework, self._cycle, self._candidates = framework, cycle, candidates

    @cached_property
    def _scores(self) -> Mapping[str, Sequence[int]]:
        clusters = sorted((each.cluster for each in self._candidates), key=lambda cluster: cluster.name)
        return self._framework.scores_of(self._cycle, clusters)

    def __getitem__(self, plugin: str) -> Sequence[int]:
        return self._scores[plugin]

    def __iter__(self) -> Iterator[str]:
        return iter(self._scores)

    def __len__(self) -> int:
        return len(self._scores)
