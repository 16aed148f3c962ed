"""The fields of a policy as the API server stores them, with its defaults, and how well its selectors match a template.

A policy passes through Go types in the mutating webhook and in the detector: unknown fields get lost, zero values are left
out where the type says ``omitempty``, and empty objects behind pointers stay.

Source: karmada v1.18.2 pkg/apis/policy/v1alpha1/propagation_types.go; of selectors pkg/util/selector.go.

Source of the defaults: karmada v1.18.2 pkg/apis/policy/v1alpha1/propagation_types.go (kubebuilder defaults),
pkg/webhook/propagationpolicy/mutating.go, pkg/webhook/clusterpropagationpolicy/mutating.go, pkg/util/helper/policy.go.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Annotated, Any, Final, NamedTuple

from karmada_advisor.claims.template import Template
from karmada_scheduler.api.binding_spec import DEFAULT_SCHEDULER_NAME
from karmada_scheduler.api.manifest import Manifest, read_mapping
from karmada_scheduler.api.matching import LabelSelector
from karmada_scheduler.api.object_fields import ALWAYS, ApiField, object_fields, read_object
from karmada_scheduler.api.placement import DIVIDED, WEIGHTED, Placement
from karmada_scheduler.structs import Struct


class Match(IntEnum):
    """How a selector matches; Karmada calls it the implicit priority, and the larger one counts."""

    NONE = 0
    ALL = 1
    LABELS = 2
    NAME = 3


class Selector(NamedTuple):
    """One entry of ``spec.resourceSelectors``.

    Attributes:
        api_version: Group and version of the templates: ``apps/v1``.
        kind: For example ``Deployment``.
        namespace: Empty for any.
        name: Empty for any; with a name, the label selector has no effect.
        labels: None for any labels.
    """

    api_version: Annotated[str, ALWAYS]
    kind: Annotated[str, ALWAYS]
    namespace: str
    name: str
    labels: Annotated[LabelSelector | None, ApiField(key="labelSelector")]

    @property
    def invalid(self) -> str:
        """The expression for which its labels match nothing; "" if they are valid, or have no effect."""
        found = None if self.name or self.labels is None else self.labels.invalid
        return "" if found is None else found.text

    def match(self, template: Template, *, assumed: bool = False) -> Match:
        """Return how it matches a template.

        Args:
            template: The template.
            assumed: Whether a label selector matches a template whose labels are not known.
        """
        key = template.key
        if (
            key.kind != self.kind
            or key.api_version != self.api_version
            or (self.namespace and key.namespace != self.namespace)
        ):
            return Match.NONE
        if self.name:
            return Match.NAME if key.name == self.name else Match.NONE
        if self.labels is None:
            return Match.ALL
        if template.labels is None:
            return Match.LABELS if assumed and not self.invalid else Match.NONE
        return Match.LABELS if self.labels.matches(template.labels) else Match.NONE


class _StateRule(Struct, frozen=True):
    alias_label_name: Annotated[str, ALWAYS]
    json_path: Annotated[str, ALWAYS]


class _StatePreservation(Struct, frozen=True):
    rules: tuple[_StateRule, ...]


class _DecisionConditions(Struct, frozen=True):
    toleration_seconds: int | None


class _ApplicationFailover(Struct, frozen=True):
    decision_conditions: _DecisionConditions
    purge_mode: str
    grace_period_seconds: int | None
    state_preservation: _StatePreservation | None


class _ClusterFailover(Struct, frozen=True):
    purge_mode: str
    state_preservation: _StatePreservation | None


class _Failover(Struct, frozen=True):
    application: _ApplicationFailover | None
    cluster: _ClusterFailover | None


class _SuspendedClusters(Struct, frozen=True):
    cluster_names: tuple[str, ...]


class _Suspension(Struct, frozen=True):
    dispatching: bool | None
    dispatching_on_clusters: _SuspendedClusters | None


class _SchedulePriority(Struct, frozen=True):
    priority_class_source: Annotated[str, ALWAYS]
    priority_class_name: Annotated[str, ALWAYS]


class PolicySpec(Struct, frozen=True):
    """``spec`` of a PropagationPolicy or ClusterPropagationPolicy."""

    resource_selectors: tuple[Selector, ...]
    association: bool
    propagate_deps: bool
    placement: Placement
    priority: int | None
    preemption: str
    dependent_overrides: tuple[str, ...]
    scheduler_name: str
    failover: _Failover | None
    conflict_resolution: str
    activation_preference: str
    suspension: _Suspension | None
    preserve_resources_on_deletion: bool | None
    schedule_priority: _SchedulePriority | None


OLD_PURGE_MODES: Final = {"Immediately": "Directly", "Graciously": "Gracefully"}
"""The purge modes of applications that Karmada 1.19 refuses, and their names."""
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
    stored: dict[str, Any] = object_fields(read_object(PolicySpec, spec, "spec"))
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
            division.setdefault("replicaDivisionPreference", WEIGHTED)


def _complete_failover(failover: Manifest) -> None:
    application, cluster = failover.get("application"), failover.get("cluster")
    if application is not None:
        application["decisionConditions"].setdefault("tolerationSeconds", _TOLERATION_SECONDS)
        application.setdefault("purgeMode", "Gracefully")
        if application["purgeMode"] in _GRACEFUL:
            application.setdefault("gracePeriodSeconds", _GRACE_PERIOD_SECONDS)
    if cluster is not None:
        cluster.setdefault("purgeMode", "Gracefully")
