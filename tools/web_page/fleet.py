"""Files of a generated fleet, as ``kubectl get -o json`` writes them: clusters and bindings with their status."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Object = dict[str, Any]

REGIONS = 30
CORDON = {"key": "cluster.karmada.io/unschedulable", "effect": "NoSchedule"}


def write(folder: Path, *, clusters: int, bindings: int, seed: int = 1) -> tuple[Path, Path]:
    """Write both files; return their paths."""
    chance = random.Random(seed)
    names = [f"member-{number:04}" for number in range(clusters)]
    items = [_cluster(name, number, chance) for number, name in enumerate(names)]
    paths = folder / f"clusters-{clusters}.json", folder / f"bindings-{bindings}.json"
    paths[0].write_text(_list("ClusterList", "cluster.karmada.io/v1alpha1", items))
    found = [_binding(number, names, chance) for number in range(bindings)]
    paths[1].write_text(_list("ResourceBindingList", "work.karmada.io/v1alpha2", found))
    return paths


def _list(kind: str, api_version: str, items: list[Object]) -> str:
    return json.dumps({"apiVersion": api_version, "kind": kind, "items": items})


def _cluster(name: str, number: int, chance: random.Random) -> Object:
    cpu, share = chance.choice((64, 128, 256)), chance.betavariate(3, 2)
    ready = chance.random() > 0.01
    return {
        "metadata": {
            "name": name,
            "uid": f"u-{name}",
            "resourceVersion": str(1000 + number),
            "generation": 1,
            "labels": {"tier": chance.choice(("prod", "prod", "staging"))},
        },
        "spec": {
            "syncMode": "Push",
            "region": f"region-{number % REGIONS:02}",
            "provider": chance.choice(("ash", "oak")),
            "taints": [CORDON] if chance.random() < 0.04 else [],
        },
        "status": {
            "apiEnablements": [
                {"groupVersion": "apps/v1", "resources": [{"kind": "Deployment", "name": "deployments"}]}
            ],
            "conditions": [
                {
                    "type": "Ready",
                    "status": "True" if ready else "False",
                    "reason": "ClusterReady" if ready else "ClusterNotReachable",
                    "message": "",
                }
            ],
            "resourceSummary": {
                "allocatable": {"cpu": str(cpu), "memory": f"{4 * cpu}Gi", "pods": "1100"},
                "allocated": {
                    "cpu": f"{int(1000 * cpu * share)}m",
                    "memory": f"{int(4 * cpu * share * chance.uniform(0.5, 1))}Gi",
                    "pods": str(int(1100 * share * 0.7)),
                },
            },
        },
    }


def _binding(number: int, names: list[str], chance: random.Random) -> Object:
    name, namespace = f"app-{number:05}", f"team-{number % 40:02}"
    replicas = chance.randrange(2, 40)
    is_placed = number % 25 != 0
    chosen = sorted(chance.sample(names, min(3, len(names)))) if is_placed else []
    left = [replicas // len(chosen) + (index < replicas % len(chosen)) for index in range(len(chosen))]
    affinity: Mapping[str, Any] = {
        "labelSelector": {"matchLabels": {"tier": "prod" if is_placed else "gone"}}
    }
    placement = {
        "clusterAffinity": affinity,
        "replicaScheduling": {
            "replicaSchedulingType": "Divided",
            "replicaDivisionPreference": "Weighted",
            "weightPreference": {"dynamicWeight": "AvailableReplicas"},
        },
        "spreadConstraints": [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 3}],
    }
    condition = {
        "type": "Scheduled",
        "status": "True" if is_placed else "False",
        "reason": "Success" if is_placed else "NoClusterFit",
        "message": "Binding has been scheduled successfully."
        if is_placed
        else f"0/{len(names)} clusters are available: {len(names)} cluster(s) did not match the placement.",
        "lastTransitionTime": "2026-11-22T10:00:00Z",
    }
    return {
        "metadata": {
            "name": f"{name}-deployment",
            "namespace": namespace,
            "uid": f"b-{name}",
            "resourceVersion": str(2000 + number),
            "generation": 2,
            "labels": {"propagationpolicy.karmada.io/permanent-id": f"policy-{number % 60}"},
            "annotations": {
                "propagationpolicy.karmada.io/namespace": namespace,
                "propagationpolicy.karmada.io/name": f"policy-{number % 60}",
                "policy.karmada.io/applied-placement": json.dumps(placement),
            },
        },
        "spec": {
            "resource": {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "namespace": namespace,
                "name": name,
                "uid": f"t-{name}",
            },
            "replicas": replicas,
            "replicaRequirements": {"resourceRequest": {"cpu": "250m", "memory": "512Mi"}},
            "placement": placement,
            "clusters": [{"name": each, "replicas": count} for each, count in zip(chosen, left, strict=True)],
        },
        "status": {
            "schedulerObservedGeneration": 2,
            "lastScheduledTime": f"2026-11-22T10:{number // 60 % 60:02}:{number % 60:02}Z",
            "conditions": [condition],
        },
    }
