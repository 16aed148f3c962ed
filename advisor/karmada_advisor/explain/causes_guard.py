"""Causes for which a Guard plugin keeps a placement, or a cluster is left gracefully, and records of it that are unreadable."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from karmada_advisor.explain.model import Cause, Stage
from karmada_advisor.explain.situation import Situation
from karmada_advisor.state.reading import seconds_left
from karmada_scheduler.api.own_annotations import unreadable_annotation
from karmada_scheduler.framework.diagnosis import KeptError, PluginError


def of_refusal(situation: Situation) -> Iterator[Cause]:
    """Yield which Guard plugin keeps the placement, why, and when the decision is repeated."""
    decision = situation.now.decision
    guarded = decision.guarded
    if guarded is None or not guarded.refused_by:
        return
    view = situation.inputs.process
    after = getattr(decision.error, "retry_after", 0.0)
    due = view.due_in if view is not None and view.due_in is not None else after
    evidence: dict[str, Any] = {
        "plugin": guarded.refused_by,
        "reason": guarded.reason,
        "retryAfterSeconds": round(due, 1) if due else None,
    }
    again = f"again in {due:.0f} s" if due else "again after a pause"
    if isinstance(decision.error, KeptError):
        text = f"no cluster fits, and {guarded.refused_by} keeps the placement: {guarded.reason}; {again}"
        yield Cause("KeptAtGuard", Stage.WRITE, evidence, text)
        return
    targets = {each.name: each.replicas for each in guarded.refused_targets or ()}
    evidence["refused"] = targets
    shown = ", ".join(f"{name}:{count}" for name, count in targets.items())
    text = f"{guarded.refused_by} does not let the decision {shown} through: {guarded.reason}; {again}"
    yield Cause("HeldAtGuard", Stage.WRITE, evidence, text)


def of_graceful_move(situation: Situation) -> Iterator[Cause]:
    """Yield that the binding leaves a cluster gracefully by a decision of this scheduler, and what the end waits for."""
    binding = situation.inputs.binding
    name = binding.spec.responsible_scheduler
    tasks = [each for each in binding.spec.graceful_eviction_tasks if each.producer == name]
    if not tasks:
        return
    clusters = [each.from_cluster for each in tasks]
    missing = _missing(situation)
    left = [seconds_left(each, situation.inputs.now) for each in tasks]
    seconds = max((each for each in left if each is not None), default=None)
    evidence = {"clusters": clusters, "waitsFor": missing or None, "secondsLeft": seconds}
    until = f"until {missing}" if missing else "until Karmada's graceful-eviction controller ends it"
    at_most = "" if seconds is None else f", at most {seconds} s more"
    text = f"the workload stays on {', '.join(clusters)} {until}{at_most}"
    yield Cause("LeavingGracefully", Stage.PROPAGATE, evidence, text)


def of_unreadable_annotation(situation: Situation) -> Iterator[Cause]:
    """Yield that an annotation of this scheduler cannot be read; the binding then waits as if it had just moved."""
    found = unreadable_annotation(situation.inputs.binding.annotations)
    if found is not None:
        name, why = found
        text = f"the annotation {name} cannot be read: {why}; remove it, or correct it"
        yield Cause("AnnotationUnreadable", Stage.WRITE, {"annotation": name, "why": why}, text)


def _missing(situation: Situation) -> str:
    """Return what a Guard plugin waits for before the generation is observed; "" if nothing."""
    guard = situation.inputs.framework.guard
    if not guard.observes:
        return ""
    try:
        result = guard.may_observe(situation.inputs.binding)
    except PluginError as error:
        return str(error)
    return "" if result.is_success else f"it is ready elsewhere: {result.message}"
