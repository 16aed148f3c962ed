"""Readers of stored fields, which expect any value; the condition Scheduled, and the refusals in its message."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.cluster import KIND as CLUSTER
from karmada_scheduler.api.policy import CLUSTER_PROPAGATION_POLICY, PolicyKey
from karmada_scheduler.api.well_known import SCHEDULED_CONDITION
from karmada_scheduler_plugins.registry import REASONS

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
    return [each for each in value if type(each) is dict or isinstance(each, Mapping)]


def command_line(container: Mapping[str, Any]) -> list[str]:
    """Return the command and the arguments of a container."""
    lists = [container.get(name) for name in ("command", "args")]
    return [str(word) for each in lists if isinstance(each, list) for word in each]


def texts(value: object) -> list[str]:
    """Return the texts in a list, none for any other value."""
    return [each for each in value if isinstance(each, str)] if isinstance(value, list | tuple) else []


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
            "metadata": {name: each for name, each in metadata.items() if name != "namespace"},
        }
    if metadata.get("namespace"):
        return manifest
    return {**manifest, "metadata": {**metadata, "namespace": namespace}}


_REFUSALS: Final = re.compile(r"clusters are available: (?P<refusals>.*)", re.DOTALL)
_REFUSAL: Final = re.compile(r",\s+(?=\d+ )")


class Refused(NamedTuple):
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
    refused = [Refused(*each.strip().rstrip(".").partition(" ")[::2]) for each in parts]
    return [each for each in refused if each.number.isdecimal() and not each.reason.startswith(REASONS)]
