"""Which Warning Events count as what a controller says now."""

from __future__ import annotations

from typing import Any

from karmada_advisor.fleet.fleet import Fleet

AT, LATER = "2026-11-24T17:26:38Z", "2026-11-24T17:26:54Z"


def event(reason: str, at: str, *, source: str = "resource-detector") -> dict[str, Any]:
    kind = "Warning" if reason.endswith("Failed") else "Normal"
    return {"type": kind, "reason": reason, "source": {"component": source}, "lastTimestamp": at}


def reasons(*events: dict[str, Any]) -> list[str]:
    return [each["reason"] for each in Fleet("files", events=events).warning_events()]


def test_the_first_step_of_an_attempt_does_not_hide_the_failure_of_its_second() -> None:
    """The API server lists Events by name, which puts the older of two first."""
    assert reasons(event("GetReplicasSucceed", AT), event("ApplyPolicyFailed", AT)) == ["ApplyPolicyFailed"]
    assert reasons(event("ApplyPolicyFailed", AT), event("GetComponentsSucceed", AT)) == ["ApplyPolicyFailed"]


def test_a_later_success_of_the_same_controller_hides_its_failure() -> None:
    assert reasons(event("ApplyPolicyFailed", AT), event("ApplyPolicySucceed", LATER)) == []
    assert reasons(event("ApplyPolicyFailed", AT), event("GetReplicasSucceed", LATER)) == []
    other = event("SyncSucceed", LATER, source="binding-controller")
    assert reasons(event("ApplyPolicyFailed", AT), other) == ["ApplyPolicyFailed"]


def test_a_conflict_of_the_detector_that_it_has_overcome_within_a_second_is_none() -> None:
    failed, done = event("ApplyPolicyFailed", AT), event("ApplyPolicySucceed", AT)
    assert reasons(failed, done) == reasons(done, failed) == []
    assert reasons(event("ApplyPolicyFailed", LATER), done) == ["ApplyPolicyFailed"]
