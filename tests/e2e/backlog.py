"""Many bindings at once, made by the test itself: no templates, so only a scheduler acts on them."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from tests import manifests
from tests.e2e.workload import DYNAMIC, WORK, is_settled
from tools.controlplane import ControlPlane, Object, wait_for

_WRITERS = 16
_LIST_SECONDS = 0.5  # a list of hundreds is work for the API server, too


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
        """Create bindings; each has 3 replicas, divided by available replicas."""
        with ThreadPoolExecutor(_WRITERS) as pool:
            list(pool.map(lambda number: self.plane.client.create(self._manifest(number, priority)), numbers))

    @contextmanager
    def creating(self, numbers: range) -> Iterator[None]:
        """Create bindings while the block runs; at its end all of them exist."""
        with ThreadPoolExecutor(1) as background:
            done = background.submit(self.create, numbers)
            yield
            done.result()

    def _manifest(self, number: int, priority: int) -> Object:
        return manifests.untemplated(
            self.namespace,
            f"work-{number}",
            uid=f"uid-{number}",
            policy_id="backlog",
            replicas=3,
            schedulePriority={"priority": priority},
            replicaRequirements={"resourceRequest": {"cpu": "1m"}},
            schedulerName=self.scheduler,
            placement={
                "clusterAffinity": {"labelSelector": {"matchLabels": {"kind": "sim"}}},
                "replicaScheduling": DYNAMIC,
            },
        )

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
        return wait_for(
            self.results,
            f"{count} placed bindings",
            until=lambda results: len(results) >= count,
            timeout=timeout,
            check=self.plane.check,
            interval=_LIST_SECONDS,
        )

    def wait_settled(self, *, timeout: float) -> None:
        """Wait until the scheduler agrees with every binding as it is."""
        wait_for(
            lambda: [name for name, found in self.all().items() if not is_settled(found)],
            "every binding to be settled",
            until=lambda unsettled: not unsettled,
            timeout=timeout,
            check=self.plane.check,
            interval=_LIST_SECONDS,
        )
