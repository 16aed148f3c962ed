"""ClusterAffinity: refuse clusters that the binding's placement does not select."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

from karmada_scheduler.framework import SUCCESS, Cycle, FilterContext, Result, ScoreContext

_NO_MATCH: Final = Result.unschedulable("cluster(s) did not match the placement cluster affinity constraint")


class ClusterAffinity:
    """Filter by the single affinity, or by those of the current affinity term.

    A current cluster passes only if it matches. The score is always 0; upstream's plugin has one, which metrics show.
    """

    name = "ClusterAffinity"
    filter_key_covers_current = True

    def filter_key(self, cycle: Cycle, /) -> Hashable:
        """Depends on the affinities of the term in use."""
        return cycle.affinities

    def filter(self, context: FilterContext, /) -> Result:
        """Refuse a cluster that no affinity matches; without affinities, all pass."""
        affinities = context.cycle.affinities
        for affinity in affinities:
            if affinity.matches(context.cluster):
                return SUCCESS
        return _NO_MATCH if affinities else SUCCESS

    def score_key(self, cycle: Cycle, /) -> Hashable:  # noqa: ARG002
        """Depends on nothing."""
        return ()

    def score(self, context: ScoreContext, /) -> int:  # noqa: ARG002
        """Return 0 for every cluster."""
        return 0
