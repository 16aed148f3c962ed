"""The scenarios of ``survive``, decided by the Go core on really tainted and really deleted clusters."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from karmada_advisor.whatif.plan.cluster_edits import NOT_READY
from karmada_advisor.whatif.survive.loss import UNREACHABLE
from karmada_scheduler.config.features import KNOWN
from tools.oracle.generator.scenarios import DECISION_GATES
from tools.oracle.program import Oracle, ensure

pytestmark = pytest.mark.e2e  # runs the real Go core

ROOT: Final = Path(__file__).parents[3]
FILES: Final = sorted((ROOT / "tests" / "unit" / "survive" / "scenarios").glob("*.yaml"))
TAINTS: Final = {
    "gone": [{"key": NOT_READY, "effect": "NoSchedule"}, {"key": UNREACHABLE, "effect": "NoExecute"}],
    "itself": [{"key": NOT_READY, "effect": "NoSchedule"}],
}
_STAYS: Final = frozenset({"not-evicted"})

Manifest = dict[str, Any]


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    with Oracle(ensure(), patience_seconds=30) as running:
        yield running


def _runs() -> list[Any]:
    """Return the runs that one decision per binding, of the plugins that Go has, can answer."""
    return [
        pytest.param(path, number, id=f"{path.stem}-{number}")
        for path in FILES
        for number, run in enumerate(yaml.safe_load(path.read_text())["runs"])
        if not run.get("guard") and not any("feature-gates" in flag for flag in run.get("flags", ()))
    ]


def _lost(cluster: Manifest, lost: str, loss: str) -> Manifest:
    if cluster["metadata"]["name"] != lost:
        return cluster
    if loss == "deleted":
        metadata = {
            "deletionTimestamp": "2026-11-26T10:00:00Z",
            "finalizers": ["karmada.io/cluster-controller"],
        }
        return {**cluster, "metadata": {**cluster["metadata"], **metadata}}
    return {**cluster, "spec": {**cluster["spec"], "taints": TAINTS[loss]}}


def _evicted(binding: Manifest, lost: str) -> Manifest:
    """Return a binding as the taint manager leaves it."""
    clusters = [each for each in binding["spec"]["clusters"] if each["name"] != lost]
    if len(clusters) == len(binding["spec"]["clusters"]):
        return binding
    task = {"fromCluster": lost, "reason": "TaintUntolerated", "producer": "taint-manager"}
    spec = {**binding["spec"], "clusters": clusters, "gracefulEvictionTasks": [task]}
    return {**binding, "spec": spec, "metadata": {**binding["metadata"], "generation": 2}}


@pytest.mark.parametrize(("path", "number"), _runs())
def test_the_go_core_decides_the_same(path: Path, number: int, oracle: Oracle) -> None:
    scenario = yaml.safe_load(path.read_text())
    run = scenario["runs"][number]
    loss = next((each.removeprefix("--loss=") for each in run.get("flags", ()) if "--loss" in each), "gone")
    names = {
        each["metadata"]["name"]: each["metadata"]["name"].removesuffix("-deployment")
        for each in scenario["bindings"]
    }
    bindings = [
        _evicted(each, run["lost"])
        if loss == "gone" and run["expected"][names[each["metadata"]["name"]]]["effect"] not in _STAYS
        else each
        for each in scenario["bindings"]
    ]
    results = oracle.decide(
        {
            "gates": {name: KNOWN[name].default for name in DECISION_GATES},
            "plugins": ["*"],
            "emptyWorkloadPropagation": False,
            "clusters": [_lost(each, run["lost"], loss) for each in scenario["clusters"]],
            "bindings": bindings,
        }
    )

    for binding, result in zip(bindings, results, strict=True):
        expected = run["expected"][names[binding["metadata"]["name"]]]
        found = dict(map(tuple, result["final"]["clusters"]))
        if expected["effect"] in _STAYS:
            assert found == {each["name"]: each["replicas"] for each in binding["spec"]["clusters"]}
        elif "after" in expected:
            assert {name: count for name, count in found.items() if name != run["lost"]} == expected["after"]
