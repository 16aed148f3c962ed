"""The profile about answers: seeds that break nothing, and planted bugs that are found."""

from __future__ import annotations

import pytest

from tools.simulation.plan import Plan, Step
from tools.simulation.planted_answers import ANSWER_BUGS
from tools.simulation.planted_bugs import PlantedBug
from tools.simulation.profiles import plan_for
from tools.simulation.run import Run

_FOUND_BY = {
    "an earlier assumption is lost": "2",
    "a late estimate is 0": "1",
    "an older generation is ignored": "3",
    "the time of a refusal is lost": "4",
    "the time that a filter asks for is lost": "4",
}
"""A seed that found each planted bug."""


@pytest.mark.parametrize("seed", ["5", "6", "7", "8", "910037"])
def test_a_seed_of_each_aim_breaks_no_invariant_and_repeats_itself(seed: str) -> None:
    first, second = (Run(plan_for(seed, "answers")).execute() for _ in range(2))
    assert not first.violations, "\n".join(first.trace[-40:])
    assert first.trace_hash == second.trace_hash


@pytest.mark.parametrize(
    ("seed", "profile"),
    [
        ("930005", "estimators"),
        ("930030", "kinds"),
        ("930069", "estimators"),
        ("930034", "workloads"),
        ("418", "kinds"),
    ],
)
def test_a_seed_that_a_law_was_too_strict_for_breaks_no_invariant(seed: str, profile: str) -> None:
    assert not Run(plan_for(seed, profile)).execute().violations


@pytest.mark.parametrize("bug", ANSWER_BUGS, ids=lambda bug: bug.name)
def test_a_planted_bug_is_found(bug: PlantedBug) -> None:
    with bug.planted():
        report = Run(plan_for(_FOUND_BY[bug.name], "answers")).execute()
    assert bug.invariants & {each.invariant for each in report.violations}


def test_a_bumped_restore_has_old_objects_and_a_newer_revision() -> None:
    more = {"region": "", "cpu": 9}
    steps = (
        Step(at=0.0, action="put_cluster", arguments={"name": "m0", **more}),
        Step(at=20.0, action="put_cluster", arguments={"name": "m1", **more}),
        Step(at=21.0, action="restore", arguments={"back": 5.0, "seconds": 1.0, "ahead": 1000}),
    )
    run = Run(Plan(seed="1", faults_end=30.0, settle=70.0, steps=steps))
    before: list[int] = []
    run.simulation.at(21.0, lambda: before.append(run.model.revision))
    assert not run.execute().violations
    assert run.model.get("Cluster", "", "m1") is None
    assert run.model.revision > before[0] + 1000
