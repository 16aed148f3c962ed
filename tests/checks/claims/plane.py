"""The real control plane of the check: requests of moves, and waiting until the detector has nothing to do."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any, Final

from tests.checks.claims.cases import Move
from tests.checks.claims.policies import OVERRIDE, PRIORITY_CLASSES
from tools.controlplane import ApiError, ControlPlane
from tools.controlplane.waiting import PATIENCE
from tools.manifests import Manifest, namespace

_POLICY: Final = "policy.karmada.io/v1alpha1"
_BINDING: Final = "work.karmada.io/v1alpha2"
_POLICY_KINDS: Final = ("PropagationPolicy", "ClusterPropagationPolicy")
TEMPLATES: Final = {
    ("apps/v1", "Deployment"): "/apis/apps/v1/deployments",
    ("apps/v1", "StatefulSet"): "/apis/apps/v1/statefulsets",
    ("batch/v1", "Job"): "/apis/batch/v1/jobs",
    ("v1", "Pod"): "/api/v1/pods",
    ("v1", "ConfigMap"): "/api/v1/configmaps",
    ("rbac.authorization.k8s.io/v1", "ClusterRole"): "/apis/rbac.authorization.k8s.io/v1/clusterroles",
}
POLICIES: Final = {
    (_POLICY, "PropagationPolicy"): f"/apis/{_POLICY}/propagationpolicies",
    (_POLICY, "ClusterPropagationPolicy"): f"/apis/{_POLICY}/clusterpropagationpolicies",
}
BINDINGS: Final = {
    (_BINDING, "ResourceBinding"): f"/apis/{_BINDING}/resourcebindings",
    (_BINDING, "ClusterResourceBinding"): f"/apis/{_BINDING}/clusterresourcebindings",
}
_METADATA_ONLY: Final = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
_BARRIER: Final = "barrier"
_REST_SECONDS: Final = 1.5
_TIMEOUT_SECONDS: Final = 900.0


class Plane:
    """The control plane."""

    def __init__(self, karmada: ControlPlane) -> None:
        """Create what all cases need, and the objects by which it is known what the detector has done."""
        self._karmada = karmada
        self._client = karmada.client
        self._turn = 0
        for name, value in PRIORITY_CLASSES.items():
            metadata = {"name": name}
            self._client.create(
                {
                    "apiVersion": "scheduling.k8s.io/v1",
                    "kind": "PriorityClass",
                    "metadata": metadata,
                    "value": value,
                }
            )
        self._client.create(_override("ClusterOverridePolicy", f"claims-check-{OVERRIDE}"))
        self._client.create(namespace(_BARRIER))
        for kind in _POLICY_KINDS:
            metadata = {"namespace": _BARRIER, "name": kind.lower()}
            self._client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
            self._client.create(_barrier_policy(kind, 0))
        self.settle()

    def add_namespaces(self, names: Iterable[str]) -> None:
        """Create namespaces, each with an override policy."""
        for name in names:
            self._client.create(namespace(name))
            self._client.create(_override("OverridePolicy", OVERRIDE, name))

    def make(self, move: Move) -> list[Manifest]:
        """Make a move; return the objects as the API server has stored them, of a deletion as they were."""
        if move.verb == "delete":
            for manifest in move.objects:
                self._client.delete(self._client.path_of(manifest))
            return list(move.objects)
        if move.verb == "create":
            return [self._create(manifest) for manifest in move.objects]
        return [self._replace(manifest) for manifest in move.objects]

    def _create(self, manifest: Manifest) -> Manifest:
        deadline = time.monotonic() + 60
        while True:
            try:
                return self._client.create(manifest)
            except ApiError as error:
                # A policy of the same name is still being deleted, or a webhook was too slow on a busy machine.
                if error.status not in {409, 500} or time.monotonic() > deadline:
                    raise
                time.sleep(0.1)

    def _replace(self, manifest: Manifest) -> Manifest:
        """Write spec, labels and annotations of a user; what Karmada has added to the metadata stays."""
        path, deadline = self._client.path_of(manifest), time.monotonic() + 60
        while True:
            stored = self._client.get(path)
            metadata = stored["metadata"]
            for field in ("labels", "annotations"):
                kept = {
                    name: value
                    for name, value in (metadata.get(field) or {}).items()
                    if ".karmada.io" in name
                }
                metadata[field] = {**kept, **(manifest["metadata"].get(field) or {})}
            if manifest["kind"] in _POLICY_KINDS:
                stored["spec"] = manifest["spec"]
            elif "replicas" in (manifest.get("spec") or {}):
                stored["spec"]["replicas"] = manifest["spec"]["replicas"]
            try:
                return self._client.put(path, stored)
            except ApiError as error:
                if error.status not in {409, 500} or time.monotonic() > deadline:
                    raise

    def objects(self, prefix: str) -> tuple[list[Manifest], list[Manifest], list[Manifest]]:
        """Read templates, policies and bindings of the cases with this prefix of names or namespaces."""
        return self._read(TEMPLATES, prefix), self._read(POLICIES, prefix), self._read(BINDINGS, prefix)

    def _read(self, paths: Mapping[tuple[str, str], str], prefix: str) -> list[Manifest]:
        return [
            {**stored, "apiVersion": api_version, "kind": kind}
            for (api_version, kind), path in paths.items()
            for stored in self._client.list(path)
            if stored["metadata"].get("namespace", stored["metadata"]["name"]).startswith(prefix)
        ]

    def settle(self) -> None:
        """Wait until the detector has handled all events before, and nothing is written for a while."""
        deadline = time.monotonic() + _TIMEOUT_SECONDS
        for _ in range(2):  # what the first round has caused is handled before the second one
            self._barrier()
        versions, since = self._versions(), time.monotonic()
        while time.monotonic() - since < _REST_SECONDS:
            time.sleep(0.6)
            self._karmada.check()
            now = self._versions()
            if now != versions:
                versions, since = now, time.monotonic()
            if time.monotonic() > deadline:
                raise AssertionError("the control plane goes on writing")

    def _barrier(self) -> None:
        self._turn += 1
        wanted = {"clusterNames": [f"turn{self._turn}"]}
        for kind in _POLICY_KINDS:
            self._replace(_barrier_policy(kind, self._turn))
        for kind in _POLICY_KINDS:
            path = f"/apis/{_BINDING}/namespaces/{_BARRIER}/resourcebindings/{kind.lower()}-configmap"
            self._karmada.wait_for(
                lambda path=path: self._client.get(path)["spec"]["placement"]["clusterAffinity"],  # type: ignore[misc]
                f"the detector to react to {kind} {_BARRIER}",
                until=wanted.__eq__,
                timeout=_TIMEOUT_SECONDS / PATIENCE,
            )

    def _versions(self) -> Mapping[str, str]:
        found: dict[str, str] = {}
        for path in (TEMPLATES | POLICIES | BINDINGS).values():
            answer = self._client.send("GET", path, accept=_METADATA_ONLY)
            answer.raise_for_status()
            for stored in answer.json()["items"] or ():
                found[stored["metadata"]["uid"]] = stored["metadata"]["resourceVersion"]
        return found


def _override(kind: str, name: str, namespace: str = "") -> Manifest:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    overriders: dict[str, Any] = {"labelsOverrider": [{"operator": "add", "value": {"example.com/x": "y"}}]}
    return {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": kind,
        "metadata": metadata,
        "spec": {"overrideRules": [{"overriders": overriders}]},
    }


def _barrier_policy(kind: str, turn: int) -> Manifest:
    name = kind.lower()
    metadata = {"name": name, **({"namespace": _BARRIER} if kind == "PropagationPolicy" else {})}
    selector = {"apiVersion": "v1", "kind": "ConfigMap", "namespace": _BARRIER, "name": name}
    return {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": kind,
        "metadata": metadata,
        "spec": {
            "resourceSelectors": [selector],
            "placement": {"clusterAffinity": {"clusterNames": [f"turn{turn}"]}},
        },
    }
