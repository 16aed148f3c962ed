"""ClusterEviction: refuse clusters from which the binding is being evicted."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

from karmada_scheduler.framework import SUCCESS, Cycle, FilterContext, Result

_EVICTED: Final = Result.unschedulable("cluster(s) is in the process of eviction")


class ClusterEviction:
    """Filter by the binding's graceful eviction tasks."""

    name = "ClusterEviction"
    filter_key_covers_current = True

    def filter_key(self, cycle: Cycle, /) -> Hashable:  # noqa: ARG002
        """Depends on nothing: only clusters with an eviction task are refused."""
        return ()

    def filter(self, context: FilterContext, /) -> Result:
        """Refuse a cluster as long as the binding has an eviction task for it."""
        return _EVICTED if context.cluster.name in context.cycle.evicted else SUCCESS
