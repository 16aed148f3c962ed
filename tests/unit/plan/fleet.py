"""A fleet of 30 clusters in six regions, and 352 bindings of four policies: services, apac, batch and configuration."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from karmada_scheduler.api.well_known import CLUSTER_POLICY_ID_LABEL
from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.core.budget import run_sync
from karmada_scheduler.core.schedule import SchedulingAlgorithm
from karmada_scheduler.estimator.general import GeneralEstimator
from karmada_scheduler.testing import BindingBuilder, ClusterBuilder, binding, cluster, framework, snapshot

Manifest = dict[str, Any]

REGIONS = {"us-east": 8, "us-west": 5, "eu-west": 6, "eu-north": 5, "ap-south": 3, "ap-east": 3}
TEAMS = ("shop", "pay", "search", "media")

SERVICES: Mapping[str, Any] = {
    "clusterAffinity": {"labelSelector": {"matchLabels": {"tier": "prod"}}},
    "replicaScheduling": {
        "replicaSchedulingType": "Divided",
        "replicaDivisionPreference": "Weighted",
        "weightPreference": {"dynamicWeight": "AvailableReplicas"},
    },
    "spreadConstraints": [
        {"spreadByField": "region", "minGroups": 2, "maxGroups": 2},
        {"spreadByField": "cluster", "minGroups": 2, "maxGroups": 4},
    ],
}
APAC: Mapping[str, Any] = {
    **SERVICES,
    "clusterAffinity": {
        "fieldSelector": {
            "matchExpressions": [{"key": "region", "operator": "In", "values": ["ap-south", "ap-east"]}]
        }
    },
}
BATCH: Mapping[str, Any] = {
    "clusterAffinity": {"labelSelector": {"matchLabels": {"tier": "prod"}}},
    "replicaScheduling": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"},
}
CONFIG: Mapping[str, Any] = {
    "clusterAffinity": {"labelSelector": {"matchLabels": {"tier": "prod"}}},
    "replicaScheduling": {"replicaSchedulingType": "Duplicated"},
}
PLACEMENTS = {"prod-services": SERVICES, "prod-apac": APAC, "prod-batch": BATCH, "prod-config": CONFIG}


def clusters() -> list[ClusterBuilder]:
    """Return the clusters; their free capacity differs."""
    made: list[ClusterBuilder] = []
    for region, count in REGIONS.items():
        for number in range(1, count + 1):
            name = f"{region}-{number}"
            size = 100 + 37 * (len(made) % 7) + 11 * number
            made.append(
                cluster(name)
                .region(region)
                .labels(tier="prod")
                .capacity(cpu=size, memory=f"{4 * size}Gi", pods=5000)
            )
    return made


def policy(name: str, placement: Mapping[str, Any] | None = None, **spec: Any) -> Manifest:
    """Return a ClusterPropagationPolicy as the API server has it."""
    return {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "ClusterPropagationPolicy",
        "metadata": {"name": name, "uid": f"uid-{name}", "labels": {CLUSTER_POLICY_ID_LABEL: f"id-{name}"}},
        "spec": {
            "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": f"of-{name}"}],
            "placement": dict(PLACEMENTS[name] if placement is None else placement),
            **spec,
        },
    }


def policies() -> list[Manifest]:
    """Return the four policies; they select by label."""
    found = [policy(name) for name in PLACEMENTS]
    for each in found:
        each["spec"]["resourceSelectors"] = [selector(each["metadata"]["name"])]
    return found


def selector(name: str) -> Manifest:
    """Return the selector of the workloads of a policy."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "labelSelector": {"matchLabels": {"placement": name}},
    }


def bindings() -> list[BindingBuilder]:
    """Return the bindings, not placed yet."""
    made = []
    for number in range(140):
        made.append(
            _binding("services", number, "prod-services", 2 + 7 * number % 31, 0.25 * (1 + number % 5))
        )
    for number in range(22):
        made.append(_binding("apac", number, "prod-apac", 4 + 13 * number % 29, 0.25 * (1 + number % 3)))
    for number in range(130):
        made.append(_binding("batch", number, "prod-batch", 1 + 5 * number % 17, 0.5))
    for number in range(60):
        made.append(_binding("config", number, "prod-config", 0, 0))
    return made


def _binding(name: str, number: int, policy_name: str, replicas: int, cpu: float) -> BindingBuilder:
    made = binding(f"{name}-{number}", namespace=TEAMS[number % len(TEAMS)])
    if replicas:
        made.replicas(replicas, cpu=f"{round(cpu * 1000)}m", memory="512Mi")
    made.placement(json.loads(json.dumps(PLACEMENTS[policy_name])))
    return claimed(made, policy_name).uid(f"{number:08x}-0000-4000-8000-00000000000{number % 2}")


def claimed(made: BindingBuilder, policy_name: str) -> BindingBuilder:
    """Let a policy claim a binding."""
    manifest = made.manifest()
    manifest["metadata"]["labels"] = {CLUSTER_POLICY_ID_LABEL: f"id-{policy_name}"}
    return made.annotation("clusterpropagationpolicy.karmada.io/name", policy_name)


def placed(builders: Sequence[BindingBuilder], fleet: Sequence[ClusterBuilder]) -> list[Manifest]:
    """Return bindings as the scheduler has left them."""
    gates, clusters_now = FeatureGates(), snapshot(*fleet)
    algorithm = SchedulingAlgorithm(gates, (GeneralEstimator(gates),))
    plugins = framework(gates=gates)
    for made in builders:
        decision = run_sync(algorithm.decide(made.build(), clusters_now, plugins))
        if decision.targets:
            made.on(**{each.name: each.replicas for each in decision.targets})
        condition = {"type": "Scheduled", "status": "True", "reason": "Success"}
        if decision.error is not None:
            condition = {"type": "Scheduled", "status": "False", "reason": "Unschedulable"}
        made.applied().last_scheduled("2026-11-22T10:00:00Z").condition(**condition)
    return [made.manifest() for made in builders]


def write(folder: Path, **objects: Iterable[Manifest]) -> list[str]:
    """Write files of objects, and return the flags that name them."""
    arguments = []
    for name, items in objects.items():
        path = folder / f"{name}.json"
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(items)}))
        arguments += [f"--{name}", str(path)]
    return arguments
