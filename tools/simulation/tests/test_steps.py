"""Steps that are taken at a moment, and a restore whose revision is bumped."""

from __future__ import annotations

import pytest

from tools.simulation.plan import Plan, Step
from tools.simulation.run import Run


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
