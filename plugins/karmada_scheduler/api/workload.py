"""The metadata of a workload (the resource template that a binding propagates), and the replicas that a cluster reports of it.

Source of the reported replicas: karmada v1.18.2 pkg/resourceinterpreter/default/native/reflectstatus.go; kubernetes v1.35
leaves counts of 0 out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from karmada_scheduler.api.binding_spec import ObjectReference, ReportedReplicas
from karmada_scheduler.api.content_cache import interned, interned_map
from karmada_scheduler.api.manifest import (
    Manifest,
    integer_at,
    read_integer,
    read_mapping,
    read_required_text,
    read_text,
    read_text_map,
)
from karmada_scheduler.api.object_fields import read_objects
from karmada_scheduler.structs import Struct, field

LAST_APPLIED_ANNOTATION: Final = "kubectl.kubernetes.io/last-applied-configuration"
"""A copy of the whole manifest by ``kubectl apply``; not kept."""

_SCALED: Final = frozenset({"Deployment", "ReplicaSet", "StatefulSet"})
"""Kinds of apps/v1 that report how many replicas they have; Kubernetes leaves a count of 0 out."""


class OwnerReference(NamedTuple):
    """An object that a workload belongs to.

    Attributes:
        api_version: Group and version: ``apps/v1``.
        kind: For example ``Deployment``.
        name: Its name; it is in the same namespace, or cluster-scoped.
        uid: Its uid.
        controller: Whether it manages the workload.
    """

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class Workload(Struct, frozen=True):
    """The metadata of a workload on the Karmada API server.

    Attributes:
        api_version: Group and version, as the binding names it: ``apps/v1``.
        kind: For example ``Deployment``.
        namespace: Empty for a cluster-scoped resource.
        name: The workload's own name.
        uid: Its uid, equal to the one in the binding.
        labels: All of them.
        annotations: All but ``kubectl.kubernetes.io/last-applied-configuration``.
        owner_references: The objects that it belongs to.
        generation: Grows with every change of its spec; 0 if the kind has none.
        resource_version: The version that was read.
        deleting: Whether it is being deleted.
    """

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    owner_references: tuple[OwnerReference, ...] = ()
    generation: int = 0
    resource_version: str = ""
    deleting: bool = False

    @classmethod
    def from_manifest(cls, manifest: Manifest, *, api_version: str, kind: str) -> Workload:
        """Read the metadata of an object.

        Args:
            manifest: The object, or its ``PartialObjectMetadata``, which does not contain its type.
            api_version: Of the object.
            kind: Of the object.

        Raises:
            ManifestError: A field of the metadata has the wrong type.
        """
        path = "metadata"
        found = read_mapping(manifest, path, "")
        annotations = read_text_map(found, "annotations", path)
        return cls(
            api_version=interned(api_version),
            kind=interned(kind),
            namespace=read_text(found, "namespace", path),
            name=read_required_text(found, "name", path),
            uid=read_text(found, "uid", path),
            labels=interned_map(read_text_map(found, "labels", path)),
            annotations={
                interned(name): value
                for name, value in annotations.items()
                if name != LAST_APPLIED_ANNOTATION
            },
            owner_references=read_objects(OwnerReference, found, "ownerReferences", path),
            generation=read_integer(found, "generation", path),
            resource_version=read_text(found, "resourceVersion", path),
            deleting=found.get("deletionTimestamp") is not None,
        )

    def has_same_metadata(self, other: Workload) -> bool:
        """Return whether uid, labels, annotations, owners and deletion are equal."""
        return (
            self.uid == other.uid
            and self.labels == other.labels
            and self.annotations == other.annotations
            and self.owner_references == other.owner_references
            and self.deleting == other.deleting
        )


class WorkloadAnswer(NamedTuple):
    """The workload of a binding, or why it is unknown.

    Attributes:
        workload: Its metadata; None if it is unknown.
        problem: Why it is unknown, for people; empty if it is known.
    """

    workload: Workload | None = None
    problem: str = ""


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
