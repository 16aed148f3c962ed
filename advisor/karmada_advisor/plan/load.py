"""What the replicas that start ask of the clusters, summed over the whole plan."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from karmada_advisor.plan.model import ClusterLoad, Demand
from karmada_scheduler.api.binding import BindingSpec, TargetCluster
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.framework.snapshot import Snapshot

CPU: Final = "cpu"
PODS: Final = "pods"
_FIRST: Final = {CPU: 0, "memory": 1, PODS: 3}


class LoadMove(NamedTuple):
    """The clusters of a binding before and after."""

    spec: BindingSpec
    before: Sequence[TargetCluster]
    after: Sequence[TargetCluster]


class Loads:
    """Replicas and requests by cluster."""

    def __init__(self, snapshot: Snapshot) -> None:
        """Sum for these clusters."""
        self._snapshot = snapshot
        self._before: dict[str, int] = {}
        self._after: dict[str, int] = {}
        self._starts: dict[str, int] = {}
        self._asked: dict[str, dict[str, int]] = {}

    def keep(self, targets: Iterable[TargetCluster]) -> None:
        """Count a binding that stays as it is."""
        for target in targets:
            self._before[target.name] = self._before.get(target.name, 0) + target.replicas
            self._after[target.name] = self._after.get(target.name, 0) + target.replicas

    def add(self, move: LoadMove) -> None:
        """Count a binding that moves."""
        had: dict[str, int] = {}
        for target in move.before:
            had[target.name] = had.get(target.name, 0) + target.replicas
            self._before[target.name] = self._before.get(target.name, 0) + target.replicas
        amounts = requests(move.spec)
        for target in move.after:
            self._after[target.name] = self._after.get(target.name, 0) + target.replicas
            more = target.replicas - had.get(target.name, 0)
            if more <= 0:
                continue
            self._starts[target.name] = self._starts.get(target.name, 0) + more
            asked = self._asked.setdefault(target.name, {})
            for name, units in amounts.items():
                asked[name] = asked.get(name, 0) + more * units

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
        asked = self._asked.get(name, {})
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


def _urgency(load: ClusterLoad) -> tuple[bool, float, int, str]:
    shares = [each.asked / each.free for each in load.demands if each.free is not None and each.free > 0]
    return not load.over, -max(shares, default=0.0), -load.starts, load.name


def requests(spec: BindingSpec) -> dict[str, int]:
    """Return what one replica requests, or one set of components: cpu in thousandths, other resources in whole units."""
    found = {PODS: 1}
    if spec.components:
        found[PODS] = sum(each.replicas for each in spec.components)
        for component in spec.components:
            requirements = component.replica_requirements
            for name, amount in (requirements.resource_request if requirements else {}).items():
                units = amount.milli_value if name == CPU else amount.value
                found[name] = found.get(name, 0) + component.replicas * units
        return found
    requirements = spec.replica_requirements
    for name, amount in (requirements.resource_request if requirements else {}).items():
        found[name] = amount.milli_value if name == CPU else amount.value
    return found


def _amount(resource: str, units: int) -> float:
    return units / 1000 if resource == CPU else units


def _free(cluster: Cluster | None, resource: str) -> float | None:
    summary = cluster.resource_summary if cluster is not None else None
    if summary is None or resource not in summary.allocatable:
        return None
    left = summary.left(resource)
    return left.milli_value / 1000 if resource == CPU else left.value
