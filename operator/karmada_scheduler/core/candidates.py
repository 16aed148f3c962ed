"""The clusters that can take a binding, with their scores and their room.

Asked for of every cluster, or of those alone that a binding is on or being moved off, where the rest is
remembered (``framework.memo``, ``core.ranking``).
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import cast

from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.core.at_once import at_once
from karmada_scheduler.core.available_replicas import (
    Assumed,
    ReplicaEstimator,
    available_replicas,
    counts,
    counts_component_sets,
    least_answers,
)
from karmada_scheduler.core.cluster_groups import preferred_first, tier_of
from karmada_scheduler.core.ranking import Ranking
from karmada_scheduler.framework.cycle import Candidate, Cycle, InFlight, Peers
from karmada_scheduler.framework.diagnosis import Diagnosis
from karmada_scheduler.framework.extending import filter_by_extenders, scores_of_extenders
from karmada_scheduler.framework.memo import Verdicts
from karmada_scheduler.framework.runtime import Framework
from karmada_scheduler.framework.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Recipe:
    """What stays the same over all runs of one decision."""

    snapshot: Snapshot
    framework: Framework
    estimators: Sequence[ReplicaEstimator]
    gates: FeatureGates
    empty_workload_propagation: bool
    assumed: Assumed
    peers: Peers | None
    in_flight: Sequence[InFlight]

    @property
    def room_is_local(self) -> bool:
        """Whether what estimators say of a cluster depends on nothing but that cluster and the request."""
        return all(getattr(estimator, "is_local", False) for estimator in self.estimators)


@dataclass(frozen=True, slots=True)
class Found:
    """The clusters that can take a binding.

    Attributes:
        feasible: Those that pass, in the order of names; with ``verdicts``, only those that were asked about now.
        diagnosis: What keeps the others out.
        verdicts: What is remembered of the clusters that the binding is not on; None if nothing is.
        asked: The clusters that were asked about now.
        skipped: The plugins whose PreFilter skipped.
        left_out: The clusters that PreFilter plugins have refused.
    """

    feasible: Sequence[Cluster]
    diagnosis: Diagnosis
    verdicts: Verdicts | None = None
    asked: frozenset[str] = frozenset()
    skipped: frozenset[str] = frozenset()
    left_out: Container[str] = ()

    @property
    def any(self) -> bool:
        """Whether there is one."""
        if self.feasible or self.verdicts is None:
            return bool(self.feasible)
        return any(cluster.name not in self.asked for cluster in self.verdicts.feasible)


async def find(cycle: Cycle, recipe: Recipe) -> Found:
    """Return the clusters that can take the binding, and what keeps the others out."""
    framework = recipe.framework
    if (
        framework.score_key(cycle) is not None
        and (verdicts := framework.remembered_verdicts(cycle)) is not None
    ):
        return _recall(cycle, verdicts, framework)
    clusters: Sequence[Cluster] = cycle.snapshot.living
    clusters, refused, skipped = await framework.run_pre_filter(cycle, clusters, recipe.in_flight)
    left_out = frozenset(refused)
    feasible, judged = framework.run_filter(cycle, clusters, skipped)
    refused.update(judged)
    if framework.extenders:
        feasible, rejected = await filter_by_extenders(framework.extenders, cycle, feasible)
        refused.update(rejected)
    return Found(feasible, Diagnosis(refused), skipped=skipped, left_out=left_out)


def _recall(cycle: Cycle, verdicts: Verdicts, framework: Framework) -> Found:
    """Ask about the clusters that the binding is on or being moved off, and remember the others."""
    asked = cycle.targets | cycle.evicted
    if not asked:
        return Found((), Diagnosis(verdicts.refused), verdicts)
    own = [each for name in sorted(asked) if (each := cycle.snapshot.get(name)) and not each.deleting]
    feasible, refused = framework.run_filter(cycle, own)
    others = {name: result for name, result in verdicts.refused.items() if name not in asked}
    return Found(feasible, Diagnosis(others | refused), verdicts, asked)


async def scores_of(cycle: Cycle, found: Found, recipe: Recipe) -> Mapping[str, Sequence[int]]:
    """Return the scores by plugin, of the clusters that were asked about now."""
    framework = recipe.framework
    scores = await framework.run_score(cycle, found.feasible)
    if framework.extenders:
        scores |= await scores_of_extenders(framework.extenders, cycle, found.feasible)
    return scores


async def candidates_of(
    cycle: Cycle, found: Found, scores: Mapping[str, Sequence[int]], recipe: Recipe
) -> Sequence[Candidate]:
    """Join score, tier and room of the clusters that passed, in the order of preference."""
    if found.verdicts is None:
        return preferred_first(
            _appraised(cycle, found.feasible, scores, await _room(cycle, found.feasible, recipe))
        )
    ranking = _ranking(cycle, found.verdicts, recipe)
    if ranking is not None:
        if not found.asked:
            return ranking.ranked
        own = _appraised(cycle, found.feasible, scores, await _room(cycle, found.feasible, recipe))
        return ranking.ranked_with(found.asked, own)
    # Estimators that answer for all clusters or for none are asked about all at once.
    others = (cluster for cluster in found.verdicts.feasible if cluster.name not in found.asked)
    clusters = sorted((*others, *found.feasible), key=lambda cluster: cluster.name)
    scores = recipe.framework.scores_of(cycle, clusters)
    return preferred_first(_appraised(cycle, clusters, scores, await _room(cycle, clusters, recipe)))


async def _room(cycle: Cycle, clusters: Sequence[Cluster], recipe: Recipe) -> Sequence[int]:
    return await available_replicas(
        cycle.binding.spec,
        clusters,
        estimators=recipe.estimators,
        gates=recipe.gates,
        assumed=recipe.assumed,
    )


def _ranking(cycle: Cycle, verdicts: Verdicts, recipe: Recipe) -> Ranking | None:
    """Return the remembered order for bindings like this one; None where the room depends on more."""
    spec, framework = cycle.binding.spec, recipe.framework
    if recipe.assumed or not recipe.room_is_local or counts_component_sets(spec, recipe.gates):
        return None
    requirements = spec.replica_requirements if counts(spec) else None
    request = requirements.key if requirements is not None else None
    tiers = (cycle.placement, cycle.affinity_name) if cycle.placement.cluster_affinities else None
    key = (verdicts.key, framework.score_key(cycle), tiers, counts(spec), request, recipe.estimators)
    ranking = cast("Ranking", framework.rankings.get(key, Ranking))

    def appraise(clusters: Sequence[Cluster]) -> list[Candidate]:
        unplaced = cycle.unplaced
        room = at_once(
            least_answers(spec, clusters, estimators=recipe.estimators, gates=recipe.gates, assumed={})
        )
        return _appraised(unplaced, clusters, framework.scores_of(unplaced, clusters), room)

    ranking.refresh(verdicts, appraise)
    return None if counts(spec) and ranking.has_unknown_room else ranking


def _appraised(
    cycle: Cycle, clusters: Sequence[Cluster], scores: Mapping[str, Sequence[int]], room: Sequence[int]
) -> list[Candidate]:
    """Give clusters their score, tier and room."""
    totals = [sum(each) for each in zip(*scores.values(), strict=True)] if scores else [0] * len(clusters)
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
