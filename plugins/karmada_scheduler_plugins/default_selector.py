"""DefaultSelector: select clusters by the placement's spread constraints."""

from __future__ import annotations

from collections.abc import Sequence

from karmada_scheduler.core.select_clusters import select_clusters
from karmada_scheduler.framework import Candidate, SelectContext


class DefaultSelector:
    """Select with karmada-scheduler's algorithm."""

    name = "DefaultSelector"
    trusted = True

    def select(self, context: SelectContext, /) -> Sequence[Candidate]:
        """Return the clusters that satisfy the constraints best, in the order of preference."""
        cycle = context.cycle
        return select_clusters(
            cycle.placement, context.candidates, replicas=cycle.binding.spec.replicas, needed=context.needed
        )
