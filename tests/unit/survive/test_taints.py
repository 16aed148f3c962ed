"""What ClusterTaintPolicies do to lost clusters."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from karmada_advisor.whatif.survive.loss import taints_by_policies
from karmada_scheduler.api.matching import Taint
from karmada_scheduler.testing import cluster
from tests import commands
from tests.commands import Ran
from tests.unit.survive.test_command import _files

DOWN = {"key": "example.com/down", "effect": "NoExecute"}
NOT_READY = [{"conditionType": "Ready", "operator": "NotIn", "statusValues": ["True"]}]
CLUSTERS = [cluster("a").build(), cluster("b").sync_mode("Pull").build()]


def _policy(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "ClusterTaintPolicy",
        "metadata": {"name": "down"},
        "spec": {"addOnConditions": NOT_READY, "taints": [DOWN], **spec},
    }


def _clusters(*policies: dict[str, Any]) -> set[str]:
    return {*taints_by_policies(policies, CLUSTERS)}


@pytest.mark.parametrize(
    ("policy", "names"),
    [
        (_policy(), {"a", "b"}),
        (_policy(targetClusters={"clusterNames": ["b"]}), {"b"}),
        (_policy(addOnConditions=[]), set()),
        (_policy(addOnConditions=[{**NOT_READY[0], "operator": "In", "statusValues": ["False"]}]), {"a"}),
        (_policy(addOnConditions=[*NOT_READY, {**NOT_READY[0], "conditionType": "Unknown"}]), set()),
        (_policy(removeOnConditions=NOT_READY), set()),
    ],
)
def test_a_policy_adds_its_taints_to_the_clusters_that_have_all_its_conditions_once_lost(
    policy: dict[str, Any], names: set[str]
) -> None:
    assert _clusters(policy) == names


def test_the_first_policy_wins_a_key_and_an_effect() -> None:
    found = taints_by_policies(
        [_policy(taints=[{**DOWN, "value": "1"}]), _policy(taints=[{**DOWN, "value": "2"}])], CLUSTERS
    )
    assert found["a"] == (Taint("example.com/down", "1", "NoExecute"),)


def _run(folder: Path, *flags: str) -> Ran:
    (folder / "policies.json").write_text(json.dumps(_policy()))
    manager = folder / "manager.json"
    command = [
        "karmada-controller-manager",
        "--feature-gates=Failover=true",
        "--enable-no-execute-taint-eviction=true",
    ]
    manager.write_text(json.dumps({"kind": "Pod", "spec": {"containers": [{"command": command}]}}))
    files = [*_files(folder), f"--controller-manager={manager}", "--domain=cluster"]
    return commands.run("survive", *files, *flags)


def test_with_the_gate_and_the_flag_a_policy_evicts_without_hands(tmp_path: Path) -> None:
    without = _run(tmp_path, "a")
    assert "NOTHING would be evicted by itself: ClusterTaintPolicies are not known." in " ".join(
        without.out.split()
    )
    ran = _run(tmp_path, "a", f"--taint-policies={tmp_path / 'policies.json'}", "-o=json")
    assert "Evictions by itself: from 4 clusters, by ClusterTaintPolicies." in ran.fields["summary"]
    assert "(example.com/down)" in ran.fields["summary"]
    [domain] = ran.fields["domains"]
    assert domain["itself"]["counts"] == domain["chosen"]["counts"]
    assert domain["itself"]["dark"] == 1


def test_a_file_of_something_else_is_said_in_a_sentence(tmp_path: Path) -> None:
    ran = _run(tmp_path, f"--taint-policies={tmp_path / 'clusters.json'}")
    assert (ran.status, ran.out) == (2, "")
    assert "--taint-policies:" in ran.err
    assert "expected ClusterTaintPolicy, got 'Cluster'" in ran.err
