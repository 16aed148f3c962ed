"""The simulation: it finds nothing in the scheduler, and repeats itself exactly; see ``test_planted``."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from itertools import product
from pathlib import Path

import pytest

from tools.simulation import faults, generate, generate_breadth, generate_guard, plan
from tools.simulation.__main__ import as_test
from tools.simulation.plan import Fault, Plan, Step, load
from tools.simulation.profiles import plan_for
from tools.simulation.run import Run
from tools.simulation.shrink import shrink

PLANS = sorted((Path(__file__).parents[1] / "plans").glob("*.json"))
"""Shrunk plans of bugs that were found and mended."""

_ONCE_FAILED = {
    "extenders": "60108 200015 200306 200328 200351 201266",
    "calm": "60132 451 201171 200987 200284",
    "churn": "60132 200045 201011",
    "estimators": "60132 200546 2013 930005 930069",
    "kinds": "200005 200182 200252 200941 930030 418",
    "contended": "1 3 9 13 16 18 21 39 40 54 55",
    "fair": "4 14",
    "plugins": "200031",
    "readers": "62 117 334 373",
    "workloads": "930034",
}
"""Seeds that have failed, or that a law was too strict for, by profile."""

_AIMS = 7


@pytest.mark.parametrize(
    ("seed", "profile"),
    [
        *product("123", generate.PROFILES),
        *product(map(str, range(_AIMS)), ["aimed"]),
        *product("18", ["started"]),
        *product("12", ["fair"]),
        *((seed, profile) for profile, seeds in _ONCE_FAILED.items() for seed in seeds.split()),
    ],
)
def test_a_seed_breaks_no_invariant(seed: str, profile: str) -> None:
    """Some seeds; `make simulate-faults` runs a hundred of each profile."""
    report = Run(plan_for(seed, profile)).execute()
    assert not report.violations, "\n".join(report.trace[-40:])


@pytest.mark.parametrize(
    ("seed", "profile"),
    [
        *product("1", generate_breadth.PROFILES),
        *product("5", generate_guard.PROFILES),
        *product(("5", "6", "7", "8", "910037"), ["answers"]),
    ],
)
def test_a_seed_breaks_no_invariant_and_repeats_itself(seed: str, profile: str) -> None:
    first, second = (Run(plan_for(seed, profile)).execute() for _ in range(2))
    assert not first.violations, "\n".join(first.trace[-40:])
    assert first.trace_hash == second.trace_hash


def test_strict_priority_writes_what_is_written_without_it_while_nobody_waits() -> None:
    steps = (
        *(
            Step(at=0.0, action="put_cluster", arguments={"name": name, "region": "", "cpu": 9})
            for name in ("m0", "m1")
        ),
        *(
            Step(
                at=2.0 + index,
                action="create_binding",
                arguments={
                    "name": f"b{index}",
                    "replicas": 3,
                    "strategy": "dynamic",
                    "cpu": "1",
                    "priority": index,
                },
            )
            for index in range(4)
        ),
        Step(at=20.0, action="scale", arguments={"name": "b1", "replicas": 1}),
    )
    setup = {"reports": True, "gates": {"PriorityBasedScheduling": True}}
    plugin: dict[str, dict[str, object]] = {"strict_priority": {}}
    plans = [
        Plan(seed="1", setup={**setup, **more}, steps=steps, faults_end=30.0, settle=100.0)
        for more in ({}, plugin)
    ]
    off, on = (Run(plan).execute() for plan in plans)
    assert not on.violations
    assert off.writes == on.writes > 0
    assert off.trace_hash == on.trace_hash


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.stem)
def test_a_saved_plan_breaks_no_invariant(path: Path) -> None:
    report = Run(load(path)).execute()
    assert not report.violations, "\n".join(report.trace[-40:])


def test_a_seed_repeats_itself_in_another_process_with_another_hash_seed() -> None:
    seeds = (("2", "guard"), ("1", "fail_back"), ("3", "workloads"))
    program = (
        "from tools.simulation.profiles import plan_for\n"
        "from tools.simulation.run import Run\n"
        f"print([Run(plan_for(*each)).execute().trace_hash for each in {seeds}])"
    )
    hashes = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True, text=True, check=True,
        ).stdout.strip()
        for seed in ("0", "7")
    }  # fmt: skip
    assert len(hashes) == 1


def test_a_plan_survives_its_json(tmp_path: Path) -> None:
    plan = plan_for("9", "churn")
    path = tmp_path / "plan.json"
    path.write_bytes(plan.json())
    assert load(path) == plan


def test_shrinking_keeps_what_is_needed_to_fail() -> None:
    plan = plan_for("9", "churn")
    needed = plan.steps[7]

    def fails(smaller: Plan) -> bool:
        return needed in smaller.steps

    small = shrink(plan, fails)
    assert (small.steps, small.faults, small.processes) == ((needed,), (), 1)


def test_a_torn_list_needs_no_time_outside_the_simulation() -> None:
    """A body that is no JSON is read in a thread, which would need real time."""
    torn = Fault(kind="torn", start=0.0, end=20.0, requests="LIST")
    step = Step(at=0.0, action="put_cluster", arguments={"name": "m0", "region": "", "cpu": 9})
    plan = Plan(seed="1", faults=(torn,), faults_end=20.0, settle=100.0, steps=(step,))
    threads = threading.active_count()
    first, second = Run(plan).execute(), Run(plan).execute()
    assert threading.active_count() == threads
    assert first.trace_hash == second.trace_hash
    assert not first.violations


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
