"""ClusterAffinity: keep a binding on the clusters that its placement means."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

from karmada_scheduler.framework import SUCCESS, Cycle, FilterContext, Result, ScoreContext

_NO_MATCH: Final = Result.unschedulable("cluster(s) did not match the placement cluster affinity constraint")


class ClusterAffinity:
    """Filter by the affinities in force: the single one, or those of the term under trial.

    A cluster that already has the binding does not pass unless it matches. The score is always 0; it is
    here because upstream's plugin has one, and metrics show it.
    """

    name = "ClusterAffinity"

    def filter_key(self, cycle: Cycle, /) -> Hashable:
        """Depends on the affinities in force."""
        return cycle.placement, cycle.affinity_name, cycle.binding.spec.is_workload

    def filter(self, context: FilterContext, /) -> Result:
        """Refuse a cluster that no affinity matches; where there is none, all pass."""
        affinities = context.cycle.affinities
        if not affinities or any(affinity.matches(context.cluster) for affinity in affinities):
            return SUCCESS
        return _NO_MATCH

    def score_key(self, cycle: Cycle, /) -> Hashable:  # noqa: ARG002
        """Depends on nothing."""
        return ()

    def score(self, context: ScoreContext, /) -> int:  # noqa: ARG002
        """Rate all clusters alike."""
        return 0
