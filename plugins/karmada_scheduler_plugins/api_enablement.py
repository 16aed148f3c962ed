"""APIEnablement: refuse clusters that do not serve the binding's kind."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from functools import lru_cache
from typing import Any, Final

from karmada_scheduler.api.binding import ObjectReference
from karmada_scheduler.api.names import nearest
from karmada_scheduler.framework import (
    SUCCESS,
    Cluster,
    Cycle,
    Edit,
    EditContext,
    Evidence,
    EvidenceContext,
    FilterContext,
    Result,
    Snapshot,
)

_COMPLETE: Final = "CompleteAPIEnablements"

_NOT_SERVED: Final = Result.unschedulable("cluster(s) did not have the API resource")


class APIEnablement:
    """Filter by the API list that a cluster reports.

    A cluster that already has the binding passes, whatever it reports. An incomplete list counts like a complete one:
    kinds that are not in it are not served.
    """

    name = "APIEnablement"
    filter_key_covers_current = True
    free_of_side_effects = True
    codes: Final = {
        "ApiListIncomplete": "the cluster does not list the kind, and its list of APIs is incomplete",
        "ApiMissing": "the cluster does not serve the kind",
    }

    def filter_key(self, cycle: Cycle, /) -> Hashable:
        """Depends on the kind of the resource."""
        resource = cycle.binding.spec.resource
        return resource.api_version, resource.kind

    def filter(self, context: FilterContext, /) -> Result:
        """Refuse a cluster whose API list lacks the resource's group version and kind."""
        cycle, cluster = context.cycle, context.cluster
        resource = cycle.binding.spec.resource
        if (_group_version(resource.api_version), resource.kind) in cluster.api_kinds:
            return SUCCESS
        return SUCCESS if cluster.name in cycle.current_clusters else _NOT_SERVED

    def evidence(self, context: EvidenceContext, /) -> Evidence:
        """Return what is asked for, which clusters serve it, and the versions that this one serves."""
        cycle, cluster = context.cycle, context.cluster
        resource = cycle.binding.spec.resource
        condition = cluster.condition(_COMPLETE)
        incomplete = condition is not None and condition.status != "True"
        clause = "API list incomplete" if incomplete else "API missing"
        served_by = _serving(cycle.snapshot, resource.api_version, resource.kind)
        fields: dict[str, Any] = {
            "clause": clause,
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "servedBy": list(served_by),
            "incomplete": incomplete,
        }
        by = f"served by {', '.join(served_by[:5])}" if served_by else "served by no cluster"
        text = f"{resource.api_version} {resource.kind} is not in its list of APIs ({by})"
        if others := sorted(_served_versions(cluster, resource)):
            fields["otherVersions"] = others
            text = f"{text}, but {', '.join(others)} is"
        if condition is not None and incomplete:
            fields["condition"] = f"{condition.type}={condition.status} {condition.reason}".strip()
            text = f"{text}; the list is incomplete"
        code = "ApiListIncomplete" if incomplete else "ApiMissing"
        return Evidence(code, clause, fields, text, "API missing")

    def edits(self, context: EditContext, /) -> Iterator[Edit]:
        """Yield another version of the workload's API, and the installation of what serves it."""
        resource = context.cycle.binding.spec.resource
        version = _group_version(resource.api_version)
        if resource.api_version and not version:
            return
        yield from _served_version(context)
        kind = {"kind": resource.kind, "name": f"{resource.kind.lower()}s"}
        what, group = f"{version} {resource.kind}", version.rpartition("/")[0]
        is_custom = "." in group and group not in _OF_KUBERNETES
        text = f"serve {what} (install the CRD)" if is_custom else f"serve {what}"
        by = f"Install what serves {what}" if is_custom else f"Run a Kubernetes that serves {what}"
        instead = f"{by} on {context.name}; Karmada then updates its list of APIs."
        path: tuple[str | int, ...] = ("status", "apiEnablements")
        value: Any = {"groupVersion": version, "resources": [kind]}
        for index, found in enumerate(context.at(context.cluster_ref, path) or []):
            if isinstance(found, dict) and found.get("groupVersion") == version:
                path, value = (*path, index, "resources"), kind
                break
        yield context.on_cluster.append("serveApi", path, value, text, instead=instead)


_OF_KUBERNETES: Final = frozenset({
    "admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "certificates.k8s.io",
    "coordination.k8s.io", "discovery.k8s.io", "events.k8s.io", "flowcontrol.apiserver.k8s.io",
    "networking.k8s.io", "node.k8s.io", "rbac.authorization.k8s.io", "resource.k8s.io", "scheduling.k8s.io",
    "storage.k8s.io",
})  # fmt: skip
"""The API groups of Kubernetes itself besides those whose name has no dot."""


def _group_version(api_version: str) -> str:
    """Write an apiVersion as cluster status does: ``/v1`` is ``v1``, and nonsense is empty."""
    group, slash, version = api_version.partition("/")
    if not slash:
        return api_version
    if "/" in version or not (group or version):
        return ""
    return api_version if group else version


@lru_cache(maxsize=1)
def _serving(snapshot: Snapshot, api_version: str, kind: str) -> tuple[str, ...]:
    """Return the clusters that serve a kind; cached, because every cluster that does not has them as evidence."""
    return tuple(cluster.name for cluster in snapshot if (api_version, kind) in cluster.api_kinds)


def _served_versions(cluster: Cluster, resource: ObjectReference) -> set[str]:
    """Return the versions of a workload's API that a cluster serves."""
    group, _, _ = resource.api_version.rpartition("/")
    return {
        version
        for version, kind in cluster.api_kinds
        if kind == resource.kind and version.rpartition("/")[0] == group
    }


def _served_version(context: EditContext) -> Iterator[Edit]:
    """Yield the versions of the workload's API that the cluster serves, the nearest first."""
    resource = context.cycle.binding.spec.resource
    served = _served_versions(context.cluster, resource)
    near = nearest(resource.api_version, served)
    for number, version in enumerate(sorted(served, key=lambda each: (each != near, each))[:2]):
        yield context.on_workload.set(
            "setApiVersion", ("spec", "resource", "apiVersion"), version,
            f"write the {resource.kind} as {version} instead of {resource.api_version}", extra=0.1 * number,
            instead=f"Write the manifest and the selector of its policy as {version}; the binding follows.",
        )  # fmt: skip
