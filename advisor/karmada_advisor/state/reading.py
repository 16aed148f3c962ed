"""Reads the state of a binding from stored objects. The first rule that matches names the state."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any, Final

from karmada_advisor.state.model import BindingState, HeldBy, Placed, SchedulerStatus, StateName, Target
from karmada_advisor.state.propagation import Suspended, fully_applied, manager_of, rows_of
from karmada_advisor.state.schedulers import Schedulers
from karmada_advisor.state.stored import (
    PURGED,
    Manifest,
    Stored,
    condition_of,
    copies_of,
    duration,
    live_tasks,
    mapping,
    requirers,
    short,
    was_required,
)
from karmada_scheduler.api.binding import Binding, GracefulEvictionTask
from karmada_scheduler.api.manifest import format_time, parse_time
from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.core.classify import ScheduleType, classify
from karmada_scheduler.core.condition import QUOTA_EXCEEDED
from karmada_scheduler.core.requeue_rules import is_claimed
from karmada_scheduler.framework.diagnosis import AT_GUARD
from karmada_scheduler.structs import Struct, field, replace

NOT_CHANGED: Final = "ApplyPolicyFailed"
"""The reason of the Event in which Karmada's detector says that it cannot write the binding."""
TEMPLATE_DIFFERS: Final = "TemplateDiffers"
"""The reason of a binding whose template wants other replicas."""
DETECTOR_FIRST: Final = frozenset({NOT_CHANGED, TEMPLATE_DIFFERS})
"""The reasons of bindings that Karmada's detector has to change before anything else."""
_UNDECIDED: Final = ("held", "nobody decides", "not decided yet", "not placed", "out of date", "stuck")
_CURABLE: Final = frozenset(map(StateName, _UNDECIDED))
"""The states in which a decision is lacking."""
_GATES: Final = FeatureGates()
"""The defaults: the state is that of the stored objects, whatever rules a command has."""


class Facts(Struct, frozen=True):
    """What is stored besides a binding.

    Attributes:
        schedulers: Which schedulers exist.
        cluster_of: Returns a Cluster as it was read, None if there is none; None if the Clusters were not read.
        policies: As they were read; None if they were not.
        template_replicas: Replicas of templates by ``KIND/NAMESPACE/NAME``, as far as they were read.
        gate: ``plugin: reason`` of the PreEnqueue plugin that holds the binding, as the running scheduler says; "" if none.
        now: For remaining times; None without a clock.
        detector: Why Karmada's detector does not change the binding, as its newest Event says; "" if that is not known.
    """

    schedulers: Schedulers = field(default_factory=Schedulers)
    cluster_of: Callable[[str], Manifest | None] | None = None
    policies: Sequence[Manifest] | None = None
    template_replicas: Mapping[str, int] = field(default_factory=dict)
    gate: str = ""
    now: datetime | None = None
    detector: str = ""

    @property
    def at(self) -> str:
        """The time as it is written, "" without a clock."""
        return "" if self.now is None else format_time(self.now)


def state_of(binding: Binding, manifest: Manifest, facts: Facts) -> BindingState:
    """Return the state of a binding.

    Args:
        binding: The binding.
        manifest: The same as it was read, for fields that decisions do not use.
        facts: What is stored besides it.
    """
    return _StateReading(binding, manifest, facts).state()


def unreadable(problem: str) -> BindingState:
    """Return the state of a binding that cannot be read; the text says why."""
    return BindingState(StateName.UNKNOWN, text=problem, reason="Unreadable")


def seconds_left(task: GracefulEvictionTask, now: datetime | None) -> int | None:
    """Return the seconds until an eviction task ends at the latest; None if that is not stored."""
    period = task.manifest.get("gracePeriodSeconds")
    if task.manifest.get("suppressDeletion") is not None:
        return None
    if now is None or isinstance(period, bool) or not isinstance(period, int) or not task.creation_timestamp:
        return None
    try:
        began = parse_time(task.creation_timestamp)
    except ValueError:
        return None
    return max(0, round(period - (now - began).total_seconds()))


def other_replicas(template: int, binding: int) -> str:
    """Return that a template wants other replicas than its binding has."""
    return (
        f"the template wants {template} replicas and its binding has {binding}: Karmada's detector has not changed it, or a "
        "ResourceInterpreterCustomization counts otherwise"
    )


def lacks_a_decision(state: BindingState, binding: Binding) -> bool:
    """Return whether a binding lacks clusters, or the last decision about it has failed or was not made."""
    if state.reason in DETECTOR_FIRST:
        return False  # Karmada's detector comes first
    return state.name in _CURABLE or state.placed is Placed.PART or condition_of(binding).status == "False"


def may_be_cured(state: BindingState, binding: Binding, manifest: Mapping[str, Any]) -> bool:
    """Return whether a decision is lacking, or changes do not arrive on a cluster.

    Args:
        state: What is stored about the binding.
        binding: The binding.
        manifest: The same as it was read.
    """
    conflicts = any(row.is_conflict for row in state.rows)
    return conflicts or bool(Suspended.of(manifest)) or lacks_a_decision(state, binding)


class _StateReading:
    """One binding with what is stored besides it; each rule returns a state, or None if it does not match."""

    def __init__(self, binding: Binding, manifest: Manifest, facts: Facts) -> None:
        self._binding, self._spec = binding, binding.spec
        self._manifest, self._facts = manifest, facts
        self._suspended = Suspended.of(manifest)
        self._condition: Stored = condition_of(binding)
        self._copies = copies_of(binding, manifest)
        self._tasks = live_tasks(binding, facts.cluster_of)
        self._base = BindingState(
            StateName.PLACED,
            _placed(binding) if self._spec.clusters or not self._copies else Placed.ALL,
            tuple(Target(name, copy.replicas) for name, copy in self._copies.items()),
            self._spec.replicas,
            scheduler=facts.schedulers.of(self._spec.responsible_scheduler),
            rows=rows_of(binding, manifest, facts.cluster_of, self._suspended),
        )

    def state(self) -> BindingState:
        """Return the state that the first matching rule names."""
        before = self._not_scheduled() or self._held() or self._nobody_decides() or self._failed()
        found = before or self._moving() or self._undecided()
        return found or (self._placed() if self._spec.clusters else self._without_clusters())

    def _named(self, name: StateName, text: str, reason: str, **rest: Any) -> BindingState:
        """Return the state with further fields of BindingState."""
        return replace(self._base, name=name, text=text, reason=reason, **rest)

    def _by_condition(self, name: StateName, text: str, *, held_by: HeldBy | None = None) -> BindingState:
        """Return a state whose reason, message and time are those of the condition Scheduled."""
        _, reason, message, since = self._condition
        return self._named(name, text, reason, message=message, since=since, held_by=held_by)

    @cached_property
    def _is_due(self) -> bool:
        """Whether a decision is due by the rules of the scheduler; those at every event only after a change."""
        found = classify(self._binding, is_gone=self._is_gone, gates=_GATES)
        if found.type is ScheduleType.AVOID:
            return False
        return not (found.is_routine and self._is_observed and self._condition.status == "True")

    def _is_gone(self, name: str) -> bool:
        if self._facts.cluster_of is None:
            return False
        found = self._facts.cluster_of(name)
        return found is None or bool(mapping(found.get("metadata")).get("deletionTimestamp"))

    @property
    def _is_observed(self) -> bool:
        return self._binding.status.scheduler_observed_generation == self._binding.generation

    @property
    def _has_failed(self) -> bool:
        """Whether the last decision failed, and no later change has made it superfluous."""
        return self._condition.status == "False" and self._is_due

    def _not_scheduled(self) -> BindingState | None:
        """Deleted, without a placement, not claimed, or suspended."""
        if self._binding.deleting:
            since = str(mapping(self._manifest.get("metadata")).get("deletionTimestamp") or "")
            return self._named(StateName.BEING_DELETED, f"since {since}", "BeingDeleted")
        if self._spec.placement is None:
            return self._attached()
        if not is_claimed(self._binding):
            kept = "; the placement stays until one of its clusters is deleted" if self._spec.clusters else ""
            return self._named(StateName.NOT_CLAIMED, f"no policy claims the template{kept}", "NotClaimed")
        if self._spec.scheduling_suspended:
            by, at = manager_of(self._manifest, "spec", "suspension", "scheduling")
            who = f", set by {by} at {at}" if by else ""
            text = f"scheduling is suspended (spec.suspension.scheduling of the binding{who})"
            code, holder = "SchedulingSuspended", HeldBy.SUSPENSION
            return self._named(StateName.HELD, text, code, held_by=holder, since=at)
        return None

    def _attached(self) -> BindingState:
        """It has no placement of its own: it is where others require it."""
        if self._copies:
            return self._placed()
        names = ", ".join(requirers(self._manifest))
        if names:
            text = f"it has no placement of its own and follows {names}, which had no cluster"
        elif was_required(self._manifest):
            text = "it is left over: it has no placement, and nothing requires it any more"
        else:
            text = "it has no placement, and no other binding requires it"
        return self._named(StateName.NO_PLACEMENT, text, "NoPlacement")

    def _held(self) -> BindingState | None:
        """A stored refusal of a quota or a Guard plugin, or a gate that the running scheduler reports."""
        if not self._base.scheduler.decides:
            return None
        message = self._condition.message
        if self._has_failed and self._condition.reason == QUOTA_EXCEEDED:
            kept = "a change was not written, because a quota refused it"
            text = f"{kept if self._spec.clusters else 'refused by a quota'}: {short(message)}"
            return self._by_condition(StateName.HELD, text, held_by=HeldBy.QUOTA)
        if self._has_failed and AT_GUARD in message:
            text = f"held by {short(message.partition(AT_GUARD)[2])}"
            return self._by_condition(StateName.HELD, text, held_by=HeldBy.GUARD)
        gate = self._facts.gate
        if gate and not self._spec.clusters:
            text = f"held at PreEnqueue by {gate}"
            return self._named(StateName.HELD, text, "Gated", message=gate, held_by=HeldBy.GATE)
        return None

    def _nobody_decides(self) -> BindingState | None:
        """No scheduler with the name, or one that is down while a decision is due."""
        scheduler = self._base.scheduler
        is_missing = scheduler.status is SchedulerStatus.MISSING
        if scheduler.decides or not (is_missing or self._is_due):
            return None
        last, message = self._last_decision, self._condition.message
        text = f"{scheduler}; {last}" if last else str(scheduler)
        code = "SchedulerMissing" if is_missing else "SchedulerDown"
        return self._named(StateName.NOBODY_DECIDES, text, code, message=message, since=scheduler.since)

    def _failed(self) -> BindingState | None:
        if not self._has_failed:
            return None
        reason, message = self._condition.reason, short(self._condition.message)
        end = f"; {self._leaving}" if self._leaving else ""
        if self._spec.clusters:
            text = f"the last decision failed ({reason}), so these stay: {message}{end}"
            return self._by_condition(StateName.STUCK, text)
        return self._by_condition(StateName.NOT_PLACED, f"{message} ({reason}){end}")

    def _moving(self) -> BindingState | None:
        tasks = self._tasks
        if not tasks:
            return None
        reasons = [str(task.manifest.get("reason") or "") for task in tasks]
        reason = next((text for text in reasons if text), "GracefulEviction")
        message = str(tasks[0].manifest.get("message") or "")
        since = tasks[0].creation_timestamp
        return self._named(StateName.MOVING, self._leaving, reason, message=message, since=since)

    @cached_property
    def _leaving(self) -> str:
        """Where old copies run, and until when; "" without eviction tasks of clusters that exist."""
        clusters: dict[tuple[str, str], list[str]] = {}
        for task in self._tasks:
            clusters.setdefault(self._end_of(task), []).append(task.from_cluster)
        return "; ".join(
            f"{lead} {', '.join(dict.fromkeys(names))}{end}" for (lead, end), names in clusters.items()
        )

    def _end_of(self, task: GracefulEvictionTask) -> tuple[str, str]:
        """Return what becomes of the old copy of an eviction task: the words before and after the name of the cluster."""
        if task.manifest.get("purgeMode") in PURGED:
            return "its Work is deleted at once on", " (purgeMode Directly)"
        if (suppressed := task.manifest.get("suppressDeletion")) is not None:
            stays = "still runs on", " until suppressDeletion of its eviction task is false"
            return stays if suppressed else ("is deleted now on", " (suppressDeletion is false)")
        left = [seconds_left(entry, self._facts.now) for entry in self._tasks]
        longest = max((seconds for seconds in left if seconds is not None), default=None)
        at_most = "" if longest is None else f", {duration(longest)} more at most"
        targets = sorted(self._spec.target_names)
        healthy = f"{', '.join(targets)} {'is' if len(targets) == 1 else 'are'} healthy"
        return "still runs on", f" until {healthy if targets else 'its time is over'}{at_most}"

    def _undecided(self) -> BindingState | None:
        """It, or its template, has changed since the last decision, or there was none."""
        resource = self._spec.resource
        name = f"{resource.kind}/{resource.namespace}/{resource.name}"
        template = self._spec.replicas
        if resource.api_version == "apps/v1":
            template = self._facts.template_replicas.get(name, template)
        if self._facts.detector:
            text = f"Karmada's detector cannot change it: {short(self._facts.detector)}"
            return self._named(StateName.OUT_OF_DATE, text, NOT_CHANGED, message=self._facts.detector)
        if template != self._spec.replicas and self._spec.is_workload:
            text = other_replicas(template, self._spec.replicas)
            return self._named(StateName.OUT_OF_DATE, text, TEMPLATE_DIFFERS)
        if self._is_observed:
            return None
        if not self._last_decision and not self._spec.clusters:
            return self._not_decided_yet()
        if not self._last_decision or not self._is_due:
            return None  # an object from files without a status, or a change that moves nothing
        changed = f"it has changed since the last decision (generation {self._binding.generation})"
        return self._named(StateName.OUT_OF_DATE, f"{changed}; {self._last_decision}", "OutOfDate")

    def _not_decided_yet(self) -> BindingState:
        text = f"no decision yet; decides: {self._base.scheduler}"
        return self._named(StateName.NOT_DECIDED_YET, text, "NotDecidedYet")

    @cached_property
    def _last_decision(self) -> str:
        """When it was decided last, and about which generation; "" if it never was."""
        status, reason, message, since = self._condition
        if status == "False":
            return f"the last decision failed ({reason}): {short(message)}"
        if not status:
            return ""
        last = self._binding.status.last_scheduled_time
        at = format_time(last) if last is not None else since
        observed = self._binding.status.scheduler_observed_generation
        moment = f"at {at}, " if at else ""
        return f"the last decision was {moment}about generation {observed}"

    def _without_clusters(self) -> BindingState:
        """A success without clusters: nothing is wanted, or somebody has removed them."""
        status, reason, message, _ = self._condition
        if self._spec.is_workload and not self._spec.replicas:
            return self._named(StateName.NOTHING_TO_PLACE, "0 replicas are wanted", reason or "ZeroReplicas")
        if not status:
            return self._not_decided_yet()
        text = f"no cluster is stored, although the condition says {reason}: {short(message)}"
        return self._by_condition(StateName.NOT_PLACED, text)

    def _placed(self) -> BindingState:
        if self._suspended:
            text = self._suspended.text(self._binding, self._facts.policies)
            return self._named(StateName.NOT_RUNNING, text, "DispatchingSuspended")
        wrong = [row for row in self._base.rows if row.problem]
        if wrong:
            said = (f"{row.problem}: {short(row.message)}" if row.message else row.problem for row in wrong)
            reason, message = wrong[0].reason, wrong[0].message
            return self._named(StateName.NOT_RUNNING, "; ".join(said), reason, message=message)
        applied, since = fully_applied(self._binding)
        if applied == "False" and len(self._tasks) == len(self._spec.graceful_eviction_tasks):
            text = f"Karmada has not applied all of it: FullyApplied is False since {since}"
            return self._named(StateName.NOT_RUNNING, text, "NotOurs", since=since)
        return self._by_condition(StateName.PLACED, self._required)

    @property
    def _required(self) -> str:
        """Where other bindings require it; "" if none does."""
        required = {name: copy.required_by for name, copy in self._copies.items() if copy.required_by}
        by = ", ".join(dict.fromkeys(name for names in required.values() for name in names))
        where = f"{', '.join(required)} is " if self._spec.clusters else ""
        return f"{where}required by {by}" if required else ""


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
