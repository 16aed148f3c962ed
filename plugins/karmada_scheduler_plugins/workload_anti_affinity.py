"""WorkloadAntiAffinity: refuse clusters with another workload of the binding's group (gate WorkloadAffinity)."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

from karmada_scheduler.api.binding import Binding
from karmada_scheduler.framework import Cycle, FilterContext, Result
from karmada_scheduler_plugins._workload_groups import filter_by_peers

_TAKEN: Final = Result.unschedulable("cluster already has workload with the same anti-affinity group")


class WorkloadAntiAffinity:
    """Filter by the clusters of the peers: a cluster that a peer is on does not pass.

    A current cluster passes.
    """

    name = "WorkloadAntiAffinity"

    def filter_key(self, cycle: Cycle, /) -> Hashable:
        """Depends on nothing without a group, and on other bindings with one."""
        return None if _group(cycle.binding) else ()

    def filter(self, context: FilterContext, /) -> Result:
        """Refuse a cluster that a peer is on."""
        group = _group(context.cycle.binding)
        return filter_by_peers(
            context,
            group,
            members=lambda peers: peers.in_anti_affinity_group(group),
            refuses=_refuses,
        )


def _group(binding: Binding) -> str:
    groups = binding.spec.workload_affinity_groups
    return groups.anti_affinity_group if groups is not None else ""


def _refuses(peer: Binding, cluster: str) -> Result | None:
    return _TAKEN if any(target.name == cluster for target in peer.spec.clusters) else None
