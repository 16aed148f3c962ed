"""Clusters and bindings in a line each, for tests and for authors of plugins.

    decision = decide(
        binding("web").replicas(4).dynamic_weight(),
        cluster("m1").region("eu").room(cpu=8),
        cluster("m2").taint("dedicated=gpu:NoSchedule"),
    )
    assert placed(decision) == {"m1": 4}

A builder makes a manifest, and what it builds went through the same parser as what the API server sends.
No control plane is needed for any of this.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

from karmada_scheduler.api.binding import (
    API_VERSION,
    CLUSTER_RESOURCE_BINDING,
    RESOURCE_BINDING,
    AssumedWorkload,
    Binding,
    BindingKey,
)
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.meta import APPLIED_PLACEMENT_ANNOTATION, CLUSTER_POLICY_ID_LABEL, POLICY_ID_LABEL
from karmada_scheduler.api.placement import Placement
from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.core import schedule
from karmada_scheduler.core.decision import Decision
from karmada_scheduler.estimator.general import GeneralEstimator
from karmada_scheduler.framework import Cycle, FilterContext, Framework, Peers, Plugin, ScoreContext, Snapshot
from karmada_scheduler_plugins.registry import in_tree

SERVED_APIS: Mapping[str, Sequence[str]] = {
    "v1": ("ConfigMap", "Secret", "Service", "Pod"),
    "apps/v1": ("Deployment", "StatefulSet"),
    "batch/v1": ("Job",),
    "rbac.authorization.k8s.io/v1": ("ClusterRole",),
}


class ClusterBuilder:
    """Builds a Cluster; without further words it is healthy, empty and roomy and serves ``SERVED_APIS``."""

    def __init__(self, name: str) -> None:
        self._metadata: dict[str, Any] = {"name": name, "uid": f"uid-{name}", "generation": 1, "labels": {}}
        self._spec: dict[str, Any] = {"syncMode": "Push"}
        self._status: dict[str, Any] = {
            "apiEnablements": [],
            "conditions": [
                {"type": "Ready", "status": "True"},
                {"type": "CompleteAPIEnablements", "status": "True"},
            ],
        }
        self.serves(SERVED_APIS).room(cpu=1000, memory="1000Gi", pods=1000)

    def provider(self, name: str) -> Self:
        """Set the provider."""
        self._spec["provider"] = name
        return self

    def region(self, name: str) -> Self:
        """Set the region."""
        self._spec["region"] = name
        return self

    def zones(self, *names: str) -> Self:
        """Set the zones."""
        self._spec["zones"] = list(names)
        return self

    def labels(self, **labels: str) -> Self:
        """Add labels whose keys are Python names."""
        self._metadata["labels"] |= labels
        return self

    def label(self, key: str, value: str = "") -> Self:
        """Add a label."""
        self._metadata["labels"][key] = value
        return self

    def taint(self, written: str) -> Self:
        """Add a taint as kubectl writes it: ``key=value:effect`` or ``key:effect``."""
        left, _, effect = written.partition(":")
        key, _, value = left.partition("=")
        taint = {"key": key, "value": value, "effect": effect}
        self._spec.setdefault("taints", []).append({name: text for name, text in taint.items() if text})
        return self

    def serves(self, kinds_by_version: Mapping[str, Sequence[str]], *, complete: bool = True) -> Self:
        """Replace the list of APIs."""
        self._status["apiEnablements"] = [
            {
                "groupVersion": version,
                "resources": [{"name": f"{kind.lower()}s", "kind": kind} for kind in kinds],
            }
            for version, kinds in kinds_by_version.items()
        ]
        self._status["conditions"][1]["status"] = "True" if complete else "False"
        return self

    def room(self, *, pods: object = 1000, **amounts: object) -> Self:
        """Set what is allocatable, and nothing allocated: ``room(cpu=4, memory="8Gi")``."""
        allocatable = {"pods": str(pods)} | _quantities(amounts)
        self._status["resourceSummary"] = {"allocatable": allocatable}
        return self

    def allocatable(self, amounts: Mapping[str, object]) -> Self:
        """Replace what is allocatable."""
        return self._summary("allocatable", amounts)

    def allocated(self, amounts: Mapping[str, object]) -> Self:
        """Replace what is allocated."""
        return self._summary("allocated", amounts)

    def allocating(self, amounts: Mapping[str, object]) -> Self:
        """Replace what is about to be allocated."""
        return self._summary("allocating", amounts)

    def _summary(self, part: str, amounts: Mapping[str, object]) -> Self:
        self._status["resourceSummary"][part] = _quantities(amounts)
        return self

    def without_summary(self) -> Self:
        """Make it one whose status collector has not reported yet."""
        del self._status["resourceSummary"]
        return self

    def grade(self, grade: int, *, nodes: int | None, **minimums: object) -> Self:
        """Add a resource model and, unless that is None, how many nodes of it there are."""
        ranges = [{"name": name, "min": str(amount), "max": str(amount)} for name, amount in minimums.items()]
        self._spec.setdefault("resourceModels", []).append({"grade": grade, "ranges": ranges})
        return self if nodes is None else self.nodes(grade, nodes)

    def nodes(self, grade: int, count: int) -> Self:
        """Report nodes of a grade."""
        summary = self._status["resourceSummary"]
        summary.setdefault("allocatableModelings", []).append({"grade": grade, "count": count})
        return self

    def deleting(self) -> Self:
        """Mark it as being deleted."""
        self._metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        return self

    def manifest(self) -> dict[str, Any]:
        """Return what the API server would send."""
        return {
            "apiVersion": "cluster.karmada.io/v1alpha1",
            "kind": "Cluster",
            "metadata": self._metadata,
            "spec": self._spec,
            "status": self._status,
        }

    def build(self) -> Cluster:
        """Return the cluster."""
        return Cluster.from_manifest(self.manifest())


class BindingBuilder:
    """Builds a Binding; without further words one of a Deployment with no replicas and an empty placement."""

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

    # --- the workload ---

    def resource(self, api_version: str, kind: str, *, uid: str = "") -> Self:
        """Say what is propagated."""
        self._spec["resource"] |= {"apiVersion": api_version, "kind": kind, "uid": uid}
        return self

    def uid(self, uid: str) -> Self:
        """Set the uid of the resource template; its parity decides ties."""
        self._spec["resource"]["uid"] = uid
        return self

    def replicas(self, count: int, **request: object) -> Self:
        """Ask for replicas, each with this request; an empty request is one, too: ``replicas(0, cpu=0)``."""
        self._spec["replicas"] = count
        if request:
            self._spec["replicaRequirements"] = {"resourceRequest": _quantities(request)}
        return self

    def request(self, amounts: Mapping[str, object]) -> Self:
        """Set what one replica asks for, where a name is no Python name."""
        self._spec["replicaRequirements"] = {"resourceRequest": _quantities(amounts)}
        return self

    def component(self, name: str, replicas: int, **request: object) -> Self:
        """Add a pod template."""
        component: dict[str, Any] = {"name": name, "replicas": replicas}
        if request:
            component["replicaRequirements"] = {"resourceRequest": _quantities(request)}
        self._spec.setdefault("components", []).append(component)
        return self

    def groups(self, *, affinity: str = "", anti_affinity: str = "") -> Self:
        """Join workload affinity groups."""
        self._spec["workloadAffinityGroups"] = {"affinityGroup": affinity, "antiAffinityGroup": anti_affinity}
        return self

    # --- where it is ---

    def on(self, *names: str, **replicas: int) -> Self:
        """Say where it is: names alone, or with replicas: ``on(m1=3)``."""
        targets: list[dict[str, Any]] = [{"name": name} for name in names]
        targets += [{"name": name, "replicas": count} for name, count in replicas.items()]
        self._spec["clusters"] = targets
        return self

    def evicted_from(self, *names: str) -> Self:
        """Add eviction tasks."""
        tasks = self._spec.setdefault("gracefulEvictionTasks", [])
        tasks += [
            {"fromCluster": name, "reason": "TaintUntolerated", "producer": "TaintManager"} for name in names
        ]
        return self

    def observing(self, affinity_name: str) -> Self:
        """Say which affinity term is in force."""
        self._status["schedulerObservingAffinityName"] = affinity_name
        return self

    def applied(self, placement: Mapping[str, Any] | str | None = None) -> Self:
        """Annotate the placement that was applied; without argument the present one."""
        if not isinstance(placement, str):
            chosen = self._spec["placement"] if placement is None else placement
            placement = Placement.from_manifest(chosen).to_json()
        self._metadata["annotations"][APPLIED_PLACEMENT_ANNOTATION] = placement
        return self

    def last_scheduled(self, moment: str) -> Self:
        """Set the time of the last schedule."""
        self._status["lastScheduledTime"] = moment
        return self

    def reschedule_triggered(self, moment: str) -> Self:
        """Ask for a reschedule."""
        self._spec["rescheduleTriggeredAt"] = moment
        return self

    # --- where it may be ---

    def placement(self, placement: Mapping[str, Any] | None) -> Self:
        """Replace the placement."""
        self._spec["placement"] = None if placement is None else dict(placement)
        return self

    def names(self, *names: str) -> Self:
        """Mean these clusters only."""
        return self.affinity(clusterNames=list(names))

    def affinity(self, **affinity: Any) -> Self:
        """Set the single affinity, in the words of the API: ``affinity(exclude=["m1"])``."""
        self._spec["placement"]["clusterAffinity"] = affinity
        return self

    def term(self, name: str, *names: str, overflow: Sequence[Sequence[str]] | None = None) -> Self:
        """Add an affinity term of these clusters, with tiers of further ones."""
        term: dict[str, Any] = {"affinityName": name, "clusterNames": list(names)}
        if overflow is not None:
            term["overflowAffinities"] = [
                {"affinityName": f"{name}-{index}", "clusterNames": list(tier)}
                for index, tier in enumerate(overflow)
            ]
        self._spec["placement"].setdefault("clusterAffinities", []).append(term)
        return self

    def tolerates(self, **toleration: object) -> Self:
        """Add a toleration, in the words of the API."""
        self._spec["placement"].setdefault("clusterTolerations", []).append(toleration)
        return self

    def spread(self, field: str, at_least: int = 0, at_most: int = 0) -> Self:
        """Add a spread constraint."""
        constraint = {"spreadByField": field, "minGroups": at_least, "maxGroups": at_most}
        self._spec["placement"].setdefault("spreadConstraints", []).append(constraint)
        return self

    def duplicated(self) -> Self:
        """Give all replicas to every cluster."""
        return self._strategy(replicaSchedulingType="Duplicated")

    def aggregated(self) -> Self:
        """Divide over as few clusters as possible."""
        return self._strategy(replicaSchedulingType="Divided", replicaDivisionPreference="Aggregated")

    def dynamic_weight(self) -> Self:
        """Divide by room."""
        return self._weighted({"dynamicWeight": "AvailableReplicas"})

    def static_weights(self, **weight_by_name: int) -> Self:
        """Divide by these weights; none at all is the same weight for everybody."""
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
        self._spec["placement"]["replicaScheduling"] = strategy
        return self

    # --- the object ---

    def resource_version(self, version: str) -> Self:
        """Set the resourceVersion."""
        self._metadata["resourceVersion"] = version
        return self

    def condition(self, **condition: str) -> Self:
        """Add a condition."""
        self._status.setdefault("conditions", []).append(condition)
        return self

    def observed_generation(self, generation: int) -> Self:
        """Set the generation that the scheduler agreed with."""
        self._status["schedulerObservedGeneration"] = generation
        return self

    def scheduler(self, name: str) -> Self:
        """Set the scheduler's name."""
        self._spec["schedulerName"] = name
        return self

    def manifest(self) -> dict[str, Any]:
        """Return what the API server would send."""
        return {
            "apiVersion": API_VERSION,
            "kind": self._kind,
            "metadata": self._metadata,
            "spec": self._spec,
            "status": self._status,
        }

    def build(self) -> Binding:
        """Return the binding."""
        return Binding.from_manifest(self.manifest())


def cluster(name: str) -> ClusterBuilder:
    """Start a cluster."""
    return ClusterBuilder(name)


def binding(name: str, *, namespace: str = "default") -> BindingBuilder:
    """Start the binding of a Deployment; with an empty namespace a ClusterResourceBinding."""
    return BindingBuilder(name, namespace)


def snapshot(*clusters: ClusterBuilder | Cluster) -> Snapshot:
    """Take a snapshot of clusters."""
    return Snapshot.of(each.build() if isinstance(each, ClusterBuilder) else each for each in clusters)


def framework(
    *plugins: Plugin, gates: FeatureGates | None = None, select: Iterable[str] = ("*",)
) -> Framework:
    """Build the in-tree plugins that ``--plugins`` would select, followed by these."""
    registry = in_tree(gates or FeatureGates()).select(select).registry
    for plugin in plugins:
        registry.register(plugin.name, lambda plugin=plugin: plugin)  # type: ignore[misc]
    return Framework.build(registry)


def gates(**settings: bool) -> FeatureGates:
    """Switch feature gates on or off."""
    return FeatureGates(settings)


class Group:
    """Bindings that share groups, as WorkloadAffinity sees them."""

    def __init__(self, *listed: BindingBuilder, assigning: Sequence[BindingBuilder] = ()) -> None:
        self._listed = [each.build() for each in listed]
        self._assigning = {each.key: each for each in (builder.build() for builder in assigning)}

    def in_affinity_group(self, group: str) -> Iterable[Binding]:
        """Look an affinity group up."""
        return [each for each in self._listed if _groups(each)[0] == group]

    def in_anti_affinity_group(self, group: str) -> Iterable[Binding]:
        """Look an anti-affinity group up."""
        return [each for each in self._listed if _groups(each)[1] == group]

    def assigning(self, key: BindingKey) -> Binding | None:
        """Return our last write of a binding."""
        return self._assigning.get(key)


def _groups(binding: Binding) -> tuple[str, str]:
    groups = binding.spec.workload_affinity_groups
    return (groups.affinity_group, groups.anti_affinity_group) if groups else ("", "")


def filter_context(
    binding: BindingBuilder,
    cluster: ClusterBuilder,
    *,
    affinity_name: str | None = None,
    peers: Peers | None = None,
) -> FilterContext:
    """Make what a filter plugin is handed for one cluster."""
    return FilterContext(_cycle(binding, affinity_name, peers), cluster.build())


def score_context(binding: BindingBuilder, cluster: ClusterBuilder) -> ScoreContext:
    """Make what a score plugin is handed for one cluster."""
    return ScoreContext(_cycle(binding, None, None), cluster.build())


def _cycle(builder: BindingBuilder, affinity_name: str | None, peers: Peers | None) -> Cycle:
    built = builder.build()
    name = built.status.scheduler_observing_affinity_name if affinity_name is None else affinity_name
    return Cycle(built, built.spec.placement or Placement(), name, peers=peers)


def decide(
    binding: BindingBuilder,
    *clusters: ClusterBuilder,
    gates: FeatureGates | None = None,
    plugins: Framework | None = None,
    empty_workload_propagation: bool = False,
    assumed: Mapping[str, Sequence[AssumedWorkload]] | None = None,
    peers: Peers | None = None,
) -> Decision:
    """Decide where a binding goes, with the in-tree plugins and the built-in estimator."""
    gates = gates or FeatureGates()
    return schedule.decide(
        binding.build(),
        snapshot(*clusters),
        framework=plugins or framework(gates=gates),
        estimators=[GeneralEstimator(gates)],
        gates=gates,
        empty_workload_propagation=empty_workload_propagation,
        assumed=assumed or {},
        peers=peers,
    )


def placed(decision: Decision) -> dict[str, int]:
    """Return where a decision puts a binding, in the order in which it is written."""
    assert decision.error is None, f"not scheduled: {decision.error}"
    return {target.name: target.replicas for target in decision.targets or ()}


def _quantities(amounts: Mapping[str, object]) -> dict[str, str]:
    return {
        name.replace("ephemeral_storage", "ephemeral-storage"): str(amount)
        for name, amount in amounts.items()
    }
