"""Readers of stored fields, which expect any value: the copies of a binding, the condition Scheduled, the refusals in its message.

A binding has the copies that its scheduler assigns, and those that other bindings require.

Source of copies: karmada v1.18.2 pkg/controllers/binding/common.go mergeTargetClusters, pkg/util/helper/binding.go
ObtainBindingSpecExistingClusters; pkg/dependenciesdistributor/dependencies_distributor.go.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from karmada_scheduler.api.binding import Binding, BindingKey, GracefulEvictionTask
from karmada_scheduler.api.cluster import KIND as CLUSTER
from karmada_scheduler.api.manifest import integer_at
from karmada_scheduler.api.policy import CLUSTER_PROPAGATION_POLICY, PolicyKey
from karmada_scheduler.api.well_known import SCHEDULED_CONDITION
from karmada_scheduler.structs import Struct
from karmada_scheduler_plugins.registry import REASONS

_FOLLOWER_LABEL: Final = "resourcebinding.karmada.io/depended-by-"
"""What the dependencies distributor writes onto each binding that it has made, before a hash."""

PURGED: Final = frozenset({"Directly", "Immediately"})
"""The purge modes with which an eviction deletes the Work at once, and no Work is written elsewhere while it exists.

``Immediately`` is the old name.
"""

PRESERVED: Final = "preserveResourcesOnDeletion; Karmada refuses to apply it there again, unless spec.conflictResolution is Overwrite"

Manifest = Mapping[str, Any]

_CLUSTER_SCOPED: Final = frozenset({
    CLUSTER, CLUSTER_PROPAGATION_POLICY, "ClusterOverridePolicy", "ClusterResourceBinding", "ClusterTaintPolicy",
    "Remedy", "ResourceInterpreterCustomization", "ResourceInterpreterWebhookConfiguration", "WorkloadRebalancer",
    "APIService", "CSIDriver", "ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition", "DeviceClass",
    "FlowSchema", "IngressClass", "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding",
    "MutatingWebhookConfiguration", "Namespace", "Node", "PersistentVolume", "PriorityClass",
    "PriorityLevelConfiguration", "RuntimeClass", "StorageClass", "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration", "VolumeAttributesClass",
})  # fmt: skip


_MESSAGE: Final = 300
"""Characters of a stored message in a sentence."""


class Copy(NamedTuple):
    """What a cluster should run of a binding.

    Attributes:
        replicas: How many; 0 for a workload without replicas.
        required_by: The bindings that require it there; empty for a cluster of the binding's own placement.
    """

    replicas: int
    required_by: tuple[str, ...] = ()


def requirers(manifest: Manifest) -> dict[str, dict[str, int]]:
    """Return the bindings that require a binding, by ``NAMESPACE/NAME``: their clusters with their replicas."""
    return {
        "/".join(str(entry[field]) for field in ("namespace", "name") if entry.get(field)): {
            str(target.get("name")): integer_at(target, "replicas") or 0
            for target in mappings(entry.get("clusters"))
        }
        for entry in mappings(part(manifest, "spec").get("requiredBy"))
    }


def copies_of(binding: Binding, manifest: Manifest) -> dict[str, Copy]:
    """Return the copies of a binding by cluster, in the order of names."""
    found: dict[str, Copy] = {}
    for requirer, clusters in requirers(manifest).items():
        for name, replicas in clusters.items():
            copy = found.get(name) or Copy(replicas if binding.spec.replicas else 0)
            found[name] = copy._replace(required_by=(*copy.required_by, requirer))
    found |= {target.name: Copy(target.replicas) for target in binding.spec.clusters}
    return dict(sorted(found.items()))


def required_on(manifest: Manifest) -> tuple[str, ...]:
    """Return the clusters on which other bindings require a binding."""
    return tuple(dict.fromkeys(name for clusters in requirers(manifest).values() for name in clusters))


def evicting_from(manifest: Manifest) -> tuple[str, ...]:
    """Return the clusters whose copy of a binding runs until its eviction ends."""
    tasks = mappings(part(manifest, "spec").get("gracefulEvictionTasks"))
    return tuple(str(task.get("fromCluster")) for task in tasks if task.get("purgeMode") not in PURGED)


def others_on(manifest: Manifest) -> tuple[str, ...]:
    """Return the clusters that have a copy of a binding besides those of its own placement: it is required there, or leaves."""
    return tuple(dict.fromkeys((*required_on(manifest), *evicting_from(manifest))))


def was_required(manifest: Manifest) -> bool:
    """Return whether Karmada made a binding because another one required it."""
    labels = mapping(part(manifest, "metadata").get("labels"))
    return any(str(name).startswith(_FOLLOWER_LABEL) for name in labels)


def live_tasks(
    binding: Binding, cluster_of: Callable[[str], Manifest | None] | None
) -> list[GracefulEvictionTask]:
    """Return the eviction tasks whose cluster exists; all if the Clusters are not known.

    Args:
        binding: The binding.
        cluster_of: Returns a Cluster as it was read, None if there is none; None if the Clusters are not known.
    """
    tasks = binding.spec.graceful_eviction_tasks
    return [task for task in tasks if cluster_of is None or cluster_of(task.from_cluster) is not None]


def preserves(manifest: Manifest) -> bool:
    """Return whether the copies that a binding leaves, or that it has when it is deleted, stay without Karmada."""
    return part(manifest, "spec").get("preserveResourcesOnDeletion") is True


def event_time(event: Manifest) -> str:
    """Return when something was reported for the last time, in the format of the API; "" if the Event does not say it."""
    return str(event.get("lastTimestamp") or event.get("eventTime") or "")


class Stored(NamedTuple):
    """The condition Scheduled of a binding; empty texts without one."""

    status: str
    reason: str
    message: str
    since: str


def condition_of(binding: Binding) -> Stored:
    """Return the condition Scheduled of a binding."""
    found = binding.status.condition(SCHEDULED_CONDITION) or {}
    names = ("status", "reason", "message", "lastTransitionTime")
    return Stored(*(str(found.get(name) or "") for name in names))


def short(message: str) -> str:
    """Return a message in one line without a final full stop, cut if it is long."""
    text = " ".join(message.split()).rstrip(".")
    return text if len(text) <= _MESSAGE else f"{text[: _MESSAGE - 3]}..."


def duration(seconds: int) -> str:
    """Return a duration for people."""
    return f"{seconds} s" if seconds < 120 else f"{round(seconds / 60)} min"


def age(seconds: float) -> str:
    """Return how long ago something was, for people, in the largest unit of which it has two."""
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"


def mapping(value: object) -> Mapping[str, Any]:
    """Return a mapping, an empty one for any other value."""
    return value if type(value) is dict or isinstance(value, Mapping) else {}


def mappings(value: object) -> list[Mapping[str, Any]]:
    """Return the mappings in a list, none for any other value."""
    if value is None or not isinstance(value, Sequence) or isinstance(value, str):
        return []
    return [entry for entry in value if type(entry) is dict or isinstance(entry, Mapping)]


def command_line(container: Mapping[str, Any]) -> list[str]:
    """Return the command and the arguments of a container."""
    lists = [container.get(name) for name in ("command", "args")]
    return [str(word) for words in lists if isinstance(words, list) for word in words]


def texts(value: object) -> list[str]:
    """Return the texts in a list, none for any other value."""
    return [text for text in value if isinstance(text, str)] if isinstance(value, list | tuple) else []


def value_at(manifest: Mapping[str, Any] | None, *path: str) -> Any:
    """Return the value at a path of a manifest, None if there is none.

    A plan calls it some twenty times for each binding, and ``isinstance`` takes ten times as long as the comparison of the type.
    """
    found: Any = manifest
    for name in path:
        found = found.get(name) if type(found) is dict or isinstance(found, Mapping) else None
    return found


def part(manifest: Manifest, *path: str) -> Mapping[str, Any]:
    """Return an object in a manifest; empty if it is missing or something else."""
    return mapping(value_at(manifest, *path))


def text_of(manifest: Manifest, *path: str) -> str:
    """Return a text in a manifest, "" if it is missing or something else."""
    value = part(manifest, *path[:-1]).get(path[-1])
    return value if isinstance(value, str) else ""


def is_namespaced(kind: str) -> bool:
    """Return whether objects of a kind have a namespace; of unknown kinds, they are taken to have one."""
    return kind not in _CLUSTER_SCOPED


def binding_key(manifest: Manifest) -> BindingKey:
    """Return the key of a binding."""
    return BindingKey(*_names(manifest))


def policy_key(manifest: Manifest) -> PolicyKey:
    """Return the key of a policy."""
    return PolicyKey(*_names(manifest))


def _names(manifest: Manifest) -> tuple[str, str, str]:
    """Return kind, namespace and name; "" as the namespace of what has none."""
    kind, metadata = text_of(manifest, "kind"), part(manifest, "metadata")
    namespace = str(metadata.get("namespace") or "") if is_namespaced(kind) else ""
    return kind, namespace, str(metadata.get("name") or "")


def with_namespace(manifest: Manifest, namespace: str) -> Manifest:
    """Return a manifest of a namespaced kind with a namespace, as kubectl adds it, and any other one without."""
    metadata = part(manifest, "metadata")
    if not is_namespaced(text_of(manifest, "kind")):
        return {
            **manifest,
            "metadata": {name: value for name, value in metadata.items() if name != "namespace"},
        }
    if metadata.get("namespace"):
        return manifest
    return {**manifest, "metadata": {**metadata, "namespace": namespace}}


_REFUSALS: Final = re.compile(r"clusters are available: (?P<refusals>.*)", re.DOTALL)
_REFUSAL: Final = re.compile(r",\s+(?=\d+ )")


class Refused(Struct, frozen=True):
    """The clusters that were refused for one reason."""

    number: str
    reason: str

    def __str__(self) -> str:
        """Return the text of the condition: ``2 cluster(s) had no contract``."""
        return f"{self.number} {self.reason}"


def foreign_refusals(message: str) -> list[Refused]:
    """Return the refusals that no filter of Karmada's own gives; none for the message of another error."""
    found = _REFUSALS.search(message)
    parts = _REFUSAL.split(found["refusals"]) if found is not None else ()
    refused = [Refused(*text.strip().rstrip(".").partition(" ")[::2]) for text in parts]
    return [each for each in refused if each.number.isdecimal() and not each.reason.startswith(REASONS)]
