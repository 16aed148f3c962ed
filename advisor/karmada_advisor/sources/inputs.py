"""The inputs of explanations, from objects and rules."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

from karmada_advisor.explain.inputs import ExplainInputs
from karmada_advisor.sources import rules
from karmada_advisor.sources.objects import NoAnswerError, Objects, workload_reader
from karmada_advisor.sources.process_rules import ProcessConfiguration, running
from karmada_advisor.sources.rules import Frameworks
from karmada_advisor.sources.simulated import SimulatedScheduler
from karmada_advisor.state.reading import Facts
from karmada_scheduler.api.binding import Binding
from karmada_scheduler.config import features
from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.config.problems import ConfigError
from karmada_scheduler.core.available_replicas import Estimators
from karmada_scheduler.framework import Snapshot
from karmada_scheduler.framework.profile.factory import Registration


@dataclass(frozen=True)
class Explaining:
    """Objects and rules, and the scheduler that decides by them; all decisions share the caches of one core."""

    objects: Objects
    gates: FeatureGates
    scheduler: SimulatedScheduler
    frameworks: Frameworks
    snapshot: Snapshot
    rules: str = ""
    process: Mapping[str, str] = field(default_factory=dict)
    plugin_dirs: Sequence[str] = ()

    @property
    def facts(self) -> Facts:
        """What is stored besides bindings."""
        return self.objects.facts(self.process)

    def inputs_of(self, binding: Binding) -> ExplainInputs:
        """Return what a decision about a binding reads."""
        scheduler, objects = self.scheduler, self.objects
        framework = self.frameworks.of(binding) or self.frameworks.any
        return ExplainInputs(
            binding,
            self.snapshot,
            framework,
            self.gates,
            scheduler.core,
            Estimators((scheduler.estimator,)),
            peers=scheduler.peers,
            empty_workload_propagation=scheduler.empty_workload_propagation,
            workload=scheduler.workloads.of(binding) if framework.needs_workload else None,
            scheduler_names=self.frameworks.names or None,
            binding_manifest=objects.manifests.get(binding.key),
            cluster_manifest=objects.manifests.get,
            policies=objects.policies,
            template_labels=objects.template_labels(binding.spec.resource),
            others=objects.bindings,
            now=objects.at or datetime.now(UTC),
            schedulers=objects.schedulers(self.process),
            events=objects.warning_events(),
            rules=self.rules,
            missing=self.frameworks.missing.get(binding.spec.responsible_scheduler, ()),
            plugin_dirs=self.plugin_dirs,
        )


@contextmanager
def explaining(
    arguments: argparse.Namespace, objects: Objects, own: Sequence[Registration]
) -> Iterator[Explaining]:
    """Provide the scheduler of the command line, with the objects that were read.

    Args:
        arguments: With the flags of ``cli.flags.shared.add_rules``.
        objects: What was read.
        own: The plugins of a main program of the user's own.

    Raises:
        NoAnswerError: The configuration or a plugin cannot be used.
    """
    try:
        gates = features.parse(arguments.feature_gates)
    except ValueError as error:
        raise NoAnswerError(f"--feature-gates: {error}") from error
    snapshot = Snapshot.of(objects.clusters)
    scheduler = SimulatedScheduler(
        gates, arguments, objects.workloads, read_workloads=workload_reader(arguments, objects)
    )
    scheduler.show(snapshot, objects.bindings)
    try:
        with rules.configured(arguments, gates, own, handle_for=scheduler.handle_for) as frameworks:
            scheduler.use(frameworks)
            process: ProcessConfiguration | None = arguments.process_rules
            yield Explaining(
                objects,
                gates,
                scheduler,
                frameworks,
                snapshot,
                rules.described(arguments),
                running(arguments),
                () if process is None else process.directories,
            )
    except ConfigError as unusable:
        raise NoAnswerError("\n".join(str(each) for each in unusable.problems)) from unusable
