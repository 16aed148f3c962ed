"""A fleet and bindings as people have them, for benchmarks: regions, tiers, cordoned clusters, a few kinds of policies."""

from __future__ import annotations

import json
from typing import Any

from tools.oracle.generator.rng import Random

Manifest = dict[str, Any]

_REGIONS = ("us-east", "us-west", "eu-west", "eu-north", "ap-south", "ap-east")
_APIS = [
    {"groupVersion": "apps/v1", "resources": [{"kind": "Deployment", "name": "deployments"}]},
    {"groupVersion": "v1", "resources": [{"kind": "ConfigMap", "name": "configmaps"}]},
]
_DYNAMIC = {
    "replicaSchedulingType": "Divided",
    "replicaDivisionPreference": "Weighted",
    "weightPreference": {"dynamicWeight": "AvailableReplicas"},
}
_AGGREGATED = {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"}
_PLACED_AT = "2026-11-01T00:00:00Z"


def draw_fleet(rng: Random, size: int) -> list[Manifest]:
    """Make clusters: most are ready, one in twenty is cordoned, and some have no region or an old CRD."""
    return [_cluster(rng, number) for number in range(size)]


def _cluster(rng: Random, number: int) -> Manifest:
    spec: Manifest = {"syncMode": "Push", "provider": "cloud"}
    region = rng.pick(_REGIONS)
    if rng.chance(0.97):
        spec["region"] = region
    if rng.chance(0.05):
        spec["taints"] = [{"key": "cluster.karmada.io/unschedulable", "effect": "NoSchedule"}]
    cpu = rng.pick((32, 64, 128, 256))
    used = int(cpu * rng.pick((0.3, 0.6, 0.9, 0.99)))
    return {
        "apiVersion": "cluster.karmada.io/v1alpha1",
        "kind": "Cluster",
        "metadata": {
            "name": f"{region}-{number}",
            "labels": {"tier": "prod" if rng.chance(0.8) else "staging", "gpu": str(rng.chance(0.1)).lower()},
        },
        "spec": spec,
        "status": {
            "apiEnablements": _APIS if rng.chance(0.98) else _APIS[1:],
            "resourceSummary": {
                "allocatable": {"cpu": str(cpu), "memory": f"{4 * cpu}Gi", "pods": str(4 * cpu)},
                "allocated": {"cpu": str(used), "memory": f"{4 * used}Gi", "pods": str(3 * used)},
            },
        },
    }


def draw_binding(rng: Random, number: int) -> Manifest:
    """Make a Deployment's binding that is not placed yet."""
    return {
        "apiVersion": "work.karmada.io/v1alpha2",
        "kind": "ResourceBinding",
        "metadata": {
            "namespace": "shop",
            "name": f"app-{number}-deployment",
            "generation": 1,
            "labels": {"propagationpolicy.karmada.io/permanent-id": f"policy-{number % 5}"},
        },
        "spec": {
            "resource": {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "namespace": "shop",
                "name": f"app-{number}",
                "uid": f"{rng.getrandbits(32):08x}-0000-4000-8000-000000000000",
            },
            "replicas": rng.pick((1, 3, 6, 24, 100)),
            "replicaRequirements": {
                "resourceRequest": {
                    "cpu": rng.pick(("100m", "500m", "2")),
                    "memory": rng.pick(("256Mi", "2Gi")),
                }
            },
            "placement": _placement(rng),
        },
        "status": {},
    }


def _placement(rng: Random) -> Manifest:
    selector = {"labelSelector": {"matchLabels": {"tier": "prod"}}}
    if rng.chance(0.2):
        selector["labelSelector"]["matchLabels"]["gpu"] = "true"
    constraints = [
        {"spreadByField": "region", "minGroups": 1 + rng.upto(1), "maxGroups": 2 + rng.upto(1)},
        {"spreadByField": "cluster", "minGroups": 2, "maxGroups": 3 + rng.upto(5)},
    ]
    strategy = rng.pick((_DYNAMIC, _DYNAMIC, _AGGREGATED, {"replicaSchedulingType": "Duplicated"}))
    spread = rng.pick((constraints, constraints[1:], []))
    return {
        "clusterAffinity": selector,
        **({"spreadConstraints": spread} if spread else {}),
        "replicaScheduling": strategy,
    }


def as_placed(binding: Manifest, clusters: list[Manifest]) -> Manifest:
    """Return a binding after its first scheduling."""
    placement = json.dumps(binding["spec"]["placement"])
    metadata = {**binding["metadata"], "annotations": {"policy.karmada.io/applied-placement": placement}}
    status = {"lastScheduledTime": _PLACED_AT, "schedulerObservedGeneration": 1}
    return {
        **binding,
        "metadata": metadata,
        "spec": {**binding["spec"], "clusters": clusters},
        "status": status,
    }
