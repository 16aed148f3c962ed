"""What plugins said of clusters, remembered by what of the binding it depends on.

Most bindings share a policy, a kind and a request with thousands of others, and most clusters have not changed
since the last one. A plugin that says what its answers depend on (``filter_key``, ``score_key``) is asked again
only about clusters that have changed; about the clusters that a binding is on, or is being moved off, it is
always asked.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from operator import attrgetter
from typing import Final, Generic, TypeVar
from weakref import ref

from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.framework.result import Result
from karmada_scheduler.framework.snapshot import Snapshot

T = TypeVar("T")

REMEMBERED: Final = 320_000
"""Clusters in all keys of a memo: 63 keys at 5,000 clusters, 2,100 at 100.

Verdicts take some 110 bytes per cluster, with capacities 150, an order of preference 25, or 120 where somebody has
looked at every candidate: 85 MB in all. Cluster objects that have been replaced since come on top, see ``_FLEETS``.
"""
_OWN_SIZE: Final = 50
"""What a key takes by itself, in clusters."""
_FLEETS: Final = 2
"""After how many reports per cluster an unused value is forgotten.

A value refers to the clusters as they were when it was last used. All of them may have been replaced since, so to bring
it up to date costs as much as to make it anew, while it keeps a fleet of old Cluster objects (2 to 4 KB each) alive.
With this bound there are at most ``_FLEETS`` old objects per cluster in all values together.
"""


def most_keys(size: int) -> int:
    """Return how many keys to remember what is said of a fleet of some size for."""
    return max(1, REMEMBERED // (size + _OWN_SIZE))


@dataclass(slots=True)
class _Remembered(Generic[T]):
    value: T
    used: int
    size: int


class LRUCache(Generic[T]):
    """Values by key; of too many the longest unused is forgotten, and what is unused for too long."""

    def __init__(self, *, size_of: Callable[[T], int] = lambda _: 1) -> None:
        """Start empty; ``size_of`` tells how much a value counts that has just been made."""
        self._values: OrderedDict[Hashable, _Remembered[T]] = OrderedDict()
        self._size_of = size_of
        self._size = 0

    def __len__(self) -> int:
        """How many values are kept."""
        return len(self._values)

    def get(self, key: Hashable, make: Callable[[], T], *, most: int, now: int = 0, since: int = 0) -> T:
        """Return the value of a key, made if there is none.

        Args:
            key: Whose value.
            make: Makes the value.
            most: How many values are kept, or the size of all of them; a value that is larger is not kept.
            now: When this is, on any scale that does not run backwards.
            since: Values that were last used before this are forgotten.
        """
        values = self._values
        found = values.get(key)
        if found is None:
            value = make()
            size = self._size_of(value)
            if size > most:
                return value
            found = values[key] = _Remembered(value, now, size)
            self._size += size
        else:
            found.used = now
            values.move_to_end(key)
        while self._size > most or (since > 0 and next(iter(values.values())).used < since):
            _, forgotten = values.popitem(last=False)
            self._size -= forgotten.size
        return found.value

    def get_for(self, key: Hashable, make: Callable[[], T], snapshot: Snapshot) -> T:
        """Return the value of a key that refers to the clusters of a snapshot, made if there is none."""
        now = snapshot.position
        found = self._values.get(key)
        if (
            found is not None and found.used == now
        ):  # nothing has changed since, and it is one of the last used
            self._values.move_to_end(key)
            return found.value
        size = len(snapshot.clusters)
        return self.get(key, make, most=most_keys(size), now=now, since=now - _FLEETS * size)


Version = tuple[int, int]
"""How often verdicts could not follow the log of changes, and up to which position in it they have since.

A position says which clusters have changed after it, for as long as the log goes back, so nothing is kept per version.
"""


class FilterResults:
    """What the filters say of every cluster, for bindings of one key that are on none of them.

    What is said of it here is never changed, but replaced, so that others can keep it.

    Attributes:
        key: What of the binding they depend on.
        version: Grows with every change, see ``Version``.
        feasible: The clusters that pass, in the order of names.
        rows: Where each of them is, by name; the same object for as long as the same clusters pass.
        refused: Why the others do not, in the order of names.
    """

    __slots__ = ("__weakref__", "_latest", "_snapshot", "feasible", "key", "refused", "rows", "version")

    def __init__(self, key: Hashable) -> None:
        """Start with no clusters."""
        self.key: Final = key
        self.version: Version = (0, 0)
        self.feasible: Sequence[Cluster] = ()
        self.rows: Mapping[str, int] = {}
        self.refused: Mapping[str, Result] = {}
        self._snapshot = Snapshot()
        # What changed when a snapshot without a log came, and after which version.
        self._latest: tuple[Version, AbstractSet[str] | None] = (0, 0), None

    def __len__(self) -> int:
        """How many clusters were judged."""
        return len(self.feasible) + len(self.refused)

    def refresh(self, snapshot: Snapshot, judge: Callable[[Sequence[Cluster]], Mapping[str, Result]]) -> None:
        """Ask about the clusters that are not the same objects as last time.

        Args:
            snapshot: All clusters; those that are being deleted do not count.
            judge: Returns why some of the clusters that it is given do not pass.
        """
        if snapshot is self._snapshot:
            return
        era, _ = self.version
        names = snapshot.changed_since(self._snapshot)
        if names is None:
            names = self._differing(snapshot)
            # Without a log, equal positions of equal snapshots mean the same.
            era += bool(names or snapshot.position)
            self._latest = self.version, names if not snapshot.position else None
        if names:
            self._judge_anew(names, snapshot, judge)
        self.version = era, snapshot.position
        self._snapshot = snapshot

    def _differing(self, snapshot: Snapshot) -> set[str]:
        before = {cluster.name: cluster for cluster in self._snapshot}
        names = {each.name for each in snapshot if before.pop(each.name, None) is not each}
        return names | before.keys()

    def _judge_anew(
        self,
        names: AbstractSet[str],
        snapshot: Snapshot,
        judge: Callable[[Sequence[Cluster]], Mapping[str, Result]],
    ) -> None:
        changed = [each for name in sorted(names) if (each := snapshot.get(name)) and not each.deleting]
        refused = judge(changed)
        before = {name: result for name in names if (result := self.refused.get(name)) is not None}
        self._let_pass(names, [cluster for cluster in changed if cluster.name not in refused])
        if before != refused:
            now = {name: result for name, result in self.refused.items() if name not in names}
            self.refused = dict(sorted((now | dict(refused)).items()))

    def _let_pass(self, names: AbstractSet[str], passing: Sequence[Cluster]) -> None:
        """Let these pass of the clusters of some names, and no others of them."""
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
        """Return the names of the clusters that changed after a version, None if that is not known any more."""
        if version == self.version:
            return frozenset()
        if version == self._latest[0]:
            return self._latest[1]
        era, position = version
        return self._snapshot.changed_after(position) if era == self.version[0] else None

    def rows_of(self, names: Iterable[str]) -> Sequence[int]:
        """Return the rows of those of some clusters that pass, in order."""
        return sorted(row for name in names if (row := self.rows.get(name)) is not None)


class Cursor:
    """Up to which version something has followed verdicts."""

    __slots__ = ("_verdicts", "_version")

    def __init__(self) -> None:
        """Start with nothing followed."""
        self._verdicts: Callable[[], FilterResults | None] = lambda: None
        self._version: Version = (0, 0)

    def news(self, verdicts: FilterResults) -> AbstractSet[str] | None:
        """Return the names of the clusters that have changed since, None for all."""
        # FilterResults that were forgotten and made anew count their versions anew.
        return verdicts.changed_since(self._version) if self._verdicts() is verdicts else None

    def caught_up(self, verdicts: FilterResults) -> None:
        """Note that everything of them is known."""
        self._verdicts, self._version = ref(verdicts), verdicts.version
