"""The policy that the API server stores for a policy that a user writes: defaults of the CRD, then of the webhook.

Source: karmada v1.18.2 pkg/apis/policy/v1alpha1/propagation_types.go (kubebuilder defaults),
pkg/webhook/propagationpolicy/mutating.go, pkg/webhook/clusterpropagationpolicy/mutating.go, pkg/util/helper/policy.go.
"""

from __future__ import annotations

from typing import Any, Final

from karmada_advisor.claims.shapes import SPEC, written
from karmada_scheduler.api.binding_spec import DEFAULT_SCHEDULER_NAME
from karmada_scheduler.api.manifest import Manifest, read_mapping

DIVIDED: Final = "Divided"
_GRACEFUL: Final = frozenset({"Gracefully", "Graciously"})
_GRACE_PERIOD_SECONDS: Final = 600
_TOLERATION_SECONDS: Final = 300
_SERVICE_IMPORT: Final = ("multicluster.x-k8s.io/v1alpha1", "ServiceImport")


def stored_spec(spec: Manifest, *, namespace: str) -> dict[str, Any]:
    """Return the spec of a policy as the API server stores it.

    The spec of a stored policy is returned as it is.

    Args:
        spec: As a user writes it.
        namespace: Of a PropagationPolicy; empty for a ClusterPropagationPolicy.

    Raises:
        ManifestError: A field has another type.
    """
    stored = written(spec, SPEC, "spec")
    stored.setdefault("priority", 0)
    stored.setdefault("preemption", "Never")
    stored.setdefault("schedulerName", DEFAULT_SCHEDULER_NAME)
    stored.setdefault("conflictResolution", "Abort")
    _complete_placement(stored["placement"])
    _complete_failover(read_mapping(stored, "failover", "spec"))
    for selector in stored.get("resourceSelectors", ()):
        if namespace:
            selector.setdefault("namespace", namespace)
        if (selector["apiVersion"], selector["kind"]) == _SERVICE_IMPORT:
            stored["propagateDeps"] = True
    return stored


def _complete_placement(placement: dict[str, Any]) -> None:
    for constraint in placement.get("spreadConstraints", ()):
        if not constraint.get("spreadByLabel"):
            constraint.setdefault("spreadByField", "cluster")
        constraint.setdefault("minGroups", 1)
    division = placement.get("replicaScheduling")
    if division is not None:
        division.setdefault("replicaSchedulingType", DIVIDED)
        if division["replicaSchedulingType"] == DIVIDED:
            division.setdefault("replicaDivisionPreference", "Weighted")


def _complete_failover(failover: Manifest) -> None:
    application, cluster = failover.get("application"), failover.get("cluster")
    if application is not None:
        application["decisionConditions"].setdefault("tolerationSeconds", _TOLERATION_SECONDS)
        application.setdefault("purgeMode", "Gracefully")
        if application["purgeMode"] in _GRACEFUL:
            application.setdefault("gracePeriodSeconds", _GRACE_PERIOD_SECONDS)
    if cluster is not None:
        cluster.setdefault("purgeMode", "Gracefully")
