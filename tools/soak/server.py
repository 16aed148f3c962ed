"""The fake API server for a million events: it counts what it sends to watches, and keeps only the recent past."""

from __future__ import annotations

from typing import Final

from tests.fake_apiserver import FakeApiServer
from tools.apiserver_model import Write

_KEPT_WRITES: Final = 5000

WATCHED: Final = frozenset(
    {
        "Cluster",
        "ResourceBinding",
        "ClusterResourceBinding",
        "PropagationPolicy",
        "ClusterPropagationPolicy",
    }
)


class SoakServer(FakeApiServer):
    """A ``FakeApiServer`` whose memory does not grow.

    Attributes:
        events: The number of watch events of the kinds that a scheduler watches.
        live: The versions of the objects of each of these kinds.
        requests_total: The number of requests that were forgotten.
    """

    def __init__(self) -> None:
        """Start empty."""
        super().__init__(kept_writes=_KEPT_WRITES)
        self.events = 0
        self.live: dict[str, dict[tuple[str, str], int]] = {kind: {} for kind in WATCHED}
        self.requests_total = 0
        self.model.observers.append(self._count)

    def _count(self, write: Write) -> None:
        if write.kind in WATCHED:
            self.events += 1
            if write.after is None:
                del self.live[write.kind][write.key]
            else:
                self.live[write.kind][write.key] = write.revision

    def newest(self) -> dict[str, tuple[int, int]]:
        """Return the newest version and the number of the objects of each kind."""
        with self.lock:
            return {kind: (max(found.values(), default=0), len(found)) for kind, found in self.live.items()}

    def forget_past(self) -> None:
        """Forget requests and Events; the latter live for an hour in a real API server."""
        with self.lock:
            self.requests_total += len(self.requests)
            self.requests.clear()
            for namespace, name in list(self.model.state("Event")):
                self.model.delete("Event", namespace, name, force=True)

    def expire_watches(self) -> None:
        """End all watches; the next ones get 410, because the versions at which they want to continue are compacted."""
        with self.lock:
            self.model.compact(self.version)
            self.end_watches()
