"""What changes while a scheduler works: placements of bindings, and where Pods are, with the time of each change."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from tools.controlplane import ControlPlane, Object
from tools.controlplane.api import Client
from tools.manifests import targets_of

BINDINGS = "/apis/work.karmada.io/v1alpha2/namespaces/{}/resourcebindings"


class Records:
    """Watches a namespace on the control plane and in all real members, from its creation to `stop`.

    Attributes:
        placements: Binding to all its placements so far, each as replicas by cluster.
        last: When a placement or a Pod changed last, of ``time.monotonic``.
    """

    def __init__(self, plane: ControlPlane, space: str) -> None:
        self.placements: dict[str, list[dict[str, int]]] = {}
        self.last = time.monotonic()
        self._written = list[float]()
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._pods: dict[str, object] = {}
        watched: list[tuple[Client, str, Callable[[str, Object], bool]]] = [
            (plane.client, BINDINGS.format(space), self._placed)
        ]
        watched += [
            (member.client, f"/api/v1/namespaces/{space}/pods", self._moved)
            for member in plane.members.values()
        ]
        self._threads = [threading.Thread(target=self._watch, args=each, daemon=True) for each in watched]
        for thread in self._threads:
            thread.start()

    @property
    def writes(self) -> int:
        """How many placements were written."""
        with self._lock:
            return sum(len(each) for each in self.placements.values())

    def writes_after(self, moment: float) -> int:
        """Return how many placements were written after a moment of ``time.monotonic``."""
        with self._lock:
            return sum(1 for written in self._written if written > moment)

    @property
    def moved(self) -> int:
        """How many replicas were taken from a cluster that had them; no workload is scaled."""
        with self._lock:
            return sum(
                max(0, replicas - after.get(name, 0))
                for history in self.placements.values()
                for before, after in itertools.pairwise(history)
                for name, replicas in before.items()
            )

    def stop(self) -> None:
        """Watch no longer."""
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _watch(self, client: Client, path: str, changed: Callable[[str, Object], bool]) -> None:
        for event, found in client.watch(path, stop=self._stop, timeout=5):
            with self._lock:
                if changed(event, found):
                    self.last = time.monotonic()

    def _placed(self, event: str, binding: Object) -> bool:
        history = self.placements.setdefault(binding["metadata"]["name"], [])
        now = targets_of(binding)
        if event == "DELETED" or now == (history[-1] if history else {}):
            return False
        history.append(now)
        self._written.append(time.monotonic())
        return True

    def _moved(self, event: str, pod: Object) -> bool:
        key, now = pod["metadata"]["uid"], (pod["spec"].get("nodeName"), is_running(pod))
        before = self._pods.get(key)
        if event == "DELETED":
            return self._pods.pop(key, None) is not None
        self._pods[key] = now
        return before != now


def is_running(pod: Object) -> bool:
    """Return whether a Pod is ready and stays."""
    return "deletionTimestamp" not in pod["metadata"] and any(
        each["type"] == "Ready" and each["status"] == "True" for each in pod["status"].get("conditions", ())
    )


def reported(bindings: list[dict[str, Any]]) -> Iterator[int]:
    """Yield the ready replicas that each binding's status has from each of its clusters."""
    for binding in bindings:
        for item in binding.get("status", {}).get("aggregatedStatus") or ():
            yield (item.get("status") or {}).get("readyReplicas", 0)
