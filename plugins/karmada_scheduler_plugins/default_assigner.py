"""DefaultAssigner: divide replicas by the placement's replica scheduling strategy."""

from __future__ import annotations

from karmada_scheduler.api.binding import TargetCluster
from karmada_scheduler.core.assign_replicas import assign_replicas
from karmada_scheduler.framework import AssignContext


class DefaultAssigner:
    """Assign with karmada-scheduler's algorithm."""

    name = "DefaultAssigner"
    trusted = True

    def assign(self, context: AssignContext, /) -> list[TargetCluster]:
        """Return the targets in upstream's order."""
        return assign_replicas(context.cycle, context.selected)
