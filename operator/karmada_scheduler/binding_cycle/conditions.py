"""What is told of an attempt: the Scheduled condition, the text of the Event, the targets as the API wants them.

Pure; ``binding_cycle`` and ``status_writer`` write it.

Source: karmada v1.18.2 pkg/scheduler helper.go and event.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from karmada_scheduler.api.binding import CLUSTER_RESOURCE_BINDING, Binding, TargetCluster
from karmada_scheduler.api.manifest import Manifest
from karmada_scheduler.client.connection import ApiError
from karmada_scheduler.core import condition as outcome
from karmada_scheduler.core.decision import Decision
from karmada_scheduler.framework.diagnosis import FitError, SchedulingError

SCHEDULED: Final = "Scheduled"
_MESSAGE_LIMIT: Final = 32768


@dataclass(frozen=True, slots=True)
class Report:
    """What a status is to say.

    Attributes:
        condition: The Scheduled condition.
        generation: That of the binding which this is about. By the time that it is written, there may be a newer one.
        at: When it came to that, as the API has times. Not when it is written: a reschedule that is asked for in
            between is still to come.
        affinity_name: The affinity term in force; None where it is not to be touched.
        placed: Whether a place was found and written. The condition may tell of a later failure.
    """

    condition: outcome.ConditionSpec
    generation: int
    at: str
    affinity_name: str | None = None
    placed: bool = False

    @property
    def is_success(self) -> bool:
        """Whether the condition is that of a success."""
        return self.condition.status == "True"


def ending(
    error: SchedulingError | None, refusal: ApiError | None
) -> tuple[Exception | None, outcome.ConditionSpec]:
    """Return what an attempt ended with, and the condition that says so.

    Upstream joins the two errors of an attempt, and looks for a quota among them.
    """
    if refusal is None:
        return error, outcome.condition_for(error)
    if error is not None and str(error) != str(refusal):
        joined = SchedulingError(f"[{error}, {refusal}]")
        fits_nowhere = isinstance(error, FitError)
        reason = outcome.NO_CLUSTER_FIT if fits_nowhere else outcome.SCHEDULER_ERROR
        return joined, outcome.ConditionSpec("False", reason, str(joined))
    quota = refusal.code == 403 and refusal.reason == outcome.QUOTA_EXCEEDED
    reason = outcome.QUOTA_EXCEEDED if quota else outcome.SCHEDULER_ERROR
    return refusal, outcome.ConditionSpec("False", reason, str(refusal))


def success(binding: Binding, decision: Decision | None, at: str) -> Report:
    """Return the report of a success; without a decision the affinity term is not touched."""
    name = decision.affinity_name if decision is not None else None
    return Report(outcome.condition_for(None), binding.generation, at, name, placed=True)


def status_fields(base: Binding, report: Report, *, keep_time_if_settled: bool) -> dict[str, Any]:
    """Return the fields of a status patch that says ``report`` on top of ``base``; {} when it says so already.

    Args:
        base: The binding as stored.
        report: What is to be said.
        keep_time_if_settled: Whether a success that is recorded already needs no new time.
    """
    status = base.status
    fields: dict[str, Any] = {}
    conditions = with_condition(status.conditions, report.condition, report.at)
    if conditions is not None:
        fields["conditions"] = conditions
    if not report.placed:
        return fields
    if report.is_success and report.generation != status.scheduler_observed_generation:
        fields["schedulerObservedGeneration"] = report.generation
    if report.affinity_name not in {None, status.scheduler_observing_affinity_name}:
        fields["schedulerObservingAffinityName"] = report.affinity_name
    if fields or not keep_time_if_settled:
        fields["lastScheduledTime"] = report.at
    return fields


def target_manifests(
    targets: Sequence[TargetCluster], unknown: Mapping[TargetCluster, Manifest] | None = None
) -> list[dict[str, Any]]:
    """Return targets as the API wants them.

    Args:
        targets: Where the binding is to be; a replica count of 0 is left out.
        unknown: ``BindingSpec.unknown_target_fields`` of the binding as it is: a target that is there with as many
            replicas keeps them, another has none.
    """
    manifests: list[dict[str, Any]] = [
        {"name": target.name, "replicas": target.replicas} if target.replicas else {"name": target.name}
        for target in targets
    ]
    if unknown:
        for target, manifest in zip(targets, manifests, strict=True):
            manifest.update(unknown.get(target, {}))
    return manifests


def targets_text(decision: Decision) -> str:
    """Return ``name:replicas`` of every target, as upstream lists them."""
    return ", ".join(f"{target.name}:{target.replicas}" for target in decision.targets or ())


def success_text(binding: Binding, decision: Decision) -> str:
    """Return upstream's text, which has a colon after Result for a ResourceBinding only."""
    colon = "" if binding.key.kind == CLUSTER_RESOURCE_BINDING else ":"
    return f"Binding has been scheduled successfully. Result{colon} {{{targets_text(decision)}}}"


def may_be_late(stored: Binding, report: Report) -> bool:
    """Tell whether a successor would make up for a status that was never written, as when this process is killed.

    It tells of places that were never told of, decides again where no place is known, and notes generations. It could
    not know that a failure is over, nor which affinity term was in force.
    """
    told = stored.status.condition(SCHEDULED)
    names = {None, stored.status.scheduler_observing_affinity_name}
    return (told is None or told.get("status") == "True") and report.affinity_name in names


def with_condition(
    conditions: Sequence[Mapping[str, Any]], wanted: outcome.ConditionSpec, now: str
) -> list[Mapping[str, Any]] | None:
    """Return the conditions with the Scheduled one set, None if they are so already.

    All others stay as they are, fields that we do not know included. Of the Scheduled one only what we write is left, for
    the rest was said of what it was before. The time of the last transition moves only when the status flips.
    """
    new: dict[str, Any] = {
        "type": SCHEDULED,
        "status": wanted.status,
        "reason": wanted.reason,
        "message": wanted.message[:_MESSAGE_LIMIT],
        "lastTransitionTime": now,
    }
    result: list[Mapping[str, Any]] = []
    placed = False
    for condition in conditions:
        if condition.get("type") != SCHEDULED:
            result.append(condition)
            continue
        if condition.get("status") == wanted.status:
            new["lastTransitionTime"] = condition.get("lastTransitionTime") or now
        if all(condition.get(field) == new[field] for field in ("status", "reason", "message")):
            return None
        result.append(new)
        placed = True
    return result if placed else [*result, new]
