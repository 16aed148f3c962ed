"""The inputs of explanations, from objects and rules."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime

from karmada_scheduler.api.binding import Binding
from karmada_scheduler.cli.simulate.state import SimulatedBindings, handles
from karmada_scheduler.cli.simulate.workloads import StoredWorkloads, Workloads
from karmada_scheduler.cli.sources import rules
from karmada_scheduler.cli.sources.objects import NoAnswerError, Objects
from karmada_scheduler.config import features
from karmada_scheduler.config.problems import ConfigError
from karmada_scheduler.core.available_replicas import Estimators
from karmada_scheduler.core.schedule import SchedulingAlgorithm
from karmada_scheduler.estimator.general import GeneralEstimator
from karmada_scheduler.explain.inputs import ExplainInputs
from karmada_scheduler.framework import Snapshot
from karmada_scheduler.framework.profile.factory import Registration

InputsOf = Callable[[Binding], ExplainInputs]


@contextmanager
def explain_inputs(
    arguments: argparse.Namespace, objects: Objects, own: Sequence[Registration]
) -> Iterator[InputsOf]:
    """Provide the function that returns what a decision about a binding reads; all share the caches of one core.

    Args:
        arguments: With the flags of ``rules.add_arguments``.
        objects: What was read.
        own: The plugins of a main program of the user's own.

    Raises:
        NoAnswerError: The configuration or a plugin cannot be used.
    """
    try:
        gates = features.parse(arguments.feature_gates)
    except ValueError as error:
        raise NoAnswerError(f"--feature-gates: {error}") from error
    snapshot, known = Snapshot.of(objects.clusters), SimulatedBindings(objects.bindings)
    workloads = Workloads(objects.workloads)
    stored = StoredWorkloads(workloads, known.get)
    local = (GeneralEstimator(gates),)
    empty = arguments.enable_empty_workload_propagation == "true"
    peers = known if gates.enabled("WorkloadAffinity") else None
    algorithm = SchedulingAlgorithm(
        gates,
        local,
        empty_workload_propagation=empty,
        peers=peers,
        stored=known.get,
        stored_workload=stored.of,
    )
    try:
        with rules.configured(
            arguments, gates, own, handle_for=handles(snapshot, known, stored.for_profile)
        ) as frameworks:
            stored.framework_of, stored.declaring = frameworks.of, frameworks.declaring

            def inputs_of(binding: Binding) -> ExplainInputs:
                framework = frameworks.of(binding) or frameworks.any
                return ExplainInputs(
                    binding,
                    snapshot,
                    framework,
                    gates,
                    algorithm,
                    Estimators(local),
                    peers=peers,
                    empty_workload_propagation=empty,
                    workload=workloads.of(binding) if framework.needs_workload else None,
                    scheduler_names=frameworks.names or None,
                    binding_manifest=objects.manifests.get(binding.key),
                    cluster_manifest=objects.manifests.get,
                    policies=objects.policies,
                    template_labels=objects.template_labels(binding.spec.resource),
                    others=objects.bindings,
                    now=datetime.now(UTC),
                )

            yield inputs_of
    except ConfigError as unusable:
        raise NoAnswerError("\n".join(str(each) for each in unusable.problems)) from unusable
