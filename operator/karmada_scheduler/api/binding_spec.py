"""The values that a binding consists of: its key, spec and status."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any, Final, NamedTuple

from karmada_scheduler.api.manifest import Manifest
from karmada_scheduler.api.placement import Placement
from karmada_scheduler.api.quantity import Quantity

DEFAULT_SCHEDULER_NAME: Final = "default-scheduler"
"""The scheduler of a binding that names none."""

RESOURCE_BINDING: Final = "ResourceBinding"
CLUSTER_RESOURCE_BINDING: Final = "ClusterResourceBinding"
KINDS: Final = frozenset({RESOURCE_BINDING, CLUSTER_RESOURCE_BINDING})

HEALTHY: Final = "Healthy"


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
