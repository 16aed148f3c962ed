"""The five rules by which a binding is scheduled, with both sides of each comparison."""

from __future__ import annotations

from datetime import datetime

from karmada_advisor.explain.inputs import ExplainInputs
from karmada_advisor.explain.trace_model import Rule, TriggerTrace
from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.manifest import ManifestError, format_time
from karmada_scheduler.api.placement import DIVIDED, DUPLICATED, Placement
from karmada_scheduler.core.classify import placement_changed, placement_of, replicas_changed


def trace_trigger(inputs: ExplainInputs) -> TriggerTrace:
    """Check the five rules.

    Raises:
        SchedulingError: The binding has no placement.
    """
    binding = inputs.binding
    placement = placement_of(binding)
    found = inputs.classify()
    rules = (
        _placement_rule(binding, placement),
        _replicas_rule(binding, placement, inputs),
        _reschedule_rule(binding),
        _type_rule(binding, placement),
        _deleted_rule(binding, inputs),
    )
    return TriggerTrace(found.type.value, found.reason, rules)


def _placement_rule(binding: Binding, placement: Placement) -> Rule:
    holds = placement_changed(binding, placement)
    if not binding.applied_placement_json:
        applied = "none: it was never scheduled"
    else:
        try:
            before = binding.applied_placement
            applied = (
                "equal" if before == placement else f"differs in {', '.join(_differences(before, placement))}"
            )
        except ManifestError as problem:
            applied = f"unreadable ({problem})"
    return Rule("R1", "placement differs from the applied one", holds, applied, "spec.placement")


def _differences(before: Placement | None, after: Placement) -> list[str]:
    names = {
        "cluster_affinity": "clusterAffinity",
        "cluster_affinities": "clusterAffinities",
        "cluster_tolerations": "clusterTolerations",
        "spread_constraints": "spreadConstraints",
        "replica_scheduling": "replicaScheduling",
        "workload_affinity": "workloadAffinity",
    }
    return [shown for name, shown in names.items() if getattr(before, name, None) != getattr(after, name)]


def _replicas_rule(binding: Binding, placement: Placement, inputs: ExplainInputs) -> Rule:
    holds = replicas_changed(binding, placement, inputs.gates)
    strategy = placement.replica_scheduling
    type_ = strategy.replica_scheduling_type if strategy is not None else DUPLICATED
    held = [target.replicas for target in binding.spec.clusters]
    left = f"{sum(held)} in all" if type_ == DIVIDED else f"{', '.join(map(str, held)) or 'none'} per cluster"
    return Rule(
        "R2", "replicas of the clusters differ from the workload's", holds, left, str(binding.spec.replicas)
    )


def _reschedule_rule(binding: Binding) -> Rule:
    requested, done = binding.spec.reschedule_triggered_at, binding.status.last_scheduled_time
    return Rule(
        "R3",
        "a reschedule was requested after the last scheduling",
        binding.reschedule_triggered,
        f"requested {at(requested)}",
        f"scheduled {at(done)}",
    )


def _type_rule(binding: Binding, placement: Placement) -> Rule:
    duplicated, workload = placement.is_duplicated, binding.spec.is_workload
    left = "Duplicated" if duplicated else "Divided"
    return Rule(
        "R4",
        "Duplicated, or without replicas: decided at every event",
        duplicated or not workload,
        left,
        "has replicas" if workload else "has no replicas",
    )


def _deleted_rule(binding: Binding, inputs: ExplainInputs) -> Rule:
    leaving = [each.name for each in binding.spec.clusters if inputs.snapshot.is_gone(each.name)]
    return Rule(
        "R5",
        "a cluster of the binding is being deleted or does not exist",
        bool(leaving),
        ", ".join(leaving) or "none",
        "",
    )


def at(moment: datetime | None) -> str:
    """Return a time in the format of the API; ``never`` without one."""
    return "never" if moment is None else format_time(moment)
