"""Thrift: move a placed workload to cheaper clusters, if that saves enough; the placement stays otherwise."""

from collections.abc import Sequence
from dataclasses import dataclass

from karmada_scheduler import framework as fw


class Thrift:
    """Prefer cheap clusters; decide again about placed workloads every minute, and move those that save enough."""

    name = "Thrift"
    reconsider_seconds = 60

    @dataclass
    class Args:
        prices: dict[str, float]  # of a replica, by cluster; Cost reads them from a file or Prometheus
        percent: float = 20.0  # that a move has to save

    def __init__(self, args: Args, handle: fw.Handle) -> None:
        self.percent, self.prices = args.percent, args.prices

    def score(self, context: fw.ScoreContext, /) -> int:
        highest = max(self.prices.values())
        return 100 - round(100 * self.prices.get(context.cluster.name, highest) / highest)

    def propose(self, binding: fw.Binding, /) -> fw.Proposal | None:
        return fw.Proposal("SavesCost", fw.Terms.IN_FORCE) if binding.spec.clusters else None

    def reconsider(self, context: fw.ReconsiderContext, /) -> fw.Result:
        before, after = self._cost(context.binding.spec.clusters), self._cost(context.targets or ())
        if 0 < after <= before * (1 - self.percent / 100):
            return fw.SUCCESS
        return fw.Result.unschedulable(f"the saving is too small: from {before:g} to {after:g}")

    def _cost(self, targets: Sequence[fw.TargetCluster]) -> float:
        highest = max(self.prices.values())
        return sum(self.prices.get(each.name, highest) * max(each.replicas, 1) for each in targets)
