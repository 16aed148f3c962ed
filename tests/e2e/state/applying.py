"""Applies the patches of a remedy as a user would, and waits until the binding is placed as the remedy promises."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from tests.e2e.workload import condition, placed
from tools.controlplane import ControlPlane, Object, WaitTimeoutError
from tools.controlplane.karmada import CLUSTERS

API_VERSIONS: Final = {
    "Cluster": "cluster.karmada.io/v1alpha1",
    "ResourceBinding": "work.karmada.io/v1alpha2",
    "ClusterResourceBinding": "work.karmada.io/v1alpha2",
    "PropagationPolicy": "policy.karmada.io/v1alpha1",
    "ClusterPropagationPolicy": "policy.karmada.io/v1alpha1",
    "OverridePolicy": "policy.karmada.io/v1alpha1",
    "FederatedResourceQuota": "policy.karmada.io/v1alpha1",
    "WorkloadRebalancer": "apps.karmada.io/v1alpha1",
    "Deployment": "apps/v1",
}
_TIMEOUT_SECONDS: Final = 45


def is_patch(remedy: Mapping[str, Any]) -> bool:
    """Return whether a person applies the patches of a remedy: each edit has operations on an object of a known kind.

    The patch of an edit with ``instead`` only shows the effect of what a person does.
    """
    applied = remedy.get("apply") or ()
    if any(each.get("instead") for each in remedy.get("edits") or ()):
        return False
    return bool(applied) and all(each["patch"] and each["object"]["kind"] in API_VERSIONS for each in applied)


def apply(plane: ControlPlane, remedy: Mapping[str, Any]) -> None:
    """Send the patches of a remedy, those of one object as one request."""
    requests: dict[tuple[str, bool], list[Object]] = {}
    for each in remedy["apply"]:
        path = _path(plane, each["object"])
        for operation in each["patch"]:
            is_status = str(operation["path"]).startswith("/status/")
            requests.setdefault((path, is_status), []).append(operation)
    for (path, is_status), operations in requests.items():
        plane.client.request(
            "PATCH",
            f"{path}/status" if is_status else path,
            body=operations,
            content_type="application/json-patch+json",
        )


def _path(plane: ControlPlane, shown: Mapping[str, str]) -> str:
    metadata: Object = {"name": shown["name"]}
    if shown.get("namespace"):
        metadata["namespace"] = shown["namespace"]
    api_version = shown.get("apiVersion") or API_VERSIONS[shown["kind"]]
    return plane.client.path_of({"apiVersion": api_version, "kind": shown["kind"], "metadata": metadata})


def fleet(plane: ControlPlane) -> int:
    """Return a hash over what decisions read of all clusters."""
    found = [
        (
            each["metadata"]["name"],
            each["metadata"].get("labels"),
            each["spec"],
            each["status"].get("resourceSummary"),
        )
        for each in plane.client.list(CLUSTERS)
    ]
    return hash(json.dumps(found, sort_keys=True))


def wait_placed(
    plane: ControlPlane, path: str, expected: Mapping[str, int], promised_for: int | None = None
) -> str:
    """Wait until the binding at a path is placed as expected; return what is wrong, "" if nothing is.

    Situations are made side by side. If the clusters are others by now than those that a promise was made for, all
    replicas have to be placed, wherever. A binding that has the expected placement already keeps its condition, because nothing is to be decided.
    """

    def found() -> Object:
        return plane.client.get(path)

    try:
        plane.wait_for(
            found,
            f"{path} on {dict(expected)}",
            until=lambda binding: (
                placed(binding) == dict(expected) and condition(binding).get("status") == "True"
            ),
            timeout=_TIMEOUT_SECONDS,
        )
    except WaitTimeoutError:
        binding = plane.client.find(path)
        if binding is None:
            return f"there is no binding {path}"
        if placed(binding) == dict(expected):
            return ""
        has_all = sum(placed(binding).values()) == sum(expected.values()) > 0
        if has_all and promised_for not in (None, fleet(plane)):
            return ""
        said = condition(binding)
        return (
            f"promised {dict(expected)}, found {placed(binding)} after {_TIMEOUT_SECONDS} s: "
            f"{said.get('reason')}: {said.get('message')}"
        )
    return ""


def promised(remedy: Mapping[str, Any]) -> dict[str, int]:
    """Return the replicas by cluster that a remedy promises."""
    targets: Sequence[Mapping[str, Any]] = remedy.get("result") or ()
    return {each["name"]: each.get("replicas", 0) for each in targets}
