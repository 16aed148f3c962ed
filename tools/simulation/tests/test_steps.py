"""Steps that are taken at a moment, and a restore whose revision is bumped."""

from __future__ import annotations

import pytest

from tools.simulation.plan import Fault, Plan, Step
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


def test_a_cluster_can_be_deleted_while_a_result_that_names_it_is_on_its_way() -> None:
    aim = {"moment": "sent", "then": "delete_cluster", "within": 20.0, "delay": 0.0, "seconds": 0.0}
    steps = (
        Step(at=0.0, action="put_cluster", arguments={"name": "m0", "region": "", "cpu": 9}),
        Step(at=0.0, action="aim", arguments=aim),
        Step(at=0.1, action="create_binding", arguments={"name": "b", "replicas": 2, "strategy": "dynamic"}),
    )
    slow = Fault(kind="slow", start=0.0, end=20.0, requests="PATCH resourcebindings$", value=3.0)
    run = Run(Plan(seed="1", faults_end=20.0, settle=70.0, steps=steps, faults=(slow,)))
    gone: list[bool] = []
    run.model.observers.append(
        lambda write: (
            gone.append(run.model.get("Cluster", "", "m0") is None)
            if write.kind == "ResourceBinding" and write.request is not None and not write.subresource
            else None
        )
    )
    run.execute()
    assert gone[0]


def test_a_binding_keeps_a_cluster_that_was_created_again_and_whose_event_is_late() -> None:
    more = {"region": "", "cpu": 9}
    steps = (
        Step(at=0.0, action="put_cluster", arguments={"name": "m0", **more}),
        Step(at=0.0, action="put_cluster", arguments={"name": "m1", **more}),
        Step(at=1.0, action="create_binding", arguments={"name": "b", "replicas": 4, "strategy": "dynamic"}),
        Step(at=10.0, action="unjoin_by_force", arguments={"cluster": "m1"}),
        Step(at=30.0, action="put_cluster", arguments={"name": "m1", **more}),
        Step(at=30.5, action="place_binding", arguments={"name": "b", "cluster": "m1"}),
    )
    late = Fault(kind="watch_late", start=29.0, end=31.0, requests="WATCH clusters", value=5.0)
    run = Run(Plan(seed="1", faults_end=40.0, settle=70.0, steps=steps, faults=(late,)))
    assert not run.execute().violations
    stored = run.model.get("ResourceBinding", "default", "b")
    assert stored is not None
    assert stored["spec"]["clusters"] == [{"name": "m1", "replicas": 4}]


def test_a_suspended_machine_runs_nothing_and_its_monotonic_clock_stands_still() -> None:
    steps = (
        Step(at=10.0, action="suspend_machine", arguments={"process": 0, "seconds": 6.0, "cuts": False}),
        Step(at=12.0, action="suspend_machine", arguments={"process": 0, "seconds": 6.0, "cuts": False}),
    )
    run = Run(Plan(seed="1", faults_end=60.0, settle=70.0, steps=steps))
    clocks: dict[float, tuple[float, float, int]] = {}

    def note() -> None:
        process = run.process(0)
        assert process is not None
        environment = process.machine.environment()
        seconds = environment.clock(), environment.boot_clock()
        clocks[run.simulation.now] = (*seconds, run.requests["PUT leases"])

    for at in (9.0, 11.0, 15.0, 25.0):
        run.simulation.at(at, note)
    assert not run.execute().violations
    assert [each[:2] for each in clocks.values()] == [(9.0, 9.0), (10.0, 11.0), (10.0, 15.0), (19.0, 25.0)]
    requests = [each[2] for each in clocks.values()]
    assert requests[0] < requests[3]
    assert requests[1] == requests[2]
