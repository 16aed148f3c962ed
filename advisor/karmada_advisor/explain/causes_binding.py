"""Causes in the binding itself, its policy, and what happens after a decision."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from karmada_advisor.explain.causes_capacity import estimators_failed
from karmada_advisor.explain.model import Cause, NextState, Stage
from karmada_advisor.explain.situation import Situation
from karmada_advisor.state.reading import required_by
from karmada_advisor.state.stored import condition_of
from karmada_advisor.state.suspension import manager_of
from karmada_scheduler.api.placement import AGGREGATED
from karmada_scheduler.core.assign_replicas import DYNAMIC_WEIGHT


def of_state(situation: Situation) -> Iterator[Cause]:
    """Yield why nothing is decided about a binding."""
    binding = situation.inputs.binding
    evidence: dict[str, Any]
    match situation.state:
        case NextState.BEING_DELETED:
            yield Cause("BeingDeleted", Stage.TRIGGER, {}, "the binding is being deleted")
        case NextState.NO_PLACEMENT:
            yield _no_placement(situation)
        case NextState.NOT_CLAIMED:
            if situation.present or binding.applied_placement_json:
                text = (
                    "no policy claims the template any more: the placement stays, and nothing will change it"
                )
                yield Cause("Released", Stage.POLICY, {"present": situation.present}, text)
            else:
                yield Cause(
                    "NotClaimed", Stage.POLICY, {}, "no policy claims the template, so nothing is decided"
                )
        case NextState.OTHER_SCHEDULER:
            name = binding.spec.responsible_scheduler
            known = sorted(situation.inputs.scheduler_names or ())
            text = f"schedulerName is {name}, and this scheduler is {', '.join(known)}; a policy cannot change it (--scheduler-name)"
            yield Cause("OtherScheduler", Stage.TRIGGER, {"schedulerName": name, "profiles": known}, text)
        case NextState.GATED:
            gate = situation.gate
            text = f"{gate.plugin or 'a plugin'} holds it back at PreEnqueue: {gate.message}"
            evidence = {"plugin": gate.plugin, "reason": gate.message}
            yield Cause("Gated", Stage.TRIGGER, evidence, text)
        case NextState.SUSPENDED:
            by, at = manager_of(situation.inputs.binding_manifest or {}, "spec", "suspension", "scheduling")
            evidence = {
                "setBy": by,
                "since": at,
                "clusterChangeSchedules": {"karmada-scheduler": True, "karmada-pyscheduler": False},
            }
            yield Cause("Suspended", Stage.TRIGGER, evidence, situation.stored.text)


def _no_placement(situation: Situation) -> Cause:
    followed = required_by(situation.inputs.binding_manifest or {})
    if followed:
        text = f"it has no placement of its own and follows {', '.join(followed)}"
    else:
        text = "it has no placement, and no binding requires it: the controller manager did not fill it in"
    return Cause("NoPlacement", Stage.POLICY, {"requiredBy": followed}, text)


def before_failure(situation: Situation) -> Iterator[Cause]:
    """Yield the causes that come before those of a failed decision."""
    if situation.state is NextState.STUCK and situation.trigger.trace.rules[0].holds:
        yield _kept(situation)
    is_placed = condition_of(situation.inputs.binding).status == "True"
    if is_placed and situation.now.decision.targets == ():
        observed = situation.inputs.binding.status.scheduler_observed_generation
        evidence = {
            "condition": "Scheduled=True",
            "observedGeneration": observed,
            "generation": situation.inputs.binding.generation,
            "decision": str(situation.now.decision.error),
        }
        text = (
            f"the condition says Scheduled=True of generation {observed}; generation "
            f"{situation.inputs.binding.generation} decides otherwise"
        )
        yield Cause("StaleCondition", Stage.WRITE, evidence, text)


def _kept(situation: Situation) -> Cause:
    shown = ", ".join(f"{name} {replicas}" for name, replicas in situation.present.items())
    text = f"the decision fails, so the placement of an earlier one stays: {shown}"
    evidence = {"present": situation.present, "error": str(situation.now.decision.error)}
    return Cause("KeptOnFailure", Stage.WRITE, evidence, text)


def of_no_replicas(situation: Situation) -> Iterator[Cause]:
    """Yield why an empty result is right."""
    flag = "--enable-empty-workload-propagation"
    text = f"0 replicas are divided, so no cluster has any; {flag} would keep the selected clusters"
    evidence = {"replicas": 0, "flag": flag, "enabled": situation.inputs.empty_workload_propagation}
    yield Cause("ZeroReplicas", Stage.DIVIDE, evidence, text)


def after_placement(situation: Situation) -> Iterator[Cause]:
    """Yield the causes that are left for a placed binding."""
    yield from _no_capacity_check(situation)
    yield from _no_requests(situation)
    yield from estimators_failed(situation)


def _no_capacity_check(situation: Situation) -> Iterator[Cause]:
    traces = situation.shown.traces
    if traces is None or traces.attempt.cycle is None or not traces.attempt.cycle.placement.is_duplicated:
        return
    replicas = situation.inputs.binding.spec.replicas
    full = {
        each.name: each.available
        for each in traces.attempt.selected
        if replicas and each.available < replicas
    }
    if full:
        shown = ", ".join(f"{name} can take {count}" for name, count in full.items())
        text = f"Duplicated never asks how many replicas a cluster can take: {shown} of {replicas}"
        yield Cause("NoCapacityCheck", Stage.CAPACITY, {"full": full, "replicas": replicas}, text)


def _no_requests(situation: Situation) -> Iterator[Cause]:
    traces, spec = situation.shown.traces, situation.inputs.binding.spec
    requirements = spec.replica_requirements
    if (
        traces is not None
        and traces.divide is not None
        and traces.divide.strategy in {DYNAMIC_WEIGHT, AGGREGATED}
        and spec.replicas
        and (requirements is None or not requirements.resource_request)
    ):
        pods = {each.name: each.available for each in traces.attempt.selected[:10]}
        text = "the workload requests no resources, so only free pods count"
        yield Cause("OnlyPodsCount", Stage.CAPACITY, {"pods": pods}, text)
