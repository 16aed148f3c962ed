"""All clusters as one attempt sees them.

A snapshot is immutable and may be shared; whatever arrives meanwhile goes into the next one. Clusters are
in the order of their names, so nothing that is decided depends on the order in which they became known.
What is derived from a cluster (its free room as integers, its taints that count) is computed when it is
first asked for and stays with the Cluster, so that the next snapshot has it too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from operator import attrgetter

from karmada_scheduler.api.cluster import Cluster


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """Every known cluster, those being deleted included, in the order of names.

    Attributes:
        generation: Grows with every change; equal generations of one cache are equal snapshots.
        living: Those that are not being deleted, in the same order.
        terminating: The names of the others.
    """

    clusters: tuple[Cluster, ...] = ()
    generation: int = 0
    living: tuple[Cluster, ...] = ()
    terminating: frozenset[str] = frozenset()
    _by_name: dict[str, Cluster] = field(default_factory=dict)

    @classmethod
    def of(cls, clusters: Iterable[Cluster], *, generation: int = 0) -> Snapshot:
        """Take a snapshot of clusters in any order."""
        ordered = tuple(sorted(clusters, key=attrgetter("name")))
        living = tuple(cluster for cluster in ordered if not cluster.deleting)
        terminating = frozenset(cluster.name for cluster in ordered if cluster.deleting)
        return cls(ordered, generation, living, terminating, {cluster.name: cluster for cluster in ordered})

    def get(self, name: str) -> Cluster | None:
        """Find a cluster by its name."""
        return self._by_name.get(name)

    def __iter__(self) -> Iterator[Cluster]:
        return iter(self.clusters)

    def __len__(self) -> int:
        return len(self.clusters)
