"""Keep the workloads with the same label app in different regions: an example of docs/writing-plugins.md."""

from karmada_scheduler.framework import (
    SUCCESS,
    BindingKey,
    FilterContext,
    Handle,
    PeerContext,
    PreFilterContext,
    Result,
    StateKey,
    Workload,
)

TAKEN = StateKey[frozenset[tuple[BindingKey, str, str]]]("AppPerRegion/taken")  # binding, cluster, region


class AppPerRegion:
    """Keep the workloads with the same label app in different regions."""

    name = "AppPerRegion"
    needs_workload = True

    def __init__(self, args: object, handle: Handle) -> None:
        self.handle = handle

    def pre_filter(self, context: PreFilterContext, /) -> Result:
        this = context.workload
        if this is None:
            return Result.error(context.workload_problem)
        regions = {cluster.name: cluster.region for cluster in context.cycle.snapshot}
        taken = frozenset(
            (peer.key, name, regions.get(name, ""))
            for peer in self.handle.bindings()
            if peer.spec.clusters and self._same_app(this, self.handle.workload(peer.key))
            for name in peer.spec.target_names
            if peer.key != context.cycle.binding.key
        )
        context.cycle.state.write(TAKEN, taken)
        return SUCCESS

    def add_binding(self, context: PeerContext, /) -> Result:
        if self._same_app(context.cycle.workload, context.workload):
            taken = context.cycle.state.read(TAKEN)
            context.cycle.state.write(TAKEN, taken | {self._place(context)})
        return SUCCESS

    def remove_binding(self, context: PeerContext, /) -> Result:
        taken = context.cycle.state.read(TAKEN)
        context.cycle.state.write(TAKEN, taken - {self._place(context)})
        return SUCCESS

    def filter(self, context: FilterContext, /) -> Result:
        if context.cluster.region in {region for _, _, region in context.cycle.state.read(TAKEN)}:
            return Result.unschedulable("cluster(s) were in a region that has this app")
        return SUCCESS

    def _same_app(self, one: Workload | None, other: Workload | None) -> bool:
        app = one.labels.get("app") if one else None
        return bool(app) and other is not None and app == other.labels.get("app")

    def _place(self, context: PeerContext) -> tuple[BindingKey, str, str]:
        return context.peer.key, context.cluster.name, context.cluster.region
