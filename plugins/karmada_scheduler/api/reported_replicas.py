"""The replicas of a workload that a cluster reports in ``status.aggregatedStatus`` of the binding.

Source: karmada v1.18.2 pkg/resourceinterpreter/default/native/reflectstatus.go; kubernetes v1.35 leaves counts of 0 out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from karmada_scheduler.api.binding_spec import ObjectReference, ReportedReplicas
from karmada_scheduler.api.manifest import integer_at

_SCALED: Final = frozenset({"Deployment", "ReplicaSet", "StatefulSet"})
"""Kinds of apps/v1 that report how many replicas they have; Kubernetes leaves a count of 0 out."""


def leaves_out_zeros(resource: ObjectReference) -> bool:
    """Return whether a count that is missing in the status of a workload is 0."""
    return resource.api_version == "apps/v1" and resource.kind in _SCALED


def reported_replicas(status: Mapping[str, Any], resource: ObjectReference) -> int | None:
    """Return how many replicas a status reports, ready or not; None if that is not known."""
    count = integer_at(status, "replicas")
    if count is not None or not leaves_out_zeros(resource):
        return count
    has_some = any(integer_at(status, f"{name}Replicas") for name in ("ready", "available", "updated"))
    reports = "observedGeneration" in status or "unavailableReplicas" in status
    return 0 if reports and not has_some else None


def under_way(status: Mapping[str, Any], running: int | None) -> str:
    """Return what the workload's controller has still to do; "" if nothing, so that it will stay as it is.

    Args:
        status: The status of the workload on one cluster.
        running: The number of its replicas, None if that is not known.
    """
    generation, observed = integer_at(status, "generation"), integer_at(status, "observedGeneration")
    if generation is not None and observed is not None and observed < generation:
        return f"its controller has not seen generation {generation}"
    updated = integer_at(status, "updatedReplicas")
    if updated is not None and running is not None and updated < running:
        return f"a roll-out has not ended, {updated} of {running} are updated"
    return ""


def settled_replicas(item: Mapping[str, Any], resource: ObjectReference) -> ReportedReplicas | None:
    """Return the replicas that a cluster reports if they will stay as they are.

    Args:
        item: The item of ``status.aggregatedStatus``.
        resource: The workload.

    Returns:
        None if the number is not known or not plausible, if the workload is not applied, or if a change is under way.
    """
    status = item.get("status")
    if item.get("applied") is not True or not isinstance(status, Mapping):
        return None
    found = reported_replicas(status, resource)
    if found is None or found < 0 or under_way(status, found):
        return None
    leaves_out = leaves_out_zeros(resource) and "readyReplicas" not in status
    ready = 0 if leaves_out else integer_at(status, "readyReplicas")
    return ReportedReplicas(found, ready if ready is not None and 0 <= ready <= found else None)
