"""What a plan derives from a file, and what ``kubectl apply`` and ``kubectl apply --server-side`` then store of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from karmada_advisor.whatif.plan.versions import changed_fields
from tests.e2e.asking import Answer, Asking, reader
from tools.controlplane import ControlPlane, Object

POLICY = "/apis/policy.karmada.io/v1alpha1"
HOW = {
    "client": ("apply",),
    "server": ("apply", "--server-side", "--force-conflicts"),
    "create": ("create",),
}
FULL: Object = {
    "priority": 5,
    "suspension": {"dispatching": True},
    "failover": {"cluster": {"purgeMode": "Directly"}},
    "placement": {
        "clusterAffinity": {"exclude": ["real2"], "labelSelector": {"matchLabels": {"a": "b"}}},
        "clusterTolerations": [{"key": "a", "operator": "Exists"}],
        "spreadConstraints": [{"spreadByField": "cluster", "minGroups": 2, "maxGroups": 3}],
        "replicaScheduling": {
            "replicaSchedulingType": "Divided",
            "replicaDivisionPreference": "Weighted",
            "weightPreference": {"dynamicWeight": "AvailableReplicas"},
        },
    },
}
PLACEMENT = FULL["placement"]
NULLS: Object = {
    "priority": None,
    "suspension": None,
    "failover": {"cluster": None},
    "placement": dict.fromkeys(PLACEMENT),
}
NESTED: Object = {
    **FULL,
    "placement": {
        **PLACEMENT,
        "clusterAffinity": {"exclude": None, "labelSelector": None, "clusterNames": ["real1"]},
        "replicaScheduling": {**PLACEMENT["replicaScheduling"], "weightPreference": None},
    },
}
LESS: Object = {"placement": {"clusterAffinity": {"labelSelector": {"matchLabels": {"c": "d"}}}}}
CHANGES = {"nulls": NULLS, "nested": NESTED, "less": LESS}
CASES = {
    f"{first}-{side}-{name}": (first, side, FULL, spec)
    for name, spec in CHANGES.items()
    for first in HOW
    for side in ("client", "server")
} | {f"new-{side}": ("", side, {}, NULLS) for side in ("client", "server")}


@pytest.fixture
def cluster_policy(controlplane: ControlPlane, namespace: str) -> Iterator[str]:
    """The name of a ClusterPropagationPolicy, which is deleted at the end."""
    yield namespace
    controlplane.client.delete(f"{POLICY}/clusterpropagationpolicies/{namespace}")


def _policy(name: str, namespace: str, spec: Object, kind: str = "PropagationPolicy") -> Object:
    return {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": f"of-{name}"}],
            **spec,
        },
    }


def _write(plane: ControlPlane, policies: list[Object], how: str) -> None:
    plane.kubectl(*HOW[how], "--filename=-", stdin=yaml.safe_dump_all(policies))


def test_a_plan_has_what_each_side_of_kubectl_apply_stores(
    controlplane: ControlPlane, namespace: str, cluster_policy: str, tmp_path: Path
) -> None:
    for how in HOW:
        first = [_policy(name, namespace, full) for name, (by, _, full, _) in CASES.items() if by == how]
        _write(controlplane, first, how)
    listed = f"{POLICY}/namespaces/{namespace}/propagationpolicies"
    before = {each["metadata"]["name"]: each for each in controlplane.client.list(listed)}

    plans: dict[str, Answer] = {}
    for side in ("client", "server"):
        changed = [_policy(name, namespace, new) for name, (_, by, _, new) in CASES.items() if by == side]
        changed.append(_policy(cluster_policy, "kustomized", LESS, "ClusterPropagationPolicy"))
        file = tmp_path / f"{side}.yaml"
        file.write_text(yaml.safe_dump_all(changed))
        flags = (f"--filename={file}", f"--apply={side}", "--output=json", "--fail-on=none", "--no-drift")
        plans[side] = Asking(reader(controlplane), namespace).run("plan", *flags)
        assert plans[side].status == 0, plans[side].err
        _write(controlplane, changed, side)

    after = {each["metadata"]["name"]: each for each in controlplane.client.list(listed)}
    planned = {
        each["object"].rpartition("/")[2]: each for plan in plans.values() for each in plan.fields["changes"]
    }
    stored = {
        name: {each.path: (each.before, each.after) for each in changed_fields(before[name], after[name])}
        for name in CASES
        if name in before
    }
    assert {
        name: {each["path"]: (each.get("before"), each.get("after")) for each in planned[name]["fields"]}
        for name in stored
    } == stored
    assert f"+ ClusterPropagationPolicy/{cluster_policy}" in {
        f"{each['sign']} {each['object']}" for each in plans["client"].fields["changes"]
    }
    conflict = (
        f"{namespace}/create-server-less: kubectl apply --server-side refuses it without --force-conflicts"
    )
    assert any(
        conflict in note and "kubectl-create: spec" in note for note in plans["server"].fields["notes"]
    )
