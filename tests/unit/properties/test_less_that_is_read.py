"""From fewer files no command contradicts what it says from all of them: it says less, or what it has not read.

Random fleets have bindings of several schedulers, claimed by a policy, by a controller, or by nothing; policies, templates
and quotas may disagree with them. ``pytest --cases 300 --seed 5`` looks at other fleets.
"""

from __future__ import annotations

import json
import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from karmada_scheduler.api.well_known import MANAGED_BY_LABEL, POLICY_ID_LABEL
from karmada_scheduler.testing import BindingBuilder, binding, cluster
from tests.cases import number_of_cases, seed_of
from tests.commands import run

_CASES: Final = 4
_OPTIONAL: Final = ("policies", "workloads", "quotas")
_NAMED: Final = ("a FederatedResourceQuota refuses", "was not read", "no policies were read")
"""Notes that say which file an answer would need."""
_KINDS: Final = (
    ("apps/v1", "Deployment"),
    ("apps/v1", "StatefulSet"),
    ("batch/v1", "Job"),
    ("v1", "ConfigMap"),
)
_SCHEDULERS: Final = ("", "", "default-scheduler", "another")
_CLUSTERS: Final = ("m1", "m2", "m3")
_POLICY: Final = {"apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy"}

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
        files = _files(tmp_path, dice)
        for command in _commands(files["bindings"], dice):
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


def _commands(path: Path, dice: random.Random) -> Iterator[tuple[str, ...]]:
    items = json.loads(path.read_text())["items"]
    names = [each["metadata"]["name"] for each in items]
    for name in names:
        yield "explain", "-n=default", "--no-remedies", name
    for each in items:
        if "replicas" in each["spec"]:
            yield "plan", f"--scale=default/{each['metadata']['name']}={dice.randrange(9)}"
    yield "plan", f"--rebalance=default/{dice.choice(names)}"
    yield "plan", f"--without={dice.choice(_CLUSTERS)}"
    yield "plan", f"--taint={dice.choice(_CLUSTERS)}=a=b:NoExecute", "--enable-no-execute-taint-eviction"
    yield "survive", f"--loss={dice.choice(('gone', 'deleted'))}"
    yield "why-not", "-n=default", dice.choice(names), dice.choice(_CLUSTERS), "--max-runs=3"


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
    said: Statements = {}
    for each in found["bindings"]:
        is_recorded = "quota refused the last decision" in (each["held"] or {}).get("reason", "")
        is_judged = each["effect"] != "not-judged" and not is_recorded
        said[f"effect of {each['name']}"] = each["effect"] if is_judged else None
        said[f"{each['name']} after"] = each["after"] if is_judged else None
    for each in found["drift"]:
        said[f"drift of {each['name']}"] = each["after"]
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


def _files(folder: Path, dice: random.Random) -> dict[str, Path]:
    bindings = [_binding(number, dice) for number in range(dice.randrange(2, 6))]
    manifests = [each.manifest() for each in bindings]
    objects = {
        "clusters": [
            cluster(name).capacity(cpu=dice.choice((2, 6, 30)), pods=100).manifest() for name in _CLUSTERS
        ],
        "bindings": manifests,
        "policies": [_policy(each) for each in manifests if dice.random() < 0.7],
        "workloads": [_template(each, dice) for each in manifests if dice.random() < 0.8],
        "quotas": [_quota(dice)],
    }
    for name, items in objects.items():
        (folder / f"{name}.json").write_text(json.dumps({"kind": "List", "items": items}))
    return {name: folder / f"{name}.json" for name in objects}


def _binding(number: int, dice: random.Random) -> BindingBuilder:
    version, kind = dice.choice(_KINDS)
    made = (
        binding(f"w{number}").resource(version, kind, uid=f"{number:x}").scheduler(dice.choice(_SCHEDULERS))
    )
    made.manifest()["metadata"]["name"] = f"w{number}-{kind.lower()}"
    replicas = dice.randrange(1, 7) if kind != "ConfigMap" else 0
    if replicas:
        made.replicas(replicas, cpu="1")
    dice.choice((made.duplicated, made.aggregated, made.dynamic_weight))()
    made.names(*dice.sample(_CLUSTERS, dice.randrange(1, 4)))
    if dice.random() < 0.6:
        made.on(**dict.fromkeys(dice.sample(_CLUSTERS, dice.randrange(1, 3)), replicas))
        made.condition(type="Scheduled", status="True", reason="Success")
    if dice.random() < 0.5:
        made.applied().observed_generation(1)
    if dice.random() < 0.2:
        made.condition(type="Scheduled", status="False", reason="QuotaExceeded", message="too much")
    match dice.randrange(4):
        case 0:
            made.label(POLICY_ID_LABEL, "")
        case 1:
            made.label(POLICY_ID_LABEL, "").label(MANAGED_BY_LABEL, "MultiClusterService")
        case _:
            made.label(POLICY_ID_LABEL, f"id-w{number}")
            made.annotation("propagationpolicy.karmada.io/namespace", "default")
            made.annotation("propagationpolicy.karmada.io/name", f"w{number}")
    return made


def _policy(of: Manifest) -> Manifest:
    resource = of["spec"]["resource"]
    name = resource["name"]
    selector = {key: resource[key] for key in ("apiVersion", "kind", "name")}
    return {
        **_POLICY,
        "metadata": {"name": name, "namespace": "default", "labels": {POLICY_ID_LABEL: f"id-{name}"}},
        "spec": {"resourceSelectors": [selector], "placement": of["spec"]["placement"]},
    }


def _template(of: Manifest, dice: random.Random) -> Manifest:
    resource, spec = of["spec"]["resource"], of["spec"]
    replicas = spec.get("replicas", 0) if dice.random() < 0.8 else dice.randrange(9)
    fields = {"Job": ("parallelism", "completions"), "ConfigMap": ()}.get(resource["kind"], ("replicas",))
    return {
        "apiVersion": resource["apiVersion"],
        "kind": resource["kind"],
        "metadata": {"name": resource["name"], "namespace": "default"},
        "spec": dict.fromkeys(fields, replicas),
    }


def _quota(dice: random.Random) -> Manifest:
    cpu = str(dice.choice((1, 8, 100)))
    return {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "FederatedResourceQuota",
        "metadata": {"name": "all", "namespace": "default"},
        "spec": {"overall": {"cpu": cpu}},
        "status": {"overall": {"cpu": cpu}, "overallUsed": {"cpu": "0"}},
    }
