"""Which change of an object adds which bindings to the scheduling queue.

Pure functions over values before and after a change. They add every binding that a change may concern: one that needs
no scheduling is classified as Avoid, and causes no write.

Source: karmada v1.18.2 pkg/scheduler/event_handler.go.
Differs: a changed policy adds its bindings, which repairs what a missed binding event left; the placement is still read
from the binding only. An added cluster counts as changed. A cluster that changes, or serves another API, adds the
unplaced bindings that may be placed on it (docs/decisions/0021-unknown-clusters.md).
"""

from __future__ import annotations

from collections.abc import Container
from typing import Final

from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.cluster import ApiKinds, Cluster
from karmada_scheduler.api.placement import ClusterAffinity, Placement
from karmada_scheduler.api.policy import Policy
from karmada_scheduler.api.well_known import (
    CLUSTER_POLICY_ID_LABEL,
    MANAGED_BY_LABEL,
    POLICY_ID_LABEL,
    SCHEDULED_CONDITION,
)
from karmada_scheduler.framework.evidence import EventKind, RequeueEvent

BINDING_ADD: Final = "BindingAdd"
BINDING_UPDATE: Final = "BindingUpdate"
CLUSTER_CHANGED: Final = "ClusterChanged"
POLICY_CHANGED: Final = "PolicyChanged"
PLUGINS_CHANGED: Final = "PluginsChanged"
WORKLOAD_CHANGED: Final = "WorkloadChanged"
PLUGIN_EVENT: Final = "PluginEvent"
"""A change that a plugin declares which has refused the binding."""
VERSION_ROLLBACK: Final = "VersionsWentBack"
PROPOSED: Final = "Proposed"
"""A Reconsider plugin has a proposal; not counted as an event."""
ATTEMPT_FAILED: Final = "ScheduleAttemptFailure"
CONFLICT: Final = "ScheduleConflict"
"""The binding changed while it was decided; not counted as an event, as upstream."""

_CLAIMS: Final = (POLICY_ID_LABEL, CLUSTER_POLICY_ID_LABEL, MANAGED_BY_LABEL)


def is_assigned_to(binding: Binding, scheduler_names: Container[str]) -> bool:
    """Return whether a binding names one of these schedulers and its scheduling is not suspended."""
    spec = binding.spec
    return spec.responsible_scheduler in scheduler_names and not spec.scheduling_suspended


def is_claimed_and_assigned(binding: Binding, scheduler_names: Container[str]) -> bool:
    """Return whether a binding is assigned to one of these schedulers, and a policy or a controller claims it.

    Bindings of dependencies are not claimed and have no placement. A binding whose policy was deleted is not claimed
    either, but keeps its placement; changes of its clusters still concern it, so that it can leave one.
    """
    return is_assigned_to(binding, scheduler_names) and is_claimed(binding)


def is_claimed(binding: Binding) -> bool:
    """Return whether a policy or a controller claims a binding."""
    return any(binding.labels.get(label) for label in _CLAIMS)


def on_binding(old: Binding | None, new: Binding | None, scheduler_names: Container[str]) -> str | None:
    """Return the event by which a changed binding is added to the queue, None if it is not added.

    A binding counts as added when it becomes claimed and assigned: by its scheduler's name, by being claimed, or by
    being resumed. A binding that was so before is added when its generation changes.
    """
    if new is None or not is_claimed_and_assigned(new, scheduler_names):
        return None
    if old is None or old.uid != new.uid or not is_claimed_and_assigned(old, scheduler_names):
        return BINDING_ADD
    if old.generation != new.generation or _is_observation_due(old, new, scheduler_names):
        return BINDING_UPDATE
    return None


def _is_observation_due(old: Binding, new: Binding, scheduler_names: Container[str]) -> bool:
    """Return whether a workload that leaves a cluster gracefully has another status on any cluster.

    Its generation is observed when it is ready on its new clusters (``framework.guard_point``). Only this scheduler has
    bindings with eviction tasks of its own.
    """
    tasks = new.spec.graceful_eviction_tasks
    return (
        bool(tasks)
        and old.status.aggregated_items != new.status.aggregated_items
        and new.status.scheduler_observed_generation != new.generation
        and any(task.producer in scheduler_names for task in tasks)
    )


def on_cluster(old: Cluster | None, new: Cluster | None) -> tuple[Cluster, ...]:
    """Return the versions of a changed cluster whose matching bindings are added to the queue.

    Both versions count when labels or spec have changed, so that bindings can leave a cluster as well as enter it. So do
    those of another cluster with the same name, which a list shows after a gap. The start of a deletion counts, too.
    The status does not, as upstream: readiness is also a taint.
    """
    if old is None or new is None:
        return ()
    if new.deleting and not old.deleting:
        return (new,)
    if old.labels != new.labels or old.generation != new.generation or old.uid != new.uid:
        return (old, new)
    return ()


def gained_apis(old: Cluster, new: Cluster) -> ApiKinds:
    """Return the API kinds that a cluster serves now and did not serve before."""
    if old.api_kinds is new.api_kinds or new.deleting:
        return frozenset()
    return new.api_kinds - old.api_kinds


def is_declared(event: RequeueEvent, old: Binding | Cluster | None, new: Binding | Cluster | None) -> bool:
    """Return whether a change is an event of a plugin; a new cluster, and one that goes, concern all unplaced bindings or none."""
    if isinstance(old or new, Binding):
        return event.kind is EventKind.BINDING and _visible_part(old) != _visible_part(new)
    if not isinstance(old, Cluster) or not isinstance(new, Cluster) or new.deleting:
        return False
    if event.kind is EventKind.CLUSTER_CONDITIONS:
        return _conditions(event, old) != _conditions(event, new)
    return event.kind is EventKind.CLUSTER_SUMMARY and _amounts(event, old) != _amounts(event, new)


def _visible_part(binding: Binding | Cluster | None) -> object:
    """Return what a binding shows to the plugins of others: not its status."""
    if not isinstance(binding, Binding):
        return None
    return binding.uid, binding.generation, binding.labels, binding.annotations


def _conditions(event: RequeueEvent, cluster: Cluster) -> object:
    return cluster.condition(event.name) if event.name else cluster.conditions


def _amounts(event: RequeueEvent, cluster: Cluster) -> object:
    summary = cluster.resource_summary
    if summary is None or not event.name:
        return summary
    return [each.get(event.name) for each in (summary.allocatable, summary.allocated, summary.allocating)]


def is_unplaced(binding: Binding) -> bool:
    """Return whether the last attempt to schedule a binding did not succeed, or there was none."""
    condition = binding.status.condition(SCHEDULED_CONDITION)
    return condition is None or condition.get("status") != "True"


def may_take(cluster: Cluster, placement: Placement) -> bool:
    """Return whether any affinity of a placement matches a cluster, later terms and overflow tiers included."""
    terms = placement.cluster_affinities
    if not terms:
        return placement.cluster_affinity is None or placement.cluster_affinity.matches(cluster)
    return any(
        term.affinity.matches(cluster)
        or any(overflow.affinity.matches(cluster) for overflow in term.overflow_affinities)
        for term in terms
    )


def is_affected(binding: Binding, cluster: Cluster) -> bool:
    """Return whether one version of a cluster concerns a binding, so that it is added to the queue."""
    placement = binding.spec.placement
    if placement is None:
        return False
    if placement.cluster_affinities and binding.status.scheduler_observed_generation != binding.generation:
        return True
    affinity = _affinity_in_use(placement, binding.status.scheduler_observing_affinity_name)
    return affinity is None or affinity.matches(cluster)


def _affinity_in_use(placement: Placement, observed: str) -> ClusterAffinity | None:
    if placement.cluster_affinities:
        term = placement.affinity_term(observed) or placement.cluster_affinities[0]
        return term.affinity
    return placement.cluster_affinity


def on_policy(old: Policy | None, new: Policy | None) -> str | None:
    """Return the permanent id of a changed policy whose bindings are added to the queue, None if none are."""
    policy = new or old
    if policy is None or not policy.permanent_id:
        return None
    if old is not None and new is not None and old.generation == new.generation:
        return None
    return policy.permanent_id
