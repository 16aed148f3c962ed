"""The member clusters, and the immutable snapshot of them that decisions use."""

from __future__ import annotations

from collections.abc import Collection, Container

from karmada_pyscheduler.cache.store import Change, Store
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.framework.snapshot import ChangeLog, Snapshot, UnknownClusters
from karmada_scheduler.structs import replace


class ClusterCache(Store[str, Cluster]):
    """Clusters by name, and the names of those that exist but cannot be read.

    ``snapshot`` returns the same object until something changes.
    """

    def __init__(self) -> None:
        """Start empty."""
        super().__init__(lambda cluster: cluster.name)
        self._log = ChangeLog()
        self._snapshot = Snapshot.of((), log=self._log)
        self._changed: set[str] = set()
        self._unreadable: dict[str, str] = {}
        self._incomplete = False
        self._unknown = UnknownClusters()
        self._unknown_changed = False

    def snapshot(self) -> Snapshot:
        """Return all clusters, sorted by name.

        A changed status updates the last snapshot. An added or removed cluster changes the order, so the snapshot is
        made from scratch.
        """
        if self._unknown_changed:
            self._unknown = UnknownClusters(dict(self._unreadable), self._incomplete)
            self._unknown_changed = False
            generation = self._snapshot.generation + 1
            self._snapshot = replace(self._snapshot, generation=generation, unknown=self._unknown)
        if self._changed:
            before, names = self._snapshot, self._changed
            generation = before.generation + 1
            changed = [cluster for name in names if (cluster := self.get(name)) is not None]
            if len(changed) == len(names) and all(before.get(name) for name in names):
                self._snapshot = before.with_reported(changed, generation=generation)
            else:
                self._snapshot = Snapshot.of(
                    self, generation=generation, log=self._log, unknown=self._unknown
                )
            self._changed = set()
        return self._snapshot

    def is_gone(self, name: str) -> bool:
        """Return whether a cluster is being deleted or does not exist, as ``Snapshot.is_gone``."""
        return self.snapshot().is_gone(name)

    @property
    def unreadable(self) -> Collection[str]:
        """The names of the clusters without a readable version."""
        return self._unreadable.keys()

    @property
    def is_incomplete(self) -> bool:
        """Whether clusters may exist that are not listed; see ``UnknownClusters``."""
        return self._incomplete

    def set_incomplete(self, incomplete: bool) -> None:  # noqa: FBT001
        """Set whether clusters may exist that are not listed."""
        self._unknown_changed |= incomplete != self._incomplete
        self._incomplete = incomplete

    def refuse(self, name: str, version: int, problem: str) -> bool:
        """Record an unreadable version of a cluster; the cluster keeps its last readable version.

        Returns:
            Whether it has no readable version.
        """
        if name in self._objects or self.is_known(name, version):
            return False
        self._unreadable[name] = problem
        self._unknown_changed = True
        return True

    def put_deleting(self, name: str, version: int) -> Change[Cluster] | None:
        """Mark a cluster with an unreadable version as being deleted; return the change, as ``put``."""
        known = self._objects.get(name, Cluster(name))
        return self.put(replace(known, resource_version=str(version), deleting=True))

    def discard(self, key: str) -> Change[Cluster] | None:
        """Remove a readable or unreadable cluster."""
        self._forget_unreadable(key)
        return super().discard(key)

    def missing_from(self, keys: Container[object], version: int) -> list[str]:
        """Return the names of the clusters that a list of this version lacks.

        Unreadable clusters are included whatever their version: without a readable version since its creation, a
        cluster has no bindings that could lose it.
        """
        unreadable = (name for name in self._unreadable if name not in keys)
        return [*super().missing_from(keys, version), *unreadable]

    def _forget_unreadable(self, name: str) -> None:
        if self._unreadable.pop(name, None) is not None:
            self._unknown_changed = True

    def _stored(self, old: Cluster | None, new: Cluster | None) -> None:
        changed = new or old
        if changed is None:
            return
        self._log.append(changed.name)
        if new is not None or self._snapshot.get(changed.name) is not None:
            self._changed.add(changed.name)
        else:  # it came and went since the last snapshot; a standby takes none
            self._changed.discard(changed.name)
        self._forget_unreadable(changed.name)
        super()._stored(old, new)
