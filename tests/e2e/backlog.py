"""Many bindings at once, made by the test itself: no templates, so nobody but a scheduler acts on them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from tests.controlplane import ControlPlane, Object
from tests.e2e.workload import DYNAMIC, WORK

_WRITERS = 16


class Backlog:
    """ResourceBindings ``work-0``, ``work-1``, … in one namespace, for one scheduler."""

    def __init__(self, plane: ControlPlane, namespace: str, scheduler: str) -> None:
        self.plane = plane
        self.namespace = namespace
        self.scheduler = scheduler

    @property
    def path(self) -> str:
        return f"{WORK}/namespaces/{self.namespace}/resourcebindings"

    def create(self, numbers: range, *, priority: int = 0) -> None:
        """Create bindings; each asks for 3 replicas, divided by free room."""
        with ThreadPoolExecutor(_WRITERS) as pool:
            list(pool.map(lambda number: self.plane.client.create(self._manifest(number, priority)), numbers))

    def _manifest(self, number: int, priority: int) -> Object:
        name = f"work-{number}"
        return {
            "apiVersion": "work.karmada.io/v1alpha2",
            "kind": "ResourceBinding",
            "metadata": {
                "name": name,
                "namespace": self.namespace,
                "labels": {"propagationpolicy.karmada.io/permanent-id": "backlog"},
            },
            "spec": {
                "resource": {
                    "apiVersion": "apps/v1",
                    "kind": "Deployment",
                    "namespace": self.namespace,
                    "name": name,
                    "uid": f"uid-{number}",
                },
                "replicas": 3,
                "schedulePriority": {"priority": priority},
                "replicaRequirements": {"resourceRequest": {"cpu": "1m"}},
                "schedulerName": self.scheduler,
                "placement": {
                    "clusterAffinity": {"labelSelector": {"matchLabels": {"kind": "sim"}}},
                    "replicaScheduling": DYNAMIC,
                },
            },
        }

    def all(self) -> dict[str, Object]:
        """Return every binding by name."""
        return {found["metadata"]["name"]: found for found in self.plane.client.list(self.path)}

    def results(self) -> dict[str, list[tuple[str, int]]]:
        """Return the targets of those that are placed, by name."""
        return {
            name: [(target["name"], target.get("replicas", 0)) for target in found["spec"]["clusters"]]
            for name, found in self.all().items()
            if found["spec"].get("clusters")
        }

    def wait_placed(self, count: int, *, timeout: float) -> dict[str, list[tuple[str, int]]]:
        """Wait until at least so many are placed, and return their targets."""
        found: dict[str, list[tuple[str, int]]] = self.plane.wait_for(
            self.results,
            f"{count} placed bindings",
            until=lambda results: len(results) >= count,
            timeout=timeout,
        )
        return found
