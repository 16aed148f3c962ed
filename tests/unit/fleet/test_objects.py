"""What a fleet has of files, and which Warning Events count as what a controller says now."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from karmada_advisor.fleet.errors import NoAnswerError
from karmada_advisor.fleet.fleet import Fleet
from karmada_advisor.fleet.read import read_fleet
from karmada_advisor.fleet.source import FleetSource
from karmada_scheduler.testing import binding, cluster

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


def read(folder: Path, *templates: Mapping[str, str], name: str = "") -> Fleet:
    items = [{**each, "metadata": {"name": "train", "namespace": "default"}} for each in templates]
    train = binding("train").resource("batch.volcano.sh/v1alpha1", "Job").manifest()
    train["metadata"]["name"] = "train-job"
    files: dict[str, Any] = {}
    for kind, made in (("clusters", [cluster("m1").manifest()]), ("bindings", [train]), ("workloads", items)):
        (folder / kind).write_text(json.dumps({"kind": "List", "items": made}))
        files[kind] = [str(folder / kind)]
    return read_fleet(FleetSource(**files), name)


def test_kinds_of_karmada_among_templates_are_named_once_as_not_read(tmp_path: Path) -> None:
    of_karmada = {"apiVersion": "networking.karmada.io/v1alpha1", "kind": "MultiClusterService"}
    found = read(tmp_path, of_karmada, {**of_karmada, "apiVersion": "networking.karmada.io/v1"})
    assert found.warnings == ["MultiClusterService: objects of this kind are not read"]


def test_templates_of_two_api_groups_are_two_and_the_binding_is_of_one(tmp_path: Path) -> None:
    jobs = [{"apiVersion": f"{group}/v1", "kind": "Job"} for group in ("batch", "batch.volcano.sh")]
    found = read(tmp_path, *jobs, name="job.batch/train")
    assert (found.problems, len(found.workloads or ())) == ([], 2)
    template = found.unclaimed_template()
    assert getattr(template, "api_version", "") == "batch/v1"
    assert read(tmp_path, *jobs, name="job.batch.volcano.sh/train").unclaimed_template() is None
    with pytest.raises(NoAnswerError, match="train-job"):
        read(tmp_path, name="job.batch/train").find()
