"""Replicas by the grades of a cluster's resource models, as karmada-scheduler counts them until 1.17.

Source: karmada v1.17.1 pkg/estimator/client/general.go getMaximumReplicasBasedOnResourceModels.
Differs: there is no node of a grade that a list lacks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.quantity import MAX_INT64, Quantity, quotient, wrap64
from karmada_scheduler.estimator.resources import CPU
from karmada_scheduler.structs import Struct


class Grades(Struct, frozen=True):
    """The resource models of a cluster; nodes are found by the position of a model, not by its grade.

    Attributes:
        minimums: By resource, its minimum in each model that has it.
        nodes: The number of nodes of each model; there may be fewer entries than models.
        models: The number of models.
    """

    minimums: Mapping[str, Sequence[Quantity]]
    nodes: Sequence[int]
    models: int

    @classmethod
    def of(cls, cluster: Cluster) -> Grades | None:
        """Return the grades of a cluster, None if it has not reported the nodes of any."""
        summary = cluster.resource_summary
        if summary is None or not summary.modelings:
            return None
        minimums: dict[str, list[Quantity]] = {}
        for model in cluster.resource_models:
            for name, minimum in model.minimums.items():
                minimums.setdefault(name, []).append(minimum)
        return cls(minimums, [each.nodes for each in summary.modelings], len(cluster.resource_models))

    def replicas(self, request: Mapping[str, Quantity]) -> int | None:
        """Return how many replicas the nodes can take, None if a requested resource is in no model.

        Nodes count if their grade's minimum covers the request. At least one replica fits on each of them. Upstream looks
        at the requested resources in random order; one that is in no model comes first here.
        """
        wanted = {name: amount for name, amount in request.items() if amount.value > 0}
        if any(name not in self.minimums for name in wanted):
            return None
        first = 0
        for name, amount in wanted.items():
            sufficient = (
                index for index, minimum in enumerate(self.minimums[name]) if _covers(minimum, amount)
            )
            index = next(sufficient, None)
            if index is None:
                return 0
            first = max(first, index)
        total = 0
        for index in range(first, min(self.models, len(self.nodes))):
            if nodes := self.nodes[index]:
                total = wrap64(total + wrap64(nodes * self._on_one_node(index, wanted)))
        return total

    def _on_one_node(self, index: int, wanted: Mapping[str, Quantity]) -> int:
        most = MAX_INT64
        for name, amount in wanted.items():
            minimums = self.minimums[name]
            if index >= len(minimums):
                return 0
            have, want = minimums[index].value, amount.value
            if name == CPU:
                have, want = minimums[index].milli_value, amount.milli_value
            most = min(most, quotient(have, want))
        return most or 1


def _covers(minimum: Quantity, amount: Quantity) -> bool:
    exponent = min(minimum.exponent, amount.exponent)
    return _scaled(minimum, exponent) >= _scaled(amount, exponent)


def _scaled(amount: Quantity, exponent: int) -> int:
    return int(amount.unscaled * 10 ** (amount.exponent - exponent))
