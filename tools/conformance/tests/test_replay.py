from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tools.conformance.replay import RECORDINGS, Recording


@pytest.mark.parametrize(
    "path", [pytest.param(path, id=path.name.removesuffix(".json.gz")) for path in RECORDINGS]
)
def test_every_recorded_decision_equals_ours(path: Path) -> None:
    recording = Recording.load(path)
    assert [str(difference) for difference in recording.differences()] == []


def test_all_recorded_cases_are_replayed() -> None:
    assert sum(len(Recording.load(path).cases) for path in RECORDINGS) == 4_056


def test_a_difference_from_every_outcome_is_shown_field_by_field() -> None:
    recording = Recording.load(RECORDINGS[0])
    case = recording.cases[0]
    outcome = {**case["outcomes"][0], "clusters": [{"name": "elsewhere", "replicas": 1}]}
    altered = replace(recording, cases=[{**case, "outcomes": [outcome]}])
    (difference,) = altered.differences()
    assert str(difference).splitlines()[:3] == [
        case["name"],
        "  clusters",
        '    - recorded [{"name": "elsewhere", "replicas": 1}]',
    ]


def test_an_event_that_upstream_never_sent_is_a_difference() -> None:
    recording = Recording.load(RECORDINGS[0])
    altered = replace(recording, cases=[{**recording.cases[0], "events": []}])
    (difference,) = altered.differences()
    assert "ScheduleBindingSucceed" in str(difference)
