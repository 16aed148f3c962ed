"""The filter that WorkloadAffinity and WorkloadAntiAffinity share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable
from typing import Final

from karmada_scheduler.api.binding import Binding, WorkloadAffinityGroups, template_binding_name
from karmada_scheduler.framework import SUCCESS, Cycle, FilterContext, Peers, Result

_NO_INDEX: Final = Result.unschedulable("ResourceBindingIndexer is nil")
_NO_GROUPS: Final = WorkloadAffinityGroups()


class PeerFilter(ABC):
    """Filter by the peers: the other bindings of the group in the namespace of the workload. A current cluster passes."""

    def filter_key(self, cycle: Cycle, /) -> Hashable:
        """Depends on nothing without a group, and on other bindings with one."""
        return None if self._group(cycle.binding.spec.workload_affinity_groups or _NO_GROUPS) else ()

    def filter(self, context: FilterContext, /) -> Result:
        """Refuse a cluster because of the first peer that does not allow it."""
        cycle, name = context.cycle, context.cluster.name
        group = self._group(cycle.binding.spec.workload_affinity_groups or _NO_GROUPS)
        if name in cycle.current_clusters or not group:
            return SUCCESS
        if cycle.peers is None:
            return _NO_INDEX
        resource = cycle.binding.spec.resource
        self_name = template_binding_name(resource)
        for peer in self._members(cycle.peers, group):
            if peer.key.namespace != resource.namespace or peer.key.name == self_name:
                continue
            refusal = self._refusal(peer, name)
            if refusal is not None:
                return refusal
        return SUCCESS

    @abstractmethod
    def _group(self, groups: WorkloadAffinityGroups) -> str:
        """Return the group of a binding that counts, "" without one."""

    @abstractmethod
    def _members(self, peers: Peers, group: str) -> Iterable[Binding]:
        """Return the bindings of a group."""

    @abstractmethod
    def _refusal(self, peer: Binding, cluster: str) -> Result | None:
        """Return the refusal of a cluster, by name, because of one peer; None if the peer allows it."""
