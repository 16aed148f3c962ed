"""From a binding and all clusters to a decision: term after term, until it has settled.

A decision is pure: it reads the binding and the snapshot and changes neither. It is also settled: upstream
sees its own write come back, decides Duplicated bindings and those without replicas again on top of it (its
own result raises the room that it counts on the chosen clusters), and writes until nothing changes. Here
the decision is repeated on its own result in memory, and written once. A binding that nobody claims is not
woken by its own write, so of that there is one pass.

Source: karmada v1.18.2 pkg/scheduler/core/generic_scheduler.go Schedule, pkg/scheduler/scheduler.go
scheduleResourceBindingWithClusterAffinities.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from karmada_scheduler.api.binding import Binding, BindingKey, TargetCluster
from karmada_scheduler.api.meta import APPLIED_PLACEMENT_ANNOTATION
from karmada_scheduler.api.placement import Placement
from karmada_scheduler.api.workload import WorkloadAnswer
from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.core import limits
from karmada_scheduler.core.available_replicas import Assumed, ReplicaEstimator, with_footprint
from karmada_scheduler.core.budget import Budget
from karmada_scheduler.core.classify import ScheduleType, classify, placement_changed, placement_of
from karmada_scheduler.core.decision import Attempt, Decision, TermFailure
from karmada_scheduler.core.find_clusters import DecisionInputs
from karmada_scheduler.core.schedule_term import run
from karmada_scheduler.framework.cycle import Cycle, InFlight, Peers
from karmada_scheduler.framework.diagnosis import FitError, OverBudgetError, PluginError, SchedulingError
from karmada_scheduler.framework.runtime.framework import Framework
from karmada_scheduler.framework.snapshot import Snapshot

_NOTHING_ASSUMED: Final[Assumed] = {}
_UNFINISHED: Final = (PluginError, OverBudgetError)
"""What ends a decision without saying anything about the clusters."""
_MAX_PASSES: Final = 10
"""Upstream has no bound; two or three passes are what it needs."""


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
    settles: bool = True,
    budget: Budget | None = None,
    workload: WorkloadAnswer | None = None,
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
        settles: Whether upstream would decide again on top of its own result.
        budget: How long the decision may run; None lets it run, and give nobody a turn (``at_once.begin``).
        workload: What is known of the workload; plugins see it only where one of them needs it.
    """
    if binding.spec.clusters and (not snapshot.clusters or snapshot.unknown):
        what = _unknown_place(binding, snapshot)
        if what is not None:
            text = f"{what}; the placement stays as it is"
            return Decision(binding.key, error=SchedulingError(text))
    planned = [InFlight(stored(each.key), each) for each in in_flight]
    recipe = DecisionInputs(
        snapshot,
        framework,
        tuple(estimators),
        gates,
        empty_workload_propagation,
        assumed,
        peers,
        planned,
        budget,
        workload if framework.needs_workload else None,
    )
    decisions = [await _decide_once(binding, recipe)]
    standings = [_standing(binding, assumed)]
    before = binding.spec.clusters
    for _ in range(_MAX_PASSES if settles else 0):
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
        if isinstance(second.error, _UNFINISHED):
            return second  # nothing is written of a decision that could not be taken to its end
        decisions.append(_one_after_the_other(decision, second))
    return decisions[-1]


def _unknown_place(binding: Binding, snapshot: Snapshot) -> str | None:
    """Return what is not known of the clusters that a binding is on, None if everything is.

    A cluster that is not among the candidates is lost to a binding. That must come from a cluster which is gone or
    does not fit, and not from one that could not be listed or read.
    """
    unknown = snapshot.unknown
    for target in binding.spec.clusters:
        problem = unknown.unreadable.get(target.name)
        if problem is not None:
            return f"cluster {target.name} cannot be read ({problem})"
    if not snapshot.clusters:
        return "no cluster is known"
    if unknown.incomplete:
        missing = next((each.name for each in binding.spec.clusters if snapshot.get(each.name) is None), None)
        if missing is not None:
            return f"cluster {missing} is not known again since all were missing from a list"
    return None


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
    if (scheduled, name) != (status.last_scheduled_time, status.scheduler_observing_affinity_name):
        status = replace(status, last_scheduled_time=scheduled, scheduler_observing_affinity_name=name)
    return replace(
        binding,
        annotations={**binding.annotations, APPLIED_PLACEMENT_ANNOTATION: decision.applied_placement or ""},
        spec=replace(spec, clusters=decision.targets or ()),
        status=status,
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


async def _decide_once(binding: Binding, recipe: DecisionInputs) -> Decision:
    try:
        placement = placement_of(binding)
        limits.check(binding.spec, placement)
        if recipe.is_due():
            await recipe.turn()
    except SchedulingError as error:
        return Decision(binding.key, error=error)
    # An explicit empty list of affinity terms is none: upstream would schedule nothing and report success.
    if placement.cluster_affinities:
        return await _try_terms(binding, placement, recipe)
    attempt = await run(
        _cycle(binding, placement, recipe, binding.status.scheduler_observing_affinity_name), recipe
    )
    return _concluded(binding, placement, attempt.error, attempt.targets, (attempt,))


async def _try_terms(binding: Binding, placement: Placement, recipe: DecisionInputs) -> Decision:
    """Try one affinity term after the other, from the one in force on; the first that works is taken.

    If none does, the error of the first decides. Earlier terms are not tried again: a binding does not go
    back to a term that it has left. A broken plugin ends the attempt: it says nothing about the clusters, so
    it must neither clear a placement nor move the binding to the next term.
    """
    failures: list[TermFailure] = []
    attempts: list[Attempt] = []
    for index in range(_term_in_force(binding, placement), len(placement.cluster_affinities)):
        name = placement.cluster_affinities[index].affinity_name
        cycle = _cycle(binding, placement, recipe, name)
        attempt = await (_in_turn(cycle, recipe) if recipe.is_due() else run(cycle, recipe))
        attempts.append(attempt)
        if attempt.error is None:
            decision = _concluded(binding, placement, None, attempt.targets, attempts)
            return replace(decision, affinity_name=name, failed_terms=tuple(failures))
        failures.append(TermFailure(index, name, attempt.error))
        if isinstance(attempt.error, _UNFINISHED):
            break
    last = failures[-1].error
    error = last if isinstance(last, _UNFINISHED) else failures[0].error
    return replace(_concluded(binding, placement, error, None, attempts), failed_terms=tuple(failures))


async def _in_turn(cycle: Cycle, recipe: DecisionInputs) -> Attempt:
    """Let others have a turn, then try a term."""
    try:
        await recipe.turn()
    except OverBudgetError as late:
        terms, clusters = len(cycle.placement.cluster_affinities), len(cycle.snapshot)
        error = OverBudgetError(f"{late} (affinity terms: {terms}, clusters: {clusters})")
        return Attempt(cycle.affinity_name, cycle, error=error)
    return await run(cycle, recipe)


def _term_in_force(binding: Binding, placement: Placement) -> int:
    name = binding.status.scheduler_observing_affinity_name
    names = [term.affinity_name for term in placement.cluster_affinities]
    return names.index(name) if name in names else 0


def _cycle(binding: Binding, placement: Placement, recipe: DecisionInputs, affinity_name: str) -> Cycle:
    return Cycle(
        binding,
        placement,
        affinity_name,
        recipe.snapshot,
        peers=recipe.peers,
        workload_answer=recipe.workload,
    )


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
