"""ClusterLocality: prefer the current clusters of a binding."""

from __future__ import annotations

from collections.abc import Hashable

from karmada_scheduler.framework import MAX_CLUSTER_SCORE, MIN_CLUSTER_SCORE, Cycle, ScoreContext


class ClusterLocality:
    """Score current clusters highest, whatever their replicas, and all others lowest."""

    name = "ClusterLocality"

    def score_key(self, cycle: Cycle, /) -> Hashable:  # noqa: ARG002
        """Depends on nothing: all clusters that the binding is not on score the same."""
        return ()

    def score(self, context: ScoreContext, /) -> int:
        """Return 100 for a current cluster, else 0."""
        return (
            MAX_CLUSTER_SCORE if context.cluster.name in context.cycle.current_clusters else MIN_CLUSTER_SCORE
        )
