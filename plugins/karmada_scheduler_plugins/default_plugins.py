"""The plugins that are upstream's rules in other places: of the core, of the client, or of the queue.

DefaultSelector: select clusters by the placement's spread constraints. DefaultAssigner: divide replicas by its replica
scheduling strategy. DefaultBinder: write the decision with one patch. ClusterLocality: prefer the current clusters of a
binding. PrioritySort: order the queue by priority, then by time.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final

from karmada_scheduler.api.binding import TargetCluster
from karmada_scheduler.core.assign_replicas import assign_replicas
from karmada_scheduler.core.select_clusters import select_clusters
from karmada_scheduler.framework import (
    MAX_CLUSTER_SCORE,
    MIN_CLUSTER_SCORE,
    SUCCESS,
    AssignContext,
    BindContext,
    Candidate,
    Cycle,
    QueuedBinding,
    Result,
    ScoreContext,
    SelectContext,
)


class DefaultBinder:
    """Bind by patching the binding's clusters and its applied placement."""

    name = "DefaultBinder"
    timeout: Final = None
    """No timeout: the client has its own deadline, and the rate limit may delay a write for longer."""

    async def bind(self, context: BindContext, /) -> Result:
        """Write, unless the binding has changed since the decision."""
        await context.patch()
        return SUCCESS


class DefaultAssigner:
    """Assign with karmada-scheduler's algorithm."""

    name = "DefaultAssigner"
    trusted = True

    def assign(self, context: AssignContext, /) -> list[TargetCluster]:
        """Return the targets in upstream's order."""
        return assign_replicas(context.cycle, context.selected)


class DefaultSelector:
    """Select with karmada-scheduler's algorithm."""

    name = "DefaultSelector"
    trusted = True

    def select(self, context: SelectContext, /) -> Sequence[Candidate]:
        """Return the clusters that satisfy the constraints best, in the order of preference."""
        cycle, replicas = context.cycle, context.cycle.binding.spec.replicas
        return select_clusters(
            cycle.placement, context.candidates, replicas=replicas, needed=context.needed, kept=cycle.kept
        )


class ClusterLocality:
    """Score current clusters highest, whatever their replicas, and all others lowest."""

    name = "ClusterLocality"
    free_of_side_effects = True

    def score_key(self, cycle: Cycle, /) -> Hashable:  # noqa: ARG002
        """Depends on nothing: all clusters that the binding is not on score the same."""
        return ()

    def score(self, context: ScoreContext, /) -> int:
        """Return 100 for a current cluster, else 0."""
        return (
            MAX_CLUSTER_SCORE if context.cluster.name in context.cycle.current_clusters else MIN_CLUSTER_SCORE
        )


class PrioritySort:
    """Sort as upstream's queue does under the gate PriorityBasedScheduling."""

    name = "PrioritySort"

    def less(self, a: QueuedBinding, b: QueuedBinding, /) -> bool:
        """Return whether ``a`` has a higher priority, or the same priority and an earlier time."""
        return a.default_rank < b.default_rank

    def sort_key(self, queued: QueuedBinding, /) -> tuple[int, float]:
        """Return the key of that order."""
        return queued.default_rank
