"""The Scheduled condition for each kind of error."""

from __future__ import annotations

import pytest

from karmada_scheduler.core.condition import ConditionSpec, condition_for, retryable
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
