"""Cached results of plugins, by the key of everything in the binding on which they depend.

Most bindings share a policy, a kind and a request with thousands of others, and most clusters have not changed since the
last one. A plugin with ``filter_key`` or ``score_key`` is called again only for clusters that have changed. For clusters
that a binding is on, or is being evicted from, it is always called.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from operator import attrgetter
from typing import Final, TypeVar
from weakref import ref

from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.content_cache import LRUCache
from karmada_scheduler.framework.result import Result
from karmada_scheduler.framework.snapshot import Snapshot

T = TypeVar("T")

MAX_ENTRIES: Final = 320_000
"""The size of a cache in clusters, over all keys: 63 keys at 5,000 clusters, 2,100 at 100.

Filter results take some 110 bytes per cluster, with capacities 150, an order 25, or 120 if all its candidates have been
read: 85 MB in total, without Cluster objects that have been replaced since (see ``_MAX_REPORTS``).
"""
_KEY_SIZE: Final = 50
"""The size of a key without its clusters, in clusters."""
_MAX_REPORTS: Final = 2
"""The number of reports per cluster after which an unused value is dropped.

A value refers to the clusters as they were at its last use. When all of them have been replaced, an update costs as much
as a new value, and the value keeps the old Cluster objects (2 to 4 KB each) alive. With this limit all values together
keep at most ``_MAX_REPORTS`` old objects per cluster.
"""


def max_keys(size: int) -> int:
    """Return the number of keys to cache, for a number of clusters."""
    return max(1, MAX_ENTRIES // (size + _KEY_SIZE))


class SnapshotCache(LRUCache[T]):
    """Values that refer to the clusters of a snapshot."""

    def get_for(self, key: Hashable, make: Callable[[], T], snapshot: Snapshot) -> T:
        """Return the value of a key that refers to the clusters of a snapshot, a new one if there is none."""
        now = snapshot.position
        found = self._values.get(key)
        if found is not None and found.used == now:  # no cluster has changed since the last use
            self._values.move_to_end(key)
            return found.value
        size = len(snapshot.clusters)
        return self.get(key, make, max_size=max_keys(size), now=now, since=now - _MAX_REPORTS * size)


Version = tuple[int, int]
"""The number of updates that could not use the log of changes, and the position in the log of the last update.

The log has the clusters that changed after a position, as far as it goes back, so nothing is stored per version.
"""

_NO_VERSION: Final[Version] = (-1, -1)


class FilterResults:
    """The results of all filters for each cluster, for bindings with one key that are on no cluster.

    Attributes are replaced, never mutated; callers may keep references.

    Attributes:
        key: The key.
        version: Grows with every change, see ``Version``.
        feasible: The clusters that pass, in the order of names.
        rows: The index of each of them by name; the same object as long as the same clusters pass.
        refused: The refusals of the others, in the order of names.
        current: Answers for bindings that are on a cluster, evicted from it, or both, by its name; the keys are whether a
            binding is on it, and whether it is evicted from it. Those of changed clusters are dropped.
    """

    __slots__ = (
        "__weakref__",
        "_latest",
        "_snapshot",
        "current",
        "feasible",
        "key",
        "refused",
        "rows",
        "version",
    )

    def __init__(self, key: Hashable) -> None:
        """Start without clusters."""
        self.key: Final = key
        self.version: Version = (0, 0)
        self.feasible: Sequence[Cluster] = ()
        self.rows: Mapping[str, int] = {}
        self.refused: Mapping[str, Result] = {}
        self.current: Final[Mapping[tuple[bool, bool], dict[str, Result]]] = {
            (True, False): {},
            (False, True): {},
            (True, True): {},
        }
        self._snapshot = Snapshot()
        # The last change by a snapshot without a log, and the version before it.
        self._latest: tuple[Version, AbstractSet[str] | None] = (0, 0), None

    def __len__(self) -> int:
        """The number of clusters that were filtered."""
        return len(self.feasible) + len(self.refused)

    def refresh(
        self, snapshot: Snapshot, filter_clusters: Callable[[Sequence[Cluster]], Mapping[str, Result]]
    ) -> None:
        """Filter the clusters that have changed since the last snapshot.

        Args:
            snapshot: All clusters; those that are being deleted are ignored.
            filter_clusters: Returns the refusals of given clusters by name.
        """
        if snapshot is self._snapshot:
            return
        era, _ = self.version
        names = snapshot.changed_since(self._snapshot)
        if names is None:
            names = self._differing(snapshot)
            # Without a common log, snapshots at equal positions may differ, and so may later ones.
            era += bool(names or snapshot.has_log or self._snapshot.has_log)
            self._latest = self.version, names if not snapshot.position else None
        else:
            self._latest = _NO_VERSION, None  # there may be changes after it
        if names:
            self._filter_again(names, snapshot, filter_clusters)
        self.version = era, snapshot.position
        self._snapshot = snapshot

    def changed_until(self, snapshot: Snapshot) -> AbstractSet[str] | None:
        """Return the names of the clusters that changed between these results and a snapshot, None if not known."""
        return frozenset() if snapshot is self._snapshot else snapshot.changed_since(self._snapshot)

    def _differing(self, snapshot: Snapshot) -> set[str]:
        before = {cluster.name: cluster for cluster in self._snapshot}
        names = {cluster.name for cluster in snapshot if before.pop(cluster.name, None) is not cluster}
        return names | before.keys()

    def _filter_again(
        self,
        names: AbstractSet[str],
        snapshot: Snapshot,
        filter_clusters: Callable[[Sequence[Cluster]], Mapping[str, Result]],
    ) -> None:
        for answers in self.current.values():
            for name in names & answers.keys():
                del answers[name]
        changed = [each for name in sorted(names) if (each := snapshot.get(name)) and not each.deleting]
        refused = filter_clusters(changed)
        before = {name: result for name in names if (result := self.refused.get(name)) is not None}
        self._set_feasible(names, [cluster for cluster in changed if cluster.name not in refused])
        if before != refused:
            now = {name: result for name, result in self.refused.items() if name not in names}
            self.refused = dict(sorted((now | dict(refused)).items()))

    def _set_feasible(self, names: AbstractSet[str], passing: Sequence[Cluster]) -> None:
        """Replace the feasible clusters among some names by those that pass."""
        rows = [row for name in names if (row := self.rows.get(name)) is not None]
        if len(rows) == len(passing) and all(cluster.name in self.rows for cluster in passing):
            feasible = list(self.feasible)
            for cluster in passing:
                feasible[self.rows[cluster.name]] = cluster
        else:
            feasible = [cluster for cluster in self.feasible if cluster.name not in names]
            feasible = sorted((*feasible, *passing), key=attrgetter("name"))
            self.rows = {cluster.name: row for row, cluster in enumerate(feasible)}
        self.feasible = feasible

    def changed_since(self, version: Version) -> AbstractSet[str] | None:
        """Return the names of the clusters that changed after a version, None if the log does not go back so far."""
        if version == self.version:
            return frozenset()
        if version == self._latest[0]:
            return self._latest[1]
        era, position = version
        return self._snapshot.changed_after(position) if era == self.version[0] else None

    def passing_rows(self, names: Iterable[str]) -> Sequence[int]:
        """Return the sorted rows of the clusters that pass, among some names."""
        return sorted(row for name in names if (row := self.rows.get(name)) is not None)


class Cursor:
    """The version of filter results up to which a cache has been updated."""

    __slots__ = ("_results", "_version")

    def __init__(self) -> None:
        """Start without results."""
        self._results: Callable[[], FilterResults | None] = lambda: None
        self._version: Version = (0, 0)

    def changed_since(self, results: FilterResults) -> AbstractSet[str] | None:
        """Return the names of the clusters that have changed since the last ``advance``, None for all."""
        # New FilterResults of a key start with the first version again.
        return results.changed_since(self._version) if self._results() is results else None

    def advance(self, results: FilterResults) -> None:
        """Record that the cache has been updated to these results."""
        self._results, self._version = ref(results), results.version
