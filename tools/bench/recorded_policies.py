"""The policies of the recorded fleet, with their placements."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Final

import orjson

from tools.bench.recording import ALIKE, REGIONS, Object, Sizes, cluster_name, recorded, uid

POLICIES: Final = 200
POLICY_ID: Final = {
    "PropagationPolicy": "propagationpolicy.karmada.io/permanent-id",
    "ClusterPropagationPolicy": "clusterpropagationpolicy.karmada.io/permanent-id",
}
_GO_ORDER: Final = (
    "clusterAffinity", "clusterTolerations", "spreadConstraints", "replicaScheduling",
)  # fmt: skip


def policies(kind: str, sizes: Sizes) -> Iterator[Object]:
    """Yield all policies of one kind."""
    base = recorded()["policy"]
    for number in range(POLICIES):
        if (kind == "ClusterPropagationPolicy") != is_cluster_policy(number):
            continue
        metadata = {
            **base["metadata"],
            "name": f"policy-{number:03d}",
            "uid": uid("policy", number),
            "labels": {POLICY_ID[kind]: uid("policy-id", number)},
            "resourceVersion": str(100 + number),
        }
        if kind == "ClusterPropagationPolicy":
            del metadata["namespace"]
        else:
            metadata["namespace"] = namespace_of(number)
        yield {
            **base,
            "kind": kind,
            "metadata": metadata,
            "spec": {**base["spec"], "placement": placement(number, sizes)},
        }


def is_cluster_policy(number: int) -> bool:
    return number % 10 == 9


def namespace_of(policy: int) -> str:
    return f"team-{policy:03d}"


@cache
def placement(policy: int, sizes: Sizes) -> Object:
    """Return the placement of a policy: a fifth name their clusters, the rest divide over those that they select."""
    base = recorded()["policy"]["spec"]["placement"]
    if policy % 5 == 4:
        return {
            "clusterAffinity": {
                "clusterNames": [cluster_name((policy + each * ALIKE) % sizes.clusters) for each in range(3)]
            },
            "clusterTolerations": base["clusterTolerations"],
            "replicaScheduling": {"replicaSchedulingType": "Duplicated"},
        }
    strategy = base["replicaScheduling"]
    if policy % 5 == 3:
        strategy = {"replicaDivisionPreference": "Aggregated", "replicaSchedulingType": "Divided"}
    regions = [f"region-{(policy + each) % REGIONS:02d}" for each in range(2 + policy % 3)]
    return {
        **base,
        "clusterAffinity": {
            "labelSelector": {"matchLabels": {"environment": "production"}},
            "fieldSelector": {"matchExpressions": [{"key": "region", "operator": "In", "values": regions}]},
        },
        "replicaScheduling": strategy,
    }


@cache
def applied_placement(policy: int, sizes: Sizes) -> str:
    """Write a placement as the annotation has it: Go's order of the fields."""
    found = placement(policy, sizes)
    ordered = {name: found[name] for name in _GO_ORDER if name in found}
    tolerations = [
        {name: each[name] for name in ("key", "operator", "effect", "tolerationSeconds")}
        for each in found["clusterTolerations"]
    ]
    ordered["clusterTolerations"] = tolerations
    if "spreadConstraints" in ordered:
        ordered["spreadConstraints"] = [
            {name: each[name] for name in ("spreadByField", "maxGroups", "minGroups")}
            for each in found["spreadConstraints"]
        ]
    strategy = found["replicaScheduling"]
    ordered["replicaScheduling"] = {
        name: strategy[name]
        for name in ("replicaSchedulingType", "replicaDivisionPreference", "weightPreference")
        if name in strategy
    }
    return orjson.dumps(ordered).decode()
