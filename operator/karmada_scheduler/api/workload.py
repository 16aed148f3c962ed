"""The metadata of a workload: of the resource template that a binding propagates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from karmada_scheduler.api.interning import interned, interned_map
from karmada_scheduler.api.manifest import (
    Manifest,
    read_boolean,
    read_integer,
    read_mapping,
    read_mappings,
    read_required_text,
    read_text,
    read_text_map,
)

LAST_APPLIED_ANNOTATION: Final = "kubectl.kubernetes.io/last-applied-configuration"
"""The whole manifest once more, as ``kubectl apply`` leaves it; not kept."""


class OwnerReference(NamedTuple):
    """An object that a workload belongs to.

    Attributes:
        api_version: Group and version: ``apps/v1``.
        kind: ``Deployment``, say.
        name: Its name; it is in the same namespace, or of the cluster.
        uid: Its uid.
        controller: Whether it is the one that manages the workload.
    """

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


@dataclass(frozen=True, slots=True)
class Workload:
    """What the metadata of a workload says, as it is on the Karmada API server.

    Attributes:
        api_version: Group and version, as the binding names it: ``apps/v1``.
        kind: ``Deployment``, say.
        namespace: Empty for a resource of the cluster.
        name: The workload's own name.
        uid: Its uid, which is the one that the binding names.
        labels: All of them.
        annotations: All but ``kubectl.kubernetes.io/last-applied-configuration``.
        owner_references: The objects that it belongs to.
        generation: Grows with every change of its spec; 0 where the kind does not count.
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
            manifest: The object, or its ``PartialObjectMetadata``, which does not say its own type.
            api_version: Of the object.
            kind: Of the object.

        Raises:
            ManifestError: A field of the metadata has another type than it should.
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
            owner_references=tuple(
                _owner(each, f"{path}.ownerReferences")
                for each in read_mappings(found, "ownerReferences", path)
            ),
            generation=read_integer(found, "generation", path),
            resource_version=read_text(found, "resourceVersion", path),
            deleting=found.get("deletionTimestamp") is not None,
        )

    def says_the_same(self, other: Workload) -> bool:
        """Tell whether a plugin could not tell two versions apart by labels, annotations and owners."""
        return (
            self.uid == other.uid
            and self.labels == other.labels
            and self.annotations == other.annotations
            and self.owner_references == other.owner_references
            and self.deleting == other.deleting
        )


def _owner(found: Manifest, path: str) -> OwnerReference:
    return OwnerReference(
        read_text(found, "apiVersion", path),
        read_text(found, "kind", path),
        read_text(found, "name", path),
        read_text(found, "uid", path),
        read_boolean(found, "controller", path),
    )


class WorkloadAnswer(NamedTuple):
    """What is known of the workload of a binding.

    Attributes:
        workload: Its metadata; None if it is not known.
        problem: Why it is not known, for people; "" if it is.
    """

    workload: Workload | None = None
    problem: str = ""
