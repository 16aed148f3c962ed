"""Confirms that the clusters that a complete list lacks are deleted, and requests a list for those that none had.

A list without clusters usually comes from an API server that has lost its storage, or cannot reach it. It rarely means
that all clusters are gone: Karmada gives each Cluster a finalizer, so a deletion is first seen as a deletionTimestamp.
Such a list counts when a later one confirms it.

A binding may have a cluster that no list and no event had, if those were incomplete. The binding keeps it until a list,
or the read of the cluster that follows an incomplete list, shows whether the cluster exists.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sized
from typing import Final

from karmada_scheduler.api.binding import Binding, TargetCluster
from karmada_scheduler.cache.clusters import ClusterCache
from karmada_scheduler.informer.relist_diff import RelistDiff

log = logging.getLogger(__name__)

CONFIRM_SECONDS: Final = 30.0
"""Time between two lists of which the second confirms the first; also the time without an added cluster after which
the clusters count as complete again."""


class ClusterLists:
    """Confirms complete lists of clusters, and marks the cache as incomplete."""

    def __init__(
        self,
        clusters: ClusterCache,
        bindings: Iterable[Binding],
        *,
        clock: Callable[[], float],
        request_list: Callable[[float], None],
    ) -> None:
        """Compare lists with a cache.

        Args:
            clusters: The cache.
            bindings: If any has clusters, some must exist.
            clock: In seconds.
            request_list: Called when a list of clusters is needed, with the seconds after which it is.
        """
        self._request_list = request_list
        self._clusters = clusters
        self._bindings = bindings
        self._clock = clock
        self._empty_since: float | None = None
        self._last_added = 0.0

    def removes_others(self, listed: Sized) -> bool:
        """Return whether the clusters that a list lacks count as deleted; called once for each complete list."""
        if len(listed) or not len(self._clusters):
            self._empty_since = None
            return True
        now = self._clock()
        if self._empty_since is None:
            self._empty_since = now
            log.warning(
                "A list has no Clusters although some are known, waiting for another list to agree",
                extra={"count": len(self._clusters)},
            )
            self._request_list(CONFIRM_SECONDS)
        if now - self._empty_since < CONFIRM_SECONDS:
            return False
        self._empty_since = None
        return True

    def finished(self, listed: Sized) -> bool:
        """Record that a list is in the cache; return whether the clusters are complete again."""
        if not len(self._clusters) and not self._clusters.unreadable:
            self.check_empty()
            return False
        is_steady = self._clock() - self._last_added >= CONFIRM_SECONDS
        if not len(listed) or not self._clusters.is_incomplete or not is_steady:
            return False
        self._clusters.set_incomplete(False)
        return True

    def check_empty(self) -> None:
        """Mark an empty cache as incomplete, unless no binding has clusters, as on a new control plane."""
        is_known = len(self._clusters) or self._clusters.unreadable
        if is_known or not any(each.spec.clusters for each in self._bindings):
            return
        if not self._clusters.is_incomplete:
            log.warning("No Cluster is known, bindings keep their clusters until some are")
        self._clusters.set_incomplete(True)

    def check_targets(self, targets: Iterable[TargetCluster]) -> None:
        """Request a list if a binding has clusters that neither exist nor were deleted, as far as is known."""
        for target in targets:
            if self._clusters.refuse(target.name, 0, "no list and no event has had it"):
                log.warning("A binding has an unknown Cluster, listing again", extra={"object": target.name})
                self._request_list(0.0)

    def unlisted(self, diff: RelistDiff, version: int) -> list[str]:
        """Return the names of the clusters that a list of this version lacks, although the cache or a binding has them."""
        names = {*self._clusters.missing_from((), version), *self.unknown_targets()}
        return sorted(name for name in names if not diff.lists(name))

    def unknown_targets(self) -> set[str]:
        """Return the names of the clusters that bindings have, and the cache does not."""
        clusters = self._clusters
        targets = {target.name for binding in self._bindings for target in binding.spec.clusters}
        return {name for name in targets if clusters.get(name) is None and name not in clusters.unreadable}

    def absent(self, name: str, version: int) -> None:
        """Record that the API server has no cluster of this name at a version."""
        if self._clusters.get(name) is None and name not in self._clusters.unreadable:
            self._clusters.remove(name, version)

    def added(self) -> None:
        """Record that a cluster was added to the cache."""
        self._empty_since = None
        self._last_added = self._clock()
