"""Simulated members that become healthy when a test says so, and the ready replicas of its workloads over time.

Karmada's own controllers create, update and delete the Works. This module plays the agents: it reports a Work as applied
and healthy, with as many ready replicas as the test allows, and lets deleted Works go.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import requests

from tools.controlplane import ControlPlane, Object
from tools.controlplane.api import ApiError
from tools.controlplane.karmada import CLUSTERS, WORKS
from tools.controlplane.simulated import EXECUTION_SPACE, SimulatedMember, applied

ALL = 10**6
TRIES = 20


class LateMembers:
    """Members whose Works are answered only as far as the test allows.

    Attributes:
        names: The clusters.
    """

    def __init__(self, plane: ControlPlane, *names: str, cpu: str = "16") -> None:
        """Add the members with so many cores; none of them answers."""
        self.names = names
        self._plane = plane
        self._most: dict[str, int] = {}
        self._copies: dict[tuple[str, str], tuple[str, int, str]] = {}
        self._timeline: dict[str, list[tuple[float, int]]] = {}
        self._lock = threading.Lock()
        self._stop = threading.Event()
        plane.add(*(SimulatedMember(name, labels={"kind": "late"}, cpu=cpu) for name in names), agents=False)
        self._thread = threading.Thread(target=self._run, name="late members", daemon=True)
        self._thread.start()

    def allow(self, *names: str, most: int = ALL) -> None:
        """Report workloads on these members as healthy, with at most so many ready replicas."""
        self._most |= dict.fromkeys(names, most)
        for name in names:
            for work in self._plane.client.list(_works_of(name)):
                self._answer(name, work)

    def silence(self, *names: str) -> None:
        """Report nothing about workloads on these members from now on."""
        for name in names:
            self._most.pop(name, None)

    def label(self, name: str, **labels: str | None) -> None:
        """Set labels of a member; None removes one."""
        self._plane.client.patch(f"{CLUSTERS}/{name}", {"metadata": {"labels": labels}})

    def taint(self, name: str, *taints: Object) -> None:
        """Replace the taints of a member."""
        self._plane.client.patch(f"{CLUSTERS}/{name}", {"spec": {"taints": list(taints)}})

    def uid_of(self, cluster: str, workload: str) -> str | None:
        """Return the uid of the Work of ``namespace/name`` on a cluster, None if there is none."""
        with self._lock:
            return next(
                (
                    uid
                    for (where, _), (what, _, uid) in self._copies.items()
                    if (where, what) == (cluster, workload)
                ),
                None,
            )

    def ready(self, workload: str) -> int:
        """Return the ready replicas of ``namespace/name`` on all members."""
        with self._lock:
            return self._sum(workload)

    def least_ready(self, workload: str, *, since: float) -> int:
        """Return the smallest number of ready replicas since a moment of ``time.monotonic``, the one before included."""
        with self._lock:
            timeline = self._timeline.get(workload, [(0.0, 0)])
        before = [count for at, count in timeline if at < since][-1:]
        return min([*before, *(count for at, count in timeline if at >= since)])

    def wait_ready(self, workload: str, count: int) -> None:
        """Wait until ``namespace/name`` has that many ready replicas on all members."""
        self._plane.wait_for(
            lambda: self.ready(workload), f"{count} ready replicas", until=lambda ready: ready == count
        )

    def wait_gone(self, cluster: str, workload: str) -> None:
        """Wait until the Work of ``namespace/name`` on a cluster is deleted."""
        self._plane.wait_for(
            lambda: self.uid_of(cluster, workload) is None, f"the copy of {workload} on {cluster} to go"
        )

    def remove(self, *names: str) -> None:
        """Delete members and wait until Karmada has let them go."""
        for name in names:
            self._plane.client.delete(f"{CLUSTERS}/{name}")

        def left() -> list[str]:
            return [name for name in names if self._plane.client.find(f"{CLUSTERS}/{name}") is not None]

        self._plane.wait_for(left, f"{names} to be gone", until=lambda found: not found, timeout=90)

    def close(self) -> None:
        """Delete the members and stop."""
        left = {each["metadata"]["name"] for each in self._plane.client.list(CLUSTERS)}
        self.remove(*(name for name in self.names if name in left))
        self._stop.set()

    def _run(self) -> None:
        for event, work in self._plane.client.watch(WORKS, stop=self._stop):
            cluster = work["metadata"]["namespace"].removeprefix(EXECUTION_SPACE)
            if cluster in self.names:
                self._record(event, cluster, work)
                if event != "DELETED":
                    self._answer(cluster, work)

    def _record(self, event: str, cluster: str, work: Object) -> None:
        manifest = work["spec"]["workload"]["manifests"][0]
        if manifest["kind"] != "Deployment":
            return
        metadata = manifest["metadata"]
        workload, key = f"{metadata['namespace']}/{metadata['name']}", (cluster, work["metadata"]["name"])
        with self._lock:
            if event == "DELETED" or "deletionTimestamp" in work["metadata"]:
                self._copies.pop(key, None)
            else:
                self._copies[key] = workload, _ready(work, manifest), work["metadata"]["uid"]
            self._timeline.setdefault(workload, []).append((time.monotonic(), self._sum(workload)))

    def _sum(self, workload: str) -> int:
        return sum(ready for what, ready, _ in self._copies.values() if what == workload)

    def _answer(self, cluster: str, work: Object) -> None:
        path = f"{_works_of(cluster)}/{work['metadata']['name']}"
        for _ in range(TRIES):
            try:
                if "deletionTimestamp" in work["metadata"]:
                    if work["metadata"].get("finalizers"):
                        self._plane.client.patch(path, {"metadata": {"finalizers": None}})
                elif cluster in self._most and (status := self._report(cluster, work)) is not None:
                    self._plane.client.patch(f"{path}/status", {"status": status})
            except ApiError as error:
                if error.status == 404:
                    return
            except requests.RequestException:
                pass
            else:
                return
            self._stop.wait(0.2)

    def _report(self, cluster: str, work: Object) -> Object | None:
        known: Any = work.get("status", {})
        status = applied({**work, "status": {}})
        assert status is not None
        for report in status["manifestStatuses"]:
            if "readyReplicas" in report.get("status", {}):
                ready = min(report["status"]["readyReplicas"], self._most[cluster])
                report["status"] |= {"readyReplicas": ready, "availableReplicas": ready}
        is_same = known.get("manifestStatuses") == status["manifestStatuses"] and known.get("conditions")
        return None if is_same else status


@contextmanager
def late_members(plane: ControlPlane, *names: str, cpu: str = "16") -> Iterator[LateMembers]:
    """Add members that answer when the test says so, and delete them at the end."""
    members = LateMembers(plane, *names, cpu=cpu)
    try:
        yield members
    finally:
        members.close()


def _works_of(cluster: str) -> str:
    return f"/apis/work.karmada.io/v1alpha1/namespaces/{EXECUTION_SPACE}{cluster}/works"


def _ready(work: Object, manifest: Object) -> int:
    """Return the replicas of a copy that are ready; a copy that shrinks loses the others at once."""
    reports = work.get("status", {}).get("manifestStatuses") or [{}]
    reported = reports[0].get("status", {}).get("readyReplicas", 0)
    return min(int(reported), int(manifest["spec"].get("replicas", 0)))
