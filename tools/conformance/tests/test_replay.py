from __future__ import annotations

import copy
import gzip
import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from karmada_scheduler.testing import binding
from tools.conformance import __main__ as command
from tools.conformance.replay import RECORDINGS, RECORDINGS_1_19, Difference, Recording, final_state

REMOVED_BY_A_RESCHEDULE = ["t0008", "t0033", "t0040"]
"""Those of world-1905 that 1.18.2 keeps, and 1.19 removes: docs/differences-from-upstream.md."""


@cache
def replayed(path: Path) -> tuple[int, list[Difference]]:
    """Return the number of cases of a recording, and its differences; several tests look at them."""
    recording = Recording.load(path)
    return len(recording.cases), [*recording.differences()]


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, id=path.name.removesuffix(".json.gz")) for path in [*RECORDINGS, *RECORDINGS_1_19]],
)
def test_every_recorded_decision_equals_ours(path: Path) -> None:
    assert [str(difference) for difference in replayed(path)[1] if not difference.is_intended] == []


def test_all_recorded_cases_are_replayed() -> None:
    assert sum(replayed(path)[0] for path in RECORDINGS) == 4_056


def test_all_cases_of_1_19_are_replayed_and_equal_but_for_named_ones() -> None:
    assert sum(replayed(path)[0] for path in RECORDINGS_1_19) == 789
    found = [difference for path in RECORDINGS_1_19 for difference in replayed(path)[1]]
    kept = [each for each in found if each.ours["conditions"][0]["reason"] != "SchedulerError"]
    assert [each.case.removeprefix("ResourceBinding/") for each in kept] == REMOVED_BY_A_RESCHEDULE
    for each in kept:
        assert each.ours["clusters"]
        assert all({**outcome, "clusters": each.ours["clusters"]} == each.ours for outcome in each.recorded)
    for each in found:
        assert each in kept or "no valid expression" in each.ours["conditions"][0]["message"]
    assert len(found) - len(kept) == 16


@pytest.mark.parametrize(("name", "equal"), [("world-1901", 91), ("world-1905", 123)])
def test_decisions_of_1_18_differ_from_those_of_1_19(name: str, equal: int) -> None:
    (path,) = (each for each in RECORDINGS_1_19 if each.name.startswith(name))
    recording = Recording.load(path, "1.18")
    assert len(recording.cases) - len([*recording.differences()]) == equal
    assert command.main([name, "--decisions-of=1.18"]) == 1
    assert command.main([name]) == 0


def test_a_recording_of_a_version_that_is_not_known_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.json.gz").write_bytes(gzip.compress(json.dumps({"karmada": "v1.20.1"}).encode()))
    with pytest.raises(ValueError, match=r"is of v1\.20\.1, known are 1\.18, 1\.19, 1\.17"):
        Recording.load(tmp_path / "mine.json.gz")


def test_two_cases_have_an_expression_that_is_an_error_here() -> None:
    found = [difference for path in RECORDINGS for difference in replayed(path)[1]]
    assert [each.case for each in found] == ["ResourceBinding/b00213", "ResourceBinding/b00276"]
    for each in found:
        (condition,) = each.ours["conditions"]
        assert "clusterTolerations[0]: operator" in condition["message"]


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


def test_a_file_that_is_not_in_the_folder_is_replayed_by_its_path(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = json.loads(gzip.decompress(RECORDINGS[0].read_bytes()))
    mine = {**document, "cases": document["cases"][:3]}
    (tmp_path / "mine.json.gz").write_bytes(gzip.compress(json.dumps(mine).encode()))
    assert command.main([str(tmp_path / "mine.json.gz")]) == 0
    assert "3 cases, 3 equal, 0 intended, 0 different" in capsys.readouterr().out


def test_a_binding_of_another_scheduler_keeps_its_observed_generation() -> None:
    left = binding("web").observed_generation(0).build()
    assert final_state(left, None)["observedGeneration"] == "current"
    assert final_state(left, None, responsible=False)["observedGeneration"] == "none"


@pytest.mark.parametrize("change", [{"schedulerName": "another"}, {"suspension": {"scheduling": True}}])
def test_a_replay_ignores_a_binding_of_another_scheduler(change: dict[str, Any]) -> None:
    recorded = Recording.load(RECORDINGS[0])
    case = copy.deepcopy(recorded.cases[0])
    manifest = case["binding"]
    manifest["spec"] |= change
    case["events"] = []
    case["outcomes"] = [
        {
            "clusters": [
                {"name": target["name"], "replicas": target.get("replicas", 0)}
                for target in manifest["spec"].get("clusters", ())
            ],
            "appliedPlacement": None,
            "conditions": manifest.get("status", {}).get("conditions", []),
            "observedGeneration": "none",
            "schedulerObservingAffinityName": None,
            "lastScheduledTimeChanged": False,
        }
    ]
    assert list(replace(recorded, cases=[case]).differences()) == []
