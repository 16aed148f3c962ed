"""The profiles with more around the schedulers: seeds, saved plans, and faults that apply."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from karmada_scheduler.api.binding import BindingKey
from tools.simulation import generate_breadth, plugin_kit
from tools.simulation.coverage import never_occurred
from tools.simulation.decisions import targets_of
from tools.simulation.estimators import ESTIMATOR_FAULTS
from tools.simulation.extenders import EXTENDER_FAULTS
from tools.simulation.faults import Faults
from tools.simulation.generate_breadth import PROFILES
from tools.simulation.plan import Fault, Plan, Step, load
from tools.simulation.planted_breadth import BREADTH_BUGS
from tools.simulation.planted_bugs import PlantedBug
from tools.simulation.plugin_kit import Scene
from tools.simulation.profiles import plan_for
from tools.simulation.run import Report, Run

PLANS = sorted((Path(__file__).parents[1] / "plans").glob("*.json"))
"""Shrunk plans of bugs that were found and mended."""

_FOUND_BY = {
    "a refused Reserve stays reserved": ("1", "plugins"),
    "a failed filter refuses the cluster": ("24", "plugins"),
    "a failed extender refuses no cluster": ("2", "extenders"),
    "an unresponsive estimator is not asked again": ("16", "estimators"),
    "the page keeps what a list lacks": ("15", "readers"),
    "the page does not see a restore": ("55", "readers"),
    "the page does not count": ("55", "readers"),
    "a row of the page stays as it was": ("1", "readers"),
    "rows of the page do not follow their clusters": ("3", "readers"),
    "each record repeats the last one": ("2", "readers"),
    "the first record of a binding stays": ("2", "readers"),
    "changes of workloads are dropped": ("1", "workloads"),
    "deleted workloads stay": ("2", "workloads"),
    "workloads that come are dropped": ("3", "workloads"),
}
"""A seed and a profile that found each planted bug; it is tried first."""

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
_PLANNED = {"an unreadable cluster counts as gone": _UNREADABLE_AT_A_START}
"""Plans that find planted bugs which seeds find by chance only."""

_SEEDS = 60
"""Seeds of the profile that are tried until one finds a planted bug."""


@pytest.fixture(autouse=True)
def _no_scene() -> Iterator[None]:
    yield
    plugin_kit.enter(None)


_ONCE_FAILED = (
    ("60108", "extenders"),
    ("60132", "calm"),
    ("60132", "churn"),
    ("60132", "estimators"),
    ("200005", "kinds"),
    ("200015", "extenders"),
    ("200031", "plugins"),
    ("200045", "churn"),
    ("201011", "churn"),
    ("200182", "kinds"),
    ("200252", "kinds"),
    ("200306", "extenders"),
    ("200328", "extenders"),
    ("200351", "extenders"),
    ("451", "calm"),
    ("200941", "kinds"),
    ("201171", "calm"),
    ("201266", "extenders"),
    ("200987", "calm"),
    ("200284", "calm"),
    ("200546", "estimators"),
    ("2013", "estimators"),
    ("62", "readers"),
    ("117", "readers"),
    ("334", "readers"),
    ("373", "readers"),
)
"""Seeds that have failed; docs/measurements/simulation.md has the reasons."""


@pytest.mark.parametrize(("seed", "profile"), _ONCE_FAILED)
def test_a_seed_that_has_failed_breaks_no_invariant(seed: str, profile: str) -> None:
    report = Run(plan_for(seed, profile)).execute()
    assert not report.violations, "\n".join(report.trace[-40:])


@pytest.mark.parametrize("bug", BREADTH_BUGS, ids=lambda bug: bug.name)
def test_a_planted_bug_is_found(bug: PlantedBug) -> None:
    with bug.planted():
        assert any(
            bug.invariants & {each.invariant for each in Run(plan).execute().violations}
            for plan in _plans(bug)
        )


@pytest.mark.parametrize("plan", _PLANNED.values(), ids=_PLANNED)
def test_its_own_plan_breaks_no_invariant_without_the_bug(plan: Plan) -> None:
    assert not Run(plan).execute().violations


def _plans(bug: PlantedBug) -> Iterator[Plan]:
    if bug.name in _PLANNED:
        yield _PLANNED[bug.name]
        return
    seed, profile = _FOUND_BY[bug.name]
    for tried in (seed, *map(str, range(1, _SEEDS + 1))):
        yield plan_for(tried, profile)


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.stem)
def test_a_saved_plan_breaks_no_invariant(path: Path) -> None:
    report = Run(load(path)).execute()
    assert not report.violations, "\n".join(report.trace[-40:])


def test_plans_of_a_seed_are_equal() -> None:
    for profile in PROFILES:
        assert plan_for("4", profile) == plan_for("4", profile)
        assert generate_breadth.plan_for("4", profile) == plan_for("4", profile)


@pytest.mark.parametrize("profile", PROFILES)
def test_a_run_breaks_no_invariant_and_repeats_itself(profile: str) -> None:
    """One seed of each profile; `make simulate-faults` runs a hundred."""
    first, second = (Run(plan_for("1", profile)).execute() for _ in range(2))
    assert not first.violations, "\n".join(first.trace[-40:])
    assert first.trace_hash == second.trace_hash


def _with(setup: dict[str, object], *faults: Fault, steps: tuple[Step, ...] = ()) -> Report:
    """Run two bindings on two clusters, with faults for 30 seconds."""
    begin = [
        Step(at=0.0, action="put_cluster", arguments={"name": f"m{n}", "region": "", "cpu": 20})
        for n in (0, 1)
    ]
    for number in (3, 4):
        arguments = {"name": f"b{number}", "replicas": 2, "strategy": "duplicated"}
        begin.append(Step(at=3.0, action="create_binding", arguments=arguments))
    plan = Plan(seed="1", setup=setup, steps=(*begin, *steps), faults=faults, faults_end=30.0)
    return Run(plan).execute()


def _hits(report: Report) -> Counter[str]:
    found: Counter[str] = Counter()
    for (kind, _), number in report.faults.items():
        found[kind] += number
    return found


@pytest.mark.parametrize("kind", plugin_kit.PLUGIN_FAULTS)
def test_each_fault_of_plugins_applies(kind: str) -> None:
    files = ("bind_steps", "books", "reading", "region_filter", "reserver", "turnstile")
    fault = Fault(kind=kind, start=0.0, end=20.0, requests="plugin .*", share=0.3, value=2.5)
    report = _with({"plugins": files}, fault)
    assert _hits(report)[kind]
    assert not report.violations, "\n".join(report.trace[-40:])


@pytest.mark.parametrize("kind", EXTENDER_FAULTS)
def test_each_fault_of_extenders_applies(kind: str) -> None:
    entry = {"urlPrefix": "http://extender", "filterVerb": "filter", "httpTimeout": "1s"}
    value = {"extender_status": 500, "extender_body": "null", "extender_slow": 4.0}.get(kind)
    report = _with({"extenders": [entry]}, Fault(kind=kind, start=0.0, end=20.0, value=value))
    assert _hits(report)[kind]
    assert not report.violations, "\n".join(report.trace[-40:])


@pytest.mark.parametrize("policy", ["partial", "upstream"])
@pytest.mark.parametrize("kind", ESTIMATOR_FAULTS)
def test_each_fault_of_estimators_applies(kind: str, policy: str) -> None:
    report = _with({"estimators": policy}, Fault(kind=kind, start=2.0, end=20.0, value=-7))
    assert _hits(report)[kind]
    assert not report.violations, "\n".join(report.trace[-40:])


def test_a_front_end_is_late() -> None:
    lag = Step(at=1.0, action="lag_front_end", arguments={"server": 0, "seconds": 5.0})
    back = Step(at=20.0, action="lag_front_end", arguments={"server": 0, "seconds": 0.0})
    report = _with({"front_ends": 1}, steps=(lag, back))
    assert _hits(report)["front_end_late"]
    assert not report.violations


def test_a_decision_that_is_reserved_twice_is_reported() -> None:
    scene = Scene(0, Faults((), seed="1"), lambda: 0.0)
    plugin_kit.enter(scene)
    book = plugin_kit.new_book()
    book[BindingKey("ResourceBinding", "default", "b1")] += 1
    plugin_kit.report("twice")
    assert scene.books == [book]
    assert scene.problems == ["twice"]


def test_a_fault_that_never_applies_is_named() -> None:
    faults: Counter[str] = Counter(dict.fromkeys(plugin_kit.PLUGIN_FAULTS, 1))
    faults.update(("front_end_late",))
    assert "front_end_older" in never_occurred(["plugins"], faults, Counter())
    assert "plugin_raises" not in never_occurred(["plugins"], faults, Counter())
    assert "watch_cut" in never_occurred(["calm"], faults, Counter())
    assert "outage" in never_occurred(["calm"], faults, Counter())


def test_a_record_stays_that_of_the_decision_when_a_controller_takes_a_cluster_from_the_binding() -> None:
    """Without a policy, nobody decides about the binding again."""
    binding = {
        "name": "b7",
        "replicas": 5,
        "strategy": "static",
        "policy": "shop/p1",
        "groups": 0,
        "cpu": "2",
    }
    steps = (
        Step(at=0.0, action="put_cluster", arguments={"name": "m3", "region": "north", "cpu": 26}),
        Step(at=0.0, action="create_binding", arguments={**binding, "region": "south"}),
        Step(at=0.0, action="put_policy", arguments={"name": "shop/p1", "strategy": "dynamic"}),
        Step(at=14.0, action="delete_policy", arguments={"name": "shop/p1"}),
        Step(at=30.0, action="evict", arguments={"name": "b7"}),
    )
    setup = {"records": True, "fresh_first": {"delaySeconds": 1}}
    run = Run(Plan(seed="334", setup=setup, steps=steps, faults_end=40.0, settle=100.0))
    assert not run.execute().violations
    [binding_key] = run.judge._placed
    stored = run.model.state(binding_key.kind)[binding_key.namespace, binding_key.name]
    assert targets_of(orjson.loads(stored)) != run.judge._placed[binding_key].targets
