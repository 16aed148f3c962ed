"""The spec of the binding that the detector makes of a policy and a template.

Source: karmada v1.18.2 pkg/detector/detector.go BuildResourceBinding, BuildClusterResourceBinding, ApplyPolicy,
ApplyClusterPolicy; pkg/util/binding.go MergePolicySuspension.
"""

from __future__ import annotations

from typing import Any, Final

from karmada_advisor.claims.model import DetectorOptions, Replicas
from karmada_advisor.claims.policy import ClaimingPolicy
from karmada_advisor.claims.replicas import replicas_of, same_requirements
from karmada_advisor.claims.template import Template
from karmada_scheduler.api.manifest import Manifest
from karmada_scheduler.api.object_fields import object_fields

_COPIED: Final = ("failover", "conflictResolution", "preserveResourcesOnDeletion")
_ON_CREATION_ONLY: Final = ("propagateDeps",)
"""Fields that the detector does not refresh in a ClusterResourceBinding."""

FROM_POLICY: Final = (
    "placement",
    "propagateDeps",
    "schedulerName",
    *_COPIED,
    "suspension",
    "schedulePriority",
    "workloadAffinityGroups",
)
"""Fields of a binding's spec that come from its policy."""

_REPLACED: Final = ("resource", "replicaRequirements", "replicas", "components", *FROM_POLICY)
"""Fields that the detector replaces; all others of an existing binding stay, the targets above all."""


def binding_spec(
    policy: ClaimingPolicy, template: Template, before: Manifest | None, options: DetectorOptions
) -> dict[str, Any] | None:
    """Return the spec of a binding after the detector has applied a policy; None if its PriorityClass does not exist.

    Replicas that are not known stay as they are in the binding.

    Args:
        policy: The policy that claims the template.
        template: The template.
        before: The spec of the existing binding; None if there is none.
        options: How the detector runs.

    Raises:
        ManifestError: A field of the template has the wrong type.
    """
    replicas = replicas_of(template, options)
    classes = options.known_classes if template.key.namespace and policy.priority_class else None
    if classes is not None and policy.priority_class not in classes:
        return None
    made = _made(policy, template, replicas, options)
    if classes is not None:
        made["schedulePriority"] = {"priority": classes[policy.priority_class]}
    suspended = None if before is None else before.get("suspension")
    suspension = merged_suspension(suspended, policy.spec.get("suspension"))
    if suspension is not None:
        made["suspension"] = suspension
    if before is None:
        return made
    kept = {name: value for name, value in before.items() if name not in _REPLACED}
    made["resource"] = {**(before.get("resource") or {}), **made["resource"]}
    if same_requirements(before.get("replicaRequirements"), made.get("replicaRequirements")):
        _keep(made, before, ("replicaRequirements",))
    if not replicas.known:
        _keep(made, before, ("replicas", "replicaRequirements", "components"))
    if not template.key.namespace:
        for name in _ON_CREATION_ONLY:
            made.pop(name, None)
        _keep(made, before, (*_ON_CREATION_ONLY, "schedulePriority", "workloadAffinityGroups"))
    return {**kept, **made}


def _keep(made: dict[str, Any], before: Manifest, names: tuple[str, ...]) -> None:
    for name in names:
        if name in before:
            made[name] = before[name]


def _made(
    policy: ClaimingPolicy, template: Template, replicas: Replicas, options: DetectorOptions
) -> dict[str, Any]:
    spec: dict[str, Any] = {"resource": _resource(template), "placement": policy.placement}
    if policy.propagates_dependencies:
        spec["propagateDeps"] = True
    if policy.scheduler_name:
        spec["schedulerName"] = policy.scheduler_name
    for name in _COPIED:
        if (value := policy.spec.get(name)) is not None:
            spec[name] = value
    if replicas.known and replicas.replicas:
        spec["replicas"] = replicas.replicas
    if replicas.known and replicas.requirements is not None:
        spec["replicaRequirements"] = replicas.requirements
    counts_groups = template.key.namespace and options.gates.enabled("WorkloadAffinity")
    if counts_groups and (groups := _groups(policy, template)):
        spec["workloadAffinityGroups"] = groups
    return spec


def _resource(template: Template) -> dict[str, object]:
    more = {"uid": template.uid, "resourceVersion": template.resource_version}
    return object_fields(template.key) | {name: value for name, value in more.items() if value}


def _groups(policy: ClaimingPolicy, template: Template) -> dict[str, str]:
    """Return the groups of a template, by its labels.

    Source: karmada v1.18.2 pkg/detector/detector.go getWorkloadAffinityGroups.
    """
    affinity, labels = policy.placement.get("workloadAffinity") or {}, template.labels or {}
    groups = {}
    for side, name in (("affinity", "affinityGroup"), ("antiAffinity", "antiAffinityGroup")):
        key = (affinity.get(side) or {}).get("groupByLabelKey")
        if key is not None and key in labels:
            groups[name] = f"{key}={labels[key]}"
    return groups


def merged_suspension(before: Manifest | None, wanted: Manifest | None) -> dict[str, Any] | None:
    """Return the suspension of a binding: that of the policy, and ``scheduling``, which others set; None without one."""
    scheduling = None if before is None else before.get("scheduling")
    if wanted is None and scheduling is None:
        return None
    return {**(wanted or {}), **({} if scheduling is None else {"scheduling": scheduling})}
