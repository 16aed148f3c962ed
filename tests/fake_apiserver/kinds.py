"""The served kinds, and the responses to discovery requests."""

from __future__ import annotations

from typing import Any, Final

Object = dict[str, Any]

KINDS: Final = {
    "Cluster": ("cluster.karmada.io/v1alpha1", "clusters", False),
    "ResourceBinding": ("work.karmada.io/v1alpha2", "resourcebindings", True),
    "ClusterResourceBinding": ("work.karmada.io/v1alpha2", "clusterresourcebindings", False),
    "PropagationPolicy": ("policy.karmada.io/v1alpha1", "propagationpolicies", True),
    "ClusterPropagationPolicy": ("policy.karmada.io/v1alpha1", "clusterpropagationpolicies", False),
    "Namespace": ("v1", "namespaces", False),
    "CustomResourceDefinition": ("apiextensions.k8s.io/v1", "customresourcedefinitions", False),
    "Lease": ("coordination.k8s.io/v1", "leases", True),
    "Event": ("v1", "events", True),
    "Service": ("v1", "services", True),
    "Deployment": ("apps/v1", "deployments", True),
}
"""API version, plural name, and whether objects have a namespace, by kind."""

BY_PLURAL: Final = {plural: kind for kind, (_, plural, _) in KINDS.items()}


def discovery(parts: list[str]) -> Object | None:
    """Return the response to a discovery request; None for another path."""
    groups: dict[str, str] = {}
    for version, _, _ in KINDS.values():
        if "/" in version:
            groups[version.split("/")[0]] = version
    if parts == ["api"]:
        return {"kind": "APIVersions", "versions": ["v1"]}
    if parts == ["apis"]:
        entries = [
            {"name": group, "versions": [served], "preferredVersion": served}
            for group, version in groups.items()
            for served in [{"groupVersion": version, "version": version.split("/")[1]}]
        ]
        return {"kind": "APIGroupList", "groups": entries}
    requested = "/".join(parts[1:])
    resources = [
        {
            "name": plural, "singularName": kind.lower(), "kind": kind, "namespaced": namespaced,
            "verbs": ["get", "list", "patch", "update", "watch", "create"],
        }
        for kind, (version, plural, namespaced) in KINDS.items()
        if version == requested
    ]  # fmt: skip
    return (
        {"kind": "APIResourceList", "groupVersion": requested, "resources": resources} if resources else None
    )
