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


EVICTING = ["--feature-gates=Failover=true", "--enable-no-execute-taint-eviction=true"]


def _run(
    folder: Path, *flags: str, policy: dict[str, Any] | None = None, manager: list[str] = EVICTING
) -> Ran:
    container = {"command": ["karmada-controller-manager", *manager]}
    files = {"manager": {"kind": "Pod", "spec": {"containers": [container]}}, "policies": policy or {}}
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    given = [f"--taint-policies={folder / 'policies.json'}"] if policy else []
    flags = (f"--controller-manager={folder / 'manager.json'}", "--domain=cluster", *given, *flags)
    return commands.run("survive", *_files(folder), *flags)


def test_with_the_gate_and_the_flag_a_policy_evicts_without_hands(tmp_path: Path) -> None:
    without = " ".join(_run(tmp_path, "a").out.split())
    assert (
        "What would be evicted by itself is not known: ClusterTaintPolicies were not read (--taint-policies)."
        in without
    )
    ran = _run(tmp_path, "a", "-o=json", policy=_policy())
    assert "Evictions by itself: from 4 clusters, by ClusterTaintPolicies." in ran.fields["summary"]
    assert "(example.com/down)" in ran.fields["summary"]
    [domain] = ran.fields["domains"]
    assert domain["itself"]["counts"] == domain["chosen"]["counts"]
    assert domain["itself"]["dark"] == 1


_FLAGS = " ".join(EVICTING)
_ANOTHER = "a ClusterTaintPolicy with a NoExecute taint for clusters that are not ready"


@pytest.mark.parametrize(
    ("policy", "manager", "asked_for", "not_asked_for"),
    [
        (None, [], [_FLAGS, f"{_ANOTHER}, unless there is one (--taint-policies)"], []),
        (None, EVICTING, [f"{_ANOTHER}, unless there is one (--taint-policies)"], [_FLAGS]),
        (_policy(), [], [_FLAGS], [_ANOTHER]),
        (_policy(targetClusters={"clusterNames": ["b"]}), EVICTING, [_ANOTHER], [_FLAGS, "unless"]),
        (_policy(targetClusters={"clusterNames": ["a", "c"]}), EVICTING[:1], [EVICTING[1]], [_ANOTHER]),
        (_policy(), EVICTING, [], [_FLAGS, _ANOTHER]),
    ],
)
def test_what_evictions_lack_is_asked_for_and_nothing_that_is_there(
    policy: dict[str, Any] | None,
    manager: list[str],
    asked_for: list[str],
    not_asked_for: list[str],
    tmp_path: Path,
) -> None:
    found = " ".join(_run(tmp_path, policy=policy, manager=manager).out.split())

    assert [text for text in asked_for if text not in found] == []
    assert [text for text in not_asked_for if text in found] == []


def test_a_file_of_something_else_is_said_in_a_sentence(tmp_path: Path) -> None:
    ran = _run(tmp_path, f"--taint-policies={tmp_path / 'clusters.json'}")
    assert (ran.status, ran.out) == (2, "")
    assert "--taint-policies:" in ran.err
    assert "expected ClusterTaintPolicy, got 'Cluster'" in ran.err
