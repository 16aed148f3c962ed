"""APIEnablement: refuse clusters that do not serve the binding's kind."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

from karmada_scheduler.framework import SUCCESS, Cycle, FilterContext, Result

_NOT_SERVED: Final = Result.unschedulable("cluster(s) did not have the API resource")


class APIEnablement:
    """Filter by the API list that a cluster reports.

    A cluster that already has the binding passes, whatever it reports. An incomplete list counts like a complete one:
    kinds that are not in it are not served.
    """

    name = "APIEnablement"
    filter_key_covers_current = True

    def filter_key(self, cycle: Cycle, /) -> Hashable:
        """Depends on the kind of the resource."""
        resource = cycle.binding.spec.resource
        return resource.api_version, resource.kind

    def filter(self, context: FilterContext, /) -> Result:
        """Refuse a cluster whose API list lacks the resource's group version and kind."""
        cycle, cluster = context.cycle, context.cluster
        resource = cycle.binding.spec.resource
        if (_group_version(resource.api_version), resource.kind) in cluster.api_kinds:
            return SUCCESS
        return SUCCESS if cluster.name in cycle.current_clusters else _NOT_SERVED


def _group_version(api_version: str) -> str:
    """Write an apiVersion as cluster status does: ``/v1`` is ``v1``, and nonsense is empty."""
    group, slash, version = api_version.partition("/")
    if not slash:
        return api_version
    if "/" in version or not (group or version):
        return ""
    return api_version if group else version
