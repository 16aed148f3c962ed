"""The values that a binding consists of: its key, spec and status."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime
from functools import cached_property
from typing import Any, Final, NamedTuple

from karmada_scheduler.api.manifest import Manifest
from karmada_scheduler.api.placement import Placement
from karmada_scheduler.api.quantity import Quantity
from karmada_scheduler.structs import Struct, equal_without, field

DEFAULT_SCHEDULER_NAME: Final = "default-scheduler"
"""The scheduler of a binding that names none."""

RESOURCE_BINDING: Final = "ResourceBinding"
CLUSTER_RESOURCE_BINDING: Final = "ClusterResourceBinding"
KINDS: Final = frozenset({RESOURCE_BINDING, CLUSTER_RESOURCE_BINDING})

HEALTHY: Final = "Healthy"


class BindingKey(NamedTuple):
    """Kind, namespace and name of a binding; the item of the work queue.

    Attributes:
        kind: ``ResourceBinding`` or ``ClusterResourceBinding``.
        namespace: Empty for a ClusterResourceBinding.
        name: Karmada derives it from the workload's name and kind: ``web-deployment``.
    """

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        """``namespace/name``, or the name without a namespace."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def display(self) -> str:
        """``ResourceBinding(namespace/name)``, as in upstream's log lines and events."""
        return f"{self.kind}({self})"


class TargetCluster(NamedTuple):
    """A cluster of a binding, with its replicas (0 for a workload without replicas)."""

    name: str
    replicas: int = 0


TargetComponents = tuple[tuple[str, int], ...]
"""Names and replicas of the components of a workload, as a target has them since Karmada 1.19; the order counts."""


class ObjectReference(NamedTuple):
    """The resource template that a binding propagates.

    Attributes:
        api_version: Group and version: ``apps/v1``.
        kind: For example ``Deployment``.
        namespace: Empty for a cluster-scoped resource.
        name: The workload's own name.
        uid: It breaks ties between clusters when replicas do not divide evenly.
    """

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


class GracefulEvictionTask(Struct, frozen=True):
    """A cluster that the workload is being evicted from; equal to another task of the same cluster.

    Attributes:
        from_cluster: Its name.
        producer: The controller or the scheduler that wrote the task.
        creation_timestamp: When Karmada's graceful-eviction controller saw it first, in the API's format; "" before.
        manifest: The task as it is stored, so that it can be written back.
    """

    from_cluster: str
    producer: str = ""
    creation_timestamp: str = ""
    manifest: Manifest = field(default_factory=dict)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GracefulEvictionTask) and self.from_cluster == other.from_cluster

    def __hash__(self) -> int:
        return hash(self.from_cluster)


class ReplicaRequirements(Struct, frozen=True, dict=True):
    """The requirements of one replica.

    Equal requirements of different bindings are mostly the same object, parsed once.

    Attributes:
        resource_request: Resource name to amount, in the order of the manifest.
        node_claim: Node affinity, selector and tolerations, as they are; only estimators in the member
            clusters read them.
        namespace: Namespace of the workload.
        priority_class_name: Priority class of its pods.
        key: Equal for equal resource requests; hashable.
    """

    resource_request: Mapping[str, Quantity] = field(default_factory=dict)
    node_claim: Mapping[str, Any] | None = None
    namespace: str = ""
    priority_class_name: str = ""

    @cached_property
    def key(self) -> bytes:
        """A short hash of the resource request; the other fields do not change capacities in this process."""
        # In base 16, because Python refuses to write very long numbers in base 10.
        parts = [
            f"{name!r}:{amount.unscaled:x}:{amount.exponent}:{amount.format}:{amount.slow}"
            for name, amount in sorted(self.resource_request.items())
        ]
        return hashlib.blake2b(",".join(parts).encode(), digest_size=32).digest()


class Component(NamedTuple):
    """One of several pod templates of a workload.

    Attributes:
        name: Unique among the components of the workload.
        replicas: Replicas of this template in one set.
        replica_requirements: Requirements of each replica; None without any.
    """

    name: str
    replicas: int = 0
    replica_requirements: ReplicaRequirements | None = None


class AssumedWorkload(NamedTuple):
    """A workload that was placed on a cluster recently and may not be in the cluster's status yet.

    Attributes:
        binding: The binding; its next placement on the cluster replaces this one.
    """

    namespace: str
    components: tuple[Component, ...]
    binding: BindingKey | None = None


class WorkloadAffinityGroups(NamedTuple):
    """The affinity and anti-affinity group of a workload; empty strings without one."""

    affinity_group: str = ""
    anti_affinity_group: str = ""


class ClusterHealth(NamedTuple):
    """The health of the workload on one cluster.

    Attributes:
        cluster_name: Name of the cluster.
        health: ``Healthy``, ``Unhealthy`` or ``Unknown``.
    """

    cluster_name: str
    health: str = ""


class ReportedReplicas(NamedTuple):
    """How many replicas of a workload one cluster has, where no change of them is under way.

    Attributes:
        total: All of them, at least 0.
        ready: Those that are ready, 0 to ``total``; None if that is not reported.
    """

    total: int
    ready: int | None = None


class BindingSpec(Struct, frozen=True):  # noqa: PLW1641 - nothing hashes it
    """The spec of a binding.

    Attributes:
        resource: The workload.
        replicas: Number of replicas in total; 0 for a workload without replicas.
        replica_requirements: Requirements of each replica; None without any.
        components: The pod templates of a workload with several.
        clusters: Its current clusters, with the replicas of each.
        placement: None on bindings that follow others (attached dependencies).
        graceful_eviction_tasks: The clusters that it is being evicted from.
        scheduler_name: As written; the empty name means default-scheduler.
        scheduling_suspended: ``spec.suspension.scheduling``: it is not scheduled.
        reschedule_triggered_at: When a reschedule was requested (WorkloadRebalancer).
        priority: ``spec.schedulePriority.priority``.
        workload_affinity_groups: None if it has none.
        failover_purge_modes: The purge modes of ``spec.failover``, for clusters and applications.
        unknown_target_fields: Fields of targets other than name and replicas. They are written back with an unchanged
            target; None without any. Decisions do not depend on them, except that those of 1.19 replace ``components``.
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
    failover_purge_modes: frozenset[str] = frozenset()
    unknown_target_fields: Mapping[TargetCluster, Manifest] | None = None

    def __eq__(self, other: object) -> bool:
        return equal_without("unknown_target_fields", self, other)

    @property
    def responsible_scheduler(self) -> str:
        """The name of the scheduler that schedules it."""
        return self.scheduler_name or DEFAULT_SCHEDULER_NAME

    @property
    def is_workload(self) -> bool:
        """Whether it has replicas, or can have replicas."""
        return self.replicas > 0 or self.replica_requirements is not None or bool(self.components)

    def stored_components(self, target: TargetCluster) -> TargetComponents:
        """Return the components that a target has as it is stored."""
        listed = (self.unknown_target_fields or {}).get(target, {}).get("components")
        known = [each for each in listed if isinstance(each, Mapping)] if isinstance(listed, list) else ()
        return tuple([(component.get("name", ""), component.get("replicas", 0)) for component in known])

    @property
    def target_names(self) -> frozenset[str]:
        """The names of its current clusters."""
        return frozenset(target.name for target in self.clusters)


class BindingStatus(Struct, frozen=True):
    """The status of a binding.

    Attributes:
        scheduler_observed_generation: The generation that was scheduled last.
        scheduler_observing_affinity_name: The affinity term in use; empty with a single affinity.
        last_scheduled_time: When it was scheduled last.
        aggregated_status: The health of the workload on each cluster.
        reported_replicas: How many replicas each of these clusters has; None where that is not known or is changing, and
            () if it is nowhere known.
        conditions: As in the manifest, so that they can be written back.
        aggregated_items: ``status.aggregatedStatus`` as it is, with the status of the workload on each cluster, for a
            binding with graceful eviction tasks; empty for others.
    """

    scheduler_observed_generation: int = 0
    scheduler_observing_affinity_name: str = ""
    last_scheduled_time: datetime | None = None
    conditions: tuple[Mapping[str, Any], ...] = ()
    aggregated_status: tuple[ClusterHealth, ...] = ()
    aggregated_items: tuple[Manifest, ...] = ()
    reported_replicas: tuple[ReportedReplicas | None, ...] = ()

    def condition(self, type_: str) -> Mapping[str, Any] | None:
        """Return the condition of a type, None without one."""
        return next((condition for condition in self.conditions if condition.get("type") == type_), None)

    def reported_by_cluster(self) -> dict[str, ReportedReplicas]:
        """Return how many replicas each cluster reports, as far as that is known."""
        names = (report.cluster_name for report in self.aggregated_status)
        known = zip(names, self.reported_replicas, strict=False)
        return {name: replicas for name, replicas in known if replicas is not None}
