"""A binding: one workload, the placement it follows and the clusters it is on.

ResourceBinding and ClusterResourceBinding have the same spec and status, so both are one type here; the key has the
kind. The values of its spec and status are importable from here as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from karmada_scheduler.api.binding_manifest import read_creation, read_labels, read_spec, read_status
from karmada_scheduler.api.binding_spec import (
    CLUSTER_RESOURCE_BINDING,
    DEFAULT_SCHEDULER_NAME,
    HEALTHY,
    KINDS,
    RESOURCE_BINDING,
    AssumedWorkload,
    BindingKey,
    BindingSpec,
    BindingStatus,
    ClusterHealth,
    Component,
    GracefulEvictionTask,
    ObjectReference,
    ReplicaRequirements,
    TargetCluster,
    WorkloadAffinityGroups,
)
from karmada_scheduler.api.content_cache import interned, interned_map
from karmada_scheduler.api.manifest import (
    Manifest,
    ManifestError,
    read_integer,
    read_mapping,
    read_required_text,
    read_text,
    read_text_map,
)
from karmada_scheduler.api.placement import Placement
from karmada_scheduler.api.well_known import APPLIED_PLACEMENT_ANNOTATION, SCHEDULED_CONDITION
from karmada_scheduler.structs import Struct, field, replace

__all__ = [
    "API_VERSION",
    "CLUSTER_RESOURCE_BINDING",
    "DEFAULT_SCHEDULER_NAME",
    "HEALTHY",
    "KINDS",
    "RESOURCE_BINDING",
    "AssumedWorkload",
    "Binding",
    "BindingKey",
    "BindingSpec",
    "BindingStatus",
    "ClusterHealth",
    "Component",
    "GracefulEvictionTask",
    "ObjectReference",
    "ReplicaRequirements",
    "TargetCluster",
    "WorkloadAffinityGroups",
    "footprint",
    "template_binding_name",
]

API_VERSION: Final = "work.karmada.io/v1alpha2"


class Binding(Struct, frozen=True):
    """A ResourceBinding or ClusterResourceBinding.

    Attributes:
        key: Its kind, namespace and name.
        uid: The uid of the binding; the workload's is ``spec.resource.uid``.
        resource_version: Changes with every write.
        generation: Grows when the spec changes.
        labels: Labels of the binding, not of the workload.
        annotations: Annotations of the binding, not of the workload.
        deleting: Whether it has a deletion timestamp.
        creation_timestamp: When it was created; None if it is missing or unreadable.
        spec: Its spec.
        status: Its status.
    """

    key: BindingKey
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    deleting: bool = False
    creation_timestamp: datetime | None = None
    spec: BindingSpec = field(default_factory=BindingSpec)
    status: BindingStatus = field(default_factory=BindingStatus)

    @property
    def applied_placement_json(self) -> str:
        """The annotation with the applied placement; empty without one."""
        return self.annotations.get(APPLIED_PLACEMENT_ANNOTATION, "")

    @property
    def applied_placement(self) -> Placement | None:
        """The placement of the last scheduling; None without one.

        Raises:
            ManifestError: The annotation does not contain a placement.
        """
        document = self.applied_placement_json
        return Placement.from_json(document) if document else None

    @property
    def reschedule_triggered(self) -> bool:
        """Whether a reschedule was requested since the last scheduling; times have whole seconds."""
        requested, done = self.spec.reschedule_triggered_at, self.status.last_scheduled_time
        return requested is not None and done is not None and requested > done

    @property
    def is_settled(self) -> bool:
        """Whether it has clusters, was scheduled successfully as it is, and nothing is left to do.

        It is not if its generation is not observed, its last attempt failed, a reschedule was requested, it has eviction
        tasks of any program, or it is being deleted.
        """
        condition = self.status.condition(SCHEDULED_CONDITION)
        return (
            bool(self.spec.clusters)
            and not self.deleting
            and not self.spec.graceful_eviction_tasks
            and not self.reschedule_triggered
            and self.status.scheduler_observed_generation == self.generation
            and condition is not None
            and condition.get("status") == "True"
        )

    @classmethod
    def from_manifest(cls, manifest: Manifest) -> Binding:
        """Read a ResourceBinding or ClusterResourceBinding of work.karmada.io/v1alpha2.

        Raises:
            ManifestError: A field is missing or of the wrong type; it names the field.
        """
        kind = manifest.get("kind")
        if not isinstance(kind, str) or kind not in KINDS:
            raise ManifestError(
                "kind", f"expected {RESOURCE_BINDING} or {CLUSTER_RESOURCE_BINDING}, got {kind!r}"
            )
        metadata = read_mapping(manifest, "metadata", "")
        namespace = read_text(metadata, "namespace", "metadata")
        if kind == RESOURCE_BINDING and not namespace:
            raise ManifestError("metadata.namespace", "is missing")
        spec = read_spec(read_mapping(manifest, "spec", ""))
        return cls(
            key=BindingKey(
                interned(kind),
                interned(namespace) if kind == RESOURCE_BINDING else "",
                read_required_text(metadata, "name", "metadata"),
            ),
            uid=read_text(metadata, "uid", "metadata"),
            resource_version=read_text(metadata, "resourceVersion", "metadata"),
            generation=read_integer(metadata, "generation", "metadata"),
            labels=read_labels(metadata),
            annotations=interned_map(read_text_map(metadata, "annotations", "metadata")),
            deleting=metadata.get("deletionTimestamp") is not None,
            creation_timestamp=read_creation(metadata),
            spec=spec,
            status=read_status(read_mapping(manifest, "status", ""), spec),
        )

    def with_status(self, manifest: Manifest) -> Binding:
        """Return the binding with the status and resourceVersion of a manifest that is equal otherwise.

        Args:
            manifest: The response to a patch of the status of this version; reading all of it takes longer.

        Raises:
            ManifestError: As ``from_manifest``.
        """
        metadata = read_mapping(manifest, "metadata", "")
        return replace(
            self,
            resource_version=read_text(metadata, "resourceVersion", "metadata"),
            status=read_status(read_mapping(manifest, "status", ""), self.spec),
        )


def footprint(binding: Binding, target: TargetCluster) -> AssumedWorkload:
    """Return the assumed workload of a binding on a cluster.

    Source: karmada v1.18.2 pkg/scheduler/scheduler.go updateAssumptionsCache.
    """
    spec = binding.spec
    components = spec.components or (
        Component(spec.resource.name, target.replicas, spec.replica_requirements),
    )
    return AssumedWorkload(spec.resource.namespace, components, binding.key)


def template_binding_name(resource: ObjectReference) -> str:
    """Return the name that Karmada gives the binding of a resource template.

    Source: karmada v1.18.2 pkg/util/names GenerateBindingName.
    """
    return f"{resource.name.replace(':', '.')}-{resource.kind}".lower()
