"""The filter that WorkloadAffinity and WorkloadAntiAffinity share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from karmada_scheduler.api.binding import Binding, template_binding_name
from karmada_scheduler.framework import SUCCESS, FilterContext, Peers, Result

_NO_INDEX: Final = Result.unschedulable("ResourceBindingIndexer is nil")


def filter_by_peers(
    context: FilterContext,
    group: str,
    *,
    members: Callable[[Peers], Iterable[Binding]],
    refuses: Callable[[Binding, str], Result | None],
) -> Result:
    """Return the result of the first peer that refuses a cluster, SUCCESS if none does.

    The peers are the other bindings of the group in the namespace of the workload.

    Args:
        context: The cluster in question.
        group: The binding's own group, "" without one.
        members: Returns the bindings of the group.
        refuses: Returns the refusal of a cluster, by name, because of one peer; None if the peer allows it.
    """
    cycle, name = context.cycle, context.cluster.name
    if name in cycle.current_clusters or not group:
        return SUCCESS
    if cycle.peers is None:
        return _NO_INDEX
    resource = cycle.binding.spec.resource
    self_name = template_binding_name(resource)
    for peer in members(cycle.peers):
        if peer.key.namespace != resource.namespace or peer.key.name == self_name:
            continue
        refusal = refuses(peer, name)
        if refusal is not None:
            return refusal
    return SUCCESS
