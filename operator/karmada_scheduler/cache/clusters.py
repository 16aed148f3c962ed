"""The member clusters, and the immutable snapshot of them that decisions are taken on."""

from __future__ import annotations

from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.cache.store import Store
from karmada_scheduler.framework.snapshot import Snapshot


class ClusterCache(Store[str, Cluster]):
    """Clusters by name.

    Between two changes every caller gets the same snapshot.
    """

    def __init__(self) -> None:
        """Start empty."""
        super().__init__(lambda cluster: cluster.name)
        self._generation = 0
        self._snapshot: Snapshot | None = None
        self._terminating: frozenset[str] = frozenset()

    def snapshot(self) -> Snapshot:
        """Return all clusters as they are now, sorted by name."""
        if self._snapshot is None:
            self._generation += 1
            self._snapshot = Snapshot.of(self, generation=self._generation)
        return self._snapshot

    @property
    def terminating(self) -> frozenset[str]:
        """The names of the clusters that are being deleted."""
        return self._terminating

    def _stored(self, old: Cluster | None, new: Cluster | None) -> None:
        self._snapshot = None
        if (old is not None and old.deleting) or (new is not None and new.deleting):
            self._terminating = frozenset(cluster.name for cluster in self if cluster.deleting)
