"""A policy: the fields by which its bindings are found.

The placement is always read from the binding, to which Karmada's detector copies it. A policy event only determines the
bindings to reconcile.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from karmada_scheduler.api.manifest import (
    Manifest,
    ManifestError,
    read_integer,
    read_mapping,
    read_required_text,
    read_text,
    read_text_map,
)
from karmada_scheduler.api.well_known import CLUSTER_POLICY_ID_LABEL, POLICY_ID_LABEL
from karmada_scheduler.structs import Struct

PROPAGATION_POLICY: Final = "PropagationPolicy"
CLUSTER_PROPAGATION_POLICY: Final = "ClusterPropagationPolicy"
ID_LABELS: Final = {
    PROPAGATION_POLICY: POLICY_ID_LABEL,
    CLUSTER_PROPAGATION_POLICY: CLUSTER_POLICY_ID_LABEL,
}


class PolicyKey(NamedTuple):
    """The name of one policy; the namespace of a ClusterPropagationPolicy is empty."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        """``namespace/name``, or the name without a namespace."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class Policy(Struct, frozen=True):
    """A PropagationPolicy or ClusterPropagationPolicy.

    Attributes:
        permanent_id: The value of the label ``ID_LABELS[key.kind]`` of its bindings; empty before Karmada's webhook
            has set it.
        scheduler_name: As written; the empty name means default-scheduler.
    """

    key: PolicyKey
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    permanent_id: str = ""
    scheduler_name: str = ""

    @classmethod
    def from_manifest(cls, manifest: Manifest) -> Policy:
        """Read a policy of policy.karmada.io/v1alpha1.

        Raises:
            ManifestError: A field is missing or of the wrong type.
        """
        kind = manifest.get("kind")
        if not isinstance(kind, str) or kind not in ID_LABELS:
            raise ManifestError("kind", f"expected {' or '.join(ID_LABELS)}, got {kind!r}")
        metadata = read_mapping(manifest, "metadata", "")
        spec = read_mapping(manifest, "spec", "")
        namespace = read_text(metadata, "namespace", "metadata") if kind == PROPAGATION_POLICY else ""
        return cls(
            key=PolicyKey(kind, namespace, read_required_text(metadata, "name", "metadata")),
            uid=read_text(metadata, "uid", "metadata"),
            resource_version=read_text(metadata, "resourceVersion", "metadata"),
            generation=read_integer(metadata, "generation", "metadata"),
            permanent_id=read_text_map(metadata, "labels", "metadata").get(ID_LABELS[kind], ""),
            scheduler_name=read_text(spec, "schedulerName", "spec"),
        )


def policy_name(policy: Manifest) -> str:
    """Return kind, namespace and name of a policy: ``PropagationPolicy shop/checkout``."""
    metadata = policy.get("metadata") or {}
    name = "/".join(part for part in (metadata.get("namespace"), metadata.get("name")) if part)
    return f"{policy.get('kind')} {name}"


def claims(policy: Manifest, labels: Mapping[str, str]) -> bool:
    """Return whether a policy claims the binding with these labels."""
    label = ID_LABELS.get(str(policy.get("kind")), "")
    value = ((policy.get("metadata") or {}).get("labels") or {}).get(label)
    return bool(value) and value == labels.get(label)
