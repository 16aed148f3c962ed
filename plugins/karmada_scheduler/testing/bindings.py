"""A builder of ResourceBindings and ClusterResourceBindings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

from karmada_scheduler.api.binding import API_VERSION, CLUSTER_RESOURCE_BINDING, RESOURCE_BINDING, Binding
from karmada_scheduler.api.placement import Placement
from karmada_scheduler.api.well_known import (
    APPLIED_PLACEMENT_ANNOTATION,
    CLUSTER_POLICY_ID_LABEL,
    POLICY_ID_LABEL,
)
from karmada_scheduler.api.workload import Workload, WorkloadAnswer
from karmada_scheduler.testing.clusters import ObjectBuilder, quantities


class BindingBuilder(ObjectBuilder):
    """Builds a Binding; by default that of a Deployment without replicas, with an empty placement.

    ``labels`` and ``annotations`` are those of the binding; see ``workload`` for those of the workload.
    """

    _api_version = API_VERSION

    def __init__(self, name: str, namespace: str) -> None:
        kind = RESOURCE_BINDING if namespace else CLUSTER_RESOURCE_BINDING
        label = POLICY_ID_LABEL if namespace else CLUSTER_POLICY_ID_LABEL
        self._metadata: dict[str, Any] = {
            "name": f"{name}-deployment" if namespace else name,
            "uid": f"uid-{name}",
            "resourceVersion": "1",
            "generation": 1,
            "labels": {label: "policy"},
            "annotations": {},
        }
        if namespace:
            self._metadata["namespace"] = namespace
        resource = {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": namespace, "name": name}
        self._spec: dict[str, Any] = {"resource": resource, "placement": {}}
        self._status: dict[str, Any] = {}
        self._kind = kind
        self._workload: dict[str, Any] | None = None
        self._workload_problem = "the test does not set it: binding(...).workload(...)"

    # --- the workload ---

    def resource(self, api_version: str, kind: str, *, uid: str = "") -> Self:
        """Set apiVersion, kind and uid of the resource template."""
        return self._set(self._spec["resource"], apiVersion=api_version, kind=kind, uid=uid)

    def uid(self, uid: str) -> Self:
        """Set the uid of the resource template; its parity decides ties."""
        return self._set(self._spec["resource"], uid=uid)

    def replicas(self, count: int, **request: object) -> Self:
        """Set the replicas, and what each one requests, if anything: ``replicas(2, cpu=1, memory="1Gi")``."""
        self._spec["replicas"] = count
        return self.request(request) if request else self

    def request(self, amounts: Mapping[str, object]) -> Self:
        """Set what each replica requests, with resource names that are no Python names."""
        requirements = self._spec.setdefault("replicaRequirements", {})
        return self._set(requirements, resourceRequest=quantities(amounts))

    def component(self, name: str, replicas: int, **request: object) -> Self:
        """Add a pod template."""
        component: dict[str, Any] = {"name": name, "replicas": replicas}
        if request:
            component["replicaRequirements"] = {"resourceRequest": quantities(request)}
        return self._add(self._spec, "components", component)

    def groups(self, *, affinity: str = "", anti_affinity: str = "") -> Self:
        """Join workload affinity groups."""
        groups = {"affinityGroup": affinity, "antiAffinityGroup": anti_affinity}
        return self._set(self._spec, workloadAffinityGroups=groups)

    def priority_class(self, name: str) -> Self:
        """Set the priority class of the pods."""
        return self._set(self._spec.setdefault("replicaRequirements", {}), priorityClassName=name)

    def node_claim(self, **claim: Any) -> Self:
        """Set which nodes the pods need, with the fields of the API: ``node_claim(nodeSelector={"disk": "ssd"})``."""
        return self._set(self._spec.setdefault("replicaRequirements", {}), nodeClaim=claim)

    def workload(
        self,
        *,
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
        owner_references: Sequence[Mapping[str, Any]] = (),
    ) -> Self:
        """Set the metadata of the workload, for plugins with ``needs_workload``; owners have the fields of the API."""
        self._workload = {
            "labels": dict(labels or {}),
            "annotations": dict(annotations or {}),
            "ownerReferences": list(owner_references),
        }
        return self

    def without_workload(self, problem: str) -> Self:
        """Set why the metadata of the workload is unknown: ``context.workload_problem``."""
        self._workload, self._workload_problem = None, problem
        return self

    @property
    def workload_answer(self) -> WorkloadAnswer:
        """The workload, or why it is unknown, as plugins get it."""
        if self._workload is None:
            return WorkloadAnswer(problem=self._workload_problem)
        resource = self._spec["resource"]
        named = {field: resource.get(field) for field in ("namespace", "name", "uid")}
        found = Workload.from_manifest(
            {"metadata": {**named, **self._workload}},
            api_version=resource["apiVersion"],
            kind=resource["kind"],
        )
        return WorkloadAnswer(found)

    # --- its clusters ---

    def on(self, *names: str, **replicas: int) -> Self:
        """Set its clusters, by name or with replicas: ``on("m1", "m2")``, ``on(m1=3)``."""
        targets: list[dict[str, Any]] = [{"name": name} for name in names]
        targets += [{"name": name, "replicas": count} for name, count in replicas.items()]
        return self._set(self._spec, clusters=targets)

    def evicted_from(self, *names: str) -> Self:
        """Add eviction tasks."""
        tasks = self._spec.setdefault("gracefulEvictionTasks", [])
        tasks += [
            {"fromCluster": name, "reason": "TaintUntolerated", "producer": "TaintManager"} for name in names
        ]
        return self

    def observing(self, affinity_name: str) -> Self:
        """Set the affinity term in use."""
        return self._set(self._status, schedulerObservingAffinityName=affinity_name)

    def applied(self, placement: Mapping[str, Any] | str | None = None) -> Self:
        """Set the annotation of the applied placement; without argument, to the current placement."""
        if not isinstance(placement, str):
            chosen = self._spec["placement"] if placement is None else placement
            placement = Placement.from_manifest(chosen).to_json()
        self._metadata["annotations"][APPLIED_PLACEMENT_ANNOTATION] = placement
        return self

    def health(self, **health_by_cluster: str) -> Self:
        """Set the health that clusters report: ``health(m1="Healthy", m2="Unhealthy")``."""
        self._status["aggregatedStatus"] = [
            {"clusterName": name, "health": health} for name, health in health_by_cluster.items()
        ]
        return self

    def reports(self, **replicas_by_cluster: int) -> Self:
        """Set the replicas that clusters report, where Karmada has applied the workload: ``reports(m1=2, m2=0)``."""
        known = {reported["clusterName"]: reported for reported in self._status.get("aggregatedStatus", ())}
        for name, replicas in replicas_by_cluster.items():
            report = {"applied": True, "status": {"replicas": replicas}}
            known[name] = {"clusterName": name, **known.get(name, {}), **report}
        self._status["aggregatedStatus"] = list(known.values())
        return self

    def last_scheduled(self, moment: str) -> Self:
        """Set the time of the last schedule."""
        return self._set(self._status, lastScheduledTime=moment)

    def reschedule_triggered(self, moment: str) -> Self:
        """Set the time at which a reschedule was requested."""
        return self._set(self._spec, rescheduleTriggeredAt=moment)

    # --- its placement ---

    def placement(self, placement: Mapping[str, Any] | None) -> Self:
        """Replace the placement."""
        return self._set(self._spec, placement=None if placement is None else dict(placement))

    def names(self, *names: str) -> Self:
        """Set the single affinity to these clusters."""
        return self.affinity(clusterNames=list(names))

    def affinity(self, **affinity: Any) -> Self:
        """Set the single affinity, with the fields of the API: ``affinity(exclude=["m1"])``."""
        return self._set(self._spec["placement"], clusterAffinity=affinity)

    def term(self, name: str, *names: str, overflow: Sequence[Sequence[str]] | None = None) -> Self:
        """Add an affinity term of these clusters; ``overflow`` has the clusters of each overflow affinity."""
        term: dict[str, Any] = {"affinityName": name, "clusterNames": list(names)}
        if overflow is not None:
            term["overflowAffinities"] = [
                {"affinityName": f"{name}-{index}", "clusterNames": list(tier)}
                for index, tier in enumerate(overflow)
            ]
        return self._add(self._spec["placement"], "clusterAffinities", term)

    def tolerates(self, **toleration: object) -> Self:
        """Add a toleration, with the fields of the API."""
        return self._add(self._spec["placement"], "clusterTolerations", toleration)

    def spread(self, field: str, at_least: int = 0, at_most: int = 0) -> Self:
        """Add a spread constraint."""
        constraint = {"spreadByField": field, "minGroups": at_least, "maxGroups": at_most}
        return self._add(self._spec["placement"], "spreadConstraints", constraint)

    def duplicated(self) -> Self:
        """Assign all replicas to every cluster."""
        return self._strategy(replicaSchedulingType="Duplicated")

    def aggregated(self) -> Self:
        """Divide the replicas over as few clusters as possible."""
        return self._strategy(replicaSchedulingType="Divided", replicaDivisionPreference="Aggregated")

    def dynamic_weight(self) -> Self:
        """Divide the replicas by available replicas."""
        return self._weighted({"dynamicWeight": "AvailableReplicas"})

    def static_weights(self, **weight_by_name: int) -> Self:
        """Divide the replicas by these weights; without any, all clusters have the same weight."""
        if not weight_by_name:
            return self._weighted(None)
        rules = [
            {"targetCluster": {"clusterNames": [name]}, "weight": weight}
            for name, weight in weight_by_name.items()
        ]
        return self._weighted({"staticWeightList": rules})

    def _weighted(self, preference: Mapping[str, Any] | None) -> Self:
        return self._strategy(
            replicaSchedulingType="Divided", replicaDivisionPreference="Weighted", weightPreference=preference
        )

    def _strategy(self, **strategy: Any) -> Self:
        return self._set(self._spec["placement"], replicaScheduling=strategy)

    def workload_affinity(self, *, affinity: str | None = None, anti_affinity: str | None = None) -> Self:
        """Set the label keys of the workload affinity and anti-affinity groups."""
        keys = {"affinity": affinity, "antiAffinity": anti_affinity}
        self._spec["placement"]["workloadAffinity"] = {
            name: {"groupByLabelKey": key} for name, key in keys.items() if key is not None
        }
        return self

    # --- the object ---

    def annotations(self, **annotations: str) -> Self:
        """Add annotations, whose keys are Python names, to the binding; see ``workload`` for those of the workload."""
        return self._set(self._metadata["annotations"], **annotations)

    def annotation(self, key: str, value: str = "") -> Self:
        """Add an annotation."""
        self._metadata["annotations"][key] = value
        return self

    def binding_uid(self, uid: str) -> Self:
        """Set the uid of the binding itself."""
        return self._set(self._metadata, uid=uid)

    def created(self, moment: str) -> Self:
        """Set the time of its creation, in the format of the API: ``2026-01-31T13:00:00Z``."""
        return self._set(self._metadata, creationTimestamp=moment)

    def priority(self, priority: int) -> Self:
        """Set ``spec.schedulePriority.priority``; PrioritySort orders the queue by it."""
        return self._set(self._spec, schedulePriority={"priority": priority})

    def suspended(self) -> Self:
        """Suspend its scheduling."""
        return self._set(self._spec, suspension={"scheduling": True})

    def purge_mode(self, mode: str) -> Self:
        """Set ``spec.failover.cluster.purgeMode``: what becomes of the workload on a cluster that fails."""
        return self._set(self._spec, failover={"cluster": {"purgeMode": mode}})

    def condition(self, **condition: str) -> Self:
        """Add a condition."""
        return self._add(self._status, "conditions", condition)

    def observed_generation(self, generation: int) -> Self:
        """Set the generation that the scheduler observed."""
        return self._set(self._status, schedulerObservedGeneration=generation)

    def scheduler(self, name: str) -> Self:
        """Set the scheduler's name."""
        return self._set(self._spec, schedulerName=name)

    def build(self) -> Binding:
        """Return the binding."""
        return Binding.from_manifest(self.manifest())


def binding(name: str, *, namespace: str = "default") -> BindingBuilder:
    """Start the binding of a Deployment; with an empty namespace a ClusterResourceBinding."""
    return BindingBuilder(name, namespace)
