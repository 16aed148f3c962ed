"""Whether the replicas that start after a loss fit where they go: decisions of a burst do not see each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from karmada_advisor.explain.amounts import units
from karmada_advisor.whatif.plan.capacity_model import Demand
from karmada_advisor.whatif.plan.load import in_cores
from karmada_scheduler.api.binding import TargetCluster
from karmada_scheduler.framework.snapshot import Snapshot

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
        self._free: dict[str, Amounts | None] = {}

    def pending(self, starting: Sequence[Starting], over: Iterable[str]) -> dict[int, int]:
        """Return by position the replicas that do not fit, in the order of the queue.

        A resource that a summary does not have counts as unlimited: nothing is known about it.

        Args:
            starting: All bindings whose replicas start.
            over: The clusters of which more is asked than is free.
        """
        left: dict[str, dict[str, int]] = {name: dict(self.free(name) or {}) for name in over}
        missing: dict[int, int] = {}
        for each in sorted(starting, key=lambda one: one.position):
            for target in each.starts:
                free = left.get(target.name)
                if free is None:
                    continue
                taken = target.replicas
                for name, amount in each.amounts.items():
                    if amount > 0 and name in free:
                        taken = min(taken, max(0, free[name]) // amount)
                for name, amount in each.amounts.items():
                    if name in free:
                        free[name] -= taken * amount
                if taken < target.replicas:
                    missing[each.position] = missing.get(each.position, 0) + target.replicas - taken
        return missing

    def overcommitted(self, starting: Iterable[Starting]) -> dict[str, Amounts]:
        """Return the clusters of which more is asked than is free, and what is asked of them."""
        asked: dict[str, dict[str, int]] = {}
        for each in starting:
            for target in each.starts:
                sums = asked.setdefault(target.name, {})
                for name, amount in each.amounts.items():
                    sums[name] = sums.get(name, 0) + amount * target.replicas
        return {
            cluster: sums
            for cluster, sums in asked.items()
            if (free := self.free(cluster)) is not None
            and any(amount > max(0, free[name]) for name, amount in sums.items() if name in free)
        }

    def demands(self, cluster: str, asked: Amounts) -> tuple[Demand, ...]:
        """Return the resources of which more is asked of a cluster than it has free."""
        free = self.free(cluster) or {}
        return tuple(
            Demand(name, in_cores(name, asked[name]), in_cores(name, free[name]))
            for name in sorted(asked)
            if name in free and asked[name] > max(0, free[name])
        )

    def free(self, name: str) -> Amounts | None:
        """Return what a cluster has free; None if its summary is not known."""
        if name not in self._free:
            cluster = self._snapshot.get(name)
            summary = cluster.resource_summary if cluster is not None else None
            self._free[name] = (
                None
                if summary is None
                else {resource: units(resource, summary.left(resource)) for resource in summary.allocatable}
            )
        return self._free[name]
