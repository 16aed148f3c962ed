"""Real members: clusters with an API server of their own, which Karmada pushes to.

Nodes are objects made by hand. A member that runs Pods has what `kubelets` starts. The others have no Pods, so
what runs there does not use their capacity up: a loop reports every Deployment as ready as soon as it appears, so
that health, evictions and template status are as in life.
"""

from __future__ import annotations

import base64
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import requests

from . import kubelets
from .api import ApiError, Client, Object
from .apiserver import ApiServer, Site, member_flags
from .karmada import CLUSTERS
from .processes import Process
from .waiting import wait_for


@dataclass(frozen=True, slots=True)
class Node:
    """One node of a member."""

    cpu: str = "8"
    memory: str = "16Gi"
    pods: str = "110"
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Mapping[str, str], ...] = ()
    devices: Mapping[str, str] = field(default_factory=dict)  # extended resources, such as GPUs
    unschedulable: bool = False


@dataclass(frozen=True, slots=True)
class RealMember:
    """A member cluster to be started and joined in Push mode."""

    name: str
    nodes: tuple[Node, ...] = (Node(), Node())
    provider: str = ""
    region: str = ""
    zone: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    reports_ready: bool = True  # whether the loop runs that reports Deployments as ready
    runs: Callable[[Object], bool] = lambda _: True  # whether the Pods of a Deployment become ready
    runs_pods: bool = (
        False  # whether Pods are created, bound to nodes and started; no loop of the harness runs then
    )


class Member:
    """A running real member.

    Attributes:
        client: The harness' client of the member's own API server.
        kubeconfig: An administrator's kubeconfig of it.
    """

    def __init__(self, spec: RealMember, site: Site) -> None:
        self.spec = spec
        self.name = spec.name
        self._token = secrets.token_hex(16)
        self._site = site
        flags = [
            *member_flags(site, spec.name, token=self._token),
            *(kubelets.FLAGS if spec.runs_pods else ()),
        ]
        self._server = ApiServer(spec.name, site, flags)
        self.client: Client = self._server.client
        self.kubeconfig: Path = self._server.kubeconfig
        self._programs: list[Process] = []
        self._stop = threading.Event()
        self._loops = [
            threading.Thread(target=loop, name=f"{self.name}-{loop.__name__}", daemon=True)
            for loop in (self._report_deployments_ready, self._finish_namespaces)
            if not spec.runs_pods
        ]

    def start(self, check: Callable[[], None]) -> None:
        """Start the API server, wait for it, and give it its nodes."""
        self._server.start()
        self._server.wait_ready(check)
        for number, node in enumerate(self.spec.nodes, start=1):
            self._make_node(f"{self.name}-node-{number}", node)
        for loop in self._loops:
            loop.start()
        if self.spec.runs_pods:
            self._programs = kubelets.start(self._site, self.name, self.kubeconfig)

    def join(self, karmada: Client, check: Callable[[], None]) -> None:
        """Register it with Karmada and wait until Karmada has read its nodes."""
        token = {
            "token": base64.b64encode(self._token.encode()).decode(),
            "caBundle": self._site.authority.bundle,
        }
        reference = {"namespace": "karmada-cluster", "name": self.name}
        karmada.apply({"apiVersion": "v1", "kind": "Secret", "metadata": reference, "data": token})
        karmada.create(
            {
                "apiVersion": "cluster.karmada.io/v1alpha1",
                "kind": "Cluster",
                "metadata": {"name": self.name, "labels": dict(self.spec.labels)},
                "spec": {
                    "syncMode": "Push",
                    "apiEndpoint": self._server.url,
                    "secretRef": reference,
                    "provider": self.spec.provider,
                    "region": self.spec.region,
                    "zones": [self.spec.zone] if self.spec.zone else [],
                },
            }
        )

        def collected() -> Object:
            cluster = karmada.get(f"{CLUSTERS}/{self.name}")
            assert not cluster["spec"].get("taints"), cluster
            assert is_ready(cluster), cluster
            assert cluster["status"]["nodeSummary"]["readyNum"] == len(self.spec.nodes), cluster
            return cluster

        wait_for(collected, f"Karmada to collect the status of member {self.name}", timeout=60, check=check)

    def restart(self, check: Callable[[], None]) -> None:
        """End its API server and start it again."""
        self.kill()
        self._server.start()
        self._server.wait_ready(check)

    def kill(self) -> None:
        """End its API server, as an outage would. restart() brings it back."""
        self._server.kill()

    def report_ready(self, node: str, *, ready: bool) -> None:
        """Write the Ready condition of a node, as its kubelet would."""
        condition = {
            "type": "Ready",
            "status": str(ready),
            "reason": "KubeletReady" if ready else "KubeletNotReady",
            "message": "written by the harness",
        }
        patch = {"status": {"conditions": [condition]}}
        self.client.patch(f"/api/v1/nodes/{node}/status", patch)

    def stop_programs(self) -> None:
        """End what runs its Pods, and its API server."""
        for process in self._programs:
            process.stop()
            self._site.supervisor.forget(process)
        self._programs = []
        self.kill()

    def stop_loops(self) -> None:
        """Signal the loops to end; they do so once the API server is gone."""
        self._stop.set()

    def close(self) -> None:
        """Wait for the loops and close the connections."""
        for loop in self._loops:
            if loop.ident is not None:
                loop.join(timeout=5)
        self.client.close()

    def _make_node(self, name: str, node: Node) -> None:
        labels = {"kubernetes.io/hostname": name, **node.labels}
        spec = {"taints": [dict(taint) for taint in node.taints], "unschedulable": node.unschedulable}
        metadata = {"name": name, "labels": labels}
        self.client.apply({"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec})
        resources = {"cpu": node.cpu, "memory": node.memory, "pods": node.pods, **node.devices}
        status = {"capacity": resources, "allocatable": resources}
        self.client.patch(f"/api/v1/nodes/{name}/status", {"status": status})
        self.report_ready(name, ready=True)

    def _report_deployments_ready(self) -> None:
        if not self.spec.reports_ready:
            return
        for event, deployment in self.client.watch("/apis/apps/v1/deployments", stop=self._stop):
            if event == "DELETED":
                continue
            metadata, replicas = deployment["metadata"], deployment["spec"]["replicas"]
            ready = replicas if self.spec.runs(deployment) else 0
            status = {
                "observedGeneration": metadata["generation"],
                "replicas": replicas,
                "updatedReplicas": replicas,
                "readyReplicas": ready,
                "availableReplicas": ready,
                "unavailableReplicas": replicas - ready,
            }
            known = deployment.get("status", {})
            if all(known.get(key, 0) == value for key, value in status.items()):
                continue
            path = f"/apis/apps/v1/namespaces/{metadata['namespace']}/deployments/{metadata['name']}/status"
            with self._tolerant():
                self.client.patch(path, {"status": status})

    def _finish_namespaces(self) -> None:
        """Finalize deleted namespaces, as the namespace controller would once they are empty."""
        for _, namespace in self.client.watch("/api/v1/namespaces", stop=self._stop):
            if "deletionTimestamp" in namespace["metadata"] and namespace["spec"].get("finalizers"):
                with self._tolerant():
                    self._finish(namespace)

    def _finish(self, namespace: Object) -> None:
        name = namespace["metadata"]["name"]
        for collection in ("/apis/apps/v1/namespaces/{}/deployments", "/api/v1/namespaces/{}/configmaps"):
            self.client.request("DELETE", collection.format(name))
        namespace["spec"]["finalizers"] = []
        self.client.put(f"/api/v1/namespaces/{name}/finalize", namespace)

    @contextmanager
    def _tolerant(self) -> Iterator[None]:
        """Ignore a failure because the object changed or the server is down: the watch repeats the event."""
        try:
            yield
        except (ApiError, requests.RequestException):
            self._stop.wait(0.1)


def is_ready(cluster: Object) -> bool:
    """Return whether a Cluster's Ready condition is True."""
    conditions = cluster.get("status", {}).get("conditions") or []
    return any(item["type"] == "Ready" and item["status"] == "True" for item in conditions)
