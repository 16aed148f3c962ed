"""Simulated members: Cluster objects without a cluster.

They are in Pull mode, so Karmada expects an agent in the cluster to do the work. The
harness plays that agent: it writes the cluster's status once, reports every Work as
applied and healthy, and lets deleted Works go. Nothing runs anywhere.
"""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import requests

from .api import ApiError, Client, Object
from .karmada import CLUSTERS, WORKS
from .members import is_ready
from .parallel import in_parallel
from .waiting import wait_for

EXECUTION_SPACE = "karmada-es-"
EXECUTION_FINALIZER = "karmada.io/execution-controller"
TEMPLATE_GENERATION = "resourcetemplate.karmada.io/generation"

API_ENABLEMENTS: Mapping[str, Sequence[tuple[str, str]]] = {
    "v1": (
        ("configmaps", "ConfigMap"),
        ("namespaces", "Namespace"),
        ("pods", "Pod"),
        ("secrets", "Secret"),
        ("serviceaccounts", "ServiceAccount"),
        ("services", "Service"),
    ),
    "apps/v1": (("daemonsets", "DaemonSet"), ("deployments", "Deployment"), ("statefulsets", "StatefulSet")),
    "batch/v1": (("cronjobs", "CronJob"), ("jobs", "Job")),
    "rbac.authorization.k8s.io/v1": (
        ("clusterrolebindings", "ClusterRoleBinding"),
        ("clusterroles", "ClusterRole"),
        ("rolebindings", "RoleBinding"),
        ("roles", "Role"),
    ),
}

PLURALS = {kind: plural for kinds in API_ENABLEMENTS.values() for plural, kind in kinds}


@dataclass(frozen=True, slots=True)
class SimulatedMember:
    """A member cluster that exists only as objects that the harness writes."""

    name: str
    provider: str = ""
    region: str = ""
    zone: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Mapping[str, str], ...] = ()
    cpu: str = "16"
    memory: str = "32Gi"
    pods: str = "220"
    allocated: Mapping[str, str] = field(default_factory=lambda: {"cpu": "1", "memory": "1Gi", "pods": "5"})
    api_enablements: Mapping[str, Sequence[tuple[str, str]]] = field(default_factory=lambda: API_ENABLEMENTS)
    modelings: tuple[int, ...] = ()
    """How many nodes there are of each grade of Karmada's default resource models, from grade 0 on."""

    def manifest(self) -> Object:
        """Return the Cluster to create."""
        spec: Object = {"syncMode": "Pull", "provider": self.provider, "region": self.region}
        if self.zone:
            spec["zones"] = [self.zone]
        if self.taints:
            spec["taints"] = [dict(taint) for taint in self.taints]
        metadata = {"name": self.name, "labels": dict(self.labels)}
        return {
            "apiVersion": "cluster.karmada.io/v1alpha1",
            "kind": "Cluster",
            "metadata": metadata,
            "spec": spec,
        }

    def status(self, *, ready: bool = True) -> Object:
        """Return the status a healthy agent would report; conditions are always complete."""
        text = "True" if ready else "False"
        allocatable = {"cpu": self.cpu, "memory": self.memory, "pods": self.pods}
        summary: Object = {"allocatable": allocatable, "allocated": dict(self.allocated)}
        if self.modelings:
            summary["allocatableModelings"] = [
                {"grade": grade, "count": count} for grade, count in enumerate(self.modelings)
            ]
        return {
            "kubernetesVersion": "v1.35.3",
            "conditions": [
                _condition("Ready", text, "ClusterReady" if ready else "ClusterNotReady"),
                _condition("CompleteAPIEnablements", "True", "Complete"),
            ],
            "apiEnablements": [
                {"groupVersion": group, "resources": [{"name": name, "kind": kind} for name, kind in kinds]}
                for group, kinds in self.api_enablements.items()
            ],
            "nodeSummary": {"totalNum": 2, "readyNum": 2},
            "resourceSummary": summary,
        }


def create(karmada: Client, members: Sequence[SimulatedMember]) -> None:
    """Create the Clusters with their status."""

    def one(member: SimulatedMember) -> None:
        karmada.create(member.manifest())
        karmada.patch(f"{CLUSTERS}/{member.name}/status", {"status": member.status()})

    in_parallel(one, members, workers=16)


def register(
    karmada: Client, members: Sequence[SimulatedMember], check: Callable[[], None], *, timeout: float = 120
) -> None:
    """Create the Clusters with their status, and wait until Karmada reports them as ready."""
    create(karmada, members)
    names = {member.name for member in members}

    def unfinished() -> list[str]:
        clusters = karmada.list(CLUSTERS)
        spaces = {item["metadata"]["name"] for item in karmada.list("/api/v1/namespaces")}
        return [
            name
            for cluster in clusters
            if (name := cluster["metadata"]["name"]) in names
            and not (is_ready(cluster) and _untainted(cluster) and f"{EXECUTION_SPACE}{name}" in spaces)
        ]

    wait_for(
        unfinished,
        f"Karmada to accept {len(members)} simulated members (still missing below)",
        until=lambda names: not names,
        timeout=timeout,
        check=check,
        interval=0.1 + len(members) / 500,  # a look at a large fleet is not free
    )


class Agents:
    """Runs the agents of every simulated member passed to `serve`."""

    def __init__(self, karmada: Client) -> None:
        self._karmada = karmada
        self._spaces: set[str] = set()
        self._stop = threading.Event()
        self._loop = threading.Thread(target=self._run, name="simulated-members", daemon=True)
        self._pool = ThreadPoolExecutor(max_workers=4, thread_name_prefix="simulated-members")

    def serve(self, members: Sequence[SimulatedMember]) -> None:
        """Answer Works of these members from now on."""
        self._spaces |= {EXECUTION_SPACE + member.name for member in members}
        if self._loop.ident is None:
            self._loop.start()

    def stop(self) -> None:
        """Signal the loop to end; it does so once the API server is gone."""
        self._stop.set()

    def close(self) -> None:
        """Wait for the loop."""
        if self._loop.ident is not None:
            self._loop.join(timeout=5)
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _run(self) -> None:
        for event, work in self._karmada.watch(WORKS, stop=self._stop):
            if event != "DELETED" and work["metadata"]["namespace"] in self._spaces:
                self._pool.submit(self._answer, work)

    def _answer(self, work: Object) -> None:
        metadata = work["metadata"]
        path = f"/apis/work.karmada.io/v1alpha1/namespaces/{metadata['namespace']}/works/{metadata['name']}"
        try:
            if "deletionTimestamp" in metadata:
                kept = [name for name in metadata.get("finalizers", []) if name != EXECUTION_FINALIZER]
                if kept != metadata.get("finalizers", []):
                    self._karmada.patch(path, {"metadata": {"finalizers": kept}})
            elif not work["spec"].get("suspendDispatching") and (status := applied(work)) is not None:
                self._karmada.patch(f"{path}/status", {"status": status})
        except (ApiError, requests.RequestException):
            self._stop.wait(0.1)  # it changed or went; the watch brings it again


def applied(work: Object) -> Object | None:
    """Return the status of a Work whose manifests are applied and healthy, None if it has that status already."""
    manifests = work["spec"].get("workload", {}).get("manifests", [])
    reports = [_report(work, ordinal, manifest) for ordinal, manifest in enumerate(manifests)]
    known = work.get("status", {})
    if known.get("manifestStatuses", []) == reports and known.get("conditions"):
        return None
    return {"conditions": [_condition("Applied", "True", "AppliedSuccessful")], "manifestStatuses": reports}


def _report(work: Object, ordinal: int, manifest: Object) -> Object:
    group, _, version = manifest["apiVersion"].rpartition("/")
    metadata = manifest["metadata"]
    identifier = {
        "ordinal": ordinal,
        "group": group,
        "version": version,
        "kind": manifest["kind"],
        "resource": PLURALS.get(manifest["kind"], manifest["kind"].lower() + "s"),
        "namespace": metadata.get("namespace", ""),
        "name": metadata["name"],
    }
    report: Object = {"identifier": {key: value for key, value in identifier.items() if value != ""}}
    if manifest["kind"] in {"Deployment", "StatefulSet"}:
        replicas = manifest["spec"].get("replicas", 1)
        generation = work["metadata"]["generation"]
        report["status"] = {
            "generation": generation,
            "observedGeneration": generation,
            "resourceTemplateGeneration": int(metadata.get("annotations", {}).get(TEMPLATE_GENERATION, 0)),
            "replicas": replicas,
            "updatedReplicas": replicas,
            "readyReplicas": replicas,
            "availableReplicas": replicas,
        }
    report["health"] = "Healthy"
    return report


def _condition(kind: str, status: str, reason: str) -> Object:
    now = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    message = "written by the test harness: this member is simulated"
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": now}


def _untainted(cluster: Object) -> bool:
    taints = cluster["spec"].get("taints", [])
    return not any(taint["key"].startswith("cluster.karmada.io/") for taint in taints)
