"""ClusterCaps: at most N replicas of a namespace on each cluster; what is placed stays, the rest goes elsewhere."""

from collections import Counter, defaultdict
from dataclasses import dataclass

from karmada_scheduler import framework as fw


class ClusterCaps:
    """Limit the replicas that the divided workloads of a namespace have on a cluster together."""

    name = "ClusterCaps"

    @dataclass
    class Args:
        replicas: int

    def __init__(self, args: Args, handle: object) -> None:
        self.cap, self.placed = args.replicas, defaultdict[str, dict[str, Counter[str]]](dict)

    def observe(self, old: object, new: object, /) -> None:
        if old is new is None:
            self.placed.clear()  # everything follows again
        elif isinstance(new, fw.Binding) and getattr(old, "spec", None) != new.spec:
            self.placed[new.key.namespace][new.key.name] = Counter(dict(new.spec.clusters))
        elif isinstance(old, fw.Binding) and new is None:
            self.placed[old.key.namespace].pop(old.key.name, None)

    def reserve(self, context: fw.BindContext, /) -> fw.Result:  # before it is written
        self.placed[context.binding.key.namespace][context.binding.key.name] = Counter(dict(context.targets))
        return fw.SUCCESS

    def unreserve(self, context: fw.BindContext, /) -> None:
        self.observe(context.binding if context.may_be_stored else None, context.binding)

    def estimate_replicas(self, context: fw.EstimateContext, /) -> fw.ReplicaEstimate:
        key, now = context.cycle.binding.key, Counter(dict(context.cycle.binding.spec.clusters))
        used = sum({**self.placed[key.namespace], key.name: now}.values(), Counter[str]())
        most = {each.name: max(0, self.cap - used[each.name]) for each in context.cycle.snapshot}
        return fw.ReplicaEstimate(most)
