"""Clusters, policies and bindings as a Karmada control plane stores them, in a line each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson

Object = dict[str, Any]

POLICY_ID: Final = "propagationpolicy.karmada.io/permanent-id"
DYNAMIC: Final[Object] = {
    "replicaSchedulingType": "Divided",
    "replicaDivisionPreference": "Weighted",
    "weightPreference": {"dynamicWeight": "AvailableReplicas"},
}
DUPLICATED: Final[Object] = {"replicaSchedulingType": "Duplicated"}


def cluster(
    name: str,
    *,
    labels: Mapping[str, str] | None = None,
    region: str = "",
    taints: Sequence[Object] = (),
    cpu: str = "100",
    memory: str = "400Gi",
    pods: str = "1000",
    apis: Sequence[tuple[str, str]] = (("apps/v1", "Deployment"),),
    **status: Any,
) -> Object:
    """Return a Cluster with available capacity that serves Deployments; ``status`` adds or replaces fields of its status."""
    enablements = [
        {"groupVersion": version, "resources": [{"kind": kind, "name": kind.lower() + "s"}]}
        for version, kind in apis
    ]
    return {
        "apiVersion": "cluster.karmada.io/v1alpha1",
        "kind": "Cluster",
        "metadata": {"name": name, "labels": dict(labels or {}), "generation": 1},
        "spec": {
            "syncMode": "Push",
            "id": f"id-of-{name}",
            **({"region": region} if region else {}),
            **({"taints": list(taints)} if taints else {}),
        },
        "status": {
            "kubernetesVersion": "v1.35.0",
            "apiEnablements": enablements,
            "conditions": [
                {"type": "Ready", "status": "True", "reason": "ClusterReady", "message": "",
                 "lastTransitionTime": "2026-01-01T00:00:00Z"},
                {"type": "CompleteAPIEnablements", "status": "True", "reason": "Collected", "message": "",
                 "lastTransitionTime": "2026-01-01T00:00:00Z"},
            ],
            "nodeSummary": {"totalNum": 10, "readyNum": 10},
            "resourceSummary": {
                "allocatable": {"cpu": cpu, "memory": memory, "pods": pods},
                "allocated": {"cpu": "0", "memory": "0", "pods": "0"},
            },
            **status,
        },
    }  # fmt: skip


def binding(
    name: str,
    *,
    namespace: str = "default",
    replicas: int = 1,
    placement: Object | None = None,
    clusters: Mapping[str, int] | None = None,
    requests: Mapping[str, str] | None = None,
    scheduler: str = "my-scheduler",
    labels: Mapping[str, str] | None = None,
    status: Object | None = None,
) -> Object:
    """Return a ResourceBinding of a Deployment that a policy claims.

    Args:
        name: Its name; the API server gives it a uid.
        namespace: Its namespace.
        replicas: Of the workload.
        placement: Of the policy; Divided by available replicas by default.
        clusters: Where it is: replicas by cluster name. None for not scheduled yet.
        requests: What one replica needs.
        scheduler: The ``schedulerName``.
        labels: In addition to the policy's id.
        status: Its status.
    """
    spec: Object = {
        "resource": {
            "apiVersion": "apps/v1", "kind": "Deployment", "name": name, "namespace": namespace,
            "uid": f"uid-of-{name}", "resourceVersion": "1",
        },
        "replicas": replicas,
        "schedulerName": scheduler,
        "placement": placement if placement is not None else {"replicaScheduling": dict(DYNAMIC)},
    }  # fmt: skip
    if requests:
        spec["replicaRequirements"] = {"resourceRequest": dict(requests)}
    if clusters is not None:
        spec["clusters"] = [{"name": each, "replicas": count} for each, count in clusters.items()]
    found: Object = {
        "apiVersion": "work.karmada.io/v1alpha2",
        "kind": "ResourceBinding",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "generation": 1,
            "labels": {POLICY_ID: "id-of-policy", **(labels or {})},
        },
        "spec": spec,
    }
    if status is not None:
        found["status"] = status
    return found


def deployment(
    name: str,
    *,
    namespace: str = "default",
    uid: str = "",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
) -> Object:
    """Return the Deployment that the binding of the same name names; ``uid`` is another one than the binding's."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": uid or f"uid-of-{name}",
            "labels": dict(labels or {}),
            "annotations": dict(annotations or {}),
        },
        "spec": {"replicas": 1},
    }


def settled(name: str, clusters: Mapping[str, int], **arguments: Any) -> Object:
    """Return a binding that was scheduled before, so that nothing is left to schedule.

    Args:
        name: Its name.
        clusters: Where it is.
        arguments: As for ``binding``. The placement must be written as Go writes it (field order), since the
            annotation repeats it.
    """
    found = binding(name, clusters=clusters, **{"replicas": sum(clusters.values()), **arguments})
    placement = orjson.dumps(found["spec"]["placement"]).decode()
    found["metadata"]["annotations"] = {"policy.karmada.io/applied-placement": placement}
    found["status"] = {
        "schedulerObservedGeneration": 1,
        "lastScheduledTime": "2026-01-01T00:00:00Z",
        "conditions": [
            {"type": "Scheduled", "status": "True", "reason": "Success",
             "message": "Binding has been scheduled successfully.",
             "lastTransitionTime": "2026-01-01T00:00:00Z"},
        ],
    }  # fmt: skip
    return found


def policy(name: str, *, namespace: str = "default", placement: Object | None = None) -> Object:
    """Return a PropagationPolicy with the id that ``binding`` carries."""
    return {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "PropagationPolicy",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "generation": 1,
            "labels": {POLICY_ID: "id-of-policy"},
        },
        "spec": {"placement": placement or {}, "resourceSelectors": []},
    }


def profile(*names: str, **plugins: Sequence[str]) -> str:
    """Return a configuration file: a profile per scheduler name, with the plugins enabled that ``plugins`` names.

    ``profile("my-scheduler", "other", other=["Sleeper"])`` gives ``other`` a plugin more.
    """
    profiles = [
        {
            "schedulerName": name,
            **(
                {"plugins": {"multiPoint": {"enabled": [{"name": each} for each in plugins[name]]}}}
                if name in plugins
                else {}
            ),
        }
        for name in names
    ]
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": profiles,
    }
    return orjson.dumps(document).decode()


def nested(depth: int) -> bytes:
    """Return a JSON object that is so many levels deep."""
    return b'{"a":' * depth + b"1" + b"}" * depth


def manifest_text(found: Object, **replaced: bytes) -> bytes:
    """Return an object as JSON in which the strings ``"@name"`` are replaced by raw JSON.

    ``manifest_text(binding("deep", status={"x": "@deep"}), deep=nested(3000))`` makes JSON that no Python encoder writes.
    """
    text = orjson.dumps(found)
    for name, raw in replaced.items():
        text = text.replace(f'"@{name}"'.encode(), raw)
    return text
