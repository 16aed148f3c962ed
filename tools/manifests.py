"""Manifests that the tools create on a control plane: Deployments with their policies, and ways to divide replicas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

Manifest = dict[str, Any]

DUPLICATED: Final[Manifest] = {"replicaSchedulingType": "Duplicated"}
AGGREGATED: Final[Manifest] = {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"}
WEIGHTED: Final[Manifest] = {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted"}
DYNAMIC: Final[Manifest] = {**WEIGHTED, "weightPreference": {"dynamicWeight": "AvailableReplicas"}}
CORDON: Final = {"key": "cluster.karmada.io/unschedulable", "effect": "NoSchedule"}


def static(weights: Mapping[tuple[str, ...], int]) -> Manifest:
    """Return a division by static weights of clusters by name."""
    listed = [
        {"targetCluster": {"clusterNames": list(names)}, "weight": weight}
        for names, weight in weights.items()
    ]
    return {**WEIGHTED, "weightPreference": {"staticWeightList": listed}}


def spread(field: str, least: int, most: int) -> Manifest:
    """Return a spread constraint."""
    return {"spreadByField": field, "minGroups": least, "maxGroups": most}


def placement(scheduling: Manifest, *constraints: Manifest, **more: Any) -> Manifest:
    """Return a placement; ``more`` are its further fields."""
    return {
        **more,
        "replicaScheduling": scheduling,
        **({"spreadConstraints": [*constraints]} if constraints else {}),
    }


def namespace(name: str, **metadata: Any) -> Manifest:
    """Return a Namespace."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, **metadata}}


def deployment(
    space: str,
    name: str,
    replicas: int,
    *,
    cpu: str = "500m",
    memory: str = "64Mi",
    labels: Mapping[str, str] | None = None,
) -> Manifest:
    """Return a Deployment of one container; ``labels`` are further ones of it, besides ``app``."""
    own = {"app": name}
    requests = {"cpu": cpu, "memory": memory}
    container = {"name": "web", "image": "nginx:1.29", "resources": {"requests": requests}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": space, "labels": {**own, **(labels or {})}},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": own},
            "template": {"metadata": {"labels": own}, "spec": {"containers": [container]}},
        },
    }


def policy(
    space: str,
    name: str,
    placement: Mapping[str, Any],
    *,
    scheduler: str | None = None,
    selector: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Manifest:
    """Return a PropagationPolicy, by default of the Deployment of the same name.

    Args:
        space: Its namespace.
        name: Its name.
        placement: Its placement.
        scheduler: Its schedulerName; None for not given.
        selector: What selects Deployments: a name, or labels; {} for all.
        spec: Further fields.
    """
    chosen = {"name": name} if selector is None else selector
    return {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "PropagationPolicy",
        "metadata": {"name": name, "namespace": space},
        "spec": {
            "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment", **chosen}],
            "placement": dict(placement),
            **({} if scheduler is None else {"schedulerName": scheduler}),
            **spec,
        },
    }


def targets_of(binding: Mapping[str, Any]) -> dict[str, int]:
    """Return the replicas of a stored binding by cluster."""
    return {each["name"]: each.get("replicas", 0) for each in binding["spec"].get("clusters") or ()}
