"""How an attempt ends, as statuses and Events report it; ``core.report`` has the fields.

Source: karmada v1.18.2 pkg/scheduler helper.go and event.go.
"""

from __future__ import annotations

from karmada_scheduler.api.binding import CLUSTER_RESOURCE_BINDING, Binding
from karmada_scheduler.api.well_known import SCHEDULED_CONDITION
from karmada_scheduler.api_error import ApiError
from karmada_scheduler.core import condition as outcome
from karmada_scheduler.core.decision import Decision
from karmada_scheduler.core.report import Report
from karmada_scheduler.framework.diagnosis import AT_GUARD, FitError, SchedulingError


def ending(
    error: SchedulingError | None, refusal: ApiError | None
) -> tuple[Exception | None, outcome.ConditionSpec]:
    """Return the error that an attempt ended with, None for a success, and its condition.

    Upstream joins the two errors of an attempt, and checks whether one of them is a quota error.
    """
    if refusal is None:
        return error, outcome.condition_for(error)
    if error is not None and str(error) != str(refusal):
        joined = SchedulingError(f"[{error}, {refusal}]")
        reason = outcome.NO_CLUSTER_FIT if isinstance(error, FitError) else outcome.SCHEDULER_ERROR
        return joined, outcome.ConditionSpec("False", reason, str(joined))
    quota = refusal.code == 403 and refusal.reason == outcome.QUOTA_EXCEEDED
    reason = outcome.QUOTA_EXCEEDED if quota else outcome.SCHEDULER_ERROR
    return refusal, outcome.ConditionSpec("False", reason, str(refusal))


def success(binding: Binding, decision: Decision | None, at: str) -> Report:
    """Return the report of a success at the time ``at``; without a decision the affinity term stays as it is."""
    name = decision.affinity_name if decision is not None else None
    return Report(outcome.condition_for(None), binding.generation, at, name, placed=True)


def targets_text(decision: Decision) -> str:
    """Return ``name:replicas`` of every target, in upstream's format."""
    return ", ".join(f"{target.name}:{target.replicas}" for target in decision.targets or ())


def success_text(binding: Binding, decision: Decision) -> str:
    """Return upstream's message, which has a colon after Result for a ResourceBinding only."""
    colon = "" if binding.key.kind == CLUSTER_RESOURCE_BINDING else ":"
    return f"Binding has been scheduled successfully. Result{colon} {{{targets_text(decision)}}}"


def was_kept_by_guard(binding: Binding) -> bool:
    """Return whether the condition of a binding reports that a Guard plugin keeps its placement."""
    condition = binding.status.condition(SCHEDULED_CONDITION)
    return (
        condition is not None
        and condition.get("status") == "False"
        and AT_GUARD in str(condition.get("message"))
    )


def is_reconstructible(stored: Binding, report: Report) -> bool:
    """Return whether a new leader writes the same status if this process ends before.

    A new leader reports placements, decides again about the others, and updates observed generations
    (``core.unreported``). It cannot be certain about the affinity term where several select the clusters.
    """
    return report.affinity_name in {None, stored.status.scheduler_observing_affinity_name}
