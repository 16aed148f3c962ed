"""A builder of Clusters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

from karmada_scheduler.api.cluster import API_VERSION, KIND, Cluster

SERVED_APIS: Mapping[str, Sequence[str]] = {
    "v1": ("ConfigMap", "Secret", "Service", "Pod"),
    "apps/v1": ("Deployment", "StatefulSet"),
    "batch/v1": ("Job",),
    "rbac.authorization.k8s.io/v1": ("ClusterRole",),
}


def quantities(amounts: Mapping[str, object]) -> dict[str, str]:
    """Return a resource list; ``ephemeral_storage`` is a Python name for its resource."""
    return {
        name.replace("ephemeral_storage", "ephemeral-storage"): str(amount)
        for name, amount in amounts.items()
    }


class ObjectBuilder:
    """The part of the builders that all objects have."""

    _api_version: str
    _kind: str
    _metadata: dict[str, Any]
    _spec: dict[str, Any]
    _status: dict[str, Any]

    def _set(self, part: dict[str, Any], /, **fields: Any) -> Self:
        part.update(fields)
        return self

    def _add(self, part: dict[str, Any], name: str, item: object) -> Self:
        part.setdefault(name, []).append(item)
        return self

    def labels(self, **labels: str) -> Self:
        """Add labels whose keys are Python names."""
        return self._set(self._metadata["labels"], **labels)

    def label(self, key: str, value: str = "") -> Self:
        """Add a label."""
        self._metadata["labels"][key] = value
        return self

    def generation(self, generation: int) -> Self:
        """Set the generation."""
        return self._set(self._metadata, generation=generation)

    def resource_version(self, version: str) -> Self:
        """Set the resourceVersion."""
        return self._set(self._metadata, resourceVersion=version)

    def deleting(self) -> Self:
        """Mark it as being deleted."""
        return self._set(self._metadata, deletionTimestamp="2026-01-01T00:00:00Z")

    def manifest(self) -> dict[str, Any]:
        """Return what the API server would send."""
        return {
            "apiVersion": self._api_version,
            "kind": self._kind,
            "metadata": self._metadata,
            "spec": self._spec,
            "status": self._status,
        }


class ClusterBuilder(ObjectBuilder):
    """Builds a Cluster; by default it is healthy and empty, has ample capacity, and serves ``SERVED_APIS``."""

    _api_version = API_VERSION
    _kind = KIND

    def __init__(self, name: str) -> None:
        self._metadata: dict[str, Any] = {"name": name, "uid": f"uid-{name}", "generation": 1, "labels": {}}
        self._spec: dict[str, Any] = {"syncMode": "Push"}
        self._status: dict[str, Any] = {
            "apiEnablements": [],
            "conditions": [{"type": "Ready", "status": "True"}],
        }
        self.serves(SERVED_APIS).capacity(cpu=1000, memory="1000Gi", pods=1000)

    def provider(self, name: str) -> Self:
        """Set the provider."""
        return self._set(self._spec, provider=name)

    def region(self, name: str) -> Self:
        """Set the region."""
        return self._set(self._spec, region=name)

    def zones(self, *names: str) -> Self:
        """Set the zones."""
        return self._set(self._spec, zones=list(names))

    def taint(self, written: str) -> Self:
        """Add a taint as kubectl writes it: ``key=value:effect`` or ``key:effect``."""
        left, _, effect = written.partition(":")
        key, _, value = left.partition("=")
        taint = {"key": key, "value": value, "effect": effect}
        return self._add(self._spec, "taints", {name: text for name, text in taint.items() if text})

    def serves(self, kinds_by_version: Mapping[str, Sequence[str]], *, complete: bool = True) -> Self:
        """Replace the list of APIs."""
        self._status["apiEnablements"] = [
            {
                "groupVersion": version,
                "resources": [{"name": f"{kind.lower()}s", "kind": kind} for kind in kinds],
            }
            for version, kinds in kinds_by_version.items()
        ]
        return self.condition("CompleteAPIEnablements", "True" if complete else "False")

    def capacity(self, *, pods: object = 1000, **amounts: object) -> Self:
        """Set the allocatable amounts, with none allocated: ``capacity(cpu=4, memory="8Gi")``."""
        allocatable = {"pods": str(pods)} | quantities(amounts)
        return self._set(self._status, resourceSummary={"allocatable": allocatable})

    def allocatable(self, amounts: Mapping[str, object]) -> Self:
        """Replace the allocatable amounts."""
        return self._set(self._status["resourceSummary"], allocatable=quantities(amounts))

    def allocated(self, amounts: Mapping[str, object]) -> Self:
        """Replace the allocated amounts."""
        return self._set(self._status["resourceSummary"], allocated=quantities(amounts))

    def allocating(self, amounts: Mapping[str, object]) -> Self:
        """Replace the amounts that pending pods request."""
        return self._set(self._status["resourceSummary"], allocating=quantities(amounts))

    def without_summary(self) -> Self:
        """Remove the resource summary, as before the first report of the status collector."""
        del self._status["resourceSummary"]
        return self

    def grade(self, grade: int, *, nodes: int | None, **minimums: object) -> Self:
        """Add a resource model and, unless it is None, the number of its nodes."""
        ranges = [{"name": name, "min": str(amount), "max": str(amount)} for name, amount in minimums.items()]
        self._spec.setdefault("resourceModels", []).append({"grade": grade, "ranges": ranges})
        return self if nodes is None else self.nodes(grade, nodes)

    def nodes(self, grade: int, count: int) -> Self:
        """Add the number of nodes of a grade."""
        nodes = {"grade": grade, "count": count}
        return self._add(self._status["resourceSummary"], "allocatableModelings", nodes)

    def ready_nodes(self, count: int) -> Self:
        """Set the number of nodes that are ready."""
        return self._set(self._status, nodeSummary={"readyNum": count})

    def condition(self, type_: str, status: str = "True") -> Self:
        """Set a condition: ``condition("Ready", "False")``."""
        others = [condition for condition in self._status["conditions"] if condition["type"] != type_]
        return self._set(self._status, conditions=[*others, {"type": type_, "status": status}])

    def sync_mode(self, mode: str) -> Self:
        """Set ``Push`` (the default) or ``Pull``."""
        return self._set(self._spec, syncMode=mode)

    def uid(self, uid: str) -> Self:
        """Set the uid."""
        return self._set(self._metadata, uid=uid)

    def build(self) -> Cluster:
        """Return the cluster."""
        return Cluster.from_manifest(self.manifest())


def cluster(name: str) -> ClusterBuilder:
    """Start a cluster."""
    return ClusterBuilder(name)
