"""Causes in what asks for a decision, in the binding itself, and in what happens after a decision."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from karmada_advisor.explain.amounts import at, request_of
from karmada_advisor.explain.causes_capacity import estimators_failed
from karmada_advisor.explain.inputs import ExplainInputs
from karmada_advisor.explain.model import Cause, NextState, Stage
from karmada_advisor.explain.situation import Basis, Situation
from karmada_advisor.explain.trace_model import DivideTrace
from karmada_advisor.state.propagation import manager_of
from karmada_advisor.state.stored import condition_of, mappings, requirers, texts, value_at, was_required
from karmada_scheduler.api.placement import AGGREGATED
from karmada_scheduler.core.assign_replicas import DYNAMIC_WEIGHT


def of_state(situation: Situation) -> Iterator[Cause]:
    """Yield why nothing is decided about a binding."""
    evidence: dict[str, Any]
    match situation.state:
        case NextState.BEING_DELETED:
            finalizers = texts(value_at(situation.inputs.binding_manifest, "metadata", "finalizers"))
            text = "the binding is being deleted"
            if finalizers:
                text += f", and waits for its finalizers: {', '.join(finalizers)}"
            yield Cause("BeingDeleted", Stage.TRIGGER, {"finalizers": finalizers}, text)
        case NextState.NO_PLACEMENT:
            yield _no_placement(situation)
        case NextState.NOT_CLAIMED:
            code, evidence, text = "NotClaimed", {}, "no policy claims the template, so nothing is decided"
            if situation.present or situation.binding.applied_placement_json:
                code, evidence = "Released", {"present": situation.present}
                kept = "the placement stays, and nothing will change it"
                text = f"no policy claims the template any more: {kept}"
            yield Cause(code, Stage.POLICY, evidence, text)
        case NextState.OTHER_SCHEDULER:
            name = situation.spec.responsible_scheduler
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
            schedules = {"karmada-scheduler": True, "karmada-pyscheduler": False}
            evidence = {"setBy": by, "since": at, "clusterChangeSchedules": schedules}
            yield Cause("Suspended", Stage.TRIGGER, evidence, situation.stored.text)


def _no_placement(situation: Situation) -> Cause:
    manifest, state = situation.inputs.binding_manifest or {}, situation.stored
    followed = [*requirers(manifest)]
    text = f"it has no placement of its own and follows {', '.join(followed)}" if followed else state.text
    if not followed and was_required(manifest):
        kind, namespace, name = situation.binding.key
        where = f" -n {namespace}" if namespace else ""
        text += f": it has no cluster, and it may be deleted (kubectl delete {kind.lower()}{where} {name})"
    return Cause("NoPlacement", Stage.POLICY, {"requiredBy": followed}, text)


def before_failure(situation: Situation) -> Iterator[Cause]:
    """Yield the causes that come before those of a failed decision."""
    yield from _removed(situation, situation.now)
    if situation.state is NextState.STUCK and situation.placement_changed:
        yield _kept(situation)
    is_placed = condition_of(situation.binding).status == "True"
    if is_placed and situation.now.decision.targets == ():
        observed = situation.binding.status.scheduler_observed_generation
        generation, error = situation.binding.generation, str(situation.now.decision.error)
        seen = {"condition": "Scheduled=True", "observedGeneration": observed}
        evidence = {**seen, "generation": generation, "decision": error}
        text = f"the condition says Scheduled=True of generation {observed}"
        text += f"; generation {generation} decides otherwise"
        yield Cause("StaleCondition", Stage.WRITE, evidence, text)


def _removed(situation: Situation, basis: Basis) -> Iterator[Cause]:
    """Yield that karmada-scheduler 1.19 would remove the workload after a reschedule that fails here."""
    if not basis.decision.is_kept_reschedule:
        return
    term, shown = basis.decision.failed_terms[0].name, targets_text(situation.present)
    evidence = {"term": term, "present": situation.present}
    text = (
        f"a WorkloadRebalancer does harm: the first term {term} does not fit, and karmada-scheduler 1.19 then removes {shown}, "
        "which this scheduler keeps"
    )
    yield Cause("RescheduleRemoves", Stage.TRIGGER, evidence, text)


def _kept(situation: Situation) -> Cause:
    shown = targets_text(situation.present)
    text = f"the decision fails, so the placement of an earlier one stays: {shown}"
    evidence = {"present": situation.present, "error": str(situation.now.decision.error)}
    return Cause("KeptOnFailure", Stage.WRITE, evidence, text)


def of_no_replicas(situation: Situation) -> Iterator[Cause]:
    """Yield why an empty result is right."""
    flag = "--enable-empty-workload-propagation"
    text = f"0 replicas are divided, so no cluster has any; {flag} would keep the selected clusters"
    evidence = {"replicas": 0, "flag": flag, "enabled": situation.inputs.algorithm.empty_workload_propagation}
    yield Cause("ZeroReplicas", Stage.DIVIDE, evidence, text)


def after_placement(situation: Situation) -> Iterator[Cause]:
    """Yield the causes that are left for a placed binding."""
    yield from _no_capacity_check(situation)
    yield from _no_requests(situation)
    yield from estimators_failed(situation)


def _no_capacity_check(situation: Situation) -> Iterator[Cause]:
    selected = situation.shown.attempt.selected
    if not selected or not situation.shown.cycle.placement.is_duplicated:
        return
    replicas = situation.spec.replicas
    full = {each.name: each.available for each in selected if replicas and each.available < replicas}
    if full:
        shown = ", ".join(f"{name} can take {count}" for name, count in full.items())
        text = f"Duplicated never asks how many replicas a cluster can take: {shown} of {replicas}"
        yield Cause("NoCapacityCheck", Stage.CAPACITY, {"full": full, "replicas": replicas}, text)


def _no_requests(situation: Situation) -> Iterator[Cause]:
    divide, spec = situation.shown.divide, situation.spec
    counts = divide is not None and divide.strategy in {DYNAMIC_WEIGHT, AGGREGATED}
    if counts and spec.replicas and not request_of(spec):
        pods = {candidate.name: candidate.available for candidate in situation.shown.attempt.selected[:10]}
        text = "the workload requests no resources, so only free pods count"
        yield Cause("OnlyPodsCount", Stage.CAPACITY, {"pods": pods}, text)


_STEADY: Final = frozenset({"keep", "up", "down"})


def of_cluster(situation: Situation, cluster: str) -> tuple[list[Cause], list[Cause]]:
    """Return the causes of the trigger for a cluster without replicas.

    Returns:
        Those that come before the causes of the steps, because a decision would change something, and those after them.
    """
    gives = bool(situation.present) and situation.is_on(situation.rebalanced.placement, cluster)
    if not situation.asks:
        causes = [_nothing_asks(situation)]
        return ([*_rebalancer(situation), *causes], []) if gives else ([], causes)
    steady = _steady(situation)
    return ([_steady_keeps(situation, steady)] if gives and steady is not None else []), []


def of_placed(situation: Situation) -> Iterator[Cause]:
    """Yield the causes for which a placed binding does not change, if a new decision would change it."""
    if not situation.asks:
        rebalanced = situation.rebalanced
        yield from _removed(situation, rebalanced)
        if rebalanced.decision.error is not None or rebalanced.placement != situation.present:
            yield from _rebalancer(situation)
            yield _nothing_asks(situation)
        return
    steady = _steady(situation)
    if steady is None or situation.rebalanced.placement == situation.placement:
        return
    if steady.mode != "down" or situation.placement_changed:
        yield _steady_keeps(situation, steady)


def _steady(situation: Situation) -> DivideTrace | None:
    """Return the division of a decision that keeps what is placed and divides only the difference; None of another one."""
    found = situation.now.divide if situation.present else None
    return found if found is not None and found.mode in _STEADY else None


def _steady_keeps(situation: Situation, trace: DivideTrace) -> Cause:
    """Return the cause for which a decision keeps replicas where they are."""
    kind, present = situation.classification.type.value, situation.present
    evidence = {"class": kind, "present": present, "divided": trace.divided, "mode": trace.mode}
    why = {
        "up": f"only {trace.divided} new ones are divided",
        "down": "each cluster loses in proportion, and none gains",
        "keep": "there is nothing to divide",
    }
    text = f"placed replicas stay where they are: {why[trace.mode]}"
    return Cause("SteadyKeeps", Stage.TRIGGER, evidence | _on_rebalance(situation), text)


def _nothing_asks(situation: Situation) -> Cause:
    evidence: dict[str, Any] = {"class": "Avoid", **_on_rebalance(situation)}
    requested = situation.spec.reschedule_triggered_at
    if requested is not None:
        evidence["rebalancedAt"] = at(requested)
    text = "nothing asks for a new decision: its placement, replicas and clusters are those of the last one"
    rebalanced = situation.rebalanced.placement
    if rebalanced is not None and rebalanced != situation.present:
        text = f"{text}; after a WorkloadRebalancer it would be {targets_text(rebalanced)}"
    return Cause("NothingAsks", Stage.TRIGGER, evidence, text)


def targets_text(targets: Mapping[str, int]) -> str:
    """Return clusters with their replicas."""
    return ", ".join(f"{name} {replicas}" for name, replicas in targets.items())


def _on_rebalance(situation: Situation) -> dict[str, Any]:
    basis = situation.rebalanced
    if basis.decision.error is not None:
        return {"onRebalanceError": str(basis.decision.error)}
    return {"onRebalance": basis.placement or {}}


def _rebalancer(situation: Situation) -> Iterator[Cause]:
    """Yield the cause that a requested reschedule is not newer than the last scheduling.

    If a cluster became ready after the request, the request has acted before: that is no cause.
    """
    requested, done = situation.spec.reschedule_triggered_at, situation.binding.status.last_scheduled_time
    if requested is None or done is None or requested > done:
        return
    if any(moment > at(requested) for moment in _ready_since(situation.inputs)):
        return
    evidence = {"requested": at(requested), "lastScheduled": at(done), "resolution": "1s"}
    asked = f"the reschedule requested at {at(requested)}"
    last = f"the last scheduling at {at(done)} (times have whole seconds)"
    text = f"{asked} is not newer than {last}; create a new WorkloadRebalancer"
    yield Cause("RebalancerTooOld", Stage.TRIGGER, evidence, text)


def _ready_since(inputs: ExplainInputs) -> Iterator[str]:
    """Yield since when each cluster is ready, as far as it is known."""
    for cluster in inputs.snapshot:
        for condition in mappings(value_at(inputs.cluster_manifest(cluster.name), "status", "conditions")):
            since = condition.get("lastTransitionTime")
            if (condition.get("type"), condition.get("status")) == ("Ready", "True") and since:
                yield str(since)
