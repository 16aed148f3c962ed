"""The objects of a large installation, written as JSON in the shape of real ones.

``recorded.json`` holds a binding, a Cluster and a policy as a control plane of ``tools/controlplane`` stored them, with
managedFields and the status that Karmada's controllers wrote. Every object here is one of them under another name, with
other placements, targets and amounts.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, Final

import orjson

Object = dict[str, Any]

NEW_EVERY: Final = 100
"""Every hundredth binding was never scheduled."""
CLUSTER_SCOPED_EVERY: Final = 50

_POLICIES: Final = 200
_REGIONS: Final = 20
_BEGAN: Final = datetime(2026, 10, 1, tzinfo=UTC)
_ALIKE: Final = 8
"""Every eighth Cluster has the same room; among equals the order of names decides, so settled bindings stay so."""
_APPLIED: Final = "policy.karmada.io/applied-placement"
_POLICY_ID: Final = {
    "PropagationPolicy": "propagationpolicy.karmada.io/permanent-id",
    "ClusterPropagationPolicy": "clusterpropagationpolicy.karmada.io/permanent-id",
}
_GO_ORDER: Final = (
    "clusterAffinity", "clusterTolerations", "spreadConstraints", "replicaScheduling",
)  # fmt: skip


@cache
def recorded() -> Mapping[str, Object]:
    """Return the objects of the recording by ``binding``, ``cluster`` and ``policy``."""
    content: dict[str, Object] = orjson.loads(Path(__file__).with_name("recorded.json").read_bytes())
    return content


@dataclass(frozen=True, slots=True)
class Sizes:
    """How large the installation is."""

    bindings: int
    clusters: int

    @property
    def new(self) -> int:
        """How many bindings wait for their first decision."""
        return len(range(NEW_EVERY // 2, self.bindings, NEW_EVERY))


def is_new(number: int) -> bool:
    """Tell whether a binding is one of those that were never scheduled."""
    return number % NEW_EVERY == NEW_EVERY // 2


def cluster_name(number: int) -> str:
    return f"member-{number:04d}"


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
                "uid": _uid("cluster", number),
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
                "region": f"region-{number % _REGIONS:02d}",
                "zones": [f"region-{number % _REGIONS:02d}-{number % 3}"],
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
    used = 8 + (number + tick) % _ALIKE * 3
    return {"cpu": f"{used * 1000 + 250}m", "memory": f"{used * 3072}Mi", "pods": str(used * 5)}


def policies(kind: str, sizes: Sizes) -> Iterator[Object]:
    """Yield all policies of one kind."""
    base = recorded()["policy"]
    for number in range(_POLICIES):
        if (kind == "ClusterPropagationPolicy") != _is_cluster_policy(number):
            continue
        metadata = {
            **base["metadata"],
            "name": f"policy-{number:03d}",
            "uid": _uid("policy", number),
            "labels": {_POLICY_ID[kind]: _uid("policy-id", number)},
            "resourceVersion": str(100 + number),
        }
        if kind == "ClusterPropagationPolicy":
            del metadata["namespace"]
        else:
            metadata["namespace"] = _namespace(number)
        yield {
            **base,
            "kind": kind,
            "metadata": metadata,
            "spec": {**base["spec"], "placement": placement(number, sizes)},
        }


def _is_cluster_policy(number: int) -> bool:
    return number % 10 == 9


def _namespace(policy: int) -> str:
    return f"team-{policy:03d}"


@cache
def placement(policy: int, sizes: Sizes) -> Object:
    """Return the placement of a policy: a fifth name their clusters, the rest divide over those that they select."""
    base = recorded()["policy"]["spec"]["placement"]
    if policy % 5 == 4:
        return {
            "clusterAffinity": {
                "clusterNames": [cluster_name((policy + each * _ALIKE) % sizes.clusters) for each in range(3)]
            },
            "clusterTolerations": base["clusterTolerations"],
            "replicaScheduling": {"replicaSchedulingType": "Duplicated"},
        }
    strategy = base["replicaScheduling"]
    if policy % 5 == 3:
        strategy = {"replicaDivisionPreference": "Aggregated", "replicaSchedulingType": "Divided"}
    regions = [f"region-{(policy + each) % _REGIONS:02d}" for each in range(2 + policy % 3)]
    return {
        **base,
        "clusterAffinity": {
            "labelSelector": {"matchLabels": {"environment": "production"}},
            "fieldSelector": {"matchExpressions": [{"key": "region", "operator": "In", "values": regions}]},
        },
        "replicaScheduling": strategy,
    }


def bindings(kind: str, sizes: Sizes) -> Iterator[Object]:
    """Yield all bindings of one kind; one in fifty has no namespace, one in a hundred is new."""
    for number in range(sizes.bindings):
        if (kind == "ClusterResourceBinding") == (number % CLUSTER_SCOPED_EVERY == 7):
            yield _binding(kind, number, sizes)


def _binding(kind: str, number: int, sizes: Sizes) -> Object:
    base = recorded()["binding"]
    policy = number * 7 % _POLICIES
    policy_kind = "ClusterPropagationPolicy" if _is_cluster_policy(policy) else "PropagationPolicy"
    namespace, workload = _namespace(policy), f"service-{number:06d}"
    generation, new = 1 + number % 5, is_new(number)
    annotations = {"propagationpolicy.karmada.io/name": f"policy-{policy:03d}"}
    if policy_kind == "PropagationPolicy":
        annotations["propagationpolicy.karmada.io/namespace"] = _namespace(policy)
    managers = base["metadata"]["managedFields"]
    metadata = {
        **base["metadata"],
        "annotations": annotations,
        "generation": generation,
        "labels": {
            _POLICY_ID[policy_kind]: _uid("policy-id", policy),
            f"{kind.lower()}.karmada.io/permanent-id": _uid("permanent-id", number),
        },
        "managedFields": managers[:1] if new else managers,
        "name": f"{workload}-deployment",
        "namespace": namespace,
        "ownerReferences": [
            {**base["metadata"]["ownerReferences"][0], "name": workload, "uid": _uid("workload", number)}
        ],
        "resourceVersion": str(10_000 + number),
        "uid": _uid("binding", number),
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
            "uid": _uid("workload", number),
        },
    }
    found: Object = {**base, "kind": kind, "metadata": metadata, "spec": spec}
    if new:
        del spec["clusters"], found["status"]
        return found
    annotations[_APPLIED] = _applied(policy, sizes)
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


@cache
def _applied(policy: int, sizes: Sizes) -> str:
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


def _uid(what: str, number: int) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{what}/{number}"))
