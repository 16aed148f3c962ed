"""TaintToleration: refuse clusters with taints that the binding does not tolerate."""

from __future__ import annotations

from collections.abc import Hashable

from karmada_scheduler.framework import SUCCESS, Cycle, FilterContext, Result


class TaintToleration:
    """Filter by NoSchedule and NoExecute taints.

    A current cluster passes: evictions are decided by the taint manager.
    """

    name = "TaintToleration"
    filter_key_covers_current = True

    def filter_key(self, cycle: Cycle, /) -> Hashable:
        """Depends on the tolerations."""
        return cycle.placement.cluster_tolerations

    def filter(self, context: FilterContext, /) -> Result:
        """Refuse a cluster for its first taint that is not tolerated."""
        cycle, cluster = context.cycle, context.cluster
        if not cluster.taints or cluster.name in cycle.current_clusters:
            return SUCCESS
        tolerations = cycle.placement.cluster_tolerations
        for taint in cluster.taints:
            if taint.blocks_scheduling and not any(toleration.tolerates(taint) for toleration in tolerations):
                return Result.unschedulable(f"cluster(s) had untolerated taint {{{taint}}}")
        return SUCCESS
