"""Reads the parts of a ResourceBinding or ClusterResourceBinding.

Equal parts of different bindings are mostly the same object, because many bindings have equal requirements, targets,
conditions and labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

import orjson

from karmada_scheduler.api.binding_spec import (
    KINDS,
    BindingSpec,
    BindingStatus,
    ClusterHealth,
    Component,
    GracefulEvictionTask,
    ObjectReference,
    ReplicaRequirements,
    ReportedReplicas,
    TargetCluster,
    WorkloadAffinityGroups,
)
from karmada_scheduler.api.content_cache import MEBI, cached_by_content, interned
from karmada_scheduler.api.manifest import (
    Manifest,
    ManifestError,
    read_boolean,
    read_integer,
    read_mapping,
    read_mappings,
    read_optional_mapping,
    read_text,
    read_text_map,
    read_time,
)
from karmada_scheduler.api.object_fields import read_object
from karmada_scheduler.api.placement import Placement
from karmada_scheduler.api.quantity import read_list
from karmada_scheduler.api.workload import settled_replicas

_UNIQUE_LABELS: Final = frozenset(f"{kind.lower()}.karmada.io/permanent-id" for kind in KINDS)
"""Labels whose value no other binding has."""

_Reports = tuple[ReportedReplicas | None, ...]
_TARGET_FIELDS: Final = frozenset({"name", "replicas"})

_CACHED_REQUIREMENTS: Final = 8192
_CACHED_VALUES: Final = 1 << 15
_SHARED_CLUSTERS: Final = 8
"""Bindings with the same number of replicas on so many clusters are frequent."""
_MAX_NAME: Final = 253
"""Length of the longest object name in Kubernetes."""


def read_creation(metadata: Manifest) -> datetime | None:
    """Read the creation timestamp; None if it is missing or unreadable, as no decision depends on it."""
    try:
        return read_time(metadata, "creationTimestamp", "metadata")
    except ManifestError:
        return None


def read_labels(metadata: Manifest) -> Mapping[str, str]:
    """Read labels; values that other bindings share are interned."""
    labels = read_text_map(metadata, "labels", "metadata")
    return {name: value if name in _UNIQUE_LABELS else interned(value) for name, value in labels.items()}


def read_spec(spec: Manifest) -> BindingSpec:
    """Read the spec of a binding."""
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
        graceful_eviction_tasks=read_tasks(read_mappings(spec, "gracefulEvictionTasks", "spec"))
        if tasks
        else (),
        scheduler_name=read_text(spec, "schedulerName", "spec"),
        scheduling_suspended=suspension is not None
        and read_boolean(read_mapping(spec, "suspension", "spec"), "scheduling", "spec.suspension"),
        reschedule_triggered_at=read_time(spec, "rescheduleTriggeredAt", "spec"),
        priority=0
        if priority is None
        else read_integer(
            read_mapping(spec, "schedulePriority", "spec"), "priority", "spec.schedulePriority", bits=32
        ),
        workload_affinity_groups=None
        if groups is None
        else read_object(
            WorkloadAffinityGroups,
            read_mapping(spec, "workloadAffinityGroups", "spec"),
            "spec.workloadAffinityGroups",
        ),
        failover_purge_modes=_read_purge_modes(spec) if get("failover") else frozenset(),
        unknown_target_fields=read_unknown_fields(targets, listed),
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


def read_unknown_fields(
    targets: Sequence[TargetCluster], listed: Sequence[Manifest]
) -> Mapping[TargetCluster, Manifest] | None:
    """Read the fields of targets other than name and replicas; None without any."""
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
    return _shared_target(name, replicas) if len(name) <= _MAX_NAME else TargetCluster(name, replicas)


@lru_cache(maxsize=_CACHED_VALUES)
def _shared_target(name: str, replicas: int) -> TargetCluster:
    return TargetCluster(interned(name), replicas)


def read_tasks(tasks: Sequence[Manifest]) -> tuple[GracefulEvictionTask, ...]:
    """Read ``spec.gracefulEvictionTasks``."""
    return tuple(
        GracefulEvictionTask(
            read_text(task, "fromCluster", f"spec.gracefulEvictionTasks[{index}]"),
            read_lenient_text(task, "producer"),
            read_lenient_text(task, "creationTimestamp"),
            task,
        )
        for index, task in enumerate(tasks)
    )


def read_lenient_text(manifest: Manifest, name: str) -> str:
    """Read a text on which no decision depends; "" if it is something else."""
    found = manifest.get(name)
    return found if isinstance(found, str) else ""


def _read_purge_modes(spec: Manifest) -> frozenset[str]:
    """Read the purge modes of failovers; no decision depends on them, so what cannot be read is left out."""
    failover = spec["failover"]
    parts = (
        [failover.get(name) for name in ("cluster", "application")] if isinstance(failover, Mapping) else []
    )
    modes = [read_lenient_text(part, "purgeMode") for part in parts if isinstance(part, Mapping)]
    return frozenset(interned(mode) for mode in modes if mode)


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
            return _cached_requirements(content)
        return _parse_requirements(read_mapping(parent, "replicaRequirements", path))
    except ManifestError as problem:
        if problem.path.startswith(path):
            raise
        raise problem.below(f"{path}.replicaRequirements") from None


@cached_by_content(entries=_CACHED_REQUIREMENTS, short=1024, long_bytes=2 * MEBI)
def _cached_requirements(content: bytes) -> ReplicaRequirements:
    return _parse_requirements(orjson.loads(content))


def _parse_requirements(manifest: Manifest) -> ReplicaRequirements:
    request = read_mapping(manifest, "resourceRequest", "")
    return ReplicaRequirements(
        resource_request=read_list(request, "resourceRequest"),
        node_claim=read_optional_mapping(manifest, "nodeClaim", ""),
        namespace=read_text(manifest, "namespace", ""),
        priority_class_name=read_text(manifest, "priorityClassName", ""),
    )


def read_status(status: Manifest, spec: BindingSpec | None = None) -> BindingStatus:
    """Read the status of a binding; without its spec, what ``aggregatedStatus`` has depending on that is left out."""
    conditions: Sequence[Manifest] = status.get("conditions") or ()
    if conditions:
        conditions = read_mappings(status, "conditions", "status")
    aggregated = status.get("aggregatedStatus")
    return BindingStatus(
        scheduler_observed_generation=read_integer(status, "schedulerObservedGeneration", "status"),
        scheduler_observing_affinity_name=read_text(status, "schedulerObservingAffinityName", "status"),
        last_scheduled_time=read_time(status, "lastScheduledTime", "status"),
        conditions=tuple([_read_condition(condition) for condition in conditions]),
        aggregated_status=_read_health(status) if aggregated else (),
        aggregated_items=tuple(aggregated) if aggregated and spec and spec.graceful_eviction_tasks else (),
        reported_replicas=_read_replicas(aggregated, spec.resource)
        if aggregated and spec and spec.is_workload
        else (),
    )


def _read_condition(condition: Manifest) -> Mapping[str, Any]:
    return {
        name: interned(value) if type(value) is str and name != "lastTransitionTime" else value
        for name, value in condition.items()
    }


def _health(cluster_name: str, health: str) -> ClusterHealth:
    if len(cluster_name) + len(health) > _MAX_NAME:
        return ClusterHealth(cluster_name, health)
    return _shared_health(cluster_name, health)


@lru_cache(maxsize=_CACHED_VALUES)
def _shared_health(cluster_name: str, health: str) -> ClusterHealth:
    return ClusterHealth(interned(cluster_name), interned(health))


def _read_health(status: Manifest) -> tuple[ClusterHealth, ...]:
    return tuple(
        [
            _health(
                read_text(report, "clusterName", f"status.aggregatedStatus[{index}]"),
                read_text(report, "health", f"status.aggregatedStatus[{index}]"),
            )
            for index, report in enumerate(read_mappings(status, "aggregatedStatus", "status"))
        ]
    )


def _read_replicas(aggregated: Sequence[Manifest], resource: ObjectReference) -> _Reports:
    found = tuple([settled_replicas(entry, resource) for entry in aggregated])
    if not any(count is not None for count in found):
        return ()
    return _shared_replicas(found) if len(found) <= _SHARED_CLUSTERS else found


@lru_cache(maxsize=_CACHED_VALUES)
def _shared_replicas(replicas: _Reports) -> _Reports:
    return replicas
