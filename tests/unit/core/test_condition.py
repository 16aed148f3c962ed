"""The Scheduled condition for each kind of error."""

from __future__ import annotations

import pytest

from karmada_scheduler.core.condition import ConditionSpec, condition_for, retryable
from karmada_scheduler.core.report import with_condition
from karmada_scheduler.framework import Diagnosis, FitError, PluginError, SchedulingError, UnschedulableError


@pytest.mark.parametrize(
    ("error", "condition", "again"),
    [
        pytest.param(
            None,
            ConditionSpec("True", "Success", "Binding has been scheduled successfully."),
            False,
            id="success",
        ),
        pytest.param(
            FitError(0, Diagnosis()),
            ConditionSpec("False", "NoClusterFit", "0/0 clusters are available: no cluster exists."),
            False,
            id="no-fit",
        ),
        pytest.param(
            UnschedulableError("x"), ConditionSpec("False", "Unschedulable", "x"), True, id="unschedulable"
        ),
        pytest.param(
            UnschedulableError("x").within("failed to scale up"),
            ConditionSpec("False", "Unschedulable", "failed to scale up: x"),
            True,
            id="unschedulable-wrapped",
        ),
        pytest.param(SchedulingError("x"), ConditionSpec("False", "SchedulerError", "x"), True, id="other"),
        pytest.param(PluginError("x"), ConditionSpec("False", "SchedulerError", "x"), True, id="plugin"),
        pytest.param(OSError("x"), ConditionSpec("False", "SchedulerError", "x"), True, id="foreign"),
    ],
)
def test_an_error_becomes_a_condition(error: Exception | None, condition: ConditionSpec, again: bool) -> None:
    assert condition_for(error) == condition
    assert retryable(error) is again


@pytest.mark.parametrize(("status", "time"), [("True", "then"), ("False", "now")])
def test_a_condition_has_the_time_of_the_last_change_of_its_status(status: str, time: str) -> None:
    other = {"type": "FullyApplied", "status": "True", "unknown": 1}
    stored = {
        "type": "Scheduled",
        "status": status,
        "reason": "x",
        "message": "y",
        "lastTransitionTime": "then",
    }
    wanted = condition_for(None)
    found = with_condition([other, stored], wanted, "now")
    assert found is not None
    assert found[0] == other
    assert (found[1]["status"], found[1]["lastTransitionTime"]) == ("True", time)
    assert with_condition(found, wanted, "later") is None
