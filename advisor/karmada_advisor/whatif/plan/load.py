"""What the replicas that start ask of the clusters, over a whole plan or after a loss, and whether they fit there.

Decisions of a burst do not see each other.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from karmada_advisor.explain.amounts import request_of, units
from karmada_advisor.whatif.plan.capacity_model import ClusterLoad, Demand
from karmada_advisor.whatif.plan.decide import PlannedDecision
from karmada_advisor.whatif.plan.effects import Comparison, differences
from karmada_scheduler.api.binding import BindingKey, BindingSpec, TargetCluster
from karmada_scheduler.framework.snapshot import Snapshot

CPU: Final = "cpu"
PODS: Final = "pods"
_FIRST: Final = {CPU: 0, "memory": 1, PODS: 3}


def loads_after(
    comparisons: Mapping[BindingKey, Comparison],
    snapshot: Snapshot,
    outcomes: Mapping[BindingKey, PlannedDecision],
) -> tuple[ClusterLoad, ...]:
    """Return what clusters get if some decisions take effect and all other bindings stay where they are.

    Only the clusters whose replicas change are there, the most overcommitted first.
    """
    before, changes, starts = Counter[str](), Counter[str](), Counter[str]()
    asked: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for key, comparison in comparisons.items():
        for target in comparison.before:
            before[target.name] += target.replicas
        outcome = outcomes.get(key)
        if outcome is None or comparison.new is None:
            continue
        amounts = requests(comparison.new.spec)
        for name, more in differences(comparison.before, outcome.targets).items():
            changes[name] += more
            if more > 0:
                starts[name] += more
                asked[name].update({resource: more * amount for resource, amount in amounts.items()})
    loads, capacity = [], FreeCapacity(snapshot)
    for name in sorted(changes):
        if changes[name] or name in starts:
            demands = capacity.demands(name, asked[name])
            over = tuple(demand.resource for demand in demands if demand.is_over)
            after = before[name] + changes[name]
            loads.append(ClusterLoad(name, before[name], after, starts[name], demands, over))
    return tuple(sorted(loads, key=_urgency))


def _urgency(load: ClusterLoad) -> tuple[bool, float, int, str]:
    shares = [each.asked / each.free for each in load.demands if each.free is not None and each.free > 0]
    return not load.over, -max(shares, default=0.0), -load.starts, load.name


def requests(spec: BindingSpec) -> dict[str, int]:
    """Return what one replica requests, or one set of components: cpu in thousandths, other resources in whole units."""
    if not spec.components:
        return {PODS: 1, **{name: units(name, amount) for name, amount in request_of(spec).items()}}
    found = Counter({PODS: sum(component.replicas for component in spec.components)})
    for component in spec.components:
        for name, amount in request_of(component).items():
            found[name] += component.replicas * units(name, amount)
    return found


def in_cores(resource: str, units: int) -> float:
    """Return an amount in the units of a plan: cpu in cores instead of thousandths."""
    return units / 1000 if resource == CPU else units


Amounts = Mapping[str, int]
"""Resource name to cpu in thousandths, and other resources in whole units."""


class Starting(NamedTuple):
    """A binding whose replicas start somewhere.

    Attributes:
        position: In the queue.
        amounts: What one replica requests.
        starts: Replicas by cluster.
    """

    position: int
    amounts: Amounts
    starts: Sequence[TargetCluster]


class FreeCapacity:
    """What clusters have free, as their summaries say."""

    def __init__(self, snapshot: Snapshot) -> None:
        """Read the free amounts of clusters when they are asked for."""
        self._snapshot = snapshot
        self._free: dict[str, Amounts] = {}

    def pending(self, starting: Sequence[Starting], over: Iterable[str]) -> dict[int, int]:
        """Return by position the replicas that do not fit, in the order of the queue.

        A resource that a summary does not have counts as unlimited: nothing is known about it.

        Args:
            starting: All bindings whose replicas start.
            over: The clusters of which more is asked than is free.
        """
        left: dict[str, dict[str, int]] = {name: dict(self.free(name)) for name in over}
        missing: dict[int, int] = {}
        for start in sorted(starting, key=lambda one: one.position):
            for target in start.starts:
                free = left.get(target.name)
                if free is None:
                    continue
                taken = target.replicas
                for name, amount in start.amounts.items():
                    if amount > 0 and name in free:
                        taken = min(taken, max(0, free[name]) // amount)
                for name, amount in start.amounts.items():
                    if name in free:
                        free[name] -= taken * amount
                if taken < target.replicas:
                    missing[start.position] = missing.get(start.position, 0) + target.replicas - taken
        return missing

    def overcommitted(self, starting: Iterable[Starting]) -> dict[str, tuple[Demand, ...]]:
        """Return the clusters of which more is asked than they have free, with these resources."""
        asked: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for start in starting:
            for target in start.starts:
                more = {name: amount * target.replicas for name, amount in start.amounts.items()}
                asked[target.name].update(more)
        found = {}
        for cluster, sums in asked.items():
            over = [demand for demand in self.demands(cluster, sums) if demand.is_over and demand.asked]
            if over:
                found[cluster] = tuple(sorted(over, key=lambda each: each.resource))
        return found

    def demands(self, cluster: str, asked: Amounts) -> tuple[Demand, ...]:
        """Return what is asked of a cluster, next to what it has free: cpu and memory first, pods last."""
        free = self.free(cluster)
        return tuple(
            Demand(name, in_cores(name, asked[name]), in_cores(name, free[name]) if name in free else None)
            for name in sorted(asked, key=lambda each: (_FIRST.get(each, 2), each))
        )

    def free(self, name: str) -> Amounts:
        """Return what a cluster has free; nothing if its summary is not known."""
        if name not in self._free:
            cluster = self._snapshot.get(name)
            summary = cluster.resource_summary if cluster is not None else None
            left = {} if summary is None else {each: summary.left(each) for each in summary.allocatable}
            self._free[name] = {resource: units(resource, amount) for resource, amount in left.items()}
        return self._free[name]
