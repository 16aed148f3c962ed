"""The results of a simulation, and what the scheduler writes of a decision, with the additions of Guard plugins."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import Enum
from typing import Any

from karmada_scheduler.api.binding import Binding, TargetCluster
from karmada_scheduler.api.binding_manifest import read_status, read_tasks
from karmada_scheduler.api.manifest import Manifest, format_time
from karmada_scheduler.api.object_fields import camel
from karmada_scheduler.api.well_known import SCHEDULED_CONDITION, Condition
from karmada_scheduler.core.classify import ScheduleType
from karmada_scheduler.core.condition import condition_of
from karmada_scheduler.core.decision import Decision
from karmada_scheduler.core.guard_additions import result_patch, with_targets
from karmada_scheduler.core.report import Report, status_fields, target_manifests
from karmada_scheduler.framework.extension_points import Point
from karmada_scheduler.structs import Struct, asdict, equal_without, replace


def as_written(binding: Binding, decision: Decision, at: datetime) -> Binding:
    """Return a binding as the scheduler stores it.

    Args:
        binding: As it was decided about.
        decision: Without targets, the clusters stay.
        at: The time of the decision.
    """
    patch, spec = result_patch(binding, decision), binding.spec
    if patch.clusters is not None:
        spec = with_targets(spec, decision)
    if patch.tasks is not None:
        spec = replace(spec, graceful_eviction_tasks=read_tasks(patch.tasks))
    annotations = {**binding.annotations, **patch.annotations}
    kept = {name: text for name, text in annotations.items() if text is not None}
    # A changed spec has a higher generation, and the scheduler reports about that one.
    generation = binding.generation + (spec is not binding.spec)
    stored = replace(binding, annotations=kept, spec=spec, generation=generation)
    return replace(stored, status=replace(stored.status, **_status(stored, decision, at)))


def _status(stored: Binding, decision: Decision, at: datetime) -> dict[str, Any]:
    placed = decision.error is None or decision.was_placed
    name = decision.affinity_name if placed else None
    report = Report(condition_of(decision), stored.generation, format_time(at), name, placed=placed)
    fields = status_fields(stored, report, keep_unchanged_time=False)
    read = read_status(fields)
    return {name: getattr(read, name) for name in read.__struct_fields__ if camel(name) in fields}


def manifest_as_written(manifest: Manifest, stored: Binding) -> Manifest:
    """Return the manifest of a binding with what ``as_written`` has stored.

    Args:
        manifest: Before the decision.
        stored: The same binding after it.
    """
    metadata: Mapping[str, Any] = manifest.get("metadata") or {}
    clusters = target_manifests(stored.spec.clusters, stored.spec.unknown_target_fields)
    spec = {**(manifest.get("spec") or {}), "clusters": clusters}
    if tasks := stored.spec.graceful_eviction_tasks:
        spec["gracefulEvictionTasks"] = [
            dict(task.manifest) or {"fromCluster": task.from_cluster} for task in tasks
        ]
    else:
        spec.pop("gracefulEvictionTasks", None)
    found = stored.status
    status: dict[str, Any] = {
        **(manifest.get("status") or {}),
        "conditions": [dict(condition) for condition in found.conditions],
    }
    if found.scheduler_observed_generation:
        status["schedulerObservedGeneration"] = found.scheduler_observed_generation
    if found.scheduler_observing_affinity_name:
        status["schedulerObservingAffinityName"] = found.scheduler_observing_affinity_name
    if found.last_scheduled_time is not None:
        status["lastScheduledTime"] = format_time(found.last_scheduled_time)
    metadata = {**metadata, "annotations": dict(stored.annotations), "generation": stored.generation}
    return {**manifest, "metadata": metadata, "spec": spec, "status": status}


class Outcome(Enum):
    """The outcome of a binding; the values are the words of the summary."""

    PLACED = "placed"
    NOT_PLACED = "not"
    GATED = "gated at PreEnqueue"
    WAITING = "waiting at Permit"
    LEFT_ALONE = "left alone"  # suspended, being deleted or unclaimed, and without clusters
    OTHER_SCHEDULER = "of other schedulers"


class HoldReasons(Struct, frozen=True):
    """Why nothing would be written about a binding yet.

    Attributes:
        point: PreEnqueue for a gated binding, Permit for a waiting decision.
        reasons: The reasons of the plugins that hold it, by plugin name.
    """

    point: Point
    reasons: Mapping[str, str]

    def __str__(self) -> str:
        """Return it as the table shows it."""
        what = "gated at" if self.point is Point.PRE_ENQUEUE else "waits at"
        plugins = [f"{name}: {reason}" if reason else name for name, reason in self.reasons.items()]
        return f"{what} {self.point.label}: {'; '.join(plugins)}"

    def as_fields(self) -> dict[str, Any]:
        """Return the fields of the JSON and YAML output."""
        return {"point": self.point.value, "plugins": dict(self.reasons)}


class SimulationResult(Struct, frozen=True):  # noqa: PLW1641 - nothing hashes it
    """The stable decision about a binding.

    Attributes:
        binding: The binding of the file.
        type: The kind of scheduling.
        targets: Its clusters afterwards.
        condition: The condition ``Scheduled`` afterwards; None if the binding is not scheduled and has none.
        affinity_name: The affinity term in use.
        has_profile: Whether a profile has the binding's ``schedulerName``. If not, another scheduler is responsible,
            and the binding is shown as it is.
        held: Why it is gated or waits at Permit; the binding is shown as it is. None otherwise.
        decision: The decision, None if the binding is not scheduled.
    """

    binding: Binding
    type: ScheduleType
    targets: tuple[TargetCluster, ...]
    condition: Condition | None
    affinity_name: str
    has_profile: bool = True
    held: HoldReasons | None = None
    decision: Decision | None = None

    def __eq__(self, other: object) -> bool:
        return equal_without("decision", self, other)

    @property
    def outcome(self) -> Outcome:
        """The outcome for the summary."""
        if not self.has_profile:
            return Outcome.OTHER_SCHEDULER
        if self.held is not None:
            return Outcome.GATED if self.held.point is Point.PRE_ENQUEUE else Outcome.WAITING
        if self.condition is not None:
            return Outcome.PLACED if self.condition.status == "True" else Outcome.NOT_PLACED
        return Outcome.PLACED if self.targets else Outcome.LEFT_ALONE

    def as_fields(self) -> dict[str, Any]:
        """Return the fields of the JSON and YAML output."""
        key, condition = self.binding.key, self.condition
        return {
            "kind": key.kind,
            "namespace": key.namespace,
            "name": key.name,
            "schedulerName": self.binding.spec.responsible_scheduler,
            "otherScheduler": not self.has_profile,
            "heldAt": None if self.held is None else self.held.as_fields(),
            "scheduleType": self.type.value,
            "clusters": [{"name": target.name, "replicas": target.replicas} for target in self.targets],
            "affinityName": self.affinity_name,
            "condition": None if condition is None else asdict(condition),
        }


def unchanged(binding: Binding) -> SimulationResult:
    """Return the result of a binding that is not scheduled."""
    found = binding.status.condition(SCHEDULED_CONDITION)
    condition = None
    if found is not None:
        texts = [str(found.get(name) or "") for name in ("status", "reason", "message")]
        condition = Condition(SCHEDULED_CONDITION, *texts)
    name = binding.status.scheduler_observing_affinity_name
    return SimulationResult(binding, ScheduleType.AVOID, binding.spec.clusters, condition, name)


def decided(binding: Binding, type_: ScheduleType, decision: Decision) -> SimulationResult:
    """Return the result of a decision."""
    condition = condition_of(decision)
    name = decision.affinity_name
    return SimulationResult(
        binding,
        type_,
        binding.spec.clusters if decision.targets is None else decision.targets,
        Condition(SCHEDULED_CONDITION, condition.status, condition.reason, condition.message),
        binding.status.scheduler_observing_affinity_name if name is None else name,
        decision=decision,
    )
