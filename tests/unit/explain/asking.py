"""Asks for the causes and the explanation of a binding that builders describe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from karmada_advisor.explain.causes import causes_of_binding, causes_of_cluster
from karmada_advisor.explain.explain import explain
from karmada_advisor.explain.inputs import ExplainInputs
from karmada_advisor.explain.model import Cause, Explanation, NextState
from karmada_advisor.explain.situation import Situation
from karmada_advisor.state.reading import Facts
from karmada_scheduler.api.binding import AssumedWorkload
from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.core.schedule import SchedulingAlgorithm
from karmada_scheduler.estimator.general import GeneralEstimator
from karmada_scheduler.framework import Peers, Plugin
from karmada_scheduler.testing import BindingBuilder, ClusterBuilder, framework, snapshot


def inputs_of(
    binding: BindingBuilder,
    *clusters: ClusterBuilder,
    gates: FeatureGates | None = None,
    plugins: Sequence[Plugin | type[Plugin]] = (),
    peers: Peers | None = None,
    assumed: Mapping[str, Sequence[AssumedWorkload]] | None = None,
    policies: Sequence[Mapping[str, Any]] | None = None,
    scheduler_names: frozenset[str] | None = None,
    empty_workload_propagation: bool = False,
    others: Sequence[BindingBuilder] = (),
) -> ExplainInputs:
    """Return what a decision about the binding reads."""
    gates = gates or FeatureGates()
    algorithm = SchedulingAlgorithm(
        gates, (GeneralEstimator(gates),), peers=peers, empty_workload_propagation=empty_workload_propagation
    )
    manifests = {each.manifest()["metadata"]["name"]: each.manifest() for each in clusters}
    return ExplainInputs(
        binding.build(),
        snapshot(*clusters),
        framework(*plugins, gates=gates),
        algorithm,
        assumed=assumed or {},
        workload=binding.workload_answer,
        scheduler_names=scheduler_names,
        binding_manifest=binding.manifest(),
        facts=Facts(cluster_of=manifests.get, policies=policies),
        others=[each.build() for each in others],
    )


def causes(
    binding: BindingBuilder, *clusters: ClusterBuilder, why_not: str | None = None, **options: Any
) -> list[Cause]:
    """Return the causes, of the binding or why a cluster does not have it; the first one is the primary one."""
    situation = Situation(inputs_of(binding, *clusters, **options))
    found = causes_of_binding(situation) if why_not is None else causes_of_cluster(situation, why_not)
    assert [each.primary for each in found] == [index == 0 for index in range(len(found))]
    return found


def primary(
    binding: BindingBuilder, *clusters: ClusterBuilder, why_not: str | None = None, **options: Any
) -> Cause:
    """Return the primary cause."""
    return causes(binding, *clusters, why_not=why_not, **options)[0]


def explained(binding: BindingBuilder, *clusters: ClusterBuilder, **options: Any) -> Explanation:
    """Return the explanation."""
    return explain(inputs_of(binding, *clusters, **options))


def placement(explanation: Explanation) -> dict[str, int]:
    """Return what a decision now would give, replicas by cluster."""
    targets = (
        explanation.would_be.placement if explanation.would_be is not None else explanation.state.clusters
    )
    return {each.name: each.replicas for each in targets}


def outcome(explanation: Explanation) -> NextState | None:
    """Return what a decision now would make of the binding; None if there would be none."""
    return None if explanation.would_be is None else explanation.would_be.outcome


def codes(found: Sequence[Cause]) -> list[str]:
    """Return the codes in their order."""
    return [each.code for each in found]
