"""What the decision core gives for stored manifests, and how a stored binding differs from it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any, Final

from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.dryrun.dry_run import DryRun
from karmada_scheduler.dryrun.forecast import Simulation
from karmada_scheduler.dryrun.frameworks import Frameworks
from karmada_scheduler.dryrun.objects import ShownObjects
from karmada_scheduler.dryrun.result import SimulationResult
from karmada_scheduler.dryrun.workloads import Workloads
from karmada_scheduler.framework import Snapshot
from karmada_scheduler.framework.runtime.framework import Framework
from karmada_scheduler.testing import framework

_GATES: Final = FeatureGates()


def targets(manifest: Any) -> dict[str, int]:
    """Return the clusters of a binding's manifest with their replicas."""
    return {each["name"]: each.get("replicas", 0) for each in manifest["spec"].get("clusters") or ()}


def decide(binding: Binding, clusters: Iterable[Cluster]) -> SimulationResult:
    """Return the stable decision about a binding."""
    dry_run = DryRun(_GATES, ShownObjects(Workloads(None)), Frameworks.only(_framework()))
    snapshot = Snapshot.of(clusters)
    dry_run.objects.show(snapshot, [binding])
    (result,) = Simulation(dry_run, snapshot).run([binding])
    return result


def decided_targets(binding: Binding, clusters: Iterable[Cluster]) -> dict[str, int]:
    """Return the clusters of the decision about a binding, with their replicas."""
    return {each.name: each.replicas for each in decide(binding, clusters).targets}


def not_converged(binding: Binding, clusters: Iterable[Cluster]) -> str:
    """Return what differs between a stored binding and a decision about it; "" if nothing does."""
    result = decide(binding, clusters)
    stored = {each.name: each.replicas for each in binding.spec.clusters}
    wanted = {each.name: each.replicas for each in result.targets}
    if stored != wanted:
        return f"has {stored}, the decision is {wanted}"
    if binding.spec.scheduling_suspended:
        return ""
    condition = next((each for each in binding.status.conditions if each.get("type") == "Scheduled"), None)
    if condition is None:
        return "has no condition Scheduled"
    if result.condition is not None and (condition.get("status"), condition.get("reason")) != (
        result.condition.status,
        result.condition.reason,
    ):
        return f"has the condition {condition}, the decision gives {result.condition}"
    if (
        condition.get("status") == "True"
        and binding.status.scheduler_observed_generation != binding.generation
    ):
        observed = binding.status.scheduler_observed_generation
        return f"generation {binding.generation}, observed {observed}"
    return ""


@cache
def _framework() -> Framework:
    return framework()
