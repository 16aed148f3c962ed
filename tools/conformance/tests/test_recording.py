from __future__ import annotations

import copy
import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from karmada_scheduler.testing import binding
from tools.conformance import __main__ as command
from tools.conformance import record, recording
from tools.conformance.recording import APPLIED_PLACEMENT, Run
from tools.conformance.replay import RECORDINGS, Recording, final_state

START: dict[str, Any] = {
    "kind": "ResourceBinding",
    "metadata": {"name": "b", "generation": 1, "managedFields": [{"manager": "x"}]},
    "spec": {"placement": {}, "resource": {}},
}
PLACED = ("Normal", "ScheduleBindingSucceed", "Binding has been scheduled successfully. Result: {m1:2}")


def scheduled(*, observed: int = 2, annotation: str = "{}") -> dict[str, Any]:
    after = copy.deepcopy(START)
    after["metadata"] |= {"generation": 2, "annotations": {APPLIED_PLACEMENT: annotation}}
    after["spec"]["clusters"] = [{"name": "m1", "replicas": 2}, {"name": "m2"}]
    after["status"] = {
        "schedulerObservedGeneration": observed,
        "lastScheduledTime": "2026-01-01T00:00:00Z",
        "conditions": [
            {"type": "Scheduled", "status": "True", "reason": "Success", "lastTransitionTime": "now"}
        ],
    }
    return after


def test_the_outcome_has_the_relevant_fields_of_the_final_state() -> None:
    assert recording.outcome(Run(START, scheduled())) == {
        "clusters": [{"name": "m1", "replicas": 2}, {"name": "m2", "replicas": 0}],
        "appliedPlacement": {},
        "conditions": [{"type": "Scheduled", "status": "True", "reason": "Success", "message": ""}],
        "observedGeneration": "current",
        "schedulerObservingAffinityName": None,
        "lastScheduledTimeChanged": True,
    }


def test_the_outcome_of_an_unscheduled_binding_is_empty() -> None:
    assert recording.outcome(Run(START, START)) == {
        "clusters": [],
        "appliedPlacement": None,
        "conditions": [],
        "observedGeneration": "none",
        "schedulerObservingAffinityName": None,
        "lastScheduledTimeChanged": False,
    }


def test_an_annotation_that_cannot_be_read_is_recorded_as_it_is() -> None:
    after = scheduled(annotation="not json")
    assert recording.outcome(Run(START, after))["appliedPlacement"] == "not json"


def test_equal_results_of_several_runs_are_one_outcome() -> None:
    first, second = Run(START, scheduled(), frozenset({PLACED})), Run(START, scheduled(observed=1))
    (case,) = recording.document([], [{"ResourceBinding/b": run} for run in (first, second, first)], [])[
        "cases"
    ]
    assert [outcome["observedGeneration"] for outcome in case["outcomes"]] == ["current", "older"]
    assert case["events"] == [list(PLACED)]


def test_a_recording_has_no_managed_fields() -> None:
    document = recording.document([START], [{"ResourceBinding/b": Run(START, scheduled())}], ["--plugins=*"])
    assert "managedFields" not in json.dumps(document)
    assert document["schedulerFlags"] == ["--plugins=*"]


def test_equal_recordings_are_equal_files(tmp_path: Path) -> None:
    recording.write(tmp_path / "one" / "recording.json.gz", {"a": 1, "b": {"c": 2, "d": 3}})
    recording.write(tmp_path / "two" / "recording.json.gz", {"b": {"d": 3, "c": 2}, "a": 1})
    one, two = ((tmp_path / name / "recording.json.gz").read_bytes() for name in ("one", "two"))
    assert one == two


def test_reading_and_writing_a_recording_keeps_its_text(tmp_path: Path) -> None:
    text = gzip.decompress(RECORDINGS[0].read_bytes())
    recording.write(tmp_path / "again.json.gz", json.loads(text))
    assert json.loads(gzip.decompress((tmp_path / "again.json.gz").read_bytes())) == json.loads(text)


def test_a_file_that_is_not_in_the_folder_is_replayed_by_its_path(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = json.loads(gzip.decompress(RECORDINGS[0].read_bytes()))
    recording.write(tmp_path / "mine.json.gz", {**document, "cases": document["cases"][:3]})
    assert command.main([str(tmp_path / "mine.json.gz")]) == 0
    assert "3 cases, 3 equal, 0 different" in capsys.readouterr().out


def test_gates_among_the_flags_are_those_of_the_whole_control_plane() -> None:
    flags = ["--plugins=*", "--feature-gates=A=true,B=false", "--feature-gates=C=true"]
    assert record.gates_in(flags) == {"A": True, "B": False, "C": True}


def test_a_flag_that_the_replay_does_not_support_is_not_recorded(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        record.parser().parse_args(["--out=x", "--scheduler-flag=--leader-elect=false"])
    assert "not one that can be replayed" in capsys.readouterr().err


def test_a_binding_of_another_scheduler_keeps_its_observed_generation() -> None:
    left = binding("web").observed_generation(0).build()
    assert final_state(left, None)["observedGeneration"] == "current"
    assert final_state(left, None, responsible=False)["observedGeneration"] == "none"


@pytest.mark.parametrize("change", [{"schedulerName": "another"}, {"suspension": {"scheduling": True}}])
def test_a_replay_ignores_a_binding_of_another_scheduler(change: dict[str, Any]) -> None:
    recorded = Recording.load(RECORDINGS[0])
    case = copy.deepcopy(recorded.cases[0])
    case["binding"]["spec"] |= change
    case["events"] = []
    untouched = Run(case["binding"], case["binding"])
    case["outcomes"] = [recording.outcome(untouched)]
    assert list(replace(recorded, cases=[case]).differences()) == []
