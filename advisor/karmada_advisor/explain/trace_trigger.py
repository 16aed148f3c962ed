"""The five rules by which a binding is scheduled, with both sides of each comparison."""

from __future__ import annotations

from typing import Final

from karmada_advisor.explain.amounts import at
from karmada_advisor.explain.inputs import ExplainInputs
from karmada_advisor.explain.trace_model import Rule, TriggerTrace
from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.manifest import ManifestError
from karmada_scheduler.api.object_fields import camel
from karmada_scheduler.api.placement import DIVIDED, Placement
from karmada_scheduler.core.classify import placement_changed, placement_of, replicas_changed

_RULES: Final = (
    "placement differs from the applied one",
    "replicas of the clusters differ from the workload's",
    "a reschedule was requested after the last scheduling",
    "Duplicated, or without replicas: decided at every event",
    "a cluster of the binding is being deleted or does not exist",
)


def trace_trigger(inputs: ExplainInputs) -> TriggerTrace:
    """Check the five rules.

    Raises:
        SchedulingError: The binding has no placement.
    """
    binding, spec = inputs.binding, inputs.binding.spec
    placement = placement_of(binding)
    found, is_duplicated = inputs.classify(), placement.is_duplicated
    strategy, replicas = placement.replica_scheduling, [target.replicas for target in spec.clusters]
    held = f"{', '.join(map(str, replicas)) or 'none'} per cluster"
    if strategy is not None and strategy.replica_scheduling_type == DIVIDED:
        held = f"{sum(replicas)} in all"
    requested = f"requested {at(spec.reschedule_triggered_at)}"
    workload = "has replicas" if spec.is_workload else "has no replicas"
    leaving = ", ".join(target.name for target in spec.clusters if inputs.snapshot.is_gone(target.name))
    sides = (
        (placement_changed(binding, placement), _applied(binding, placement), "spec.placement"),
        (replicas_changed(binding, placement, inputs.algorithm.gates), held, str(spec.replicas)),
        (binding.reschedule_triggered, requested, f"scheduled {at(binding.status.last_scheduled_time)}"),
        (is_duplicated or not spec.is_workload, "Duplicated" if is_duplicated else "Divided", workload),
        (bool(leaving), leaving or "none", ""),
    )
    compared = enumerate(zip(_RULES, sides, strict=True), 1)
    rules = tuple(Rule(f"R{number}", name, *rule) for number, (name, rule) in compared)
    return TriggerTrace(found.type.value, found.reason, rules)


def _applied(binding: Binding, placement: Placement) -> str:
    """Return how the applied placement differs from the binding's."""
    if not binding.applied_placement_json:
        return "none: it was never scheduled"
    try:
        before = binding.applied_placement
    except ManifestError as problem:
        return f"unreadable ({problem})"
    fields = Placement.__struct_fields__
    names = [camel(name) for name in fields if getattr(before, name, None) != getattr(placement, name)]
    return "equal" if before == placement else f"differs in {', '.join(names)}"
