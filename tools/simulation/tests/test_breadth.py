"""The profiles with more around the schedulers: faults that apply."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import orjson
import pytest

from karmada_scheduler.api.binding import BindingKey
from tools.manifests import targets_of
from tools.simulation import generate_breadth, plugin_kit
from tools.simulation.coverage import never_occurred
from tools.simulation.estimators import ESTIMATOR_FAULTS
from tools.simulation.extenders import EXTENDER_FAULTS
from tools.simulation.faults import Faults
from tools.simulation.generate_breadth import PROFILES
from tools.simulation.plan import Fault, Plan, Step
from tools.simulation.plugin_kit import Scene
from tools.simulation.profiles import plan_for
from tools.simulation.run import Report, Run


@pytest.fixture(autouse=True)
def _no_scene() -> Iterator[None]:
    yield
    plugin_kit.enter(None)


def test_plans_of_a_seed_are_equal() -> None:
    for profile in PROFILES:
        assert plan_for("4", profile) == plan_for("4", profile)
        assert generate_breadth.plan_for("4", profile) == plan_for("4", profile)


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
