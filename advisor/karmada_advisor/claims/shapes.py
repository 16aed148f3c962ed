"""The fields of a policy as the API server stores them, with its defaults.

A policy passes through Go types in the mutating webhook and in the detector: unknown fields get lost, zero values are left
out where the type says ``omitempty``, and empty objects behind pointers stay.

Source: karmada v1.18.2 pkg/apis/policy/v1alpha1/propagation_types.go.

Source of the defaults: karmada v1.18.2 pkg/apis/policy/v1alpha1/propagation_types.go (kubebuilder defaults),
pkg/webhook/propagationpolicy/mutating.go, pkg/webhook/clusterpropagationpolicy/mutating.go, pkg/util/helper/policy.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, Final

from karmada_scheduler.api.binding_spec import DEFAULT_SCHEDULER_NAME
from karmada_scheduler.api.manifest import Manifest, read_mapping, read_mappings, read_optional_mapping
from karmada_scheduler.structs import Struct


class Scalar(Enum):
    """When a field of text, a number, a truth value, or a list or map of texts is written."""

    NOT_ZERO = "unless it is zero or empty"
    NOT_NULL = "unless it is null"
    ALWAYS = "always; null is the empty text"


class Object(Struct, frozen=True):
    """An object; an absent one is written as an empty one if it is ``required``."""

    fields: Fields
    required: bool = False


class ClaimObjects(Struct, frozen=True):
    """A list of objects; an empty one is left out."""

    fields: Fields


Fields = Mapping[str, Scalar | Object | ClaimObjects]

_REQUIREMENT: Final[Fields] = {"key": Scalar.ALWAYS, "operator": Scalar.ALWAYS, "values": Scalar.NOT_ZERO}
_LABEL_SELECTOR: Final[Fields] = {
    "matchLabels": Scalar.NOT_ZERO,
    "matchExpressions": ClaimObjects(_REQUIREMENT),
}
_AFFINITY: Final[Fields] = {
    "labelSelector": Object(_LABEL_SELECTOR),
    "fieldSelector": Object({"matchExpressions": ClaimObjects(_REQUIREMENT)}),
    "clusterNames": Scalar.NOT_ZERO,
    "exclude": Scalar.NOT_ZERO,
}
_NAMED_AFFINITY: Final[Fields] = {"affinityName": Scalar.ALWAYS, **_AFFINITY}
_TOLERATION: Final[Fields] = {
    "key": Scalar.NOT_ZERO,
    "operator": Scalar.NOT_ZERO,
    "value": Scalar.NOT_ZERO,
    "effect": Scalar.NOT_ZERO,
    "tolerationSeconds": Scalar.NOT_NULL,
}
_WEIGHTS: Final[Fields] = {
    "staticWeightList": ClaimObjects(
        {"targetCluster": Object(_AFFINITY, required=True), "weight": Scalar.ALWAYS}
    ),
    "dynamicWeight": Scalar.NOT_ZERO,
}
_GROUP: Final = Object({"groupByLabelKey": Scalar.ALWAYS})
PLACEMENT: Final[Fields] = {
    "clusterAffinity": Object(_AFFINITY),
    "clusterAffinities": ClaimObjects(
        {**_NAMED_AFFINITY, "overflowAffinities": ClaimObjects(_NAMED_AFFINITY)}
    ),
    "clusterTolerations": ClaimObjects(_TOLERATION),
    "spreadConstraints": ClaimObjects(
        {
            "spreadByField": Scalar.NOT_ZERO,
            "spreadByLabel": Scalar.NOT_ZERO,
            "maxGroups": Scalar.NOT_ZERO,
            "minGroups": Scalar.NOT_ZERO,
        }
    ),
    "replicaScheduling": Object(
        {
            "replicaSchedulingType": Scalar.NOT_ZERO,
            "replicaDivisionPreference": Scalar.NOT_ZERO,
            "weightPreference": Object(_WEIGHTS),
        }
    ),
    "workloadAffinity": Object({"affinity": _GROUP, "antiAffinity": _GROUP}),
}
_STATE: Final = Object({"rules": ClaimObjects({"aliasLabelName": Scalar.ALWAYS, "jsonPath": Scalar.ALWAYS})})
FAILOVER: Final[Fields] = {
    "application": Object(
        {
            "decisionConditions": Object({"tolerationSeconds": Scalar.NOT_NULL}, required=True),
            "purgeMode": Scalar.NOT_ZERO,
            "gracePeriodSeconds": Scalar.NOT_NULL,
            "statePreservation": _STATE,
        }
    ),
    "cluster": Object({"purgeMode": Scalar.NOT_ZERO, "statePreservation": _STATE}),
}
SUSPENSION: Final[Fields] = {
    "dispatching": Scalar.NOT_NULL,
    "dispatchingOnClusters": Object({"clusterNames": Scalar.NOT_ZERO}),
}
SELECTOR: Final[Fields] = {
    "apiVersion": Scalar.ALWAYS,
    "kind": Scalar.ALWAYS,
    "namespace": Scalar.NOT_ZERO,
    "name": Scalar.NOT_ZERO,
    "labelSelector": Object(_LABEL_SELECTOR),
}
SPEC: Final[Fields] = {
    "resourceSelectors": ClaimObjects(SELECTOR),
    "association": Scalar.NOT_ZERO,
    "propagateDeps": Scalar.NOT_ZERO,
    "placement": Object(PLACEMENT, required=True),
    "priority": Scalar.NOT_NULL,
    "preemption": Scalar.NOT_ZERO,
    "dependentOverrides": Scalar.NOT_ZERO,
    "schedulerName": Scalar.NOT_ZERO,
    "failover": Object(FAILOVER),
    "conflictResolution": Scalar.NOT_ZERO,
    "activationPreference": Scalar.NOT_ZERO,
    "suspension": Object(SUSPENSION),
    "preserveResourcesOnDeletion": Scalar.NOT_NULL,
    "schedulePriority": Object({"priorityClassSource": Scalar.ALWAYS, "priorityClassName": Scalar.ALWAYS}),
}
"""``spec`` of a PropagationPolicy or ClusterPropagationPolicy."""


def written(value: Manifest, fields: Fields, path: str) -> dict[str, Any]:
    """Return an object as Go writes it after reading it.

    Args:
        value: The object.
        fields: Its type.
        path: Where it is, for errors.

    Raises:
        ManifestError: An object or a list has another type.
    """
    result: dict[str, Any] = {}
    for name, shape in fields.items():
        found = value.get(name)
        if isinstance(shape, Scalar):
            if shape is Scalar.ALWAYS:
                result[name] = "" if found is None else found
            elif found or (found is not None and shape is Scalar.NOT_NULL):
                result[name] = found
        elif isinstance(shape, ClaimObjects):
            if items := read_mappings(value, name, path):
                result[name] = [written(each, shape.fields, f"{path}.{name}[]") for each in items]
        else:
            inner = read_optional_mapping(value, name, path)
            if inner is not None or shape.required:
                result[name] = written(inner or {}, shape.fields, f"{path}.{name}")
    return result


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
