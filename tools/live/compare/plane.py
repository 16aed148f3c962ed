"""One control plane with one scheduler, which detects when nothing more will be written.

Waiting cannot distinguish a slow scheduler from one that has finished. So a barrier follows every
change: bindings of the harness are touched, each on one of the scheduler's watches, and the scheduler's
reaction to them shows that it has read, queued and taken everything that was written before. Two barriers
between which nothing else was written mean rest. Karmada's own controllers have no such barrier; what they
are expected to do is waited for by its effect, and they get some more patience.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tools.controlplane import ControlPlane, Object, WaitTimeoutError, wait_for
from tools.controlplane.karmada import CLUSTERS as CLUSTER_PATH
from tools.controlplane.karmada import WORKS
from tools.controlplane.ours import start_scheduler

from . import fleet
from .fleet import BARRIERS, COLLECTIONS, Key

UPSTREAM = "karmada-scheduler"
OURS = "karmada-pyscheduler"
PATIENCE_SECONDS = 0.4
REST_SECONDS = 90.0
FAST = ("--kube-api-qps=1000", "--kube-api-burst=2000")

Bindings = Mapping[Key, Object]


class RestlessError(AssertionError):
    """A control plane goes on writing, or a controller does not do its part."""


class Plane:
    """One control plane of the two."""

    def __init__(self, name: str, karmada: ControlPlane) -> None:
        self.name = name
        self.karmada = karmada
        self.client = karmada.client
        self._turn = 0

    def patch(self, key: Key, body: object) -> None:
        """Merge-patch a binding."""
        self.client.patch(key.path, body)

    def patch_cluster(self, name: str, body: object, *, status: bool = False) -> None:
        """Merge-patch a cluster, or its status."""
        self.client.patch(f"{CLUSTER_PATH}/{name}{'/status' if status else ''}", body)

    def cluster(self, name: str) -> Object | None:
        """Read a cluster, None if there is none."""
        return self.client.find(f"{CLUSTER_PATH}/{name}")

    def bindings(self) -> dict[Key, Object]:
        """Read every binding but the barriers."""
        found = {
            Key(kind, item["metadata"]["name"]): item
            for kind, path in COLLECTIONS.items()
            for item in self.client.list(path)
        }
        return {key: item for key, item in found.items() if key not in BARRIERS}

    def wait(self, probe: Callable[[], object], what: str) -> None:
        """Wait for the effect of a controller."""
        self.karmada.wait_for(probe, f"{what} ({self.name})", timeout=60)

    def rest(
        self,
        taken: Callable[[Bindings], bool] = lambda _: True,
        *,
        through_clusters: bool = False,
        patient: bool = False,
    ) -> dict[Key, Object]:
        """Wait until nothing is written any more and return the bindings.

        Args:
            taken: Whether Karmada's controllers have done their part of the step.
            through_clusters: Whether the watch of clusters needs a barrier, too.
            patient: Whether controllers may have more to do, without an effect that is waited for.
        """
        deadline = time.monotonic() + REST_SECONDS
        before: object = None
        changed: set[object] = set()
        while True:
            self.karmada.check()
            self._barrier(through_clusters=through_clusters)
            through_clusters = False  # bindings enqueued by clusters are in the queue now
            found = self.bindings()
            now = {key: item["metadata"]["resourceVersion"] for key, item in found.items()}
            seen = (now, self._works() if patient else ())
            if seen == before and taken(found):
                return found
            if isinstance(before, tuple):
                changed = {key for key in {*now, *before[0]} if now.get(key) != before[0].get(key)}
            if time.monotonic() > deadline:
                what = ", ".join(map(str, changed)) or "nothing, but what controllers should do is not done"
                raise RestlessError(f"{self.name} did not come to rest; written last: {what}")
            if patient or seen == before:
                time.sleep(PATIENCE_SECONDS)
            before = seen

    def _works(self) -> frozenset[tuple[str, str]]:
        return frozenset(
            (item["metadata"]["uid"], item["metadata"]["resourceVersion"]) for item in self.client.list(WORKS)
        )

    def _barrier(self, *, through_clusters: bool) -> None:
        self._turn += 1
        flags = ("Abort", "Overwrite")
        on = self._turn % 2 == 0
        if through_clusters:
            item = self.cluster(fleet.BARRIER)
            assert item is not None
            on = item["metadata"]["labels"]["barrier"] == "off"
            self.patch_cluster(fleet.BARRIER, {"metadata": {"labels": {"barrier": "on" if on else "off"}}})
            self._until(BARRIERS[2], lambda found: bool(found["spec"].get("clusters")) == on)
        for key in BARRIERS[:2]:
            self.patch(key, {"spec": {"conflictResolution": flags[self._turn % 2]}})
        for key in BARRIERS[:2]:
            self._until(
                key,
                lambda found: (
                    found["metadata"]["generation"]
                    == found.get("status", {}).get("schedulerObservedGeneration")
                ),
            )

    def _until(self, key: Key, done: Callable[[Object], bool]) -> None:
        try:
            wait_for(
                lambda: self.client.get(key.path),
                f"{self.name} to react to {key}",
                timeout=60,
                until=done,
                interval=0.02,
                check=self.karmada.check,
            )
        except WaitTimeoutError as error:
            raise RestlessError(str(error)) from error


@contextmanager
def running(name: str, folder: Path, *, flags: Sequence[str] = ()) -> Iterator[Plane]:
    """Run a control plane with one of the two schedulers, the clusters' agents, and the barriers."""
    manager = ["--graceful-eviction-timeout=24h"]  # no task ends by itself in the middle of a step
    gates = {"CustomizedClusterResourceModeling": True}  # Karmada's default; members may have modelings
    with ControlPlane(folder, extra_flags={"controller-manager": manager}, feature_gates=gates) as karmada:
        plane = Plane(name, karmada)
        if name == UPSTREAM:
            karmada.start_karmada_scheduler(fleet.SCHEDULER, *FAST, *flags)
        else:
            start_scheduler(karmada, *FAST, *flags, name=fleet.SCHEDULER, lease=UPSTREAM)
        karmada.client.create(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": fleet.NAMESPACE}}
        )
        yield plane
