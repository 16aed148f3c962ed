"""WorkloadAffinity: refuse clusters without the other workloads of the binding's group (gate WorkloadAffinity)."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

from karmada_scheduler.api.binding import Binding
from karmada_scheduler.framework import Cycle, FilterContext, Result
from karmada_scheduler_plugins._workload_groups import filter_by_peers

_NOT_THERE: Final = Result.unschedulable(
    "ResourceBinding with the same affinity group does not target this cluster"
)


class WorkloadAffinity:
    """Filter by the clusters of the peers: only clusters with all scheduled peers pass.

    A current cluster passes. Without scheduled peers every cluster passes.
    """

    name = "WorkloadAffinity"

    def filter_key(self, cycle: Cycle, /) -> Hashable:
        """Depends on nothing without a group, and on other bindings with one."""
        return None if _group(cycle.binding) else ()

    def filter(self, context: FilterContext, /) -> Result:
        """Refuse a cluster that a scheduled peer is not on."""
        group = _group(context.cycle.binding)
        return filter_by_peers(
            context,
            group,
            members=lambda peers: peers.in_affinity_group(group),
            refuses=_refuses,
        )


def _group(binding: Binding) -> str:
    groups = binding.spec.workload_affinity_groups
    return groups.affinity_group if groups is not None else ""


def _refuses(peer: Binding, cluster: str) -> Result | None:
    targets = peer.spec.clusters
    return _NOT_THERE if targets and all(target.name != cluster for target in targets) else None
