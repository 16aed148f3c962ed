"""The Scheduled condition for the end of an attempt, and whether the attempt is repeated.

Source: karmada v1.18.2 pkg/scheduler helper.go getConditionByError, scheduler.go handleErr.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from karmada_scheduler.core.decision import Decision
from karmada_scheduler.framework.diagnosis import AT_GUARD, FitError, KeptError, UnschedulableError

SUCCESS: Final = "Success"
UNSCHEDULABLE: Final = "Unschedulable"
NO_CLUSTER_FIT: Final = "NoClusterFit"
QUOTA_EXCEEDED: Final = "QuotaExceeded"
SCHEDULER_ERROR: Final = "SchedulerError"

SUCCESS_MESSAGE: Final = "Binding has been scheduled successfully."


class ConditionSpec(NamedTuple):
    """The Scheduled condition of a binding: status ``True`` or ``False``, reason, and message."""

    status: str
    reason: str
    message: str


def condition_for(error: BaseException | None) -> ConditionSpec:
    """Return the condition for an error, or for success; an unknown error is a SchedulerError."""
    if error is None:
        return ConditionSpec("True", SUCCESS, SUCCESS_MESSAGE)
    if isinstance(error, UnschedulableError):
        return ConditionSpec("False", UNSCHEDULABLE, str(error))
    if isinstance(error, FitError):
        return ConditionSpec("False", NO_CLUSTER_FIT, str(error))
    return ConditionSpec("False", SCHEDULER_ERROR, str(error))


def condition_of(decision: Decision) -> ConditionSpec:
    """Return the condition for a decision: that for its error, or for a placement that a Guard plugin finds good as it is."""
    found, guarded = condition_for(decision.error), decision.guarded
    if decision.error is None and guarded is not None and guarded.refused_by:
        return found._replace(
            message=f"{SUCCESS_MESSAGE} Kept{AT_GUARD}{guarded.refused_by}: {guarded.reason}"
        )
    return found


def retryable(error: BaseException | None) -> bool:
    """Return whether the attempt is retried without an event; a FitError waits for a change."""
    return error is not None and (isinstance(error, KeptError) or not isinstance(error, FitError))
