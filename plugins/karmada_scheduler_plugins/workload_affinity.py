"""Refuse clusters by the other workloads of the binding's group (gate WorkloadAffinity).

WorkloadAffinity: those without them. WorkloadAntiAffinity: those with one of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator
from typing import ClassVar, Final

from karmada_scheduler.api.binding import Binding, WorkloadAffinityGroups, template_binding_name
from karmada_scheduler.framework import (
    SUCCESS,
    Cycle,
    Edit,
    EditContext,
    Evidence,
    EvidenceContext,
    FilterContext,
    Harm,
    ObjectRef,
    Peers,
    Result,
    Side,
)

_NO_INDEX: Final = Result.unschedulable("ResourceBindingIndexer is nil")
_NO_GROUPS: Final = WorkloadAffinityGroups()


class PeerFilter(ABC):
    """Filter by the peers: the other bindings of the group in the namespace of the workload. A current cluster passes.

    Attributes:
        kind: The kind of the group, for people.
        field: The field of ``workloadAffinityGroups`` that has the group.
        ends_on: Whether a peer on the cluster refuses it, so that it is accepted when the peer leaves the group.
    """

    free_of_side_effects = True
    codes: ClassVar[dict[str, str]]
    kind: ClassVar[str]
    field: ClassVar[str]
    ends_on: ClassVar[bool]

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

    def evidence(self, context: EvidenceContext, /) -> Evidence:
        """Return the clusters of the peers."""
        cycle, code = context.cycle, next(iter(self.codes))
        groups = cycle.binding.spec.workload_affinity_groups
        if groups is None or cycle.peers is None:
            return Evidence(code)
        name = self._group(groups)
        peers = {
            str(peer.key): [target.name for target in peer.spec.clusters]
            for peer in self._members(cycle.peers, name)
            if peer.key != cycle.binding.key and peer.spec.clusters
        }
        return Evidence(code, self.kind, {"clause": self.kind, "group": name, "peers": peers})

    def edits(self, context: EditContext, /) -> Iterator[Edit]:
        """Yield that the binding leaves the group, or a peer does that refuses the cluster."""
        path = ("spec", "workloadAffinityGroups", self.field)
        yield context.on_workload.remove(
            "leaveGroup", path, f"leave the {self.field}", harm=Harm.WIDENS,
            caution=f"It gives up the {self.field} that the owner asked for.",
        )  # fmt: skip
        mine = self._group(context.cycle.binding.spec.workload_affinity_groups or _NO_GROUPS)
        for peer in context.others:
            groups = peer.spec.workload_affinity_groups
            is_there = context.name in peer.spec.target_names
            if groups is not None and self._group(groups) == mine and is_there == self.ends_on:
                yield context.on(Side.PEER, ObjectRef(*peer.key)).remove(
                    "releasePeer", path, f"{peer.key} leaves the {self.field}", harm=Harm.WIDENS,
                    caution=f"It gives up the {self.field} that the owner of {peer.key} asked for.",
                )  # fmt: skip

    @abstractmethod
    def _group(self, groups: WorkloadAffinityGroups) -> str:
        """Return the group of a binding that counts, "" without one."""

    @abstractmethod
    def _members(self, peers: Peers, group: str) -> Iterable[Binding]:
        """Return the bindings of a group."""

    @abstractmethod
    def _refusal(self, peer: Binding, cluster: str) -> Result | None:
        """Return the refusal of a cluster, by name, because of one peer; None if the peer allows it."""


_NOT_THERE: Final = Result.unschedulable(
    "ResourceBinding with the same affinity group does not target this cluster"
)


class WorkloadAffinity(PeerFilter):
    """Filter by the clusters of the peers: only clusters with all scheduled peers pass.

    A current cluster passes. Without scheduled peers every cluster passes.
    """

    name = "WorkloadAffinity"
    codes: ClassVar = {"GroupAffinity": "workload affinity: the peers are elsewhere"}
    kind = "affinity group"
    field = "affinityGroup"
    ends_on = False

    def _group(self, groups: WorkloadAffinityGroups) -> str:
        return groups.affinity_group

    def _members(self, peers: Peers, group: str) -> Iterable[Binding]:
        return peers.in_affinity_group(group)

    def _refusal(self, peer: Binding, cluster: str) -> Result | None:
        targets = peer.spec.clusters
        return _NOT_THERE if targets and all(target.name != cluster for target in targets) else None


_TAKEN: Final = Result.unschedulable("cluster already has workload with the same anti-affinity group")


class WorkloadAntiAffinity(PeerFilter):
    """Filter by the clusters of the peers: a cluster that a peer is on does not pass.

    A current cluster passes.
    """

    name = "WorkloadAntiAffinity"
    codes: ClassVar = {"GroupAntiAffinity": "workload anti-affinity: a peer is there"}
    kind = "anti-affinity group"
    field = "antiAffinityGroup"
    ends_on = True

    def _group(self, groups: WorkloadAffinityGroups) -> str:
        return groups.anti_affinity_group

    def _members(self, peers: Peers, group: str) -> Iterable[Binding]:
        return peers.in_anti_affinity_group(group)

    def _refusal(self, peer: Binding, cluster: str) -> Result | None:
        return _TAKEN if any(target.name == cluster for target in peer.spec.clusters) else None
