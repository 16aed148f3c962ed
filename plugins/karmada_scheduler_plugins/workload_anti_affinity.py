"""WorkloadAntiAffinity: refuse clusters with another workload of the binding's group (gate WorkloadAffinity)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from karmada_scheduler.api.binding import Binding, WorkloadAffinityGroups
from karmada_scheduler.framework import Peers, Result
from karmada_scheduler_plugins._workload_groups import PeerFilter

_TAKEN: Final = Result.unschedulable("cluster already has workload with the same anti-affinity group")


class WorkloadAntiAffinity(PeerFilter):
    """Filter by the clusters of the peers: a cluster that a peer is on does not pass.

    A current cluster passes.
    """

    name = "WorkloadAntiAffinity"

    def _group(self, groups: WorkloadAffinityGroups) -> str:
        return groups.anti_affinity_group

    def _members(self, peers: Peers, group: str) -> Iterable[Binding]:
        return peers.in_anti_affinity_group(group)

    def _refusal(self, peer: Binding, cluster: str) -> Result | None:
        return _TAKEN if any(target.name == cluster for target in peer.spec.clusters) else None
