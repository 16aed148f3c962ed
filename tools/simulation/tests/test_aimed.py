"""The profile whose steps are taken where they hurt: seeds that break nothing, and planted bugs that are found."""

from __future__ import annotations

import pytest

from tools.simulation import faults, plan
from tools.simulation.__main__ import as_test
from tools.simulation.plan import Plan, Step
from tools.simulation.planted_aims import AIMED_BUGS
from tools.simulation.planted_bugs import PlantedBug
from tools.simulation.profiles import plan_for
from tools.simulation.run import Run

_AIMS = 7
_FOUND_BY = {
    "a decision is written over a newer spec": "0",
    "a watch swallows its cancellation": "6",
    "a watch waits for a response without end": "4",
}
"""A seed that found each planted bug."""


@pytest.mark.parametrize("seed", [str(seed) for seed in range(_AIMS)])
def test_a_seed_of_each_aim_breaks_no_invariant(seed: str) -> None:
    report = Run(plan_for(seed, "aimed")).execute()
    assert not report.violations, "\n".join(report.trace[-40:])


@pytest.mark.parametrize("bug", AIMED_BUGS, ids=lambda bug: bug.name)
def test_a_planted_bug_is_found(bug: PlantedBug) -> None:
    with bug.planted():
        report = Run(plan_for(_FOUND_BY[bug.name], "aimed")).execute()
    assert bug.invariants & {each.invariant for each in report.violations}


@pytest.mark.parametrize("moment", ["in flight", "placed", "reported", "elected"])
def test_a_step_is_taken_once_at_its_moment_and_about_the_binding_of_the_moment(moment: str) -> None:
    more = {"name": "b"} if moment == "elected" else {}
    aim = {"moment": moment, "then": "scale", "within": 20.0, "delay": 2.0, "replicas": 7, **more}
    steps = (
        Step(at=0.0, action="put_cluster", arguments={"name": "m0", "region": "", "cpu": 9}),
        Step(at=0.0, action="aim", arguments=aim),
        Step(
            at=0.1, action="create_binding", arguments={"name": "b", "replicas": 2, "strategy": "duplicated"}
        ),
    )
    run = Run(Plan(seed="1", faults_end=20.0, settle=70.0, steps=steps))
    report = run.execute()
    assert not report.violations
    assert report.actions["scale"] == 1
    stored = run.model.get("ResourceBinding", "default", "b")
    assert stored is not None
    assert stored["spec"]["replicas"] == 7


def test_a_failing_plan_is_printed_as_a_test() -> None:
    small = Plan(seed="1", steps=(Step(at=1.0, action="kill", arguments={"process": 0}),))
    made: dict[str, object] = {**vars(plan), **vars(faults)}
    seen: list[object] = []

    class Failing:
        def __init__(self, given: object) -> None:
            seen.append(given)

        def execute(self) -> object:
            return Failing

        violations = ("x",)

    made["Run"] = Failing
    exec(as_test(small), made)
    with pytest.raises(AssertionError):
        made["test_seed_1_calm_breaks_no_invariant"]()  # type: ignore[operator]
    assert seen == [small]
