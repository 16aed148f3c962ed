"""The real control plane of the check: requests of moves, and waiting until the detector has nothing to do."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from tools.claims_check.cases import Move
from tools.claims_check.policies import OVERRIDE, PRIORITY_CLASSES
from tools.claims_check.templates import Manifest
from tools.controlplane import ApiError, ControlPlane

POLICY_PATHS: Final = (
    "/apis/policy.karmada.io/v1alpha1/propagationpolicies",
    "/apis/policy.karmada.io/v1alpha1/clusterpropagationpolicies",
)
BINDING_PATHS: Final = {
    "ResourceBinding": "/apis/work.karmada.io/v1alpha2/resourcebindings",
    "ClusterResourceBinding": "/apis/work.karmada.io/v1alpha2/clusterresourcebindings",
}
TEMPLATE_PATHS: Final = {
    ("apps/v1", "Deployment"): "/apis/apps/v1/deployments",
    ("apps/v1", "StatefulSet"): "/apis/apps/v1/statefulsets",
    ("batch/v1", "Job"): "/apis/batch/v1/jobs",
    ("v1", "Pod"): "/api/v1/pods",
    ("v1", "ConfigMap"): "/api/v1/configmaps",
    ("rbac.authorization.k8s.io/v1", "ClusterRole"): "/apis/rbac.authorization.k8s.io/v1/clusterroles",
}
_METADATA_ONLY: Final = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
_BARRIER: Final = "barrier"
_REST_SECONDS: Final = 1.5
_TIMEOUT_SECONDS: Final = 900.0


class RestlessError(AssertionError):
    """The control plane goes on writing, or does not react."""


class Plane:
    """The control plane."""

    def __init__(self, karmada: ControlPlane) -> None:
        self.karmada = karmada
        self._client = karmada.client
        self._turn = 0

    def prepare(self) -> None:
        """Create what all cases need, and the objects by which it is known what the detector has done."""
        for name, value in PRIORITY_CLASSES.items():
            self._client.create(
                {
                    "apiVersion": "scheduling.k8s.io/v1",
                    "kind": "PriorityClass",
                    "metadata": {"name": name},
                    "value": value,
                }
            )
        self._client.create(_override("ClusterOverridePolicy", f"claims-check-{OVERRIDE}"))
        self._client.create(_namespace(_BARRIER))
        for kind in ("PropagationPolicy", "ClusterPropagationPolicy"):
            name = kind.lower()
            self._client.create(_config_map(name))
            self._client.create(_barrier_policy(kind, name, 0))
        self.settle()

    def add_namespaces(self, names: Iterable[str]) -> None:
        """Create namespaces, each with an override policy."""
        for name in names:
            self._client.create(_namespace(name))
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
            if manifest["kind"] in {"PropagationPolicy", "ClusterPropagationPolicy"}:
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
        templates = [
            {**each, "apiVersion": api_version, "kind": kind}
            for (api_version, kind), path in TEMPLATE_PATHS.items()
            for each in self._client.list(path)
        ]
        policies = [
            {**each, "apiVersion": "policy.karmada.io/v1alpha1", "kind": kind}
            for kind, path in zip(
                ("PropagationPolicy", "ClusterPropagationPolicy"), POLICY_PATHS, strict=True
            )
            for each in self._client.list(path)
        ]
        bindings = [
            {**each, "apiVersion": "work.karmada.io/v1alpha2", "kind": kind}
            for kind, path in BINDING_PATHS.items()
            for each in self._client.list(path)
        ]
        return (
            _of_case(templates, prefix),
            _of_case(policies, prefix),
            _of_case(bindings, prefix),
        )

    def settle(self) -> None:
        """Wait until the detector has handled all events before, and nothing is written for a while."""
        deadline = time.monotonic() + _TIMEOUT_SECONDS
        for _ in range(2):  # what the first round has caused is handled before the second one
            self._barrier(deadline)
        versions, since = self._versions(), time.monotonic()
        while time.monotonic() - since < _REST_SECONDS:
            time.sleep(0.6)
            self.karmada.check()
            now = self._versions()
            if now != versions:
                versions, since = now, time.monotonic()
            if time.monotonic() > deadline:
                raise RestlessError("the control plane goes on writing")

    def _barrier(self, deadline: float) -> None:
        self._turn += 1
        wanted = [f"turn{self._turn}"]
        for kind in ("PropagationPolicy", "ClusterPropagationPolicy"):
            self._replace(_barrier_policy(kind, kind.lower(), self._turn))
        for kind in ("PropagationPolicy", "ClusterPropagationPolicy"):
            path = f"/apis/work.karmada.io/v1alpha2/namespaces/{_BARRIER}/resourcebindings/{kind.lower()}-configmap"
            while True:
                binding = self._client.find(path)
                if binding is not None:
                    placement = binding["spec"].get("placement") or {}
                    if (placement.get("clusterAffinity") or {}).get("clusterNames") == wanted:
                        break
                if time.monotonic() > deadline:
                    raise RestlessError(f"the detector does not react to {kind} {_BARRIER}")
                self.karmada.check()
                time.sleep(0.05)

    def _versions(self) -> Mapping[str, str]:
        found: dict[str, str] = {}
        for path in (*TEMPLATE_PATHS.values(), *POLICY_PATHS, *BINDING_PATHS.values()):
            answer = self._client.send("GET", path, accept=_METADATA_ONLY)
            answer.raise_for_status()
            for each in answer.json()["items"] or ():
                found[each["metadata"]["uid"]] = each["metadata"]["resourceVersion"]
        return found


def _of_case(manifests: list[Manifest], prefix: str) -> list[Manifest]:
    return [
        each
        for each in manifests
        if each["metadata"].get("namespace", each["metadata"]["name"]).startswith(prefix)
    ]


def _namespace(name: str) -> Manifest:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def _config_map(name: str) -> Manifest:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": _BARRIER, "name": name}}


def _override(kind: str, name: str, namespace: str = "") -> Manifest:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    overriders: dict[str, Any] = {"labelsOverrider": [{"operator": "add", "value": {"example.com/x": "y"}}]}
    return {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": kind,
        "metadata": metadata,
        "spec": {"overrideRules": [{"overriders": overriders}]},
    }


def _barrier_policy(kind: str, name: str, turn: int) -> Manifest:
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


@contextmanager
def running(folder: Path, *, gates: Mapping[str, bool]) -> Iterator[Plane]:
    """Run a control plane without members and without a scheduler: nothing but the detector writes bindings."""
    # Failed attempts are repeated twice per second, so that what fails at rest is known.
    manager = ["--rate-limiter-max-delay=500ms", "--rate-limiter-qps=200", "--rate-limiter-bucket-size=1000"]
    with ControlPlane(folder, extra_flags={"controller-manager": manager}, feature_gates=gates) as karmada:
        plane = Plane(karmada)
        plane.prepare()
        yield plane
