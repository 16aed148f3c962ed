"""A binding: one workload, the placement it follows and the clusters it is on.

ResourceBinding and ClusterResourceBinding have the same spec and status, so both are one type here; the
key tells them apart.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property, lru_cache
from typing import Any, Final, NamedTuple

import orjson

from karmada_scheduler.api import quantity
from karmada_scheduler.api.content_cache import MEBI, cached_by_content
from karmada_scheduler.api.interning import interned, interned_map
from karmada_scheduler.api.manifest import (
    Manifest,
    ManifestError,
    read_boolean,
    read_integer,
    read_mapping,
    read_mappings,
    read_optional_mapping,
    read_required_text,
    read_text,
    read_text_map,
    read_time,
)
from karmada_scheduler.api.placement import Placement
from karmada_scheduler.api.quantity import Quantity
from karmada_scheduler.api.well_known import APPLIED_PLACEMENT_ANNOTATION

API_VERSION: Final = "work.karmada.io/v1alpha2"
DEFAULT_SCHEDULER_NAME: Final = "default-scheduler"
"""The scheduler of a binding that names none."""

RESOURCE_BINDING: Final = "ResourceBinding"
CLUSTER_RESOURCE_BINDING: Final = "ClusterResourceBinding"
KINDS: Final = frozenset({RESOURCE_BINDING, CLUSTER_RESOURCE_BINDING})

HEALTHY: Final = "Healthy"

_OWN_LABELS: Final = frozenset(f"{kind.lower()}.karmada.io/permanent-id" for kind in KINDS)
"""Labels whose value no other binding has."""

_TARGET_FIELDS: Final = frozenset({"name", "replicas"})

_REMEMBERED: Final = 8192
_SHARED: Final = 1 << 15
_SHORT_NAME: Final = 253
"""No object of Kubernetes has a longer name."""


class BindingKey(NamedTuple):
    """Names one binding; the only thing a queue holds.

    Attributes:
        kind: ``ResourceBinding`` or ``ClusterResourceBinding``.
        namespace: Empty for a ClusterResourceBinding.
        name: Karmada makes it of the workload's name and kind: ``web-deployment``.
    """

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        """``namespace/name``, or the name alone where there is no namespace."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def display(self) -> str:
        """``ResourceBinding(namespace/name)``, as in upstream's log lines and events."""
        return f"{self.kind}({self})"


class TargetCluster(NamedTuple):
    """A cluster that a binding is on, and with how many replicas (0 for what has none)."""

    name: str
    replicas: int = 0


class ObjectReference(NamedTuple):
    """The resource template that a binding propagates.

    Attributes:
        api_version: Group and version: ``apps/v1``.
        kind: ``Deployment``, say.
        namespace: Empty for a resource of the cluster.
        name: The workload's own name.
        uid: It decides which of equal clusters comes first when replicas do not divide evenly.
    """

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


class GracefulEvictionTask(NamedTuple):
    """A cluster that the workload is being moved off.

    Attributes:
        from_cluster: Its name.
    """

    from_cluster: str


@dataclass(frozen=True)
class ReplicaRequirements:
    """What one replica asks for.

    Equal requirements of different bindings are mostly the same object, parsed once.

    Attributes:
        resource_request: Resource name to amount, in the order of the manifest.
        node_claim: Node affinity, selector and tolerations, as they are; only estimators in the member
            clusters read them.
        namespace: Of the workload.
        priority_class_name: Of its pods.
        key: Equal for equal requirements; hashable.
    """

    resource_request: Mapping[str, Quantity] = field(default_factory=dict)
    node_claim: Mapping[str, Any] | None = None
    namespace: str = ""
    priority_class_name: str = ""

    @cached_property
    def key(self) -> bytes:
        """A short value that is equal for equal requests (the rest does not change a capacity here)."""
        # In base 16, as Python refuses to write very long numbers in base 10.
        parts = [
            f"{name!r}:{amount.unscaled:x}:{amount.exponent}:{amount.format}:{amount.slow}"
            for name, amount in sorted(self.resource_request.items())
        ]
        return hashlib.blake2b(",".join(parts).encode(), digest_size=32).digest()


class Component(NamedTuple):
    """One of several pod templates of a workload.

    Attributes:
        name: Unique among the components of the workload.
        replicas: How many of this template make one set.
        replica_requirements: What each of them asks for; None if it does not say.
    """

    name: str
    replicas: int = 0
    replica_requirements: ReplicaRequirements | None = None


class AssumedWorkload(NamedTuple):
    """What was placed on a cluster lately and may not show in its status yet.

    Attributes:
        binding: Whose it is; its next placement on the cluster takes the place of this one.
    """

    namespace: str
    components: tuple[Component, ...]
    binding: BindingKey | None = None


class WorkloadAffinityGroups(NamedTuple):
    """The groups in which this workload attracts or repels others; empty strings where it has none."""

    affinity_group: str = ""
    anti_affinity_group: str = ""


class ClusterHealth(NamedTuple):
    """What one cluster reports of the workload.

    Attributes:
        cluster_name: The cluster.
        health: ``Healthy``, ``Unhealthy`` or ``Unknown``.
    """

    cluster_name: str
    health: str = ""


@dataclass(frozen=True, slots=True)
class BindingSpec:
    """What is wanted of a binding, and where it is.

    Attributes:
        resource: The workload.
        replicas: How many are wanted in all; 0 for what has none.
        replica_requirements: What each replica asks for; None if the workload does not say.
        components: The pod templates of a workload that has several.
        clusters: Where it is, with the replicas of each cluster.
        placement: None on bindings that follow others (attached dependencies).
        graceful_eviction_tasks: The clusters that it is being moved off.
        scheduler_name: As written; the empty name is taken as default-scheduler.
        scheduling_suspended: ``spec.suspension.scheduling``: it is left alone.
        reschedule_triggered_at: When a reschedule was asked for (WorkloadRebalancer).
        priority: ``spec.schedulePriority.priority``.
        workload_affinity_groups: None if it has none.
        unknown_target_fields: What else than name and replicas the manifest says of a target, to be written back with
            a target that stays as it is; None if it says nothing. Decisions do not go by it.
    """

    resource: ObjectReference = field(default_factory=ObjectReference)
    replicas: int = 0
    replica_requirements: ReplicaRequirements | None = None
    components: tuple[Component, ...] = ()
    clusters: tuple[TargetCluster, ...] = ()
    placement: Placement | None = None
    graceful_eviction_tasks: tuple[GracefulEvictionTask, ...] = ()
    scheduler_name: str = ""
    scheduling_suspended: bool = False
    reschedule_triggered_at: datetime | None = None
    priority: int = 0
    workload_affinity_groups: WorkloadAffinityGroups | None = None
    unknown_target_fields: Mapping[TargetCluster, Manifest] | None = field(
        default=None, repr=False, compare=False
    )

    @property
    def responsible_scheduler(self) -> str:
        """The scheduler that is meant."""
        return self.scheduler_name or DEFAULT_SCHEDULER_NAME

    @property
    def is_workload(self) -> bool:
        """Whether it has replicas, or could have."""
        return self.replicas > 0 or self.replica_requirements is not None or bool(self.components)

    @property
    def target_names(self) -> frozenset[str]:
        """The clusters that it is on, whatever the replicas."""
        return frozenset(target.name for target in self.clusters)


@dataclass(frozen=True, slots=True)
class BindingStatus:
    """What was done about a binding so far.

    Attributes:
        scheduler_observed_generation: The generation that was decided about last.
        scheduler_observing_affinity_name: The affinity term in force; empty with a single affinity.
        last_scheduled_time: When it got its place.
        aggregated_status: What clusters report of the workload.
        conditions: As they are, so that they can be written back.
    """

    scheduler_observed_generation: int = 0
    scheduler_observing_affinity_name: str = ""
    last_scheduled_time: datetime | None = None
    conditions: tuple[Mapping[str, Any], ...] = ()
    aggregated_status: tuple[ClusterHealth, ...] = ()

    def condition(self, type_: str) -> Mapping[str, Any] | None:
        """Find a condition by its type."""
        return next((condition for condition in self.conditions if condition.get("type") == type_), None)


@dataclass(frozen=True, slots=True)
class Binding:
    """A ResourceBinding or ClusterResourceBinding.

    Attributes:
        key: Its kind, namespace and name.
        uid: That of the binding; the workload's is ``spec.resource.uid``.
        resource_version: Changes with every write.
        generation: Grows when the spec changes.
        labels: Those of the binding, not of the workload; labels that others set on it stay.
        annotations: Those of the binding, not of the workload.
        deleting: Whether it has a deletion timestamp.
        creation_timestamp: When it was created; None where the manifest does not say so in a way that can be read.
        spec: What is wanted of it, and where it is.
        status: What was done about it so far.
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
        """The annotation with the placement of the last schedule; empty when there was none."""
        return self.annotations.get(APPLIED_PLACEMENT_ANNOTATION, "")

    @property
    def applied_placement(self) -> Placement | None:
        """The placement of the last schedule; None when there was none.

        Raises:
            ManifestError: The annotation does not hold a placement.
        """
        document = self.applied_placement_json
        return Placement.from_json(document) if document else None

    @property
    def reschedule_triggered(self) -> bool:
        """Whether a reschedule was asked for since the last schedule; times have whole seconds."""
        asked, done = self.spec.reschedule_triggered_at, self.status.last_scheduled_time
        return asked is not None and done is not None and asked > done

    @classmethod
    def from_manifest(cls, manifest: Manifest) -> Binding:
        """Read a ResourceBinding or ClusterResourceBinding of work.karmada.io/v1alpha2.

        Raises:
            ManifestError: A field is missing or of the wrong type; it names the field.
        """
        kind = manifest.get("kind")
        if kind not in KINDS:
            raise ManifestError(
                "kind", f"expected {RESOURCE_BINDING} or {CLUSTER_RESOURCE_BINDING}, got {kind!r}"
            )
        metadata = read_mapping(manifest, "metadata", "")
        namespace = read_text(metadata, "namespace", "metadata")
        if kind == RESOURCE_BINDING and not namespace:
            raise ManifestError("metadata.namespace", "is missing")
        return cls(
            key=BindingKey(
                interned(kind),
                interned(namespace) if kind == RESOURCE_BINDING else "",
                read_required_text(metadata, "name", "metadata"),
            ),
            uid=read_text(metadata, "uid", "metadata"),
            resource_version=read_text(metadata, "resourceVersion", "metadata"),
            generation=read_integer(metadata, "generation", "metadata"),
            labels=_read_labels(metadata),
            annotations=interned_map(read_text_map(metadata, "annotations", "metadata")),
            deleting=metadata.get("deletionTimestamp") is not None,
            creation_timestamp=_read_creation(metadata),
            spec=_read_spec(read_mapping(manifest, "spec", "")),
            status=_read_status(read_mapping(manifest, "status", "")),
        )

    def with_status(self, manifest: Manifest) -> Binding:
        """Return the binding with its status and version as in a manifest that differs from it in nothing else.

        Args:
            manifest: The answer to a patch of the status that named this version: reading it whole costs more.

        Raises:
            ManifestError: As ``from_manifest``.
        """
        metadata = read_mapping(manifest, "metadata", "")
        return replace(
            self,
            resource_version=read_text(metadata, "resourceVersion", "metadata"),
            status=_read_status(read_mapping(manifest, "status", "")),
        )


def footprint(binding: Binding, target: TargetCluster) -> AssumedWorkload:
    """Return what a binding takes of a cluster that it is placed on.

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


def _read_creation(metadata: Manifest) -> datetime | None:
    try:
        return read_time(metadata, "creationTimestamp", "metadata")
    except ManifestError:  # no decision goes by it
        return None


def _read_labels(metadata: Manifest) -> Mapping[str, str]:
    labels = read_text_map(metadata, "labels", "metadata")
    return {name: value if name in _OWN_LABELS else interned(value) for name, value in labels.items()}


def _read_spec(spec: Manifest) -> BindingSpec:
    get = spec.get
    tasks, components, groups = get("gracefulEvictionTasks"), get("components"), get("workloadAffinityGroups")
    suspension, priority, placement = get("suspension"), get("schedulePriority"), get("placement")
    listed = read_mappings(spec, "clusters", "spec")
    targets = _read_targets(listed)
    return BindingSpec(
        resource=_read_resource(read_mapping(spec, "resource", "spec")),
        replicas=read_integer(spec, "replicas", "spec", bits=32),
        replica_requirements=_read_requirements(spec, "spec"),
        components=_read_components(spec) if components else (),
        clusters=targets,
        placement=None if placement is None else _read_placement(spec),
        graceful_eviction_tasks=_read_tasks(spec) if tasks else (),
        scheduler_name=read_text(spec, "schedulerName", "spec"),
        scheduling_suspended=suspension is not None
        and read_boolean(read_mapping(spec, "suspension", "spec"), "scheduling", "spec.suspension"),
        reschedule_triggered_at=read_time(spec, "rescheduleTriggeredAt", "spec"),
        priority=0
        if priority is None
        else read_integer(
            read_mapping(spec, "schedulePriority", "spec"), "priority", "spec.schedulePriority", bits=32
        ),
        workload_affinity_groups=None if groups is None else _read_groups(spec),
        unknown_target_fields=_read_unknown_fields(targets, listed),
    )


def _read_resource(resource: Manifest) -> ObjectReference:
    path = "spec.resource"
    return ObjectReference(
        interned(read_text(resource, "apiVersion", path)),
        interned(read_text(resource, "kind", path)),
        interned(read_text(resource, "namespace", path)),
        read_text(resource, "name", path),
        read_text(resource, "uid", path),
    )


def _read_placement(spec: Manifest) -> Placement:
    try:
        return Placement.from_manifest(read_mapping(spec, "placement", "spec"))
    except ManifestError as problem:
        if problem.path == "spec.placement":
            raise
        raise problem.below("spec.placement") from None


def _read_targets(listed: Sequence[Manifest]) -> tuple[TargetCluster, ...]:
    return tuple(
        [
            _target(
                read_text(target, "name", f"spec.clusters[{index}]"),
                read_integer(target, "replicas", f"spec.clusters[{index}]", bits=32),
            )
            for index, target in enumerate(listed)
        ]
    )


def _read_unknown_fields(
    targets: Sequence[TargetCluster], listed: Sequence[Manifest]
) -> Mapping[TargetCluster, Manifest] | None:
    found: dict[TargetCluster, Manifest] = {}
    for target, manifest in zip(targets, listed, strict=True):
        if len(manifest) - ("replicas" in manifest) > 1:  # more than the name
            unknown = {name: value for name, value in manifest.items() if name not in _TARGET_FIELDS}
            if _can_be_written(unknown):
                found[target] = unknown
    return found or None


def _can_be_written(fields: Manifest) -> bool:
    try:
        orjson.dumps({"spec": {"clusters": [fields]}})
    except TypeError:  # too deep
        return False
    return True


def _target(name: str, replicas: int) -> TargetCluster:
    return _shared_target(name, replicas) if len(name) <= _SHORT_NAME else TargetCluster(name, replicas)


@lru_cache(maxsize=_SHARED)
def _shared_target(name: str, replicas: int) -> TargetCluster:
    return TargetCluster(interned(name), replicas)


def _read_tasks(spec: Manifest) -> tuple[GracefulEvictionTask, ...]:
    return tuple(
        GracefulEvictionTask(read_text(task, "fromCluster", f"spec.gracefulEvictionTasks[{index}]"))
        for index, task in enumerate(read_mappings(spec, "gracefulEvictionTasks", "spec"))
    )


def _read_groups(spec: Manifest) -> WorkloadAffinityGroups:
    groups, path = read_mapping(spec, "workloadAffinityGroups", "spec"), "spec.workloadAffinityGroups"
    return WorkloadAffinityGroups(
        read_text(groups, "affinityGroup", path), read_text(groups, "antiAffinityGroup", path)
    )


def _read_components(spec: Manifest) -> tuple[Component, ...]:
    components = []
    for index, component in enumerate(read_mappings(spec, "components", "spec")):
        path = f"spec.components[{index}]"
        components.append(
            Component(
                read_text(component, "name", path),
                read_integer(component, "replicas", path, bits=32),
                _read_requirements(component, path),
            )
        )
    return tuple(components)


def _read_requirements(parent: Manifest, path: str) -> ReplicaRequirements | None:
    manifest = parent.get("replicaRequirements")
    if manifest is None:
        return None
    try:
        content = orjson.dumps(read_mapping(parent, "replicaRequirements", path))
    except TypeError:
        content = b""
    try:
        if content:
            return _remembered_requirements(content)
        return _parse_requirements(read_mapping(parent, "replicaRequirements", path))
    except ManifestError as problem:
        if problem.path.startswith(path):
            raise
        raise problem.below(f"{path}.replicaRequirements") from None


@cached_by_content(entries=_REMEMBERED, short=1024, long_bytes=2 * MEBI)
def _remembered_requirements(content: bytes) -> ReplicaRequirements:
    return _parse_requirements(orjson.loads(content))


def _parse_requirements(manifest: Manifest) -> ReplicaRequirements:
    request = read_mapping(manifest, "resourceRequest", "")
    return ReplicaRequirements(
        resource_request=quantity.read_list(request, "resourceRequest"),
        node_claim=read_optional_mapping(manifest, "nodeClaim", ""),
        namespace=read_text(manifest, "namespace", ""),
        priority_class_name=read_text(manifest, "priorityClassName", ""),
    )


def _read_status(status: Manifest) -> BindingStatus:
    conditions: Sequence[Manifest] = status.get("conditions") or ()
    if conditions:
        conditions = read_mappings(status, "conditions", "status")
    aggregated = status.get("aggregatedStatus")
    return BindingStatus(
        scheduler_observed_generation=read_integer(status, "schedulerObservedGeneration", "status"),
        scheduler_observing_affinity_name=read_text(status, "schedulerObservingAffinityName", "status"),
        last_scheduled_time=read_time(status, "lastScheduledTime", "status"),
        conditions=tuple([_read_condition(each) for each in conditions]),
        aggregated_status=_read_health(status) if aggregated else (),
    )


def _read_condition(condition: Manifest) -> Mapping[str, Any]:
    return {
        name: interned(value) if type(value) is str and name != "lastTransitionTime" else value
        for name, value in condition.items()
    }


def _health(cluster_name: str, health: str) -> ClusterHealth:
    if len(cluster_name) + len(health) > _SHORT_NAME:
        return ClusterHealth(cluster_name, health)
    return _shared_health(cluster_name, health)


@lru_cache(maxsize=_SHARED)
def _shared_health(cluster_name: str, health: str) -> ClusterHealth:
    return ClusterHealth(interned(cluster_name), interned(health))


def _read_health(status: Manifest) -> tuple[ClusterHealth, ...]:
    return tuple(
        [
            _health(
                read_text(each, "clusterName", f"status.aggregatedStatus[{index}]"),
                read_text(each, "health", f"status.aggregatedStatus[{index}]"),
            )
            for index, each in enumerate(read_mappings(status, "aggregatedStatus", "status"))
        ]
    )
