"""The member clusters, and the immutable snapshot of them that decisions are taken on."""

from __future__ import annotations

from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.cache.store import Store
from karmada_scheduler.framework.snapshot import ChangeLog, Snapshot


class ClusterCache(Store[str, Cluster]):
    """Clusters by name.

    Between two changes every caller gets the same snapshot.
    """

    def __init__(self) -> None:
        """Start empty."""
        super().__init__(lambda cluster: cluster.name)
        self._log = ChangeLog()
        self._snapshot = Snapshot.of((), log=self._log)
        self._changed: set[str] = set()
        self._terminating: frozenset[str] = frozenset()

    def snapshot(self) -> Snapshot:
        """Return all clusters as they are now, sorted by name.

        Mostly a few have reported; who came or went changes the order of all.
        """
        if self._changed:
            before, names = self._snapshot, self._changed
            generation = before.generation + 1
            changed = [cluster for name in names if (cluster := self.get(name)) is not None]
            if len(changed) == len(names) and all(before.get(name) for name in names):
                self._snapshot = before.with_reported(changed, generation=generation)
            else:
                self._snapshot = Snapshot.of(self, generation=generation, log=self._log)
            self._changed = set()
        return self._snapshot

    @property
    def terminating(self) -> frozenset[str]:
        """The names of the clusters that are being deleted."""
        return self._terminating

    def _stored(self, old: Cluster | None, new: Cluster | None) -> None:
        changed = new or old
        if changed is not None:
            self._log.append(changed.name)
            self._changed.add(changed.name)
        if (old is not None and old.deleting) or (new is not None and new.deleting):
            self._terminating = frozenset(cluster.name for cluster in self if cluster.deleting)
