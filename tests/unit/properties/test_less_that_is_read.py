"""From fewer files no command contradicts what it says from all of them: it says less, or what it has not read.

Random fleets have bindings of several schedulers, claimed by a policy, by a controller, or by nothing; policies, templates
and quotas may disagree with them: ``make check-what-was-read``.
"""

from __future__ import annotations

import json
import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from karmada_scheduler.api.well_known import CLUSTER_POLICY_ID_LABEL, MANAGED_BY_LABEL
from tests.cases import number_of_cases, seed_of
from tests.commands import run
from tests.unit.plan.fleet import policy
from tests.unit.plan.test_holds import quota
from tools.oracle.generator.scenarios import scenarios

_CASES: Final = 10
_OPTIONAL: Final = ("policies", "workloads", "quotas")
_NAMED: Final = (
    "was not read",
    "were not read",
    "no policies were read",
    "held with and without the change: a quota refused the last decision",
)
"""What notes say that name which file a whole answer needs, or the stored condition that counts without it."""
_SCHEDULERS: Final = ("", "", "default-scheduler", "another")

_SILENT: Final = "unchanged"
"""What a plan says of bindings that it does not list."""

Manifest = dict[str, Any]
Statements = dict[str, object]
"""What an answer states, by what it is about; None where it does not judge."""


def test_an_answer_from_fewer_files_contradicts_none_from_all(
    tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    first = seed_of(pytestconfig)
    for seed in range(first, first + number_of_cases(pytestconfig, _CASES)):
        dice = random.Random(seed)
        files = _files(tmp_path, seed, dice)
        for command in _commands(files, dice):
            left_out = dice.sample(_OPTIONAL, dice.randrange(1, 1 + len(_OPTIONAL)))
            wrong = [*_contradictions(command, files, left_out)]
            assert not wrong, f"seed {seed}: {command} {wrong}"


def _contradictions(
    command: Sequence[str], files: Mapping[str, Path], left_out: Collection[str]
) -> Iterator[str]:
    """Yield what a command says without some files, and otherwise with them."""
    whole = _asked(command, files)
    part = _asked(command, {name: path for name, path in files.items() if name not in left_out})
    if part is None or whole is None:
        return
    for name in part.keys() | whole.keys():
        said, known = part.get(name, _SILENT), whole.get(name, _SILENT)
        if said not in (known, None) and known is not None:
            yield f"{name}: {said}, and {known} with {', '.join(left_out)}"


def _asked(command: Sequence[str], files: Mapping[str, Path]) -> Statements | None:
    """Return what a command states; None if it says that it depends on what was not read."""
    flags = [
        f"--{name}={path}" for name, path in files.items() if (command[0], name) != ("survive", "quotas")
    ]
    ran = run(*command, *flags, "--output=json")
    is_open = any(text in note for note in json.loads(ran.out or "{}").get("notes", ()) for text in _NAMED)
    return None if is_open or not ran.out else _STATEMENTS[command[0]](ran.fields)


def _commands(files: Mapping[str, Path], dice: random.Random) -> Iterator[tuple[str, ...]]:
    clusters, items = (json.loads(files[name].read_text())["items"] for name in ("clusters", "bindings"))
    names = [each["metadata"]["name"] for each in items]
    cluster = dice.choice(clusters)["metadata"]["name"]
    for name in names:
        yield "explain", "-n=default", "--no-remedies", name
    for each in items:
        if "replicas" in each["spec"]:
            yield "plan", f"--scale=default/{each['metadata']['name']}={dice.randrange(9)}"
    yield "plan", f"--rebalance=default/{dice.choice(names)}"
    yield "plan", f"--without={cluster}"
    yield "plan", f"--taint={cluster}=a=b:NoExecute", "--enable-no-execute-taint-eviction"
    yield "survive", f"--loss={dice.choice(('gone', 'deleted'))}"
    yield "why-not", "-n=default", dice.choice(names), cluster, "--max-runs=3"


def _of_explain(found: Manifest) -> Statements:
    state, decided = found["state"], found["wouldBe"] or {}
    return {
        "clusters": state["clusters"],
        "state": _name_of(state),
        "outcome": decided.get("outcome"),
        "placement": decided.get("placement"),
    }


def _name_of(state: Manifest) -> str | None:
    # That a template wants something else denies nothing of what its binding has.
    return None if state["reason"] == "TemplateDiffers" else str(state["name"])


def _of_plan(found: Manifest) -> Statements:
    said: Statements = {f"drift of {each['name']}": each["after"] for each in found["drift"]}
    for each in found["bindings"]:
        effect = each["effect"]
        said[f"plan of {each['name']}"] = None if effect == "not-judged" else (effect, each["after"])
    if any("a FederatedResourceQuota refuses" in note for note in found["notes"]):
        for each in (*found["drift"], *found["bindings"]):
            said |= {f"drift of {each['name']}": None, f"plan of {each['name']}": None}
    return said


def _of_survive(found: Manifest) -> Statements:
    return {each["name"]: each["chosen"] for each in found["domains"]}


def _of_why_not(found: Manifest) -> Statements:
    return {"holds": found["holds"], "next": found["next"], "state": _name_of(found["state"])}


_STATEMENTS: Final = {
    "explain": _of_explain,
    "plan": _of_plan,
    "survive": _of_survive,
    "why-not": _of_why_not,
}


def _files(folder: Path, seed: int, dice: random.Random) -> dict[str, Path]:
    for document in scenarios(seed, cases=100):
        found = [each for each in document["bindings"] if each["metadata"].get("namespace") == "default"]
        if bindings := [_changed(each, dice) for each in found[:4]]:
            break
    objects = {
        "clusters": document["clusters"],
        "bindings": bindings,
        "policies": [_policy(each) for each in bindings if dice.random() < 0.7],
        "workloads": [_template(each, dice) for each in bindings if dice.random() < 0.8],
        "quotas": [quota(str(dice.choice((1, 8, 100))), "0")],
    }
    for name, items in objects.items():
        (folder / f"{name}.json").write_text(json.dumps({"kind": "List", "items": items}))
    return {name: folder / f"{name}.json" for name in objects}


def _changed(made: Manifest, dice: random.Random) -> Manifest:
    """Return a generated binding with a scheduler, a claim, and what the last decision has left."""
    name = made["metadata"]["name"]
    labels, annotations = {}, dict(made["metadata"].get("annotations") or {})
    match dice.randrange(4):
        case 0:
            labels[MANAGED_BY_LABEL] = "MultiClusterService"
        case 1 | 2:
            labels[CLUSTER_POLICY_ID_LABEL] = f"id-{name}"
            annotations["clusterpropagationpolicy.karmada.io/name"] = name
    status: Manifest = {"schedulerObservedGeneration": made["metadata"]["generation"]}
    if reason := dice.choice(("", "Success", "QuotaExceeded", "Unschedulable")):
        condition = {"type": "Scheduled", "status": str(reason == "Success"), "reason": reason}
        status["conditions"] = [{**condition, "message": "as it was"}]
    return {
        **made,
        "metadata": {**made["metadata"], "labels": labels, "annotations": annotations},
        "spec": {**made["spec"], "schedulerName": dice.choice(_SCHEDULERS)},
        "status": status if dice.random() < 0.7 else {},
    }


def _policy(of: Manifest) -> Manifest:
    spec = of["spec"]
    return policy(of["metadata"]["name"], spec.get("placement") or {}, resourceSelectors=[spec["resource"]])


def _template(of: Manifest, dice: random.Random) -> Manifest:
    resource, replicas = of["spec"]["resource"], of["spec"].get("replicas", 0)
    fields = ("parallelism", "completions") if resource["kind"] == "Job" else ("replicas",)
    return {
        "apiVersion": resource["apiVersion"],
        "kind": resource["kind"],
        "metadata": {"name": resource["name"], "namespace": "default"},
        "spec": dict.fromkeys(fields, replicas if dice.random() < 0.8 else dice.randrange(9)),
    }
