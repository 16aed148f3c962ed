"""The recipe: from a binding and all clusters to a decision.

A decision is pure: it reads the binding and the snapshot and changes neither. It is also settled: upstream
sees its own write come back, decides Duplicated bindings and those without replicas again on top of it (its
own result raises the room that it counts on the chosen clusters), and writes until nothing changes. Here
the decision is repeated on its own result in memory, and written once.

Source: karmada v1.18.2 pkg/scheduler/core/generic_scheduler.go Schedule, pkg/scheduler/scheduler.go
scheduleResourceBindingWithClusterAffinities.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, cast

from karmada_scheduler.api.binding import Binding, BindingKey, BindingSpec, TargetCluster
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.meta import APPLIED_PLACEMENT_ANNOTATION
from karmada_scheduler.api.placement import Placement
from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.core.assign_replicas import attach_empty
from karmada_scheduler.core.at_once import at_once
from karmada_scheduler.core.available_replicas import (
    Assumed,
    ReplicaEstimator,
    available_replicas,
    counts,
    counts_component_sets,
    least_answers,
    with_footprint,
)
from karmada_scheduler.core.classify import ScheduleType, classify, placement_changed, placement_of
from karmada_scheduler.core.cluster_groups import preferred_first, tier_of
from karmada_scheduler.core.decision import Attempt, Decision, TermFailure
from karmada_scheduler.core.ranking import Ranking
from karmada_scheduler.framework.cycle import Candidate, Cycle, InFlight, Peers
from karmada_scheduler.framework.deciding import AssignContext, SelectContext
from karmada_scheduler.framework.diagnosis import Diagnosis, FitError, PluginError, SchedulingError
from karmada_scheduler.framework.extending import filter_by_extenders, scores_of_extenders
from karmada_scheduler.framework.memo import Verdicts
from karmada_scheduler.framework.runtime import Framework
from karmada_scheduler.framework.snapshot import Snapshot

_NOTHING_ASSUMED: Final[Assumed] = {}
_MAX_PASSES: Final = 10
"""Upstream has no bound; two or three passes are what it needs."""


@dataclass(frozen=True, slots=True)
class _Recipe:
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


async def decide(
    binding: Binding,
    snapshot: Snapshot,
    *,
    framework: Framework,
    estimators: Sequence[ReplicaEstimator],
    gates: FeatureGates,
    empty_workload_propagation: bool = False,
    assumed: Assumed = _NOTHING_ASSUMED,
    peers: Peers | None = None,
    in_flight: Sequence[Binding] = (),
    stored: Callable[[BindingKey], Binding | None] = lambda _: None,
) -> Decision:
    """Decide where a binding goes; whether there is a reason to ask is ``classify``'s business.

    A coroutine because extenders, estimators and plugins may have to be asked over the network; where none
    has to be, it never waits (see ``at_once``).

    Args:
        binding: As it is now.
        snapshot: All clusters.
        framework: The plugins.
        estimators: Who says how much a cluster can take.
        gates: Feature gates.
        empty_workload_propagation: Whether selected clusters without replicas become targets, too.
        assumed: Recent placements that count as taken (gate SchedulingOvercommitProtection).
        peers: The bindings of the same groups (gate WorkloadAffinity).
        in_flight: Bindings that are decided and may not be written yet, with the clusters they will have.
        stored: Returns one of these as it is stored, None if it is not known.
    """
    planned = [InFlight(stored(each.key), each) for each in in_flight]
    recipe = _Recipe(
        snapshot, framework, tuple(estimators), gates, empty_workload_propagation, assumed, peers, planned
    )
    decisions = [await _decide_once(binding, recipe)]
    standings = [_standing(binding, assumed)]
    before = binding.spec.clusters
    for _ in range(_MAX_PASSES):
        decision = decisions[-1]
        if decision.targets is None or decision.targets == binding.spec.clusters:
            break
        if gates.enabled("SchedulingOvercommitProtection"):
            recipe = replace(recipe, assumed=with_footprint(recipe.assumed, binding, decision.targets))
        binding = _as_written(binding, decision)
        if (standing := _standing(binding, recipe.assumed)) in standings:
            return _at_rest(decisions[standings.index(standing) :], before)
        standings.append(standing)
        if classify(binding, terminating=snapshot.terminating, gates=gates).type is ScheduleType.AVOID:
            break
        second = await _decide_once(binding, recipe)
        if isinstance(second.error, PluginError):
            return second  # nothing is written of a decision that could not be taken to its end
        decisions.append(_one_after_the_other(decision, second))
    return decisions[-1]


def _at_rest(circle: Sequence[Decision], before: tuple[TargetCluster, ...]) -> Decision:
    """Return the decision to stay with where upstream would go round in a circle for ever.

    The footprint of a binding can drive it off its own cluster, again and again. A binding that is already at
    one of the places stays there, so that nothing moves and the next decision comes to the same; any other
    stays at the first place to which the circle comes back.
    """
    return next((each for each in circle if each.targets == before), circle[-1])


def _as_written(binding: Binding, decision: Decision) -> Binding:
    """Return the binding as it will come back once the decision is written."""
    spec, status = binding.spec, binding.status
    scheduled = status.last_scheduled_time
    if decision.is_success and binding.reschedule_triggered:
        scheduled = spec.reschedule_triggered_at
    name = (
        status.scheduler_observing_affinity_name if decision.affinity_name is None else decision.affinity_name
    )
    return replace(
        binding,
        annotations={**binding.annotations, APPLIED_PLACEMENT_ANNOTATION: decision.applied_placement or ""},
        spec=replace(spec, clusters=decision.targets or ()),
        status=replace(status, last_scheduled_time=scheduled, scheduler_observing_affinity_name=name),
    )


def _standing(binding: Binding, assumed: Assumed) -> tuple[object, ...]:
    """Return what changes from pass to pass, and so all that makes one pass differ from another.

    What is assumed is a part of it: a binding that is back where it was has by now a footprint there, which it
    may not have had before, and need not be driven off again.
    """
    placement, status = binding.spec.placement, binding.status
    changed = placement is not None and placement_changed(binding, placement)
    return (
        binding.spec.clusters,
        status.scheduler_observing_affinity_name,
        changed,
        binding.reschedule_triggered,
        assumed,
    )


def _one_after_the_other(first: Decision, second: Decision) -> Decision:
    """Return what is left to write after a second pass on top of the first."""
    failures = [
        *first.failed_terms,
        *(each for each in second.failed_terms if each not in first.failed_terms),
    ]
    kept = second.targets is None
    return replace(
        second,
        targets=first.targets if kept else second.targets,
        applied_placement=first.applied_placement if kept else second.applied_placement,
        affinity_name=first.affinity_name if second.affinity_name is None else second.affinity_name,
        failed_terms=tuple(failures),
        attempts=(*first.attempts, *second.attempts),
    )


async def _decide_once(binding: Binding, recipe: _Recipe) -> Decision:
    try:
        placement = placement_of(binding)
    except SchedulingError as error:
        return Decision(binding.key, error=error)
    # An explicit empty list of affinity terms is none: upstream would schedule nothing and report success.
    if placement.cluster_affinities:
        return await _try_terms(binding, placement, recipe)
    attempt = await _run(
        _cycle(binding, placement, recipe, binding.status.scheduler_observing_affinity_name), recipe
    )
    return _concluded(binding, placement, attempt.error, attempt.targets, (attempt,))


async def _try_terms(binding: Binding, placement: Placement, recipe: _Recipe) -> Decision:
    """Try one affinity term after the other, from the one in force on; the first that works is taken.

    If none does, the error of the first decides. Earlier terms are not tried again: a binding does not go
    back to a term that it has left. A broken plugin ends the attempt: it says nothing about the clusters, so
    it must neither clear a placement nor move the binding to the next term.
    """
    failures: list[TermFailure] = []
    attempts: list[Attempt] = []
    for index in range(_term_in_force(binding, placement), len(placement.cluster_affinities)):
        name = placement.cluster_affinities[index].affinity_name
        attempt = await _run(_cycle(binding, placement, recipe, name), recipe)
        attempts.append(attempt)
        if attempt.error is None:
            decision = _concluded(binding, placement, None, attempt.targets, attempts)
            return replace(decision, affinity_name=name, failed_terms=tuple(failures))
        failures.append(TermFailure(index, name, attempt.error))
        if isinstance(attempt.error, PluginError):
            break
    last = failures[-1].error
    error = last if isinstance(last, PluginError) else failures[0].error
    return replace(_concluded(binding, placement, error, None, attempts), failed_terms=tuple(failures))


def _term_in_force(binding: Binding, placement: Placement) -> int:
    name = binding.status.scheduler_observing_affinity_name
    names = [term.affinity_name for term in placement.cluster_affinities]
    return names.index(name) if name in names else 0


def _cycle(binding: Binding, placement: Placement, recipe: _Recipe, affinity_name: str) -> Cycle:
    return Cycle(binding, placement, affinity_name, recipe.snapshot, peers=recipe.peers)


def _concluded(
    binding: Binding,
    placement: Placement,
    error: SchedulingError | None,
    targets: tuple[TargetCluster, ...] | None,
    attempts: Sequence[Attempt],
) -> Decision:
    """Turn the end of a pass into what to write: no fit clears the targets, any other error keeps them."""
    if isinstance(error, FitError):
        targets = ()
    written = None if targets is None else placement.to_json()
    return Decision(binding.key, targets, written, error=error, attempts=tuple(attempts))


async def _run(cycle: Cycle, recipe: _Recipe) -> Attempt:
    """Filter, score, select, assign."""
    framework, attempt = recipe.framework, Attempt(cycle.affinity_name, cycle)
    try:
        with _step("Filter", framework):
            found = await _find(cycle, recipe)
            attempt = replace(attempt, diagnosis=found.diagnosis)
            if not found.any:
                may_work_next_time = await framework.run_post_filter(
                    cycle, found.diagnosis, skipped=found.skipped, left_out=found.left_out
                )
                nowhere = FitError(len(cycle.snapshot), found.diagnosis)
                return replace(attempt, error=nowhere, may_work_next_time=may_work_next_time)
        with _step("Score", framework, on_error="failed to prioritize clusters"):
            scores = await _scores(cycle, found, recipe)
        with _step("Select", framework, on_error="failed to select clusters"):
            candidates = await _candidates(cycle, found, scores, recipe)
            if found.verdicts is not None:
                scores = _Scores(framework, cycle, candidates)
            attempt = replace(attempt, scores=scores, candidates=candidates)
            needed = _needed(cycle.binding.spec, recipe.gates)
            selected = await framework.run_select(SelectContext(cycle, candidates, needed))
        attempt = replace(attempt, selected=selected)
        with _step("AssignReplicas", framework, on_error="failed to assign replicas"):
            targets = await framework.run_assign(AssignContext(cycle, selected))
    except SchedulingError as error:
        return replace(attempt, error=error)
    if recipe.empty_workload_propagation:
        targets = attach_empty(targets, selected)
    return replace(attempt, targets=tuple(targets))


@contextmanager
def _step(
    name: str, framework: Framework, *, on_error: str = "failed to find fit clusters"
) -> Iterator[None]:
    start = time.perf_counter()
    try:
        yield
    except SchedulingError as error:
        raise error.within(on_error) from error
    finally:
        if framework.observer is not None:
            framework.observer.step(name, time.perf_counter() - start)


@dataclass(frozen=True, slots=True)
class _Found:
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


async def _find(cycle: Cycle, recipe: _Recipe) -> _Found:
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
    return _Found(feasible, Diagnosis(refused), skipped=skipped, left_out=left_out)


def _recall(cycle: Cycle, verdicts: Verdicts, framework: Framework) -> _Found:
    """Ask about the clusters that the binding is on or being moved off, and remember the others."""
    asked = cycle.targets | cycle.evicted
    if not asked:
        return _Found((), Diagnosis(verdicts.refused), verdicts)
    own = [each for name in sorted(asked) if (each := cycle.snapshot.get(name)) and not each.deleting]
    feasible, refused = framework.run_filter(cycle, own)
    others = {name: result for name, result in verdicts.refused.items() if name not in asked}
    return _Found(feasible, Diagnosis(others | refused), verdicts, asked)


async def _scores(cycle: Cycle, found: _Found, recipe: _Recipe) -> Mapping[str, Sequence[int]]:
    """Return the scores by plugin, of the clusters that were asked about now."""
    framework = recipe.framework
    scores = await framework.run_score(cycle, found.feasible)
    if framework.extenders:
        scores |= await scores_of_extenders(framework.extenders, cycle, found.feasible)
    return scores


async def _candidates(
    cycle: Cycle, found: _Found, scores: Mapping[str, Sequence[int]], recipe: _Recipe
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


async def _room(cycle: Cycle, clusters: Sequence[Cluster], recipe: _Recipe) -> Sequence[int]:
    return await available_replicas(
        cycle.binding.spec,
        clusters,
        estimators=recipe.estimators,
        gates=recipe.gates,
        assumed=recipe.assumed,
    )


def _ranking(cycle: Cycle, verdicts: Verdicts, recipe: _Recipe) -> Ranking | None:
    """Return the remembered order for bindings like this one; None where the room depends on more."""
    spec, framework = cycle.binding.spec, recipe.framework
    if recipe.assumed or not recipe.room_is_local or counts_component_sets(spec, recipe.gates):
        return None
    requirements = spec.replica_requirements if counts(spec) else None
    request = requirements.key if requirements is not None else None
    tiers = (cycle.placement, cycle.affinity_name) if cycle.placement.cluster_affinities else None
    key = (framework.score_key(cycle), tiers, counts(spec), request, recipe.estimators)
    ranking = cast("Ranking", verdicts.rankings.get(key, Ranking))

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


class _Scores(Mapping[str, Sequence[int]]):
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


def _needed(spec: BindingSpec, gates: FeatureGates) -> int:
    return 1 if counts_component_sets(spec, gates) else spec.replicas
