"""What WorkloadAffinity and WorkloadAntiAffinity have in common: which copy of a peer counts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from karmada_scheduler.api.binding import Binding, template_binding_name
from karmada_scheduler.api.meta import compare_resource_versions
from karmada_scheduler.framework import SUCCESS, FilterContext, Peers, Result

_NO_INDEX: Final = Result.unschedulable("ResourceBindingIndexer is nil")
_BAD_VERSION: Final = Result.unschedulable("failed to compare resource versions for ResourceBinding")


def judge_by_peers(
    context: FilterContext,
    group: str,
    *,
    members: Callable[[Peers], Iterable[Binding]],
    group_of: Callable[[Binding], str],
    refuses: Callable[[Binding, str], Result | None],
) -> Result:
    """Judge a cluster by the other bindings of a group, in the namespace of the workload.

    Args:
        context: The cluster in question.
        group: The binding's own group; empty where it has none.
        members: Looks the group up.
        group_of: A binding's group, which a newer copy may have left.
        refuses: What one peer says of a cluster's name; None if nothing.
    """
    cycle, name = context.cycle, context.cluster.name
    if name in cycle.current_clusters or not group:
        return SUCCESS
    if cycle.peers is None:
        return _NO_INDEX
    resource = cycle.binding.spec.resource
    self_name = template_binding_name(resource)
    for listed in members(cycle.peers):
        try:
            peer = _newest(listed, cycle.peers)
        except ValueError:
            return _BAD_VERSION
        if peer.key.namespace != resource.namespace or group_of(peer) != group or peer.key.name == self_name:
            continue
        refusal = refuses(peer, name)
        if refusal is not None:
            return refusal
    return SUCCESS


def _newest(listed: Binding, peers: Peers) -> Binding:
    """Prefer what our own write answered, if the watch has not caught up with it.

    Raises:
        ValueError: A resourceVersion is not a number.
    """
    written = peers.assigning(listed.key)
    if written is None:
        return listed
    newer = compare_resource_versions(written.resource_version, listed.resource_version) > 0
    return written if newer else listed
