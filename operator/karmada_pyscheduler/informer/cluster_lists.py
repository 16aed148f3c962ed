"""Confirms that the clusters that a complete list lacks are deleted, and requests a list for those that none had.

A list without clusters usually comes from an API server that has lost its storage, or cannot reach it. It rarely means
that all clusters are gone: Karmada gives each Cluster a finalizer, so a deletion is first seen as a deletionTimestamp.
Such a list counts when a later one confirms it.

A binding may get a cluster that no list and no event had, if those were incomplete, or one that was deleted and created
again, if the event of that is late. The binding keeps it until the cluster was read (``cluster_reads``). A name that no
Cluster can have exists nowhere.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterable, Sized
from typing import Final

from karmada_pyscheduler.cache.clusters import ClusterCache
from karmada_pyscheduler.informer.cluster_reads import ClusterReads, Sleep
from karmada_pyscheduler.informer.object_kinds import RelistDiff
from karmada_scheduler.api.binding import Binding, TargetCluster
from karmada_scheduler.api.matching import is_subdomain
from karmada_scheduler.structs import Struct

log = logging.getLogger(__name__)

CONFIRM_SECONDS: Final = 30.0
"""Time between two lists of which the second confirms the first; also the time without an added cluster after which
the clusters count as complete again."""


class ClusterLists(Struct):
    """Confirms complete lists of clusters, and marks the cache as incomplete.

    Attributes:
        clusters: The cache.
        bindings: If any has clusters, some must exist.
        is_assigned: Returns whether a binding is assigned to one of our schedulers; other bindings need no cluster.
        clock: In seconds.
        request_list: Called when a list of clusters is needed, with the seconds after which it is.
        reads: Reads clusters by name.
    """

    clusters: ClusterCache
    bindings: Iterable[Binding]
    is_assigned: Callable[[Binding], bool]
    clock: Callable[[], float]
    request_list: Callable[[float], None]
    reads: ClusterReads
    _empty_since: float | None = None
    _last_added: float = 0.0

    @property
    def is_confirming(self) -> bool:
        """Whether the last list had no cluster and is not confirmed, so that no cluster counts as deleted."""
        return self._empty_since is not None

    def removes_others(self, listed: Sized) -> bool:
        """Return whether the clusters that a list lacks count as deleted; called once for each complete list."""
        if len(listed) or not len(self.clusters):
            self._empty_since = None
            return True
        now = self.clock()
        if self._empty_since is None:
            self._empty_since = now
            log.warning(
                "A list has no Clusters although some are known, waiting for another list to agree",
                extra={"count": len(self.clusters)},
            )
            self.request_list(CONFIRM_SECONDS)
        if now - self._empty_since < CONFIRM_SECONDS:
            return False
        self._empty_since = None
        return True

    def finished(self, listed: Sized) -> bool:
        """Record that a list is in the cache; return whether the clusters are complete again."""
        if not len(self.clusters) and not self.clusters.unreadable:
            self.check_empty()
            return False
        is_steady = self.clock() - self._last_added >= CONFIRM_SECONDS
        if not len(listed) or not self.clusters.is_incomplete or not is_steady:
            return False
        self.clusters.set_incomplete(False)
        return True

    def check_empty(self) -> None:
        """Mark an empty cache as incomplete, unless no binding has clusters, as on a new control plane."""
        is_known = len(self.clusters) or self.clusters.unreadable
        if is_known or not any(binding.spec.clusters for binding in self.bindings):
            return
        if not self.clusters.is_incomplete:
            log.warning("No Cluster is known, bindings keep their clusters until some are")
        self.clusters.set_incomplete(True)

    def check_targets(self, targets: Iterable[TargetCluster], before: Iterable[TargetCluster] = ()) -> None:
        """Read the clusters that a binding has got, and that do not exist as far as is known.

        Args:
            targets: The clusters of the binding.
            before: Those that it had before, which were checked.
        """
        names = {target.name for target in targets if is_subdomain(target.name)}
        names.difference_update(target.name for target in before)
        if unknown := sorted(filter(self._refuse, names)):
            text = "A binding has unknown Clusters, reading them"
            log.warning(text, extra={"object": unknown[0], "count": len(unknown)})
            self.reads.request(unknown)

    def _refuse(self, name: str) -> bool:
        """Mark a cluster that is not known as unknown, also one that was deleted; return whether it is marked."""
        return self.clusters.refuse(name, sys.maxsize, "no list and no event has it, and it was not read yet")

    async def keep_unlisted(self, diff: RelistDiff, version: int, sleep: Sleep) -> None:
        """Keep each cluster that a list lacks, unless the API server reports soon that there is none of this name.

        A list may be incomplete, and bindings would leave the clusters that it lacks. More of these may become known
        while others are read.
        """
        self.reads.as_of = version
        absent = await self.reads.soon(self.unlisted(diff, version), sleep)
        for name in self.unlisted(diff, version):
            if name not in absent:
                diff.keep(name)

    async def read_targets(self, sleep: Sleep) -> set[str]:
        """Read the clusters that bindings have after the first lists; return the names of those that do not exist."""
        self.check_empty()
        return await self.reads.soon(self.unknown_targets(), sleep)

    def unlisted(self, diff: RelistDiff, version: int) -> list[str]:
        """Return the names of the clusters that a list of this version lacks, although the cache or a binding has them."""
        names = {*self.clusters.missing_from((), version), *self._absent_targets()}
        return sorted(name for name in names if not diff.lists(name))

    def unknown_targets(self) -> list[str]:
        """Mark the clusters that bindings have, and the cache does not, as unknown; return their names."""
        return sorted(filter(self._refuse, self._absent_targets()))

    def _absent_targets(self) -> set[str]:
        clusters = self.clusters
        ours = filter(self.is_assigned, self.bindings)
        targets = {target.name for binding in ours for target in binding.spec.clusters}
        return {
            name
            for name in targets
            if clusters.get(name) is None and name not in clusters.unreadable and is_subdomain(name)
        }

    def added(self) -> None:
        """Record that a cluster was added to the cache."""
        self._empty_since = None
        self._last_added = self.clock()
