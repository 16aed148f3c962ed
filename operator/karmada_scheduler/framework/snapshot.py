"""All clusters as one attempt sees them.

A snapshot is immutable and may be shared; whatever arrives meanwhile goes into the next one. Clusters are
in the order of their names, so nothing that is decided depends on the order in which they became known.
What is derived from a cluster (its free room as integers, its taints that count) is computed when it is
first asked for and stays with the Cluster, so that the next snapshot has it too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Final

from karmada_scheduler.api.cluster import Cluster

_REMEMBERED_CHANGES: Final = 20_000


class ChangeLog:
    """The names of clusters in the order in which they came, changed and went; the oldest are forgotten."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._forgotten = 0

    def __len__(self) -> int:
        """How many changes there have been, those that are forgotten included."""
        return self._forgotten + len(self._names)

    def append(self, name: str) -> None:
        """Note a change."""
        self._names.append(name)
        if len(self._names) > 2 * _REMEMBERED_CHANGES:
            del self._names[:_REMEMBERED_CHANGES]
            self._forgotten += _REMEMBERED_CHANGES

    def between(self, begin: int, end: int) -> set[str] | None:
        """Return the names in a part of the log, None if it is forgotten."""
        if begin < self._forgotten:
            return None
        return set(self._names[begin - self._forgotten : end - self._forgotten])


@dataclass(frozen=True, slots=True)
class UnknownClusters:
    """What is not known of the clusters, and must therefore cost no binding its place.

    Attributes:
        unreadable: The clusters that exist and of which no version could be read: name to what is wrong.
        incomplete: Whether clusters may exist that were not listed: a list had none, and those that are known now
            came one by one since.
    """

    unreadable: Mapping[str, str] = field(default_factory=dict)
    incomplete: bool = False

    def __bool__(self) -> bool:
        return self.incomplete or bool(self.unreadable)


_ALL_KNOWN: Final = UnknownClusters()


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """Every known cluster, those being deleted included, in the order of names.

    Attributes:
        generation: Grows with every change; equal generations of one cache are equal snapshots.
        living: Those that are not being deleted, in the same order.
        terminating: The names of the others.
        unknown: What is not known; none of these is among the clusters.
    """

    clusters: tuple[Cluster, ...] = ()
    generation: int = 0
    living: tuple[Cluster, ...] = ()
    terminating: frozenset[str] = frozenset()
    _places: Mapping[str, int] = field(default_factory=dict)
    _log: ChangeLog | None = None
    _logged: int = 0
    unknown: UnknownClusters = _ALL_KNOWN

    @classmethod
    def of(
        cls,
        clusters: Iterable[Cluster],
        *,
        generation: int = 0,
        log: ChangeLog | None = None,
        unknown: UnknownClusters = _ALL_KNOWN,
    ) -> Snapshot:
        """Take a snapshot of clusters in any order; the last change in the ``log`` is the last that it shows."""
        ordered = tuple(sorted(clusters, key=attrgetter("name")))
        places = {cluster.name: place for place, cluster in enumerate(ordered)}
        logged = len(log) if log is not None else 0
        return cls(ordered, generation, *_by_life(ordered), places, log, logged, unknown)

    def with_reported(self, changed: Sequence[Cluster], *, generation: int) -> Snapshot:
        """Return the snapshot in which some clusters, all of which are in this one, have changed."""
        clusters = list(self.clusters)
        for cluster in changed:
            clusters[self._places[cluster.name]] = cluster
        now = tuple(clusters)
        some_go = self.terminating or any(cluster.deleting for cluster in changed)
        living, terminating = _by_life(now) if some_go else (now, self.terminating)
        logged = len(self._log) if self._log is not None else 0
        return Snapshot(now, generation, living, terminating, self._places, self._log, logged, self.unknown)

    def get(self, name: str) -> Cluster | None:
        """Find a cluster by its name."""
        place = self._places.get(name)
        return None if place is None else self.clusters[place]

    def changed_since(self, before: Snapshot) -> set[str] | None:
        """Return the names of the clusters that are not the same as in an earlier snapshot, None if unknown."""
        if self._log is None or before._log is not self._log:
            return None
        return self._log.between(before._logged, self._logged)

    def changed_after(self, position: int) -> set[str] | None:
        """Return the names of the clusters that have changed since a position in the log, None if unknown."""
        return None if self._log is None else self._log.between(position, self._logged)

    @property
    def position(self) -> int:
        """Up to which change in the log this shows the clusters; 0 without a log."""
        return self._logged

    def __iter__(self) -> Iterator[Cluster]:
        return iter(self.clusters)

    def __len__(self) -> int:
        return len(self.clusters)


def _by_life(clusters: tuple[Cluster, ...]) -> tuple[tuple[Cluster, ...], frozenset[str]]:
    """Return the clusters that stay, and the names of those that are being deleted."""
    living = tuple(cluster for cluster in clusters if not cluster.deleting)
    return living, frozenset(cluster.name for cluster in clusters if cluster.deleting)
