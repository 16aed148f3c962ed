"""What a decision moves, and which copies of a workload are healthy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from karmada_scheduler.api.binding import HEALTHY, Binding
from karmada_scheduler.core.classify import placement_changed
from karmada_scheduler.framework import GuardContext, Snapshot
from karmada_scheduler.structs import Struct
from karmada_scheduler_plugins._cluster_outages import ClusterOutages, is_ready

_READY = "readyReplicas"
_NATIVE = frozenset({("apps/v1", "Deployment"), ("apps/v1", "StatefulSet"), ("apps/v1", "ReplicaSet")})
"""Kinds whose status has ``readyReplicas`` unless it is 0."""


class Move(Struct, frozen=True):
    """What a decision takes off clusters that exist.

    Attributes:
        replicas: The replicas that move to other clusters; 0 for a workload without replicas.
        is_move: Whether anything moves, also a workload without replicas.
        partial: The replicas that move off clusters that stay with fewer.
        cause: ``PlacementChanged``, ``Rebalanced``, ``Rescheduled``, or the reason of a proposal, as ``FailedBack``.
    """

    replicas: int
    is_move: bool
    partial: int
    cause: str


def move_of(context: GuardContext) -> Move:
    """Return what a decision moves.

    A user's smaller number of replicas is no move. What leaves clusters that are gone does not count, nor those that were
    evicted, because they are not among the current clusters any more.
    """
    binding = context.binding
    old = {each.name: each.replicas for each in binding.spec.clusters if each.name not in context.gone}
    new = {target.name: target.replicas for target in context.targets or ()}
    less = {name: count - new.get(name, 0) for name, count in old.items() if count > new.get(name, 0)}
    fewer = max(0, sum(old.values()) - sum(new.values()))
    placement = binding.spec.placement
    cause = "Rescheduled"
    if context.proposal is not None:
        cause = context.proposal.reason
    elif placement is not None and placement_changed(binding, placement):
        cause = "PlacementChanged"
    elif binding.reschedule_triggered:
        cause = "Rebalanced"
    if not binding.spec.is_workload:
        return Move(0, bool(context.leaving), 0, cause)
    if placement is not None and placement.is_duplicated:
        return Move(sum(old[name] for name in context.leaving), bool(context.leaving), 0, cause)
    moved = max(0, sum(less.values()) - fewer)
    partial = sum(count for name, count in less.items() if name in new)
    return Move(moved, moved > 0, min(moved, partial), cause)


def healthy_clusters(binding: Binding, snapshot: Snapshot) -> frozenset[str]:
    """Return the clusters that report the workload healthy, and are Ready now.

    The last report of a cluster that is not Ready stays in the status of the binding.
    """
    return frozenset(name for name in _reported_healthy(binding) if is_ready(snapshot.get(name)))


def not_known_unhealthy(binding: Binding, snapshot: Snapshot, outages: ClusterOutages) -> frozenset[str]:
    """Return the clusters whose last report of the workload is healthy, and that are not lost.

    What is exempt because nothing healthy is harmed depends on these: a cluster that is not Ready for a moment lets nothing
    move.
    """
    return frozenset(name for name in _reported_healthy(binding) if not outages.is_lost(name, snapshot))


def _reported_healthy(binding: Binding) -> Iterator[str]:
    return (report.cluster_name for report in binding.status.aggregated_status if report.health == HEALTHY)


def leaves_last_healthy_copy(context: GuardContext, healthy: frozenset[str]) -> bool:
    """Return whether a decision takes a workload off a cluster where it may be healthy, and it is healthy on none that stays.

    ``healthy`` is the result of ``not_known_unhealthy``.
    """
    binding, snapshot = context.binding, context.cycle.snapshot
    if binding.spec.is_workload and not binding.spec.replicas:
        return False
    staying = {target.name for target in context.targets or ()}
    return bool(healthy & context.leaving) and not healthy_clusters(binding, snapshot) & staying


def unready_target(binding: Binding) -> str:
    """Return which current cluster is not ready, and why; "" if all are.

    A cluster is ready if the workload is applied and Healthy there, and has the replicas of the target, for kinds whose
    status has them: a copy that grows is Healthy until the cluster has reported its new size.
    """
    items = {report.get("clusterName"): report for report in binding.status.aggregated_items}
    for target in binding.spec.clusters:
        problem = _problem_of(items.get(target.name), target.replicas, binding)
        if problem:
            return f"{target.name} {problem}"
    return ""


def _problem_of(item: Mapping[str, Any] | None, replicas: int, binding: Binding) -> str:
    if item is None or item.get("applied") is not True:
        return "has not applied it"
    if item.get("health") != HEALTHY:
        return f"reports {item.get('health') or 'nothing'}"
    status = item.get("status")
    status = status if isinstance(status, Mapping) else {}
    resource = binding.spec.resource
    if _READY in status or (resource.api_version, resource.kind) in _NATIVE:
        ready = status.get(_READY, 0)
        if not isinstance(ready, int) or ready < replicas:
            return f"has {ready} of {replicas} ready replicas"
    observed, generation = status.get("observedGeneration"), status.get("generation")
    if isinstance(observed, int) and isinstance(generation, int) and observed < generation:
        return "has not observed its last change"
    return ""
