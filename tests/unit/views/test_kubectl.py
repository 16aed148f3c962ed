"""Commands that apply the patches of a remedy."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest

from karmada_advisor.explain.model import PolicyRef
from karmada_advisor.views.kubectl import patch_command

POLICY = PolicyRef("PropagationPolicy", "shop", "gold")
PLACEMENT = ({"op": "replace", "path": "/spec/placement/clusterAffinity/clusterNames/0", "value": "it's"},)


def _words(command: str) -> tuple[list[str], Any]:
    *words, patch = shlex.split(command)
    return words, json.loads(patch.removeprefix("--patch="))


def test_a_patch_of_a_cluster_is_one_of_the_cluster() -> None:
    patch = ({"op": "remove", "path": "/spec/taints/0"},)
    words, sent = _words(patch_command("Cluster", "", "m1", patch, POLICY))
    assert words == ["kubectl", "patch", "cluster.cluster.karmada.io", "m1", "--type=json"]
    assert sent == list(patch)


def test_a_patch_of_a_placement_is_one_of_the_policy_because_karmada_copies_it_from_there() -> None:
    words, sent = _words(patch_command("ResourceBinding", "shop", "web-deployment", PLACEMENT, POLICY))
    assert words == [
        "kubectl",
        "patch",
        "propagationpolicy.policy.karmada.io",
        "gold",
        "--namespace",
        "shop",
        "--type=json",
    ]
    assert sent == list(PLACEMENT)


def test_what_only_a_person_writes_in_a_binding_is_patched_there() -> None:
    patch = ({"op": "remove", "path": "/spec/suspension/scheduling"},)
    words, _ = _words(patch_command("ResourceBinding", "shop", "web-deployment", patch, POLICY))
    assert words[2:4] == ["resourcebinding.work.karmada.io", "web-deployment"]


@pytest.mark.parametrize(
    ("kind", "patch", "policy"),
    [
        ("ResourceBinding", PLACEMENT, None),
        ("ResourceBinding", ({"op": "replace", "path": "/spec/replicas", "value": 2},), POLICY),
        ("Cluster", ({"op": "replace", "path": "/status/resourceSummary", "value": {}},), POLICY),
        ("Cluster", (), POLICY),
        ("Deployment", ({"op": "replace", "path": "/spec/replicas", "value": 2},), POLICY),
    ],
)
def test_there_is_no_command_for_what_karmada_would_write_again(
    kind: str, patch: tuple[dict[str, Any], ...], policy: PolicyRef | None
) -> None:
    assert patch_command(kind, "shop", "web-deployment", patch, policy) == ""
