"""Members whose estimators are real and whose nodes are few: estimated1 and estimated2.

Each has an API server of its own that is not registered with Karmada, with nodes; on the control plane it is a simulated
member whose summary is generous. So only its estimator reports how little fits.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests import manifests
from tests.e2e.workload import DYNAMIC, WORK, labelled
from tools.controlplane import ControlPlane, Node, Object, Process, RealMember, SimulatedMember
from tools.controlplane.karmada import CLUSTERS, external_service

NAMES = ("estimated1", "estimated2")
NODES = {
    "estimated1": (Node(cpu="8", memory="16Gi", labels={"disk": "ssd"}), Node(cpu="4", memory="8Gi")),
    "estimated2": (Node(cpu="6", memory="64Gi"),),
}
SERVICES = "/api/v1/namespaces/karmada-system/services"
PREFIX = "karmada-scheduler-estimator"
ESTIMATOR_GATES = "--feature-gates=SchedulingOvercommitProtection=true"


class EstimatorMembers:
    """The two members with their estimators."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        self.estimators: dict[str, Process] = {}

    def start_estimator(self, name: str) -> None:
        """Start the estimator of one of them."""
        self.estimators[name] = self.plane.start_estimator(
            name, ESTIMATOR_GATES, kubeconfig=self.plane.members[name].kubeconfig
        )

    def stop_estimator(self, name: str) -> None:
        """End it; its Service stays."""
        process = self.estimators.pop(name)
        process.kill()
        self.plane.forget(process)

    def flags(self) -> list[str]:
        """Return the flags with which a scheduler uses their estimators."""
        return [
            *self.plane.estimator_client_flags(),
            "--disable-scheduler-estimator-in-pull-mode=false",
        ]

    def place(self, namespace: str, name: str, *, scheduler: str, cpu: str, replicas: int = 1) -> None:
        """Create a binding, without a template, that is to be divided over both by available replicas."""
        self.plane.client.create(
            manifests.untemplated(
                namespace,
                name,
                uid=f"uid-{name}",
                policy_id="estimated",
                replicas=replicas,
                replicaRequirements={"resourceRequest": {"cpu": cpu}},
                schedulerName=scheduler,
                placement=labelled("estimated", replicaScheduling=DYNAMIC),
            )
        )

    def bindings(self, namespace: str) -> list[Object]:
        """Return all bindings of a namespace."""
        return self.plane.client.list(f"{WORK}/namespaces/{namespace}/resourcebindings")

    def run(self, member: str, name: str, *, cpu: str, node: str = "node-1") -> None:
        """Have a Pod on a node, as a kubelet would run it."""
        container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": cpu}}}
        spec: Object = {"nodeName": f"{member}-{node}", "containers": [container]}
        self.plane.members[member].client.create(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "namespace": "default"},
                "spec": spec,
            }
        )

    def clear(self) -> None:
        """Remove all Pods at once."""
        for name in NAMES:
            client = self.plane.members[name].client
            client.request("DELETE", "/api/v1/namespaces/default/pods", params={"gracePeriodSeconds": "0"})


@contextmanager
def running(plane: ControlPlane) -> Iterator[EstimatorMembers]:
    """Run both members with their estimators while the block runs."""
    for name in NAMES:
        plane.start_aside(RealMember(name, nodes=NODES[name]))
    fields: dict[str, Any] = {
        "labels": {"kind": "estimated"},
        "cpu": "1000",
        "memory": "1000Gi",
        "pods": "1000",
    }
    plane.add(*(SimulatedMember(name, **fields) for name in NAMES), agents=False)
    # karmada-scheduler takes ten seconds per cluster without a Service to start, and none for one that is no use.
    others = {member["metadata"]["name"] for member in plane.client.list(CLUSTERS)} - set(NAMES)
    for name in others:
        plane.client.apply(external_service(f"{PREFIX}-{name}"))
    made = EstimatorMembers(plane)
    for name in NAMES:
        made.start_estimator(name)
    yield made
    for name in (*NAMES, *others):
        plane.client.delete(f"{SERVICES}/{PREFIX}-{name}")
    for name in NAMES:
        plane.client.delete(f"{CLUSTERS}/{name}")
        # No agent runs for these members that would report on their Works before Karmada lets go of them.
        if plane.client.find(f"{CLUSTERS}/{name}") is not None:
            plane.client.patch(f"{CLUSTERS}/{name}", {"metadata": {"finalizers": None}})
        if name in made.estimators:
            made.stop_estimator(name)
    for name in NAMES:
        plane.wait_for(
            lambda name=name: plane.client.find(f"{CLUSTERS}/{name}") is None,  # type: ignore[misc]
            f"{name} to be gone, so that other tests do not meet it",
        )
