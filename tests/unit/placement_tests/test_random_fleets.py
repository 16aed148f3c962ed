"""Placement tests of random fleets, policies and events say what ``simulate`` and ``plan`` say: ``make check-placement-tests``.

The first decision has to be that of ``simulate --anew`` over the binding that Karmada's detector makes. After each event the
placement and the class have to be those of a plan over the objects as files would have them. Without a uid in the file, the
results have to be those that each of two uids gives. Clusters and placements are those of the fuzzer's generator.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import orjson
import pytest

from karmada_advisor.claims.claim import claim
from karmada_advisor.claims.model import TemplateWritten
from karmada_advisor.claims.template import read_template
from karmada_advisor.whatif.placement_tests.checking import refused
from karmada_advisor.whatif.placement_tests.model import (
    FilePlace,
    PlacementTestFile,
    ScenarioChange,
)
from karmada_advisor.whatif.placement_tests.running import CaseTries
from karmada_advisor.whatif.placement_tests.scenario import (
    NONE_ODD,
    UIDS,
    CaseClock,
    CaseState,
    Scenario,
    make_changes,
    objects_of,
    schedulers_named,
)
from karmada_advisor.whatif.plan.change import Draft
from karmada_advisor.whatif.plan.objects import ChangeError, PlanObjects
from karmada_advisor.whatif.plan.question import PlanInputs, known_of
from karmada_advisor.whatif.plan.result import binding_plan, make_plan
from karmada_scheduler.api.binding import DEFAULT_SCHEDULER_NAME, Binding
from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.dryrun.dry_run import DryRun
from karmada_scheduler.dryrun.forecast import Simulation, as_new
from karmada_scheduler.dryrun.objects import Frameworks, ShownObjects, Workloads
from karmada_scheduler.framework import Snapshot
from karmada_scheduler.structs import replace
from karmada_scheduler.testing import framework
from tests.cases import number_of_cases, seed_of
from tests.unit.plan import asking
from tools.check_frame import Progress
from tools.manifests import Manifest
from tools.oracle.generator.scenarios import scenarios

_NAMESPACE: Final = "shop"
_STEPS: Final = 3
_HERE: Final = FilePlace()
_CASES, _SEED = 12, 3


def test_placement_tests_say_what_simulate_and_plan_say(pytestconfig: pytest.Config) -> None:
    count = number_of_cases(pytestconfig, _CASES)
    counts, problems = compared(count, seed_of(pytestconfig, _SEED))
    print(f"{count} cases: {dict(counts)}")
    assert not problems, "\n".join(problems)
    assert counts["changed"], "no step changes a placement"
    assert counts["twice"], "no result depends on the uid"


def test_a_step_that_does_nothing_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CaseState, "step", lambda _state, _changes: None)
    assert any("; the plan (" in problem for problem in compared(_CASES, _SEED)[1])


def compared(count: int, seed: int) -> tuple[Counter[str], list[str]]:
    """Return what occurred in some cases, and what differs."""
    counts, problems, progress = Counter[str](), list[str](), Progress()
    for name, file, rng in itertools.islice(cases(seed), count):
        problems += [f"{name}: {difference}" for difference in differences(file, rng, counts)]
        if progress.is_due():
            print(f"{counts['steps']} steps, {len(problems)} differences")
    return counts, problems


def cases(seed: int) -> Iterator[tuple[str, PlacementTestFile, random.Random]]:
    """Yield files with one workload each; those whose policy Karmada refuses are left out."""
    for document in scenarios(seed, cases=10**9):
        for index, binding in enumerate(document["bindings"]):
            rng = random.Random(f"{seed}/{document.get('name', index)}/{index}")
            policy = _policy(binding["spec"].get("placement") or {})
            if refused(policy, None) is not None:
                continue
            yield f"{document.get('name', '')} {index}", _file(document["clusters"], policy, rng), rng


def _policy(placement: Mapping[str, Any]) -> Manifest:
    return {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "PropagationPolicy",
        "metadata": {"name": "web", "namespace": _NAMESPACE},
        "spec": {
            "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}],
            "placement": dict(placement),
        },
    }


def _file(clusters: Iterable[Manifest], policy: Manifest, rng: random.Random) -> PlacementTestFile:
    requests = {"cpu": f"{rng.choice((100, 250, 500))}m", "memory": rng.choice(("64Mi", "1Gi"))}
    template = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": _NAMESPACE, "uid": rng.choice(UIDS)},
        "spec": {
            "replicas": rng.choice((0, 1, 2, 3, 5, 8, 20, 300)),
            "template": {"spec": {"containers": [{"name": "web", "resources": {"requests": requests}}]}},
        },
    }
    unique = {each["metadata"]["name"]: each for each in clusters}
    return PlacementTestFile(
        "generated",
        "generated",
        tuple(unique.values()),
        (policy,),
        (template,),
        (),
        {},
        (),
    )


def _rules() -> DryRun:
    gates = FeatureGates()
    return DryRun(gates, ShownObjects(Workloads(None)), Frameworks.only(framework(gates=gates)))


def differences(file: PlacementTestFile, rng: random.Random, counts: Counter[str]) -> Iterator[str]:
    """Yield what differs in one case."""
    scenario = _scenario(file)
    state = CaseState.begin(scenario, NONE_ODD, (), None)
    first = _simulated(scenario.objects)
    placed = _clusters(state)
    counts["placed"] += bool(placed)
    if placed != first:
        yield f"the first decision is {placed}, that of simulate {first}"
    changes: list[ScenarioChange] = []
    for number in range(_STEPS):
        change = _change(state, rng)
        before = orjson.loads(orjson.dumps(_documents(state)))
        try:
            planned = _planned(before, change)
        except ChangeError:
            continue
        had = _clusters(state)
        changes.append(change)
        state.step((change,))
        counts["steps"] += 1
        placed = _clusters(state)
        counts["changed"] += placed != had
        expected = planned if planned is not None else (had, "unchanged")
        effect = _effect(state)
        if (placed, effect) != expected:
            yield f"step {number} ({change.word} {change.subject}) gives {placed}, {effect}; the plan {expected}"
    yield from _of_uids(file, changes, counts)


def _of_uids(
    file: PlacementTestFile, changes: Sequence[ScenarioChange], counts: Counter[str]
) -> Iterator[str]:
    """Yield what differs between the results without a uid in the file, and those with either of two uids in it."""
    with_uid = [_scenario(_named(file, {"uid": uid})) for uid in UIDS]
    expected = [CaseState.begin(each, NONE_ODD, (), None) for each in with_uid]
    tries = CaseTries(_scenario(_named(file, {})), (), None)
    states = tries.begin()
    for number, change in enumerate([None, *changes]):
        if change is not None:
            states = tries.step((change,))
            for each in expected:
                each.step((change,))
        results = [_result(each) for each in expected]
        counts["twice"] += len(states) - 1
        found = [_result(each) for each in states]
        if [found[0], found[-1]] != results:
            yield f"after step {number - 1} of {changes} there is {found} without a uid, {results} with one"


def _named(file: PlacementTestFile, metadata: Mapping[str, str]) -> PlacementTestFile:
    [template] = file.workloads
    named = {name: template["metadata"][name] for name in ("name", "namespace")}
    return replace(file, workloads=({**template, "metadata": {**named, **metadata}},))


def _result(state: CaseState) -> tuple[dict[str, int], str]:
    """Return where the only binding is, and what the last step did to it."""
    return _clusters(state), _effect(state)


def _effect(state: CaseState) -> str:
    """Return what the last step did to the only binding."""
    if state.what_if is None:
        return ""
    [(key, comparison)] = state.what_if.comparisons.items()
    return binding_plan(key, comparison, state.what_if.derived).effect.value


def _scenario(file: PlacementTestFile) -> Scenario:
    objects = objects_of(file)
    return Scenario(
        objects,
        known_of(objects),
        _rules(),
        CaseClock(),
        schedulers_named([DEFAULT_SCHEDULER_NAME]),
        PlanInputs(objects, Draft(objects), _rules(), _rules()).detector,
    )


def _simulated(objects: PlanObjects) -> dict[str, int]:
    """Return what ``simulate --anew`` does with the binding of the only template."""
    [template] = objects.templates.values()
    found = claim(
        [], (objects.policies or {}).values(), [], events=[TemplateWritten(read_template(template))]
    )
    [made] = [each.binding_after for each in found.templates.values()]
    assert made is not None
    rules = _rules()
    snapshot = Snapshot.of(known_of(objects).clusters.values())
    binding = as_new(Binding.from_manifest(made))
    rules.objects.show(snapshot, [binding])
    [result] = Simulation(rules, snapshot).run([binding])
    return {each.name: each.replicas for each in result.targets}


def _documents(state: CaseState) -> list[Mapping[str, Any]]:
    objects = state.objects
    return [
        *objects.clusters.values(),
        *objects.bindings.values(),
        *(objects.policies or {}).values(),
        *objects.templates.values(),
    ]


def _planned(documents: Iterable[Manifest], change: ScenarioChange) -> tuple[dict[str, int], str] | None:
    """Return where a plan puts the only binding, and its class; None if the plan leaves it as it is."""
    before = asking.objects_of(documents)
    draft = Draft(before)
    make_changes(draft, [change])
    rules = _rules()
    plan = make_plan(PlanInputs(before, draft, rules, rules, with_drift=False))
    return next(
        (({each.name: each.replicas for each in found.after}, found.effect.value) for found in plan.bindings),
        None,
    )


def _clusters(state: CaseState) -> dict[str, int]:
    [binding] = state.known.bindings.values()
    return {each.name: each.replicas for each in binding.spec.clusters}


def _change(state: CaseState, rng: random.Random) -> ScenarioChange:
    workload = f"{_NAMESPACE}/web"
    names = sorted(state.objects.clusters)
    used = [*_clusters(state)] or names
    words = (
        ["scale", "rebalance", "cordon", "without", "taint", "label", "room", "ready"] if names else ["scale"]
    )
    word = rng.choice(words)
    value: Any = {
        "scale": rng.choice((0, 1, 4, 9, 40)),
        "taint": rng.choice(("a=b:NoSchedule", "a=b:NoExecute")),
        "label": f"{rng.choice(('tier', 'kind'))}={rng.choice('ab')}",
        "room": f"cpu={rng.choice(('+', '-', ''))}{rng.choice((1, 4, 30))}",
        "ready": rng.random() < 0.5,
    }.get(word)
    subject = (
        workload
        if word in {"scale", "rebalance"}
        else rng.choice(used if rng.random() < 0.7 and used else names)
    )
    return ScenarioChange(word, subject, value, _HERE)
