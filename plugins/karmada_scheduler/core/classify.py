"""Whether a binding has to be scheduled, and why.

Upstream's five rules decide whether it is; the schedule type is for logs and metrics. Neither changes the decision: the
algorithm determines itself which targets to keep.

Source: karmada v1.18.2 pkg/scheduler scheduler.go doScheduleBinding, helper.go placementChanged;
pkg/util/helper/binding.go IsBindingReplicasChanged.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from enum import Enum
from typing import Final

from karmada_scheduler.api.binding import CLUSTER_RESOURCE_BINDING, Binding
from karmada_scheduler.api.manifest import ManifestError
from karmada_scheduler.api.placement import DIVIDED, DUPLICATED, Placement
from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.core.requeue_rules import is_claimed_and_assigned
from karmada_scheduler.framework.diagnosis import SchedulingError
from karmada_scheduler.structs import Struct

RECONCILE_SCHEDULE: Final = "ReconcileSchedule"
SCALE_SCHEDULE: Final = "ScaleSchedule"


class ScheduleType(Enum):
    """Why a binding has to be scheduled."""

    FIRST = "First"
    """It was never scheduled."""
    RECONCILE = "Reconcile"
    """Its placement changed, a reschedule was requested, or its type is always scheduled."""
    SCALE = "Scale"
    """Its replicas changed."""
    FAILOVER = "Failover"
    """One of its clusters is being deleted or does not exist, or it is being evicted from one."""
    AVOID = "Avoid"
    """It need not be scheduled."""


class Classification(Struct, frozen=True):
    """Whether and why a binding has to be scheduled.

    Attributes:
        reason: Upstream's log line for the rule that applies.
        metric_type: Upstream's label for it; empty for AVOID.
        is_routine: Whether a binding of this kind is scheduled at every event, without a change that requires it.
    """

    type: ScheduleType
    reason: str
    metric_type: str = ""
    is_routine: bool = False


def classify(binding: Binding, *, is_gone: Callable[[str], bool], gates: FeatureGates) -> Classification:
    """Apply the rules; the first that holds wins.

    Args:
        binding: As it is now.
        is_gone: Returns whether a cluster is being deleted or does not exist (``Snapshot.is_gone``).
        gates: Feature gates; the rules depend on MultiplePodTemplatesScheduling.

    Raises:
        SchedulingError: The binding has no placement.
    """
    placement = placement_of(binding)
    shown = binding.key.display
    moving = bool(binding.spec.graceful_eviction_tasks)
    leaving = any(is_gone(target.name) for target in binding.spec.clusters)
    if placement_changed(binding, placement):
        reason = f"Start to schedule {shown} as placement changed"
        return _work(binding, ScheduleType.RECONCILE, reason, RECONCILE_SCHEDULE)
    if replicas_changed(binding, placement, gates):
        reason = f"Reschedule {shown} as replicas scaled down or scaled up"
        type_ = ScheduleType.FAILOVER if moving and _shrunk(binding) else ScheduleType.SCALE
        return _work(binding, type_, reason, SCALE_SCHEDULE)
    if binding.reschedule_triggered:
        start = "Start to schedule" if binding.key.kind == CLUSTER_RESOURCE_BINDING else "Reschedule"
        reason = f"{start} {shown} as explicitly triggered reschedule"
        return _work(binding, ScheduleType.RECONCILE, reason, RECONCILE_SCHEDULE)
    if placement.is_duplicated or not binding.spec.is_workload:
        reason = f"Start to schedule {shown} as scheduling type is duplicated"
        type_ = ScheduleType.FAILOVER if moving or leaving else ScheduleType.RECONCILE
        return _work(binding, type_, reason, RECONCILE_SCHEDULE, is_routine=True)
    if leaving:
        reason = f"Reschedule {shown} as some scheduled clusters are deleted"
        return _work(binding, ScheduleType.FAILOVER, reason, RECONCILE_SCHEDULE)
    return Classification(ScheduleType.AVOID, f"Don't need to schedule {shown}")


def needs_none(
    binding: Binding, names: Container[str], *, is_gone: Callable[[str], bool], gates: FeatureGates
) -> bool:
    """Return whether one of the schedulers ``names`` has a binding that needs no scheduling; see ``classify``."""
    return (
        not binding.deleting
        and binding.spec.placement is not None
        and is_claimed_and_assigned(binding, names)
        and classify(binding, is_gone=is_gone, gates=gates).type is ScheduleType.AVOID
    )


def placement_of(binding: Binding) -> Placement:
    """Return the placement of a binding.

    Raises:
        SchedulingError: It has none; the text is upstream's.
    """
    if binding.spec.placement is None:
        kind = binding.key.kind[0].lower() + binding.key.kind[1:]
        raise SchedulingError(f"failed to get placement from {kind}({binding.key})")
    return binding.spec.placement


def _work(
    binding: Binding, type_: ScheduleType, reason: str, metric_type: str, *, is_routine: bool = False
) -> Classification:
    if (
        not binding.spec.clusters
        and not binding.applied_placement_json
        and not binding.status.last_scheduled_time
    ):
        type_ = ScheduleType.FIRST
    return Classification(type_, reason, metric_type, is_routine)


def _shrunk(binding: Binding) -> bool:
    return sum(target.replicas for target in binding.spec.clusters) < binding.spec.replicas


def placement_changed(binding: Binding, placement: Placement) -> bool:
    """Return whether the placement differs from the applied one.

    A change of affinity terms other than the one in use does not count. An unreadable annotation counts as changed;
    upstream counts it as unchanged and never repairs it.
    """
    if binding.applied_placement_json == placement.to_json():
        return False
    try:
        applied = binding.applied_placement
    except ManifestError:
        return True
    if applied is None:
        return True
    if placement == applied:
        return False
    if (
        placement.cluster_affinity != applied.cluster_affinity
        or placement.cluster_tolerations != applied.cluster_tolerations
        or placement.spread_constraints != applied.spread_constraints
        or placement.replica_scheduling != applied.replica_scheduling
    ):
        return True
    name = binding.status.scheduler_observing_affinity_name
    term, before = placement.affinity_term(name), applied.affinity_term(name)
    return not name or term is None or term != before


def replicas_changed(binding: Binding, placement: Placement, gates: FeatureGates) -> bool:
    """Return whether the replicas of the targets differ from those of the workload."""
    spec, strategy = binding.spec, placement.replica_scheduling
    if strategy is None:
        return False
    if spec.components and not spec.clusters and gates.enabled("MultiplePodTemplatesScheduling"):
        return True
    if strategy.replica_scheduling_type == DUPLICATED:
        return any(target.replicas != spec.replicas for target in spec.clusters)
    if strategy.replica_scheduling_type == DIVIDED:
        return sum(target.replicas for target in spec.clusters) != spec.replicas
    return False
