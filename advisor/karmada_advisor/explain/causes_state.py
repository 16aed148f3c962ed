"""Causes in what is stored about a binding, in what a Guard plugin or a record of the scheduler says, and in Events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from karmada_advisor.explain.inputs import Manifest
from karmada_advisor.explain.model import Cause, Stage
from karmada_advisor.explain.situation import Situation
from karmada_advisor.state.model import BindingState, ClusterStatus, HeldBy, SchedulerStatus, StateName
from karmada_advisor.state.reading import DETECTOR_FIRST, seconds_left
from karmada_advisor.state.stored import event_time, live_tasks, mapping, mappings
from karmada_scheduler.api.binding import GracefulEvictionTask
from karmada_scheduler.api.manifest import format_time
from karmada_scheduler.api.own_annotations import unreadable_annotation
from karmada_scheduler.framework.diagnosis import AT_GUARD, KeptError, PluginError


def of_state(situation: Situation) -> Iterator[Cause]:
    """Yield why a binding is in its state, as far as that is stored; none for a failed decision, whose steps tell more."""
    state = situation.stored
    match state.name:
        case StateName.HELD:
            yield from _held(situation, state)
        case StateName.NOBODY_DECIDES:
            yield _nobody(state)
        case StateName.MOVING:
            yield _evicting(situation, state)
        case StateName.NOT_RUNNING:
            yield from _not_running(situation, state)
        case StateName.OUT_OF_DATE if state.reason in DETECTOR_FIRST:
            yield Cause(state.reason, Stage.TRIGGER, {"message": state.message}, state.text)


def of_copies(situation: Situation) -> Iterator[Cause]:
    """Yield what does not run of a binding that these rules do not decide, or that nobody decides it."""
    if situation.stored.name in {StateName.NOT_RUNNING, StateName.NOBODY_DECIDES}:
        yield from of_state(situation)


def of_waiting(situation: Situation) -> Iterator[Cause]:
    """Yield that a decision is due; for a binding of which the steps of that decision tell nothing more."""
    state = situation.stored
    codes = {StateName.NOT_DECIDED_YET: "NotDecidedYet", StateName.OUT_OF_DATE: "OutOfDate"}
    if state.name in codes:
        evidence = {"scheduler": state.scheduler.name}
        yield Cause(codes[state.name], Stage.TRIGGER, evidence, state.text)


def _held(situation: Situation, state: BindingState) -> Iterator[Cause]:
    evidence: dict[str, Any] = {"reason": state.reason, "message": state.message, "since": state.since}
    match state.held_by:
        case HeldBy.QUOTA:
            yield Cause("QuotaRefused", Stage.WRITE, evidence, state.text)
        case HeldBy.GUARD:
            plugin, _, why = state.message.partition(AT_GUARD)[2].partition(": ")
            view = situation.inputs.process
            due = view.due_in if view is not None else None
            again = "" if due is None else f"; decided again in {due:.0f} s"
            evidence |= {"plugin": plugin, "reason": why, "retryAfterSeconds": due}
            code = "KeptAtGuard" if f"Kept{AT_GUARD}" in state.message else "HeldAtGuard"
            yield Cause(code, Stage.WRITE, evidence, f"{state.text}{again}")
        case HeldBy.GATE:
            yield Cause("Gated", Stage.TRIGGER, evidence, state.text)


def _nobody(state: BindingState) -> Cause:
    scheduler = state.scheduler
    evidence = {
        "schedulerName": scheduler.name,
        "status": scheduler.status.value,
        "nearest": scheduler.nearest,
        "since": scheduler.since,
        "source": scheduler.source,
    }
    code = "SchedulerMissing" if scheduler.status is SchedulerStatus.MISSING else "SchedulerDown"
    return Cause(code, Stage.TRIGGER, evidence, f"nobody decides about it: {scheduler}")


def _evicting(situation: Situation, state: BindingState) -> Cause:
    tasks = _tasks(situation)
    first = tasks[0]
    texts = {name: str(first.manifest.get(name) or "") for name in ("reason", "message", "purgeMode")}
    evidence: dict[str, Any] = {"clusters": [task.from_cluster for task in tasks], "producer": first.producer}
    evidence |= {**texts, "secondsLeft": seconds_left(first, situation.inputs.facts.now)}
    by = f"{first.producer} evicts it" if first.producer else "it is evicted"
    why = f" ({evidence['reason']})" if evidence["reason"] else ""
    late = [row for row in state.rows if row.wanted is not None and row.health != "Healthy"]
    waits = {row.name: row.problem or row.health or "it has not reported" for row in late}
    end = "".join(f"; {name}: {problem}" for name, problem in waits.items())
    return Cause("Evicting", Stage.PROPAGATE, evidence | {"waitsFor": waits}, f"{by}{why}: {state.text}{end}")


def _tasks(situation: Situation) -> list[GracefulEvictionTask]:
    """Return the eviction tasks of clusters that exist."""
    return live_tasks(situation.binding, situation.inputs.facts.cluster_of)


def _not_running(situation: Situation, state: BindingState) -> Iterator[Cause]:
    if state.reason == "DispatchingSuspended":
        clusters = [row.name for row in state.rows if row.problem]
        yield Cause("DispatchingSuspended", Stage.PROPAGATE, {"clusters": clusters}, state.text)
    for code in dict.fromkeys(row.reason for row in state.rows):
        rows = [row for row in state.rows if row.reason == code]
        if rows and code not in {"", "DispatchingSuspended"}:
            yield _of_rows(code, rows, situation)
    if not any(row.reason for row in state.rows):
        yield Cause(state.reason, Stage.PROPAGATE, {"since": state.since}, f"{state.text}; {_AGAIN}")


_AGAIN: Final = (
    "a missing Work is made again only when the template changes, for example an annotation of it, or when "
    "karmada-controller-manager restarts"
)
_SYNC_FAILURES: Final = ("SyncWorkFailed", "ApplyOverridePolicyFailed")
_RETAIN_REPLICAS: Final = "resourcetemplate.karmada.io/retain-replicas"


def _of_rows(code: str, rows: list[ClusterStatus], situation: Situation) -> Cause:
    messages = {row.name: row.message for row in rows if row.message}
    evidence = {
        "clusters": [row.name for row in rows],
        "messages": messages,
        "ready": {row.name: row.ready for row in rows if row.ready is not None},
        "running": {row.name: row.running for row in rows if row.running is not None},
        "works": [f"karmada-es-{row.name}" for row in rows],
    }
    text = "; ".join(f"{each.problem}: {each.message}" if each.message else each.problem for each in rows)
    if any(row.is_conflict for row in rows):
        text += "; the object there is not Karmada's: spec.conflictResolution: Overwrite of the policy takes it over"
    if code in {"OtherNumber", "NotOurs"}:
        text = "; ".join((text, *_why_not_arrived(code, situation)))
    return Cause(code, Stage.PROPAGATE, evidence, text)


def _why_not_arrived(code: str, situation: Situation) -> Iterator[str]:
    """Yield what is known about why a cluster does not run what is assigned."""
    failures = [event for event in situation.inputs.events if event.get("reason") in _SYNC_FAILURES]
    yield from (_reported(event).text for event in failures)
    if code == "NotOurs":
        yield _AGAIN
        return
    last, labels = situation.binding.status.last_scheduled_time, situation.inputs.template_labels
    if last is not None:
        yield f"assigned at {format_time(last)} at the latest"
    if labels is not None and labels.get(_RETAIN_REPLICAS) == "true":
        yield f"the template has the label {_RETAIN_REPLICAS}: clusters keep their own numbers"
    elif not failures:
        unread = f" and the label {_RETAIN_REPLICAS} of the template" if labels is None else ""
        yield f"not looked at: override policies of replicas{unread}"


def reported_by_events(situation: Situation) -> Iterator[Cause]:
    """Yield what controllers have left in Warning Events of the binding and its template, the newest first."""
    if not situation.stored.is_good:
        yield from reported_by(situation.inputs.events)


def reported_by(events: Iterable[Manifest]) -> Iterator[Cause]:
    """Yield what the first of some Warning Events says that the scheduler has not also left in a condition."""
    # The condition has the same as those of the scheduler.
    others = [event for event in events if not str(event.get("reason") or "").startswith("ScheduleBinding")]
    yield from map(_reported, others[:1])


def _reported(event: Manifest) -> Cause:
    """Return what a controller says in a Warning Event."""
    source = str(mapping(event.get("source")).get("component") or event.get("reportingComponent") or "")
    reason, message = str(event.get("reason") or ""), " ".join(str(event.get("message") or "").split())
    at = event_time(event)
    evidence = {"reason": reason, "message": message, "source": source, "at": at}
    return Cause("Reported", Stage.PROPAGATE, evidence, f"{source} at {at}: {reason}: {message}")


def of_refusal(situation: Situation) -> Iterator[Cause]:
    """Yield which Guard plugin keeps the placement, why, and when the decision is repeated."""
    decision = situation.now.decision
    guarded = decision.guarded
    if guarded is None or not guarded.refused_by:
        return
    view = situation.inputs.process
    after = getattr(decision.error, "retry_after", 0.0)
    due = view.due_in if view is not None and view.due_in is not None else after
    evidence: dict[str, Any] = {"plugin": guarded.refused_by, "reason": guarded.reason}
    evidence["retryAfterSeconds"] = round(due, 1) if due else None
    again = f"again in {due:.0f} s" if due else "again after a pause"
    if isinstance(decision.error, KeptError):
        text = f"no cluster fits, and {guarded.refused_by} keeps the placement: {guarded.reason}; {again}"
        yield Cause("KeptAtGuard", Stage.WRITE, evidence, text)
        return
    targets = {target.name: target.replicas for target in guarded.refused_targets or ()}
    evidence["refused"] = targets
    if decision.error is None:
        text = f"{guarded.refused_by} finds the placement good as it is: {guarded.reason}"
        yield Cause("KeptAtGuard", Stage.WRITE, evidence, text)
        return
    shown = ", ".join(f"{name}:{count}" for name, count in targets.items())
    text = f"{guarded.refused_by} does not let the decision {shown} through: {guarded.reason}; {again}"
    yield Cause("HeldAtGuard", Stage.WRITE, evidence, text)


def of_guard_warning(situation: Situation) -> Iterator[Cause]:
    """Yield what a Guard plugin warns of that lets the decision through: a move that is not graceful."""
    guarded = situation.now.decision.guarded
    if guarded is not None and guarded.warning:
        yield Cause("WarnedAtGuard", Stage.WRITE, {"warning": guarded.warning}, guarded.warning)


def of_unknown_rules(situation: Situation) -> Iterator[Cause]:
    """Yield that nobody here knows by which rules the scheduler of the binding decides."""
    if text := situation.inputs.not_known:
        evidence = {"schedulerName": situation.spec.responsible_scheduler}
        yield Cause("PluginsNotKnown", Stage.TRIGGER, evidence, text)


def of_graceful_move(situation: Situation) -> Iterator[Cause]:
    """Yield that the binding leaves a cluster gracefully by a decision of this scheduler, and what the end waits for."""
    name = situation.spec.responsible_scheduler
    tasks = [task for task in _tasks(situation) if task.producer == name]
    if not tasks:
        return
    clusters = [task.from_cluster for task in tasks]
    missing = _missing(situation)
    left = [seconds_left(task, situation.inputs.facts.now) for task in tasks]
    seconds = max((delay for delay in left if delay is not None), default=None)
    evidence = {"clusters": clusters, "waitsFor": missing or None, "secondsLeft": seconds}
    until = f"until {missing}" if missing else "until Karmada's graceful-eviction controller ends it"
    at_most = "" if seconds is None else f", at most {seconds} s more"
    if not all(task.creation_timestamp for task in tasks):
        at_most += "; Karmada's graceful-eviction controller has not stamped the eviction task yet"
    text = f"the workload stays on {', '.join(clusters)} {until}{at_most}"
    yield Cause("LeavingGracefully", Stage.PROPAGATE, evidence, text)


def of_unreadable_annotation(situation: Situation) -> Iterator[Cause]:
    """Yield that an annotation of this scheduler cannot be read; the binding then waits as if it had just moved."""
    found = unreadable_annotation(situation.binding.annotations)
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
        result = guard.may_observe(situation.binding)
    except PluginError as error:
        return str(error)
    return "" if result.is_success else f"it is ready elsewhere: {result.message}"


def of_record(situation: Situation) -> Iterator[Cause]:
    """Yield what the last record says, and why nothing is decided again."""
    inputs = situation.inputs
    record = mapping(inputs.process and inputs.process.record)
    attempts = mappings(record.get("attempts"))
    error = mapping(record.get("error"))
    at = str(record.get("at") or "")
    refused = mappings(attempts[-1].get("refused")) if attempts and error else []
    for refusal in sorted(refused, key=lambda found: found.get("by") not in inputs.missing):
        plugin, why, count = str(refusal.get("by") or ""), str(refusal.get("why") or ""), refusal.get("count")
        total = mapping(attempts[-1].get("stages")).get("all")
        evidence = {"plugin": plugin, "reason": why, "count": count, "of": total, "at": at}
        text = f"{count} of {total} clusters were refused by {plugin} at {at}: {why}"
        yield Cause("RecordedRefusal", Stage.FILTER, evidence, text)
    if error and not attempts:
        message = str(error.get("message") or "")
        yield Cause("RecordedFailure", Stage.FILTER, {"message": message, "at": at}, f"at {at}: {message}")
    if not inputs.missing:
        return
    names = ", ".join(inputs.missing)
    flags = " ".join(f"--plugin-dir={path}" for path in inputs.plugin_dirs) or "--plugin-dir=DIR"
    missing = f"the process decides with {names}, whose code is not here, so nothing was decided again"
    text = f"{missing}; bring it with {flags} (a copy of that folder)"
    evidence = {"plugins": list(inputs.missing), "flags": flags}
    yield Cause("PluginCodeMissing", Stage.FILTER, evidence, text)
