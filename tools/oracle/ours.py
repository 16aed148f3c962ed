"""The decision core over the same scenarios."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from karmada_advisor.explain.inputs import ExplainInputs
from karmada_pyscheduler.binding_cycle.writer import compare_resource_versions
from karmada_scheduler.api.binding import AssumedWorkload, Binding, BindingKey, Component, ReplicaRequirements
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.config.features import DEFAULT_RULES, DecisionRules, FeatureGates
from karmada_scheduler.core.available_replicas import Assumed, EstimationError
from karmada_scheduler.core.budget import run_sync
from karmada_scheduler.core.classify import placement_changed, replicas_changed
from karmada_scheduler.core.decision import Decision
from karmada_scheduler.core.schedule import SchedulingAlgorithm
from karmada_scheduler.estimator.general import GeneralEstimator
from karmada_scheduler.framework import Snapshot
from karmada_scheduler.framework.runtime.framework import Framework
from karmada_scheduler.testing import framework


@dataclass(frozen=True)
class OurDecision:
    """Our decision for one binding.

    Attributes:
        rules: The reasons to schedule that hold, under the oracle's names and in its order.
        decision: None if there is no reason, or the binding is being deleted.
    """

    binding: Binding
    rules: list[str]
    decision: Decision | None


class Scenario:
    """A parsed scenario, and our core with its settings."""

    def __init__(self, document: Mapping[str, Any], rules: DecisionRules = DEFAULT_RULES) -> None:
        self.gates = FeatureGates(document["gates"], rules)
        self.empty_workload_propagation: bool = document["emptyWorkloadPropagation"]
        self.clusters = [Cluster.from_manifest(cluster) for cluster in document["clusters"]]
        self.snapshot = Snapshot.of(self.clusters)
        self.framework = _framework(tuple(document["plugins"]), groups=self.gates.enabled("WorkloadAffinity"))
        accurate = document.get("accurate")
        self.session = None if accurate is None else _Accurate(accurate)
        self.assumed = _assumed(document.get("assumed", ()))
        self.has_assumed_on_models = (
            self.gates.enabled("SchedulingOvercommitProtection")
            and self.gates.enabled("CustomizedClusterResourceModeling")
            and any(cluster.resource_models and self.assumed.get(cluster.name) for cluster in self.clusters)
        )
        # BindingCache has the answers to its own writes at once; upstream keeps them in a cache of assigning bindings.
        written = {each.key: each for each in map(Binding.from_manifest, document.get("assigning", ()))}
        listed = map(Binding.from_manifest, document.get("peers", ()))
        self._peers = _Peers([_newest(each, written.get(each.key)) for each in listed])
        self._estimators = (GeneralEstimator(self.gates),)
        self._algorithm = SchedulingAlgorithm(
            self.gates,
            self._estimators,
            empty_workload_propagation=self.empty_workload_propagation,
            peers=self._peers if self.gates.enabled("WorkloadAffinity") else None,
        )

    def decide(self, manifest: Mapping[str, Any]) -> OurDecision:
        """Classify and decide one binding."""
        binding = Binding.from_manifest(manifest)
        rules = self._rules(binding)
        decision = None
        if not binding.deleting and (rules or binding.spec.placement is None):
            self._peers.deciding = binding
            decision = run_sync(
                self._algorithm.decide(
                    binding, self.snapshot, self.framework, session=self.session, assumed=self.assumed
                )
            )
        return OurDecision(binding, rules, decision)

    def explain_inputs(self, binding: Binding) -> ExplainInputs:
        """Return what a decision about a binding of the scenario reads, until the next call."""
        self._peers.deciding = binding
        return ExplainInputs(
            binding,
            self.snapshot,
            self.framework,
            self._algorithm,
            self.assumed,
        )

    def _rules(self, binding: Binding) -> list[str]:
        placement, spec = binding.spec.placement, binding.spec
        if placement is None or binding.deleting:
            return []
        holds = {
            "placementChanged": placement_changed(binding, placement),
            "replicasChanged": replicas_changed(binding, placement, self.gates),
            "rescheduleTriggered": binding.reschedule_triggered,
            "duplicated": placement.is_duplicated or not spec.is_workload,
            "terminatingTarget": any(self.snapshot.is_gone(target.name) for target in spec.clusters),
        }
        return [rule for rule, value in holds.items() if value]


@cache
def _framework(plugins: tuple[str, ...], *, groups: bool) -> Framework:
    """Build the plugins once for all scenarios that have the same, as a running scheduler does."""
    return framework(gates=FeatureGates({"WorkloadAffinity": groups}), select=plugins, timeout=None)


def _newest(listed: Binding, written: Binding | None) -> Binding:
    if written is None or compare_resource_versions(written.resource_version, listed.resource_version) <= 0:
        return listed
    return written


@dataclass
class _Peers:
    """The bindings of a scenario by workload group, including the current state of the one that is being decided."""

    stored: Sequence[Binding]
    deciding: Binding | None = None

    @property
    def listed(self) -> Sequence[Binding]:
        deciding = self.deciding
        if deciding is None:
            return self.stored
        others = [peer for peer in self.stored if peer.key != deciding.key]
        return [*others, deciding] if deciding.key.namespace else others

    def in_affinity_group(self, group: str) -> Iterable[Binding]:
        return [
            each
            for each in self.listed
            if (g := each.spec.workload_affinity_groups) and g.affinity_group == group
        ]

    def in_anti_affinity_group(self, group: str) -> Iterable[Binding]:
        return [
            each
            for each in self.listed
            if (g := each.spec.workload_affinity_groups) and g.anti_affinity_group == group
        ]


class _Accurate:
    """The estimators in the member clusters of this scenario; a cluster without an answer is an error for all."""

    name = "scheduler-estimator"

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._replicas: Mapping[str, int] = document.get("replicas", {})
        self._error: str = document.get("error", "")

    def max_available_replicas(
        self, clusters: Sequence[Cluster], requirements: ReplicaRequirements | None, assumed: Assumed
    ) -> list[int]:
        return self._answers(clusters)

    def max_available_component_sets(
        self, clusters: Sequence[Cluster], components: Sequence[Component], namespace: str, assumed: Assumed
    ) -> list[int]:
        return self._answers(clusters)

    def _answers(self, clusters: Sequence[Cluster]) -> list[int]:
        if self._error:
            raise EstimationError(self._error)
        try:
            return [self._replicas[cluster.name] for cluster in clusters]
        except KeyError as missing:
            raise EstimationError(f"cluster {missing} does not exist in estimator cache") from missing


def _assumed(entries: Iterable[Mapping[str, Any]]) -> dict[str, list[AssumedWorkload]]:
    by_cluster: dict[str, list[AssumedWorkload]] = {}
    for entry in entries:
        carrier = {
            "kind": "ResourceBinding",
            "metadata": {"name": "x", "namespace": "x"},
            "spec": {"resource": {}, "components": entry["components"]},
        }
        owner = BindingKey("ResourceBinding", *entry["binding"].split("/"))
        workload = AssumedWorkload(entry["namespace"], Binding.from_manifest(carrier).spec.components, owner)
        by_cluster.setdefault(entry["cluster"], []).append(workload)
    return by_cluster
