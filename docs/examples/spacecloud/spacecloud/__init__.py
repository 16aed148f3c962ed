"""SpaceCloud: limit the number of workloads per cluster, whatever their size."""

from collections import defaultdict
from dataclasses import dataclass

from karmada_scheduler.framework import (
    SUCCESS,
    BindingKey,
    FilterContext,
    Handle,
    PeerContext,
    PreFilterContext,
    Result,
    StateKey,
)

TENANTS = StateKey[defaultdict[str, set[BindingKey]]]("SpaceCloud/tenants")
"""The other workloads on each cluster."""

FULL = Result.unschedulable("cluster(s) had no space for another workload")


class SpaceCloud:
    """Filter by the number of workloads on a cluster.

    PreFilter counts the workloads of all clusters once per binding; Filter reads the counts for every cluster.
    ``add_binding`` adds workloads that are decided and not yet written, so that two decisions at the same time
    do not take the same space. A cluster that already has the binding passes.
    """

    name = "SpaceCloud"

    @dataclass(frozen=True)
    class Args:
        """Maximum number of workloads of a cluster; the cluster's label ``<label>: "5"`` takes precedence."""

        spaces: int = 10
        label: str = "spacecloud.example.com/spaces"

        def __post_init__(self) -> None:
            if self.spaces < 0:
                raise ValueError("spaces must be 0 or more")

    def __init__(self, args: Args, handle: Handle) -> None:
        self._args = args
        self._handle = handle

    def pre_filter(self, context: PreFilterContext, /) -> Result:
        """Store the other workloads on every cluster."""
        tenants = defaultdict[str, set[BindingKey]](set)
        for each in self._handle.bindings():
            if each.key != context.cycle.binding.key:
                for name in each.spec.target_names:
                    tenants[name].add(each.key)
        context.cycle.state.write(TENANTS, tenants)
        return SUCCESS

    def add_binding(self, context: PeerContext, /) -> Result:
        """Add a workload; without effect if it is counted already."""
        context.cycle.state.read(TENANTS)[context.cluster.name].add(context.peer.key)
        return SUCCESS

    def remove_binding(self, context: PeerContext, /) -> Result:
        """Remove a workload."""
        context.cycle.state.read(TENANTS)[context.cluster.name].discard(context.peer.key)
        return SUCCESS

    def filter(self, context: FilterContext, /) -> Result:
        """Refuse a cluster that is full."""
        cycle, cluster = context.cycle, context.cluster
        if cluster.name in cycle.current_clusters:
            return SUCCESS
        spaces = int(cluster.labels.get(self._args.label, self._args.spaces))
        return SUCCESS if len(cycle.state.read(TENANTS)[cluster.name]) < spaces else FULL
