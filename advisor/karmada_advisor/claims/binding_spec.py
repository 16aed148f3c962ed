"""The spec of the binding that the detector makes of a policy and a template, with the replicas that it reads from the template.

Source: karmada v1.18.2 pkg/detector/detector.go BuildResourceBinding, BuildClusterResourceBinding, ApplyPolicy,
ApplyClusterPolicy; pkg/util/binding.go MergePolicySuspension.

Source of the replicas: karmada v1.18.2 pkg/resourceinterpreter/default/native/replica.go, pkg/util/helper/binding.go
GenerateReplicaRequirements, pkg/util/resource.go AddPodTemplateRequest; k8s.io/kubernetes pkg/apis/apps/v1/defaults.go and
pkg/apis/batch/v1/defaults.go for templates that are not stored yet.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from karmada_advisor.claims.model import DEFAULTS, DetectorOptions, Replicas
from karmada_advisor.claims.policy import ClaimingPolicy
from karmada_advisor.claims.template import Template
from karmada_scheduler.api.manifest import (
    Manifest,
    read_integer,
    read_mapping,
    read_mappings,
    read_optional_mapping,
    read_text_map,
)
from karmada_scheduler.api.object_fields import object_fields
from karmada_scheduler.api.quantity import Quantity, read_list
from karmada_scheduler.estimator.nodes import CPU, PODS, is_counted

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


_BINARY: Final = frozenset({"memory", "ephemeral-storage"})
_CUSTOMIZED: Final = frozenset(
    {
        ("apps.kruise.io/v1alpha1", "BroadcastJob"),
        ("apps.kruise.io/v1alpha1", "CloneSet"),
        ("apps.kruise.io/v1alpha1", "SidecarSet"),
        ("apps.kruise.io/v1alpha1", "UnitedDeployment"),
        ("apps.kruise.io/v1beta1", "StatefulSet"),
        ("argoproj.io/v1alpha1", "Workflow"),
        ("flink.apache.org/v1beta1", "FlinkDeployment"),
        ("kubeflow.org/v1", "Notebook"),
        ("ray.io/v1", "RayService"),
    }
)
"""Kinds whose replicas Karmada reads with scripts that it ships.

Source: karmada v1.18.2 pkg/resourceinterpreter/default/thirdparty/resourcecustomizations (replicaResource).
"""


UNKNOWN: Final = Replicas(known=False)


def replicas_of(template: Template, options: DetectorOptions = DEFAULTS) -> Replicas:
    """Return the replicas of a template; those of a kind that a customized interpreter reads are unknown.

    Args:
        template: The template.
        options: The sizes that are given, the kinds with customized interpreters, and the gate ResourceQuotaEstimate.

    Raises:
        ManifestError: A field of the template has the wrong type.
    """
    kind = template.key.api_version, template.key.kind
    if template.key in options.sizes:
        return options.sizes[template.key]
    if kind in options.customized or kind in _CUSTOMIZED:
        return UNKNOWN
    reader = _READERS.get(kind)
    if reader is None:
        return Replicas()
    if template.manifest is None:
        return UNKNOWN
    replicas, pod_spec = reader(read_mapping(template.manifest, "spec", ""))
    requirements = _requirements(pod_spec)
    if requirements is not None and options.gates.enabled("ResourceQuotaEstimate"):
        requirements["namespace"] = template.key.namespace
        if priority_class := pod_spec.get("priorityClassName"):
            requirements["priorityClassName"] = priority_class
    return Replicas(replicas, requirements)


def _pod_spec(spec: Manifest) -> Manifest:
    return read_mapping(read_mapping(spec, "template", "spec"), "spec", "spec.template")


def _integer(spec: Manifest, name: str, default: int) -> int:
    return default if spec.get(name) is None else read_integer(spec, name, "spec", bits=32)


def _scaled(spec: Manifest) -> tuple[int, Manifest]:
    return _integer(spec, "replicas", 1), _pod_spec(spec)


def _job(spec: Manifest) -> tuple[int, Manifest]:
    parallelism = _integer(spec, "parallelism", 1)
    # The API server completes a Job with neither of the two to one completion.
    completions = _integer(spec, "completions", 1 if spec.get("parallelism") is None else parallelism)
    return min(parallelism, completions), _pod_spec(spec)


def _pod(spec: Manifest) -> tuple[int, Manifest]:
    return 1, spec


_READERS: Final[Mapping[tuple[str, str], Callable[[Manifest], tuple[int, Manifest]]]] = {
    ("apps/v1", "Deployment"): _scaled,
    ("apps/v1", "ReplicaSet"): _scaled,
    ("apps/v1", "StatefulSet"): _scaled,
    ("batch/v1", "Job"): _job,
    ("v1", "Pod"): _pod,
}


def _requirements(pod_spec: Manifest) -> dict[str, Any] | None:
    found: dict[str, Any] = {}
    if claim := _node_claim(pod_spec):
        found["nodeClaim"] = claim
    if request := _request(pod_spec):
        found["resourceRequest"] = request
    return found or None


def _node_claim(pod_spec: Manifest) -> dict[str, Any]:
    path = "spec.template.spec"
    affinity = read_mapping(pod_spec, "affinity", path)
    nodes = read_mapping(affinity, "nodeAffinity", f"{path}.affinity")
    claim = {
        "hardNodeAffinity": read_optional_mapping(
            nodes, "requiredDuringSchedulingIgnoredDuringExecution", f"{path}.affinity.nodeAffinity"
        ),
        "nodeSelector": read_text_map(pod_spec, "nodeSelector", path) or None,
        "tolerations": pod_spec.get("tolerations") or None,
    }
    return {name: value for name, value in claim.items() if value is not None}


def _request(pod_spec: Manifest) -> dict[str, str]:
    path = "spec.template.spec"
    total: dict[str, int] = {}
    for container in read_mappings(pod_spec, "containers", path):
        _add(total, _container_request(container))
    for container in read_mappings(pod_spec, "initContainers", path):
        for name, amount in _amounts(_container_request(container)).items():
            total[name] = max(total.get(name, 0), amount)
    _add(total, read_list(read_mapping(pod_spec, "overhead", path), f"{path}.overhead"))
    return {name: _text(name, amount) for name, amount in total.items() if amount > 0}


def _container_request(container: Manifest) -> dict[str, Quantity]:
    """Return what a container requests; a limit without a request is one."""
    path = "containers.resources"
    resources = read_mapping(container, "resources", "containers")
    limits = read_list(read_mapping(resources, "limits", path), f"{path}.limits")
    return {**limits, **read_list(read_mapping(resources, "requests", path), f"{path}.requests")}


def _amounts(request: Mapping[str, Quantity]) -> dict[str, int]:
    return {
        name: amount.milli_value if name == CPU else amount.value
        for name, amount in request.items()
        if name == PODS or is_counted(name)
    }


def _add(total: dict[str, int], request: Mapping[str, Quantity]) -> None:
    for name, amount in _amounts(request).items():
        total[name] = total.get(name, 0) + amount


def _text(name: str, amount: int) -> str:
    if name == CPU:
        return decimal_text(amount, -3)
    is_binary = name in _BINARY or name.startswith("hugepages-")
    return binary_text(amount) if is_binary else decimal_text(amount, 0)


def decimal_text(digits: int, exponent: int) -> str:
    """Return ``digits * 10**exponent`` as Kubernetes writes it in DecimalSI: ``1500m``, ``2``, ``2k``.

    Source: k8s.io/apimachinery v0.35.3 pkg/api/resource quantity.go CanonicalizeBytes.
    """
    while digits and digits % 10 == 0:
        digits, exponent = digits // 10, exponent + 1
    while exponent % 3:
        digits, exponent = digits * 10, exponent - 1
    if exponent > 18:
        digits, exponent = digits * 10 ** (exponent - 18), 18
    return f"{digits}{_DECIMAL_SUFFIXES[exponent]}"


_DECIMAL_SUFFIXES: Final = {-3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P", 18: "E"}
_BINARY_SUFFIXES: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


def binary_text(amount: int) -> str:
    """Return an amount of bytes as a new binding has it: ``64Mi``, ``1500``, ``100M``.

    The detector writes BinarySI, and the binding's webhook reads an amount without a binary suffix as DecimalSI.
    """
    if amount < 1024 or amount % 1024:
        return decimal_text(amount, 0)
    power = 0
    while amount % 1024 == 0 and power < len(_BINARY_SUFFIXES) - 1:
        amount, power = amount // 1024, power + 1
    return f"{amount}{_BINARY_SUFFIXES[power]}"


def same_requirements(one: Manifest | None, other: Manifest | None) -> bool:
    """Return whether two requirements are equal; a quantity may be written in several ways.

    Raises:
        ManifestError: A quantity cannot be read.
    """
    if one is None or other is None:
        return one is other
    return comparable(one) == comparable(other)


def comparable(requirements: Manifest) -> dict[str, Any]:
    """Return requirements with amounts in thousandths instead of quantities, which may be written in several ways.

    Raises:
        ManifestError: A quantity cannot be read.
    """
    request = read_list(read_mapping(requirements, "resourceRequest", ""), "resourceRequest")
    amounts = {name: amount.milli_value for name, amount in request.items()}
    return {**requirements, "resourceRequest": amounts}
