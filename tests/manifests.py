"""Manifests as the API server sends them, for tests of what reads them."""

from __future__ import annotations

from typing import Any

POLICY_LABEL = "propagationpolicy.karmada.io/permanent-id"


def binding(
    name: str = "web-deployment", *, version: int = 1, generation: int = 1, **spec: Any
) -> dict[str, Any]:
    """A ResourceBinding of a Deployment with 2 replicas, claimed by the policy ``p1``."""
    return {
        "apiVersion": "work.karmada.io/v1alpha2",
        "kind": "ResourceBinding",
        "metadata": {
            "name": name,
            "namespace": "demo",
            "uid": f"uid-{name}",
            "resourceVersion": str(version),
            "generation": generation,
            "labels": {POLICY_LABEL: "p1"},
        },
        "spec": {
            "resource": {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "demo", "name": "web"},
            "replicas": 2,
            "placement": {"clusterAffinity": {"clusterNames": ["m1", "m2"]}},
            "schedulerName": "ours",
            **spec,
        },
    }


def untemplated(namespace: str, name: str, *, uid: str, policy_id: str, **spec: Any) -> dict[str, Any]:
    """A claimed ResourceBinding of a Deployment that does not exist, so that nobody but a scheduler acts on it."""
    resource = {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": namespace, "name": name}
    return {
        "apiVersion": "work.karmada.io/v1alpha2",
        "kind": "ResourceBinding",
        "metadata": {"name": name, "namespace": namespace, "labels": {POLICY_LABEL: policy_id}},
        "spec": {"resource": {**resource, "uid": uid}, **spec},
    }


def cluster(name: str = "m1", *, version: int = 1, generation: int = 1, **metadata: Any) -> dict[str, Any]:
    """A Cluster with nothing but a name and what is given of its metadata."""
    return {
        "apiVersion": "cluster.karmada.io/v1alpha1",
        "kind": "Cluster",
        "metadata": {"name": name, "resourceVersion": str(version), "generation": generation, **metadata},
        "spec": {"syncMode": "Push"},
    }


def policy(
    name: str = "web", *, version: int = 1, generation: int = 1, policy_id: str = "p1"
) -> dict[str, Any]:
    """A PropagationPolicy with a permanent id."""
    return {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "PropagationPolicy",
        "metadata": {
            "name": name,
            "namespace": "demo",
            "resourceVersion": str(version),
            "generation": generation,
            "labels": {POLICY_LABEL: policy_id},
        },
        "spec": {"schedulerName": "ours"},
    }
