"""Objects of each kind and changes of them, drawn at random, that a real API server accepts."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from tools.apiserver_model.kinds import Kind, Object


def manifest(kind: Kind, name: str, namespace: str, random: Random) -> Object:
    """Return an object without its status, complete enough to be accepted."""
    metadata: Object = {"name": name} if name else {}
    if kind.namespaced:
        metadata["namespace"] = namespace
    found: Object = {"apiVersion": kind.api_version, "kind": kind.name, "metadata": metadata}
    number = random.randint(1, 3)
    if kind.name.endswith("ResourceBinding"):
        resource = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name, "namespace": namespace}
        found["spec"] = {
            "resource": resource, "replicas": number, "schedulerName": "my-scheduler",
            "conflictResolution": "Abort", "placement": {"replicaScheduling": {"replicaSchedulingType": "Divided"}},
        }  # fmt: skip
    elif kind.name.endswith("PropagationPolicy"):
        found["spec"] = {
            "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment"}],
            "placement": {}, "priority": number, "schedulerName": "my-scheduler", "conflictResolution": "Abort",
            "preemption": "Never",
        }  # fmt: skip
    elif kind.name == "Cluster":
        found["spec"] = {"syncMode": "Pull", "id": f"id-{name}", "region": f"r{number}"}
    elif kind.name == "Lease":
        time = "2026-01-01T00:00:00.000000Z"
        found["spec"] = {"holderIdentity": f"h{number}", "leaseDurationSeconds": 15, "renewTime": time}
    elif kind.name == "Event":
        time = "2026-01-01T00:00:00Z"
        found |= {
            "involvedObject": {"kind": "ResourceBinding", "namespace": namespace, "name": "web"},
            "reason": "R", "message": "m", "type": "Normal", "source": {"component": "my-scheduler"},
            "firstTimestamp": time, "lastTimestamp": time, "count": number,
        }  # fmt: skip
    elif kind.name == "Service":
        found["spec"] = {"type": "ExternalName", "externalName": f"host{number}"}
    elif kind.name == "ConfigMap":
        found["data"] = {"key": f"value{number}"}
    elif kind.name == "Deployment":
        labels = {"app": "web"}
        containers = [{"name": "web", "image": "web"}]
        template = {"metadata": {"labels": labels}, "spec": {"containers": containers}}
        found["spec"] = {"replicas": number, "selector": {"matchLabels": labels}, "template": template}
    return found


def change_of(kind: Kind, random: Random) -> Object:
    """Return a merge patch of what a kind has besides metadata and status; it may change nothing."""
    number = random.randint(1, 3)
    changes: dict[str, Sequence[Object]] = {
        "PropagationPolicy": [{"spec": {"priority": number}}],
        "Cluster": [
            {"spec": {"region": f"r{number}"}},
            {"spec": {"region": None}},
            {"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}},
            {"spec": {"taints": None}},
        ],
        "Lease": [{"spec": {"holderIdentity": f"h{number}"}}, {"spec": {"leaseTransitions": number}}],
        "Event": [{"count": number}, {"message": f"m{number}"}],
        "Service": [{"spec": {"externalName": f"host{number}"}}],
        "ConfigMap": [{"data": {"key": f"value{number}"}}, {"data": {"other": None}}],
        "Deployment": [{"spec": {"replicas": number}}, {"spec": {"paused": True}}],
        "ResourceBinding": [
            {"spec": {"replicas": number}},
            {"spec": {"clusters": [{"name": "m1", "replicas": number}]}},
            {"spec": {"clusters": None}},
            {"spec": {"placement": {"clusterAffinity": {"clusterNames": ["m1", "m2"]}}}},
            {"spec": {"suspension": {"scheduling": random.choice([True, False, None])}}},
        ],
    }
    name = kind.name.removeprefix("Cluster") or "Cluster"
    return random.choice(changes[name])


def status_of(kind: Kind, random: Random) -> Object:
    """Return a status, or a merge patch of one."""
    number = random.randint(1, 3)
    if kind.name.endswith("ResourceBinding"):
        condition = {
            "type": "Scheduled", "status": random.choice(["True", "False"]), "reason": "R", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }  # fmt: skip
        return random.choice(
            [
                {"schedulerObservedGeneration": number},
                {"conditions": [condition]},
                {"lastScheduledTime": "2026-01-01T00:00:00Z"},
                {"conditions": None},
                {},
            ]
        )
    if kind.name == "Cluster":
        return {"kubernetesVersion": f"v1.{number}.0"}
    if kind.name == "Deployment":
        return {"observedGeneration": number, "replicas": number}
    return {"loadBalancer": {}} if kind.name == "Service" else {"conditions": None}
