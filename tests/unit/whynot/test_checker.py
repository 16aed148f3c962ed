"""The harness finds wrong claims."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from karmada_scheduler.testing import binding, cluster
from tests.unit.whynot.checker import Checker
from tests.unit.whynot.json_patch import PatchError, applied
from tests.unit.whynot.questions import CheckedQuestion, questions

_TAINT = "a:NoSchedule"


def _question() -> CheckedQuestion:
    asked = binding("web").replicas(2, cpu=1).dynamic_weight()
    clusters = [cluster("m1").capacity(cpu=9).taint(_TAINT), cluster("m2").capacity(cpu=9)]
    return CheckedQuestion(
        "test", [each.manifest() for each in clusters], [asked.manifest()], asked.manifest(), "m1", ()
    )


def _problems(tmp_path: Path, **changes: Any) -> list[str]:
    """Return what is found after the first remedy of a true answer was changed."""
    checker = Checker(tmp_path)
    status, answer = checker.ask(_question())
    wrong = copy.deepcopy(answer)
    wrong["remedies"][0].update(changes)
    with mock.patch.object(checker, "ask", return_value=(status, wrong)):
        return checker.check(_question()).problems


def test_a_true_answer_has_no_problems(tmp_path: Path) -> None:
    result = Checker(tmp_path).check(_question())

    assert result.problems == []
    assert result.outcome == "answered"
    assert result.simulated > result.remedies


def test_a_wrong_result_is_found(tmp_path: Path) -> None:
    [problem] = _problems(tmp_path, result=[{"name": "m1", "replicas": 2}])

    assert "promised" in problem


def test_patches_that_do_not_reach_the_goal_are_found(tmp_path: Path) -> None:
    patch = [{"op": "replace", "path": "/spec/syncMode", "value": "Pull"}]
    found = _problems(
        tmp_path, apply=[{"object": {"kind": "Cluster", "namespace": "", "name": "m1"}, "patch": patch}]
    )

    assert any("does not reach the goal" in each for each in found)


def test_a_part_that_can_be_left_out_is_found(tmp_path: Path) -> None:
    checker = Checker(tmp_path)
    _, answer = checker.ask(_question())
    useless = {
        "object": {"kind": "Cluster", "namespace": "", "name": "m2"},
        "patch": [{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}],
    }

    found = _problems(tmp_path, apply=[*answer["remedies"][0]["apply"], useless])

    assert found == ["remedy 0: part 1 can be left out"]


def test_equal_seeds_give_equal_questions() -> None:
    one, other = questions(5), questions(5)

    assert [next(one) for _ in range(8)] == [next(other) for _ in range(8)]


@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        ([{"op": "add", "path": "/a/-", "value": 3}], {"a": [1, 2, 3]}),
        ([{"op": "add", "path": "/a/0", "value": 3}], {"a": [3, 1, 2]}),
        ([{"op": "remove", "path": "/a/1"}], {"a": [1]}),
        (
            [{"op": "replace", "path": "/a", "value": {"b~/": 1}}, {"op": "remove", "path": "/a/b~0~1"}],
            {"a": {}},
        ),
    ],
)
def test_patches_are_applied_as_rfc_6902_says(patch: list[dict[str, Any]], expected: dict[str, Any]) -> None:
    assert applied({"a": [1, 2]}, patch) == expected


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "remove", "path": "/b"},
        {"op": "replace", "path": "/a/2", "value": 1},
        {"op": "add", "path": "/b/c", "value": 1},
        {"op": "add", "path": "/a/01", "value": 1},
        {"op": "move", "path": "/a"},
    ],
)
def test_an_operation_that_cannot_be_applied_is_an_error(operation: dict[str, Any]) -> None:
    with pytest.raises(PatchError):
        applied({"a": [1, 2]}, [operation])
