"""All clusters during one attempt.

A snapshot is immutable and may be shared; later changes are in the next one. Clusters are in the order of their names, so
decisions do not depend on the order of events. Values that are derived from a cluster (free capacity as integers, the
taints that count) are computed at their first use and cached in the Cluster object, which later snapshots share.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Final

from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.structs import Struct, field

_KEPT_CHANGES: Final = 20_000


class ChangeLog:
    """The names of clusters in the order of their changes; the oldest are dropped."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._dropped = 0

    def __len__(self) -> int:
        """The number of all changes, the dropped ones included."""
        return self._dropped + len(self._names)

    def append(self, name: str) -> None:
        """Append a change."""
        self._names.append(name)
        if len(self._names) > 2 * _KEPT_CHANGES:
            del self._names[:_KEPT_CHANGES]
            self._dropped += _KEPT_CHANGES

    def between(self, begin: int, end: int) -> set[str] | None:
        """Return the names in a part of the log, None if it was dropped."""
        if begin < self._dropped:
            return None
        return set(self._names[begin - self._dropped : end - self._dropped])


class UnknownClusters(Struct, frozen=True):
    """The clusters that exist or may exist, and are unknown. No placement is cleared because of them.

    Attributes:
        unreadable: The clusters of which no version could be read: the error by name.
        incomplete: Whether clusters may exist that were not listed: a list had none, and the known ones were added by
            events since.
    """

    unreadable: Mapping[str, str] = field(default_factory=dict)
    incomplete: bool = False

    def __bool__(self) -> bool:
        return self.incomplete or bool(self.unreadable)

    def may_have(self, name: str) -> bool:
        """Return whether a cluster of this name may exist."""
        return self.incomplete or name in self.unreadable


_ALL_KNOWN: Final = UnknownClusters()


class Snapshot(Struct, frozen=True, eq=False):
    """Every known cluster, those being deleted included, in the order of names.

    Attributes:
        generation: Grows with every change; snapshots of one cache with equal generations are equal.
        not_terminating: The clusters that are not being deleted, in the same order.
        unknown: The clusters that are unknown, none of which is in ``clusters``.
    """

    clusters: tuple[Cluster, ...] = ()
    generation: int = 0
    not_terminating: tuple[Cluster, ...] = ()
    _places: Mapping[str, int] = field(default_factory=dict)
    _log: ChangeLog | None = None
    _logged: int = 0
    unknown: UnknownClusters = _ALL_KNOWN

    def __repr__(self) -> str:
        return f"<Snapshot {self.generation} of {len(self.clusters)} clusters>"

    @classmethod
    def of(
        cls,
        clusters: Iterable[Cluster],
        *,
        generation: int = 0,
        log: ChangeLog | None = None,
        unknown: UnknownClusters = _ALL_KNOWN,
    ) -> Snapshot:
        """Return a snapshot of clusters in any order, up to the last change in the ``log``."""
        ordered = tuple(sorted(clusters, key=attrgetter("name")))
        places = {cluster.name: place for place, cluster in enumerate(ordered)}
        logged = len(log) if log is not None else 0
        return cls(ordered, generation, _without_deleting(ordered), places, log, logged, unknown)

    def with_reported(self, changed: Sequence[Cluster], *, generation: int) -> Snapshot:
        """Return the snapshot after changes of some clusters, all of which are in this one."""
        clusters = list(self.clusters)
        for cluster in changed:
            clusters[self._places[cluster.name]] = cluster
        now = tuple(clusters)
        has_terminating = len(self.not_terminating) < len(now) or any(cluster.deleting for cluster in changed)
        not_terminating = _without_deleting(now) if has_terminating else now
        logged = len(self._log) if self._log is not None else 0
        return Snapshot(now, generation, not_terminating, self._places, self._log, logged, self.unknown)

    def get(self, name: str) -> Cluster | None:
        """Return a cluster by its name, None if there is none."""
        place = self._places.get(name)
        return None if place is None else self.clusters[place]

    def is_gone(self, name: str) -> bool:
        """Return whether a cluster is being deleted or does not exist.

        A cluster that may exist is not gone, and none is as long as no cluster is known.
        """
        found = self.get(name)
        if found is not None:
            return found.deleting
        return bool(self.clusters) and not self.unknown.may_have(name)

    def changed_since(self, before: Snapshot) -> set[str] | None:
        """Return the names of the clusters that differ from an earlier snapshot, None if the log does not go back so far."""
        if self._log is None or before._log is not self._log:
            return None
        return self._log.between(before._logged, self._logged)

    def changed_after(self, position: int) -> set[str] | None:
        """Return the names of the clusters that changed after a position in the log, None if it does not go back so far."""
        return None if self._log is None else self._log.between(position, self._logged)

    @property
    def has_log(self) -> bool:
        """Whether a log has its changes, so that positions count."""
        return self._log is not None

    @property
    def position(self) -> int:
        """The position of the last change in the log; 0 without a log."""
        return self._logged

    def __iter__(self) -> Iterator[Cluster]:
        return iter(self.clusters)

    def __len__(self) -> int:
        return len(self.clusters)


def _without_deleting(clusters: tuple[Cluster, ...]) -> tuple[Cluster, ...]:
    return tuple(cluster for cluster in clusters if not cluster.deleting)
