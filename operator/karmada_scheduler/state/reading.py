"""Reads the state of a binding from stored objects. The first rule that matches names the state."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

from karmada_scheduler.api.binding import Binding, GracefulEvictionTask
from karmada_scheduler.api.manifest import format_time, parse_time
from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.core.classify import ScheduleType, classify
from karmada_scheduler.core.condition import QUOTA_EXCEEDED
from karmada_scheduler.framework.diagnosis import AT_GUARD
from karmada_scheduler.informer.requeue_rules import is_claimed
from karmada_scheduler.state.model import (
    BindingState,
    HeldBy,
    Placed,
    SchedulerStatus,
    StateName,
    Target,
)
from karmada_scheduler.state.propagation import rows_of
from karmada_scheduler.state.schedulers import Schedulers
from karmada_scheduler.state.stored import condition_of, duration, mapping, short
from karmada_scheduler.state.suspension import Suspended, manager_of

Manifest = Mapping[str, Any]

_GATES: Final = FeatureGates()
"""The defaults: the state is that of the stored objects, whatever rules a command has."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What is stored besides a binding.

    Attributes:
        schedulers: Which schedulers exist.
        cluster_of: Returns a Cluster as it was read, None if there is none; None if the Clusters were not read.
        policies: As they were read; None if they were not, so that a binding without a policy id counts as claimed.
        gate: ``plugin: reason`` of the PreEnqueue plugin that holds the binding, as the running scheduler says; "" if none.
        now: For remaining times; None without a clock.
    """

    schedulers: Schedulers = field(default_factory=Schedulers)
    cluster_of: Callable[[str], Manifest | None] | None = None
    policies: Sequence[Manifest] | None = None
    gate: str = ""
    now: datetime | None = None


def state_of(binding: Binding, manifest: Manifest, facts: Facts) -> BindingState:
    """Return the state of a binding.

    Args:
        binding: The binding.
        manifest: The same as it was read, for fields that decisions do not use.
        facts: What is stored besides it.
    """
    spec = binding.spec
    suspended = Suspended.of(manifest)
    found = BindingState(
        StateName.PLACED,
        _placed(binding),
        tuple(Target(each.name, each.replicas) for each in sorted(spec.clusters)),
        spec.replicas,
        scheduler=facts.schedulers.of(spec.responsible_scheduler),
        rows=rows_of(
            binding,
            manifest,
            facts.cluster_of,
            is_suspended=suspended.concerns,
        ),
    )
    for rule in (_not_scheduled, _held, _nobody, _failed, _moving, _undecided):
        named = rule(binding, manifest, facts, found)
        if named is not None:
            return named
    if not spec.clusters:
        return _without_clusters(binding, found)
    return _placed_state(binding, manifest, facts, found)


def unreadable(problem: str) -> BindingState:
    """Return the state of a binding that cannot be read; the text says why."""
    return BindingState(StateName.UNKNOWN, text=problem, reason="Unreadable")


def _placed(binding: Binding) -> Placed:
    spec = binding.spec
    if not spec.clusters:
        return Placed.NONE
    if not spec.replicas or len(spec.components) > 1:
        return Placed.ALL
    each = [target.replicas for target in spec.clusters]
    is_divided = spec.placement is None or not spec.placement.is_duplicated
    stored = sum(each) if is_divided else min(each)
    return Placed.PART if stored < spec.replicas else Placed.ALL


def _not_scheduled(
    binding: Binding, manifest: Manifest, facts: Facts, found: BindingState
) -> BindingState | None:
    """Deleted, without a placement, not claimed, or suspended."""
    if binding.deleting:
        since = str(mapping(manifest.get("metadata")).get("deletionTimestamp") or "")
        return replace(found, name=StateName.BEING_DELETED, text=f"since {since}", reason="BeingDeleted")
    if binding.spec.placement is None:
        return replace(found, name=StateName.NO_PLACEMENT, text=_followed(manifest), reason="NoPlacement")
    if facts.policies is not None and not is_claimed(binding):
        kept = "; the placement stays, and nothing changes it" if found.clusters else ""
        text = f"no policy claims the template{kept}"
        return replace(found, name=StateName.NOT_CLAIMED, text=text, reason="NotClaimed")
    if binding.spec.scheduling_suspended:
        by, at = manager_of(manifest, "spec", "suspension", "scheduling")
        who = f", set by {by} at {at}" if by else ""
        text = f"scheduling is suspended (spec.suspension.scheduling of the binding{who})"
        return _held_state(found, HeldBy.SUSPENSION, text, reason="SchedulingSuspended", since=at)
    return None


def _followed(manifest: Manifest) -> str:
    required = mapping(manifest.get("spec")).get("requiredBy")
    names = [
        "/".join(part for part in (str(each.get("namespace") or ""), str(each.get("name") or "")) if part)
        for each in (required if isinstance(required, Sequence) else ())
        if isinstance(each, Mapping)
    ]
    if names:
        return f"it has no placement of its own and follows {', '.join(names)}"
    return "it has no placement, and no other binding requires it"


def _held(binding: Binding, _: Manifest, facts: Facts, found: BindingState) -> BindingState | None:
    """A stored refusal of a quota or a Guard plugin, or a gate that the running scheduler tells of."""
    if not found.scheduler.decides:
        return None
    status, reason, message, since = condition_of(binding)
    keeps = "a change was not written, because a quota refused it" if found.clusters else "refused by a quota"
    if status != "False" or not _is_due(binding, facts):
        return _gated(facts, found)
    if reason == QUOTA_EXCEEDED:
        text = f"{keeps}: {short(message)}"
        return _held_state(found, HeldBy.QUOTA, text, reason=reason, message=message, since=since)
    if AT_GUARD in message:
        text = f"held by {short(message.partition(AT_GUARD)[2])}"
        return _held_state(found, HeldBy.GUARD, text, reason=reason, message=message, since=since)
    return _gated(facts, found)


def _gated(facts: Facts, found: BindingState) -> BindingState | None:
    if not facts.gate or found.clusters:
        return None
    text = f"held at PreEnqueue by {facts.gate}"
    return _held_state(found, HeldBy.GATE, text, reason="Gated", message=facts.gate)


def _is_due(binding: Binding, facts: Facts) -> bool:
    """Return whether a decision is due by the rules of the scheduler; those at every event only after a change."""
    terminating = {
        each.name
        for each in binding.spec.clusters
        if facts.cluster_of is not None
        and mapping(mapping(facts.cluster_of(each.name)).get("metadata")).get("deletionTimestamp")
    }
    found = classify(binding, terminating=terminating, gates=_GATES)
    if found.type is ScheduleType.AVOID:
        return False
    is_observed = binding.status.scheduler_observed_generation == binding.generation
    return not (found.is_routine and is_observed and condition_of(binding).status == "True")


def _held_state(
    found: BindingState, by: HeldBy, text: str, *, reason: str, message: str = "", since: str = ""
) -> BindingState:
    return replace(
        found, name=StateName.HELD, text=text, reason=reason, message=message, since=since, held_by=by
    )


def _nobody(binding: Binding, _: Manifest, facts: Facts, found: BindingState) -> BindingState | None:
    """No scheduler with the name, or one that is down while a decision is due or may become due."""
    scheduler = found.scheduler
    if scheduler.decides:
        return None
    is_missing = scheduler.status is SchedulerStatus.MISSING
    if not is_missing and not _is_due(binding, facts):
        return None  # what is stored is what was wanted; the scheduler is only needed for the next change
    last = _last_decision(binding)
    text = f"{scheduler}; {last}" if last else str(scheduler)
    reason = "SchedulerMissing" if is_missing else "SchedulerDown"
    return replace(
        found,
        name=StateName.NOBODY_DECIDES,
        text=text,
        reason=reason,
        message=condition_of(binding).message,
        since=scheduler.since,
    )


def _failed(binding: Binding, _: Manifest, facts: Facts, found: BindingState) -> BindingState | None:
    """The last decision failed."""
    status, reason, message, since = condition_of(binding)
    if status != "False" or not _is_due(binding, facts):
        return None  # a later change has made the failed decision superfluous
    leaving = _leaving(binding, facts.now)
    end = f"; {leaving}" if leaving else ""
    if found.clusters:
        text = f"the last decision failed ({reason}), so these stay: {short(message)}{end}"
        return replace(found, name=StateName.STUCK, text=text, reason=reason, message=message, since=since)
    text = f"{short(message)} ({reason}){end}"
    return replace(found, name=StateName.NOT_PLACED, text=text, reason=reason, message=message, since=since)


def _moving(binding: Binding, _: Manifest, facts: Facts, found: BindingState) -> BindingState | None:
    tasks = binding.spec.graceful_eviction_tasks
    if not tasks:
        return None
    reasons = [str(each.manifest.get("reason") or "") for each in tasks]
    return replace(
        found,
        name=StateName.MOVING,
        text=_leaving(binding, facts.now),
        reason=next((each for each in reasons if each), "GracefulEviction"),
        message=str(tasks[0].manifest.get("message") or ""),
        since=tasks[0].creation_timestamp,
    )


def _leaving(binding: Binding, now: datetime | None) -> str:
    """Return where old copies still run, and until when; "" without eviction tasks."""
    tasks = binding.spec.graceful_eviction_tasks
    if not tasks:
        return ""
    left = [seconds_left(each, now) for each in tasks]
    longest = max((each for each in left if each is not None), default=None)
    at_most = "" if longest is None else f", {duration(longest)} more at most"
    names = ", ".join(dict.fromkeys(each.from_cluster for each in tasks))
    targets = ", ".join(each.name for each in sorted(binding.spec.clusters))
    until = f"until {targets} is healthy" if targets else "until its time is over"
    return f"still runs on {names} {until}{at_most}"


def seconds_left(task: GracefulEvictionTask, now: datetime | None) -> int | None:
    """Return the seconds until an eviction task ends at the latest; None if that is not stored."""
    period = task.manifest.get("gracePeriodSeconds")
    if now is None or isinstance(period, bool) or not isinstance(period, int) or not task.creation_timestamp:
        return None
    try:
        began = parse_time(task.creation_timestamp)
    except ValueError:
        return None
    return max(0, round(period - (now - began).total_seconds()))


def _undecided(binding: Binding, _: Manifest, facts: Facts, found: BindingState) -> BindingState | None:
    """It has changed since the last decision, or there was none."""
    if binding.status.scheduler_observed_generation == binding.generation:
        return None
    last = _last_decision(binding)
    if not last and not found.clusters:
        text = f"no decision yet; decides: {found.scheduler}"
        return replace(found, name=StateName.NOT_DECIDED_YET, text=text, reason="NotDecidedYet")
    if not last or not _is_due(binding, facts):
        return None  # an object from files without a status, or a change that moves nothing
    text = f"it has changed since the last decision (generation {binding.generation}); {last}"
    return replace(found, name=StateName.OUT_OF_DATE, text=text, reason="OutOfDate")


def _last_decision(binding: Binding) -> str:
    """Return when it was decided last, and about which generation; "" if it never was."""
    status, reason, message, since = condition_of(binding)
    if status == "False":
        return f"the last decision failed ({reason}): {short(message)}"
    if not status:
        return ""
    last = binding.status.last_scheduled_time
    at = format_time(last) if last is not None else since
    observed = binding.status.scheduler_observed_generation
    return f"the last decision was at {at}, about generation {observed}"


def _without_clusters(binding: Binding, found: BindingState) -> BindingState:
    """A success without clusters: nothing is wanted, or somebody has removed them."""
    spec = binding.spec
    status, reason, message, since = condition_of(binding)
    if spec.is_workload and not spec.replicas:
        text = "0 replicas are wanted"
        return replace(found, name=StateName.NOTHING_TO_PLACE, text=text, reason=reason or "ZeroReplicas")
    if not status:
        text = f"no decision yet; decides: {found.scheduler}"
        return replace(found, name=StateName.NOT_DECIDED_YET, text=text, reason="NotDecidedYet")
    text = f"no cluster is stored, although the condition says {reason}: {short(message)}"
    return replace(found, name=StateName.NOT_PLACED, text=text, reason=reason, message=message, since=since)


def _placed_state(binding: Binding, manifest: Manifest, facts: Facts, found: BindingState) -> BindingState:
    suspended = Suspended.of(manifest)
    if suspended:
        text = suspended.text(binding, facts.policies)
        return replace(found, name=StateName.NOT_RUNNING, text=text, reason="DispatchingSuspended")
    problems = [each for each in found.rows if each.problem]
    if problems:
        first = problems[0]
        texts = [
            f"{each.problem}: {short(each.message)}" if each.message else each.problem for each in problems
        ]
        return replace(
            found,
            name=StateName.NOT_RUNNING,
            text="; ".join(texts),
            reason=first.reason,
            message=first.message,
        )
    stored = condition_of(binding)
    return replace(found, reason=stored.reason, message=stored.message, since=stored.since)
