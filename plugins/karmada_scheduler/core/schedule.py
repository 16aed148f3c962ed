"""The scheduling algorithm: from a binding and all clusters to a decision.

A decision is pure: it reads the binding and the snapshot and changes neither. It is also stable. Upstream observes its
own write and schedules Duplicated bindings, and those without replicas, again on top of it: its own result raises the
available replicas that it counts on the chosen clusters. It writes until nothing changes. Here the decision is repeated
on its own result in memory, and written once. A binding that no policy claims is not enqueued by its own write, so
there is one pass for it.

Source: karmada v1.18.2 pkg/scheduler/core/generic_scheduler.go Schedule.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final
from weakref import WeakKeyDictionary

from karmada_scheduler.api.binding import Binding, BindingKey, TargetCluster
from karmada_scheduler.api.well_known import APPLIED_PLACEMENT_ANNOTATION
from karmada_scheduler.api.workload import Workload, WorkloadAnswer
from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.core.available_replicas import (
    Assumed,
    Estimators,
    LocalEstimator,
    ReplicaEstimator,
    with_footprint,
)
from karmada_scheduler.core.budget import Budget
from karmada_scheduler.core.classify import ScheduleType, classify, placement_changed
from karmada_scheduler.core.decision import Decision
from karmada_scheduler.core.decision_inputs import DecisionInputs
from karmada_scheduler.core.guard import guarded, guarded_or_returned
from karmada_scheduler.core.guard_additions import with_targets
from karmada_scheduler.core.ordering.cache import OrderingCaches
from karmada_scheduler.core.post_filter import after_shortages
from karmada_scheduler.core.reconsider import proposed_terms, reconsidered, with_kept, within_proposed_terms
from karmada_scheduler.core.schedule_terms import UNFINISHED, schedule_terms, terms_from
from karmada_scheduler.framework.cycle import InFlight, Peers, no_workload
from karmada_scheduler.framework.diagnosis import SchedulingError
from karmada_scheduler.framework.extension_points import FOR_CAPACITY
from karmada_scheduler.framework.guard_point import Terms
from karmada_scheduler.framework.runtime.framework import Framework
from karmada_scheduler.framework.runtime.guarding import Proposed
from karmada_scheduler.framework.snapshot import Snapshot
from karmada_scheduler.structs import Struct, field, replace

_NOTHING_ASSUMED: Final[Assumed] = {}
_MAX_PASSES: Final = 10
"""Upstream has no bound; it needs two or three passes."""


class SchedulingAlgorithm(Struct):
    """Schedules bindings, and owns the cached orders of clusters of every profile.

    Attributes:
        gates: Feature gates.
        estimators: The estimators in this process.
        empty_workload_propagation: Whether selected clusters without replicas become targets.
        peers: Finds the bindings of a workload group (gate WorkloadAffinity).
        stored: Returns a binding as it is stored, None if it is unknown.
        stored_workload: Returns the workload of a binding as it is stored, None if it is not known.
    """

    gates: FeatureGates
    estimators: Sequence[LocalEstimator]
    empty_workload_propagation: bool = False
    peers: Peers | None = None
    stored: Callable[[BindingKey], Binding | None] = lambda _: None
    stored_workload: Callable[[BindingKey], Workload | None] = no_workload
    _caches: WeakKeyDictionary[Framework, OrderingCaches] = field(default_factory=WeakKeyDictionary)

    async def decide(
        self,
        binding: Binding,
        snapshot: Snapshot,
        framework: Framework,
        *,
        session: ReplicaEstimator | None = None,
        assumed: Assumed = _NOTHING_ASSUMED,
        in_flight: Sequence[Binding] = (),
        until_stable: bool = True,
        budget: Budget | None = None,
        workload: WorkloadAnswer | None = None,
        proposed: Proposed | None = None,
        start_term: str = "",
        keep_steps: bool = False,
    ) -> Decision:
        """Decide on the placement of a binding. ``classify`` determines before whether it has to be scheduled.

        A coroutine, because extenders, estimators and plugins may do I/O; without those it never waits (see
        ``run_sync``).

        Args:
            binding: As it is now.
            snapshot: All clusters.
            framework: The plugins of the binding's profile.
            session: The estimators in the member clusters, for this decision.
            assumed: Recent placements that count as taken (gate SchedulingOvercommitProtection).
            in_flight: Bindings that are decided and may not be written yet, with their new clusters.
            until_stable: Whether upstream would schedule again on top of its own result.
            budget: CPU time of the decision; None means no limit, and no yielding (``run_sync.begin``).
            workload: Metadata of the workload; plugins get it only where one of them needs it.
            proposed: The proposal of a Reconsider plugin to try; None for a decision that an event requires.
            start_term: The affinity term to begin with; "" for the one in use. If no term works, the placement is cleared only
                if the term in use does not fit.
            keep_steps: Whether attempts keep what their steps worked with (``Cycle.kept``), for explanations.
        """
        if binding.spec.clusters and (not snapshot.clusters or snapshot.unknown):
            problem = _unknown_cluster(binding, snapshot)
            if problem is not None:
                kept = _kept(binding, problem)
                return kept if proposed is None else reconsidered(binding, kept, framework, proposed)
        inputs = DecisionInputs(
            snapshot,
            framework,
            self._caches_of(framework),
            Estimators(self.estimators, session),
            self.gates,
            self.empty_workload_propagation,
            assumed,
            self.peers,
            [InFlight(self.stored(placed.key), placed) for placed in in_flight],
            budget,
            workload if framework.needs_workload else None,
            self.stored_workload,
            is_proposed=proposed is not None,
            keeps_steps=keep_steps,
            shortages=[] if framework.post_filters[FOR_CAPACITY] and proposed is None else None,
        )
        if proposed is not None:
            return await _try_proposal(binding, inputs, proposed, until_stable=until_stable)

        terms = terms_from(binding, start_term, self.gates.rules) if start_term else None
        decision = await schedule_terms(binding, inputs, terms)
        if inputs.shortages and decision.error is not None:
            decision = await after_shortages(decision, inputs)
        if until_stable:
            decision = await _until_stable(binding, decision, inputs)
        if snapshot.unknown.incomplete and binding.spec.clusters and decision.targets == ():
            # One of the clusters that are not known again may fit.
            return _kept(binding, "no known cluster fits, and all were missing from a list")
        if not framework.plugins.guard:
            return decision

        async def decide_again(without_tasks: Binding) -> Decision:
            again = await schedule_terms(without_tasks, inputs, terms)
            return await _until_stable(without_tasks, again, inputs) if until_stable else again

        return await guarded_or_returned(binding, decision, framework, decide_again)

    def _caches_of(self, framework: Framework) -> OrderingCaches:
        caches = self._caches.get(framework)
        if caches is None:
            caches = self._caches[framework] = OrderingCaches()
        return caches


async def _try_proposal(
    binding: Binding, inputs: DecisionInputs, proposed: Proposed, *, until_stable: bool
) -> Decision:
    """Return the decision that a Reconsider plugin proposes, empty if it is not to be written."""
    terms, decided = proposed_terms(binding, proposed), with_kept(binding, proposed.proposal.kept)
    if not terms and proposed.proposal.terms is Terms.EARLIER:
        decision = Decision(binding.key, error=SchedulingError("there is no earlier affinity term"))
    else:
        decision = await schedule_terms(decided, inputs, terms or None)
    if decision.error is None and until_stable:
        decision = within_proposed_terms(await _until_stable(decided, decision, inputs), binding, terms)
    if decision.error is None:
        decision = guarded(binding, decision, inputs.framework, proposed.proposal)
    return reconsidered(binding, decision, inputs.framework, proposed)


async def _until_stable(binding: Binding, first: Decision, inputs: DecisionInputs) -> Decision:
    """Repeat a decision on its own result until that does not change."""
    decisions, before = [first], binding.spec.clusters
    states = [_state(binding, inputs.assumed)]
    for _ in range(_MAX_PASSES):
        decision = decisions[-1]
        if decision.targets is None or not decision.changes_clusters(binding):
            break
        if inputs.gates.enabled("SchedulingOvercommitProtection"):
            inputs = replace(inputs, assumed=with_footprint(inputs.assumed, binding, decision.targets))
        binding = _as_written(binding, decision)
        if (state := _state(binding, inputs.assumed)) in states:
            return _of_cycle(decisions[states.index(state) :], before)
        states.append(state)
        again = classify(binding, is_gone=inputs.snapshot.is_gone, gates=inputs.gates)
        if again.type is ScheduleType.AVOID:
            break
        second = await schedule_terms(binding, inputs)
        if isinstance(second.error, UNFINISHED):
            return second  # nothing is written of a decision that did not finish
        decisions.append(_combined(decision, second))
    return decisions[-1]


def _kept(binding: Binding, problem: str) -> Decision:
    """Return the decision that leaves a binding as it is because clusters are unknown."""
    return Decision(binding.key, error=SchedulingError(f"{problem}; the placement stays as it is"))


def _unknown_cluster(binding: Binding, snapshot: Snapshot) -> str | None:
    """Return which cluster of a binding is unknown, and why; None if all are known.

    A binding loses a cluster that is not a candidate. The cause must be that the cluster is gone or does not fit, not
    that it could not be listed or read.
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


def _of_cycle(cycle: Sequence[Decision], before: tuple[TargetCluster, ...]) -> Decision:
    """Return one decision of a cycle in which upstream would move a binding forever.

    The footprint of a binding can make its own cluster unsuitable, again and again. A binding that already has one
    of the placements keeps it, so that nothing moves and the next decision has the same result. Any other gets the
    first placement to which the cycle returns.
    """
    return next((attempt for attempt in cycle if attempt.targets == before), cycle[-1])


def _as_written(binding: Binding, decision: Decision) -> Binding:
    """Return the binding as the API server will have it once the decision is written."""
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
        spec=with_targets(spec, decision),
        status=status,
    )


def _state(binding: Binding, assumed: Assumed) -> tuple[object, ...]:
    """Return all values that can differ between two passes of a decision.

    The assumed workloads are a part of it: a binding that returns to a cluster may have a footprint there that it did
    not have before.
    """
    placement, status = binding.spec.placement, binding.status
    changed = placement is not None and placement_changed(binding, placement)
    return (
        binding.spec.clusters,
        binding.spec.unknown_target_fields,
        status.scheduler_observing_affinity_name,
        changed,
        binding.reschedule_triggered,
        assumed,
    )


def _combined(first: Decision, second: Decision) -> Decision:
    """Return the targets to write after a second pass on top of the first."""
    failures = [
        *first.failed_terms,
        *(term for term in second.failed_terms if term not in first.failed_terms),
    ]
    kept = second.targets is None
    return replace(
        second,
        targets=first.targets if kept else second.targets,
        applied_placement=first.applied_placement if kept else second.applied_placement,
        components=first.components if kept else second.components,
        affinity_name=first.affinity_name if second.affinity_name is None else second.affinity_name,
        failed_terms=tuple(failures),
        attempts=(*first.attempts, *second.attempts),
    )
