"""What the replicas that start ask of the clusters, summed over the whole plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from karmada_advisor.explain.amounts import request_of, units
from karmada_advisor.plan.capacity_model import ClusterLoad, Demand
from karmada_advisor.plan.decide import PlannedDecision
from karmada_advisor.plan.effects import Comparison
from karmada_scheduler.api.binding import BindingKey, BindingSpec, TargetCluster
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.framework.snapshot import Snapshot

CPU: Final = "cpu"
PODS: Final = "pods"
_FIRST: Final = {CPU: 0, "memory": 1, PODS: 3}


class _Loads:
    """Replicas and requests by cluster."""

    def __init__(self, snapshot: Snapshot) -> None:
        """Sum for these clusters."""
        self._snapshot = snapshot
        self._before, self._after, self._starts = Counter[str](), Counter[str](), Counter[str]()
        self._asked: dict[str, Counter[str]] = {}

    def keep(self, targets: Iterable[TargetCluster]) -> None:
        """Count a binding that stays as it is."""
        for target in targets:
            self._before[target.name] += target.replicas
            self._after[target.name] += target.replicas

    def add(self, spec: BindingSpec, before: Iterable[TargetCluster], after: Iterable[TargetCluster]) -> None:
        """Count a binding that moves."""
        had = Counter[str]()
        for target in before:
            had[target.name] += target.replicas
        self._before.update(had)
        amounts = requests(spec)
        for target in after:
            self._after[target.name] += target.replicas
            more = target.replicas - had[target.name]
            if more > 0:
                self._starts[target.name] += more
                asked = self._asked.setdefault(target.name, Counter())
                asked.update({name: more * amount for name, amount in amounts.items()})

    def clusters(self) -> tuple[ClusterLoad, ...]:
        """Return the clusters whose replicas change, the most overcommitted first."""
        names = {*self._before, *self._after}
        loads = [
            self._load(name)
            for name in sorted(names)
            if self._before.get(name, 0) != self._after.get(name, 0) or name in self._starts
        ]
        return tuple(sorted(loads, key=_urgency))

    def _load(self, name: str) -> ClusterLoad:
        cluster = self._snapshot.get(name)
        asked = self._asked.get(name, Counter[str]())
        demands = tuple(
            Demand(resource, _amount(resource, asked[resource]), _free(cluster, resource))
            for resource in sorted(asked, key=lambda each: (_FIRST.get(each, 2), each))
        )
        return ClusterLoad(
            name,
            self._before.get(name, 0),
            self._after.get(name, 0),
            self._starts.get(name, 0),
            demands,
            tuple(each.resource for each in demands if each.is_over),
        )


def loads_after(
    comparisons: Mapping[BindingKey, Comparison],
    snapshot: Snapshot,
    outcomes: Mapping[BindingKey, PlannedDecision],
) -> tuple[ClusterLoad, ...]:
    """Return what clusters get if some decisions take effect and all other bindings stay where they are."""
    loads = _Loads(snapshot)
    for key, each in comparisons.items():
        outcome = outcomes.get(key)
        if outcome is not None and each.new is not None:
            loads.add(each.new.spec, each.before, outcome.targets)
        else:
            loads.keep(each.before)
    return loads.clusters()


def _urgency(load: ClusterLoad) -> tuple[bool, float, int, str]:
    shares = [each.asked / each.free for each in load.demands if each.free is not None and each.free > 0]
    return not load.over, -max(shares, default=0.0), -load.starts, load.name


def requests(spec: BindingSpec) -> dict[str, int]:
    """Return what one replica requests, or one set of components: cpu in thousandths, other resources in whole units."""
    if not spec.components:
        return {PODS: 1, **{name: units(name, amount) for name, amount in request_of(spec).items()}}
    found = Counter({PODS: sum(each.replicas for each in spec.components)})
    for component in spec.components:
        for name, amount in request_of(component).items():
            found[name] += component.replicas * units(name, amount)
    return found


def _amount(resource: str, units: int) -> float:
    return units / 1000 if resource == CPU else units


def _free(cluster: Cluster | None, resource: str) -> float | None:
    summary = cluster.resource_summary if cluster is not None else None
    if summary is None or resource not in summary.allocatable:
        return None
    left = summary.left(resource)
    return left.milli_value / 1000 if resource == CPU else left.value
