"""Expressions that this scheduler does not know cost no binding its placement, in an edit and at a start."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.fake_apiserver import FakeApiServer, binding, cluster, start_scheduler, wait_for
from tests.fake_apiserver.objects import DUPLICATED, DYNAMIC, settled


def _label(**expression: Any) -> dict[str, Any]:
    return {"clusterAffinity": {"labelSelector": {"matchExpressions": [{"key": "zone", **expression}]}}}


def _field(**expression: Any) -> dict[str, Any]:
    return {"clusterAffinity": {"fieldSelector": {"matchExpressions": [expression]}}}


UNKNOWN = {
    "label-operator": _label(operator="Prefix", values=["a"]),
    "label-without-operator": _label(operator="", values=["a1"]),
    "label-value": _label(operator="In", values=["a 1"]),
    "match-labels": {"clusterAffinity": {"labelSelector": {"matchLabels": {"zone": "a*"}}}},
    "field-key": _field(key="continent", operator="NotIn", values=["eu"]),
    "field-operator": _field(key="region", operator="Prefix", values=["e"]),
    "zone-operator": _field(key="zone", operator="Prefix", values=["e"]),
    "toleration-operator": {"clusterTolerations": [{"key": "k", "operator": "Matches", "value": "v"}]},
    "toleration-effect": {"clusterTolerations": [{"key": "k", "operator": "Exists", "effect": "NoStart"}]},
    "second-term": {
        "clusterAffinities": [
            {"affinityName": "first", "clusterNames": ["moon"]},
            {"affinityName": "second", **_label(operator="Prefix", values=["a"])["clusterAffinity"]},
        ]
    },
    "first-term": {
        "clusterAffinities": [
            {"affinityName": "first", **_label(operator="Prefix", values=["a"])["clusterAffinity"]},
            {"affinityName": "second", "clusterNames": ["m1"]},
        ]
    },
}
WEIGHT = {
    "replicaSchedulingType": "Divided",
    "replicaDivisionPreference": "Weighted",
    "weightPreference": {
        "staticWeightList": [
            {"targetCluster": _label(operator="Prefix", values=["a"])["clusterAffinity"], "weight": 1}
        ]
    },
}
ON_BOTH = {"m1": 2, "m2": 2}


def _fill(server: FakeApiServer) -> None:
    taints = [{"key": "k", "value": "v", "effect": "NoExecute"}]
    server.put(cluster("m1", labels={"zone": "a1"}, taints=taints))
    server.put(cluster("m2", labels={"zone": "a1"}, region="eu", taints=taints))


def _edit(server: FakeApiServer, name: str, placement: dict[str, Any]) -> None:
    server.change("ResourceBinding", name, lambda found: found["spec"].update(placement=placement))


def _error(server: FakeApiServer, name: str) -> str:
    condition = server.condition(name)
    return str(condition["message"]) if condition.get("reason") == "SchedulerError" else ""


def test_an_edit_with_an_unknown_expression_leaves_the_placement(tmp_path: Path) -> None:
    divided = {"replicaScheduling": DYNAMIC}
    edits = {name: unknown | divided for name, unknown in UNKNOWN.items()}
    edits["static-weight"] = {"replicaScheduling": WEIGHT}
    with FakeApiServer() as server:
        _fill(server)
        for name in edits:
            server.put(settled(name, ON_BOTH, placement=divided))
        with start_scheduler(server, tmp_path) as scheduler:
            wait_for(lambda: server.lease().get("holderIdentity"), "the Lease", scheduler)
            for name, placement in edits.items():
                _edit(server, name, placement)
            for name in edits:
                wait_for(lambda: _error(server, name), f"the error of {name}", scheduler)  # noqa: B023
                assert server.targets(name) == ON_BOTH, name
                assert "spec.placement.cluster" in _error(server, name) or name == "static-weight"
                assert "no valid expression; the placement stays as it is" in _error(server, name)
            _edit(server, "label-operator", divided)
            wait_for(lambda: server.condition("label-operator").get("status") == "True", "success", scheduler)
            assert server.targets("label-operator") == ON_BOTH


def test_a_start_leaves_what_another_version_has_placed_by_an_expression_that_is_unknown_here(
    tmp_path: Path,
) -> None:
    """Duplicated bindings are decided at every start."""
    with FakeApiServer() as server:
        _fill(server)
        for name, unknown in UNKNOWN.items():
            placement = unknown | {"replicaScheduling": DUPLICATED}
            server.put(settled(name, ON_BOTH, replicas=2, placement=placement))
        with start_scheduler(server, tmp_path) as scheduler:
            for name in UNKNOWN:
                wait_for(lambda: _error(server, name), f"the error of {name}", scheduler)  # noqa: B023
            tolerant = {"clusterTolerations": [{"operator": "Exists"}]}
            server.put(binding("next", replicas=2, placement=tolerant))
            wait_for(lambda: server.targets("next"), "another binding", scheduler)
            assert {name: server.targets(name) for name in UNKNOWN} == dict.fromkeys(UNKNOWN, ON_BOTH)
