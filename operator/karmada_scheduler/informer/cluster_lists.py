"""What a complete list of clusters says about the clusters that are not in it.

A list with no clusters is more often an API server that has lost its storage, or cannot reach it, than a fleet that is
gone: Karmada gives each Cluster a finalizer, so one that is deleted is first seen being deleted. Such a list
counts when another one agrees with it some time later.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sized
from typing import Final

from karmada_scheduler.cache.clusters import ClusterCache

log = logging.getLogger(__name__)

CONFIRM_SECONDS: Final = 30.0
"""How much later the other list must be, and how long no cluster must have been added before all are known again."""


class ClusterLists:
    """Judges complete lists of clusters."""

    def __init__(self, clusters: ClusterCache, *, clock: Callable[[], float]) -> None:
        """Judge by what is in the cache; ``clock`` is in seconds."""
        self._clusters = clusters
        self._clock = clock
        self._empty_since: float | None = None
        self._last_added = 0.0

    def removes_others(self, listed: Sized) -> bool:
        """Tell whether the clusters that are not listed are gone; called once for each complete list."""
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
        if now - self._empty_since < CONFIRM_SECONDS:
            return False
        self._empty_since = None
        return True

    def ended(self, listed: Sized) -> bool:
        """Note that a list was taken in; return whether the clusters are completely known again."""
        if not len(self._clusters) and not self._clusters.unreadable:
            if not self._clusters.is_incomplete:
                log.warning("No Cluster is known, bindings keep their clusters until some are")
            self._clusters.set_incomplete(True)
            return False
        settled = self._clock() - self._last_added >= CONFIRM_SECONDS
        if not len(listed) or not self._clusters.is_incomplete or not settled:
            return False
        self._clusters.set_incomplete(False)
        return True

    def added(self) -> None:
        """Note that a cluster was not known before."""
        self._empty_since = None
        self._last_added = self._clock()
