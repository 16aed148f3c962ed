"""WorkloadAffinity: refuse clusters without the other workloads of the binding's group (gate WorkloadAffinity)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from karmada_scheduler.api.binding import Binding, WorkloadAffinityGroups
from karmada_scheduler.framework import Peers, Result
from karmada_scheduler_plugins._workload_groups import PeerFilter

_NOT_THERE: Final = Result.unschedulable(
    "ResourceBinding with the same affinity group does not target this cluster"
)


class WorkloadAffinity(PeerFilter):
    """Filter by the clusters of the peers: only clusters with all scheduled peers pass.

    A current cluster passes. Without scheduled peers every cluster passes.
    """

    name = "WorkloadAffinity"

    def _group(self, groups: WorkloadAffinityGroups) -> str:
        return groups.affinity_group

    def _members(self, peers: Peers, group: str) -> Iterable[Binding]:
        return peers.in_affinity_group(group)

    def _refusal(self, peer: Binding, cluster: str) -> Result | None:
        targets = peer.spec.clusters
        return _NOT_THERE if targets and all(target.name != cluster for target in targets) else None
