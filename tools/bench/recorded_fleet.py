"""The objects of a large installation, written as JSON in the shape of real ones.

Every object is one of those in ``recording`` under another name, with other placements, targets and amounts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from tools.bench.recorded_policies import (
    POLICIES,
    POLICY_ID,
    applied_placement,
    is_cluster_policy,
    namespace_of,
    placement,
)
from tools.bench.recording import ALIKE, REGIONS, Object, Sizes, cluster_name, is_new, recorded, uid

CLUSTER_SCOPED_EVERY: Final = 50

_BEGAN: Final = datetime(2026, 10, 1, tzinfo=UTC)
_APPLIED: Final = "policy.karmada.io/applied-placement"


def clusters(sizes: Sizes) -> Iterator[Object]:
    """Yield all Clusters; three in four are for production."""
    base = recorded()["cluster"]
    models = base["spec"]["resourceModels"]
    for number in range(sizes.clusters):
        name = cluster_name(number)
        cores = 64 + number % 4 * 32
        yield {
            **base,
            "metadata": {
                **base["metadata"],
                "name": name,
                "uid": uid("cluster", number),
                "resourceVersion": str(1000 + number),
                "labels": {
                    "environment": "staging" if number % 4 == 3 else "production",
                    "tier": ("gold", "silver", "bronze")[number % 3],
                },
            },
            "spec": {
                **base["spec"],
                "apiEndpoint": f"https://{name}.example.com:6443",
                "secretRef": {"namespace": "karmada-cluster", "name": name},
                "provider": ("aws", "gcp", "azure")[number % 3],
                "region": f"region-{number % REGIONS:02d}",
                "zones": [f"region-{number % REGIONS:02d}-{number % 3}"],
            },
            "status": {
                **base["status"],
                "nodeSummary": {"totalNum": cores // 16, "readyNum": cores // 16},
                "resourceSummary": {
                    "allocatable": {
                        "cpu": str(cores),
                        "ephemeral-storage": f"{cores * 20}Gi",
                        "memory": f"{cores * 4}Gi",
                        "pods": str(cores * 7),
                    },
                    "allocating": {"cpu": "1", "memory": "1Gi", "pods": "1"},
                    "allocated": allocated(number, 0),
                    "allocatableModelings": [
                        {"grade": model["grade"], "count": cores // 64 if 2 <= model["grade"] <= 4 else 0}
                        for model in models
                    ],
                },
            },
        }


def allocated(number: int, tick: int) -> Object:
    """Return what is taken of a Cluster; it changes a little from tick to tick."""
    used = 8 + (number + tick) % ALIKE * 3
    return {"cpu": f"{used * 1000 + 250}m", "memory": f"{used * 3072}Mi", "pods": str(used * 5)}


def bindings(kind: str, sizes: Sizes) -> Iterator[Object]:
    """Yield all bindings of one kind; one in fifty has no namespace, one in a hundred is new."""
    for number in range(sizes.bindings):
        if (kind == "ClusterResourceBinding") == (number % CLUSTER_SCOPED_EVERY == 7):
            yield _binding(kind, number, sizes)


def _binding(kind: str, number: int, sizes: Sizes) -> Object:
    base = recorded()["binding"]
    policy = number * 7 % POLICIES
    policy_kind = "ClusterPropagationPolicy" if is_cluster_policy(policy) else "PropagationPolicy"
    namespace, workload = namespace_of(policy), f"service-{number:06d}"
    generation, new = 1 + number % 5, is_new(number)
    annotations = {"propagationpolicy.karmada.io/name": f"policy-{policy:03d}"}
    if policy_kind == "PropagationPolicy":
        annotations["propagationpolicy.karmada.io/namespace"] = namespace_of(policy)
    managers = base["metadata"]["managedFields"]
    metadata = {
        **base["metadata"],
        "annotations": annotations,
        "generation": generation,
        "labels": {
            POLICY_ID[policy_kind]: uid("policy-id", policy),
            f"{kind.lower()}.karmada.io/permanent-id": uid("permanent-id", number),
        },
        "managedFields": managers[:1] if new else managers,
        "name": f"{workload}-deployment",
        "namespace": namespace,
        "ownerReferences": [
            {**base["metadata"]["ownerReferences"][0], "name": workload, "uid": uid("workload", number)}
        ],
        "resourceVersion": str(10_000 + number),
        "uid": uid("binding", number),
    }
    if kind == "ClusterResourceBinding":
        del metadata["namespace"]
    spec = {
        **base["spec"],
        "placement": placement(policy, sizes),
        "replicaRequirements": {
            "resourceRequest": {"cpu": f"{100 + number % 10 * 50}m", "memory": f"{256 << number % 4}Mi"}
        },
        "replicas": _replicas(number),
        "resource": {
            **base["spec"]["resource"],
            "name": workload,
            "namespace": namespace,
            "resourceVersion": str(9_000_000 + number),
            "uid": uid("workload", number),
        },
    }
    found: Object = {**base, "kind": kind, "metadata": metadata, "spec": spec}
    if new:
        del spec["clusters"], found["status"]
        return found
    annotations[_APPLIED] = applied_placement(policy, sizes)
    targets = spec["clusters"] = _targets(number, policy, sizes)
    report = base["status"]["aggregatedStatus"][0]
    found["status"] = {
        **base["status"],
        "aggregatedStatus": [
            {
                **report,
                "clusterName": target["name"],
                "status": {**report["status"], **dict.fromkeys(_COUNTS, target["replicas"])},
            }
            for target in targets
        ],
        "schedulerObservedGeneration": generation,
        "lastScheduledTime": _moment(number),
        "conditions": [
            {**condition, "lastTransitionTime": _moment(number + each)}
            for each, condition in enumerate(base["status"]["conditions"])
        ],
    }
    return found


def _moment(number: int) -> str:
    """Return a time that hardly any other binding has."""
    return (_BEGAN + timedelta(seconds=number * 37 % 2_500_000)).strftime("%Y-%m-%dT%H:%M:%SZ")


_COUNTS: Final = ("availableReplicas", "readyReplicas", "replicas", "updatedReplicas")


def _replicas(number: int) -> int:
    return 6 + number % 5 * 3


def _targets(number: int, policy: int, sizes: Sizes) -> Sequence[Object]:
    """Return where a settled binding is: on what its placement names, or on two to five clusters."""
    replicas = _replicas(number)
    names = placement(policy, sizes)["clusterAffinity"].get("clusterNames")
    if names is not None:
        return [{"name": name, "replicas": replicas} for name in names]
    count = 2 + number % 4
    shares = [replicas // count + (each < replicas % count) for each in range(count)]
    return [
        {"name": cluster_name((number + each * 17) % sizes.clusters), "replicas": share}
        for each, share in enumerate(shares)
    ]
