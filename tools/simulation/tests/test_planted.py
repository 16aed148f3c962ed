"""The planted bugs: a seed finds each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

import pytest

from tools.simulation.__main__ import PLANTED
from tools.simulation.plan import Fault, Plan, Step
from tools.simulation.planted_bugs import PlantedBug
from tools.simulation.profiles import plan_for
from tools.simulation.run import Run
from tools.simulation.simulation import Process

_SEEDS = 60
"""Seeds of the profile that are tried until one finds a planted bug."""

_FAULTS = {
    "any 404 means that the object is gone": (
        Fault(kind="conflict", start=30, end=40, requests="PATCH resourcebindings"),
        Fault(kind="foreign", start=30, end=40, requests="GET resourcebindings", value="page not found"),
    )
}
"""Further faults, for bugs that a seed finds by chance only: here a conflict and then a proxy's 404."""

_UNREADABLE_AT_A_START = Plan(
    seed="1",
    faults_end=40.0,
    settle=120.0,
    steps=(
        Step(at=0.0, action="put_cluster", arguments={"name": "m1", "region": "north", "cpu": 20}),
        Step(at=1.0, action="put_cluster", arguments={"name": "m0", "region": "north", "cpu": 20}),
        Step(
            at=2.0,
            action="create_binding",
            arguments={"name": "b", "replicas": 2, "strategy": "duplicated", "region": "", "groups": 0},
        ),
        Step(at=10.0, action="break_cluster", arguments={"name": "m1", "broken": True, "part": "spec"}),
        Step(at=12.0, action="kill", arguments={"process": 0}),
        Step(at=30.0, action="scale", arguments={"name": "b", "replicas": 3}),
    ),
)
_POLICY = {"name": "p", "strategy": "duplicated"}
_HEALTHY_NOWHERE = Plan(
    seed="1",
    profile="guard",
    setup={
        "guard": {"budgets": [{"scope": "policy", "window": "60s", "percent": 40}]},
        "longest_backoff": 30.0,
    },
    faults_end=100.0,
    settle=200.0,
    steps=(
        Step(at=0.0, action="put_cluster", arguments={"name": "m0", "region": "north", "cpu": 20}),
        Step(at=0.0, action="put_cluster", arguments={"name": "m1", "region": "south", "cpu": 20}),
        Step(at=0.0, action="put_policy", arguments={**_POLICY, "region": "north"}),
        Step(
            at=1.0,
            action="create_binding",
            arguments={
                "name": "b",
                "replicas": 2,
                "strategy": "duplicated",
                "policy": "p",
                "region": "north",
                "purge_mode": "",
                "tolerations": [],
                "history": "",
            },
        ),
        Step(at=20.0, action="make_sick", arguments={"name": "m0", "sick": True}),
        Step(at=80.0, action="put_policy", arguments={**_POLICY, "region": "south"}),
    ),
)


def _job(at: float, name: str, replicas: int, cpu: str, priority: int) -> Step:
    arguments = {"name": name, "replicas": replicas, "cpu": cpu, "priority": priority, "strategy": "dynamic"}
    return Step(at=at, action="create_binding", arguments=arguments)


_PART_OF_A_HELD_REPLICA = Plan(
    seed="1",
    profile="contended",
    setup={
        "reports": True,
        "strict_priority": {},
        "longest_backoff": 30.0,
        "gates": {"PriorityBasedScheduling": True},
    },
    faults_end=60.0,
    settle=200.0,
    steps=(
        Step(at=0.0, action="put_cluster", arguments={"name": "m0", "region": "", "cpu": 16}),
        _job(2.0, "b0", 10, "1", 0),
        _job(30.0, "b1", 2, "5", 10),
        _job(40.0, "b2", 1, "2", 0),
    ),
)
_PLANNED = {
    "less is rounded down": _PART_OF_A_HELD_REPLICA,
    "an unreadable cluster counts as gone": _UNREADABLE_AT_A_START,
    "nothing is exempt": _HEALTHY_NOWHERE,
}
"""Plans that find planted bugs which seeds find by chance only."""


def _plans(bug: PlantedBug) -> Iterator[Plan]:
    if bug.name in _PLANNED:
        yield _PLANNED[bug.name]
        return
    first, profile = bug.found_by
    for seed in (first, *map(str, range(1, _SEEDS + 1))):
        plan = plan_for(seed, profile)
        yield replace(plan, faults=(*plan.faults, *_FAULTS.get(bug.name, ())))


class _FoundError(Exception):
    """A law that the bug is expected to break is broken, so that the rest of the run shows no more."""


def _finds(bug: PlantedBug, plan: Plan) -> bool:
    """Return whether a run breaks a law that a planted bug is expected to break; it ends with that."""
    run = Run(plan)
    look = run.simulation.after_step

    def found() -> bool:
        return not bug.invariants.isdisjoint(violation.invariant for violation in run.judge.violations)

    def look_and_end(process: Process) -> None:
        look(process)
        if found():
            raise _FoundError

    run.simulation.after_step = look_and_end
    with bug.planted(), suppress(_FoundError):
        run.execute()
    return found()


@pytest.mark.parametrize("bug", PLANTED, ids=lambda bug: bug.name)
def test_a_planted_bug_is_found(bug: PlantedBug) -> None:
    """By the first seed, until timing changes; each further one costs a second: write the one that finds it into the bug."""
    assert any(_finds(bug, plan) for plan in _plans(bug))


@pytest.mark.parametrize("name", [*_FAULTS, *_PLANNED])
def test_what_finds_a_bug_by_intent_breaks_no_invariant_without_it(name: str) -> None:
    (bug,) = (bug for bug in PLANTED if bug.name == name)
    assert not Run(next(_plans(bug))).execute().violations


def test_a_key_that_is_lost_and_repaired_later_is_found() -> None:
    (bug,) = (bug for bug in PLANTED if bug.name == "a conflict ends the attempt")
    with bug.planted():
        report = Run(plan_for(*bug.found_by)).execute()
    assert {each.invariant for each in report.violations} == {"no lost key"}
