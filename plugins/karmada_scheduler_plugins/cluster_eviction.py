"""ClusterEviction: keep a binding off clusters that it is being moved off."""

from __future__ import annotations

from typing import Final

from karmada_scheduler.framework import SUCCESS, FilterContext, Result

_EVICTED: Final = Result.unschedulable("cluster(s) is in the process of eviction")


class ClusterEviction:
    """Filter by the binding's graceful eviction tasks."""

    name = "ClusterEviction"

    def filter(self, context: FilterContext, /) -> Result:
        """Refuse a cluster as long as the binding has an eviction task for it."""
        return _EVICTED if context.cluster.name in context.cycle.evicted else SUCCESS
