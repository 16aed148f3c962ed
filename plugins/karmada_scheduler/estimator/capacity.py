"""Capacity that is left, as integers: of one cluster, in columns for all clusters that pass a set of filters, and by grades.

Source of the grades of resource models: karmada v1.17.1 pkg/estimator/client/general.go
getMaximumReplicasBasedOnResourceModels. Differs: there is no node of a grade that a list lacks.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import is_
from typing import Final

from karmada_scheduler.api.binding import AssumedWorkload
from karmada_scheduler.api.cluster import Cluster, ResourceSummary
from karmada_scheduler.api.quantity import MAX_INT64, ZERO, Quantity, quotient, wrap64
from karmada_scheduler.core.algorithms import columns
from karmada_scheduler.core.algorithms.columns import Column
from karmada_scheduler.estimator.nodes import CPU, PODS, NodeGroup, node_groups_of
from karmada_scheduler.framework.runtime.filter_cache import Cursor, FilterResults
from karmada_scheduler.structs import Struct, field


class Deduction(Struct, frozen=True):
    """What is left of a capacity besides assumed workloads."""

    workloads: Sequence[AssumedWorkload]
    result: ClusterCapacity

    def begins(self, assumed: Sequence[AssumedWorkload]) -> bool:
        """Return whether other workloads are the same, or more after the same."""
        return len(self.workloads) <= len(assumed) and all(map(is_, self.workloads, assumed))


class ClusterCapacity(Struct):
    """Capacity that is left in one cluster; amounts are computed on first use.

    Attributes:
        summary: None if the cluster has not reported one.
        pods: Never negative.
        groups: Its virtual nodes; None without usable resource models.
        grades: Its resource models, if replicas are counted by grade; None otherwise, or without them.
        deductions: The last results without assumed workloads.
    """

    cluster: Cluster
    summary: ResourceSummary | None
    pods: int
    groups: Sequence[NodeGroup] | None
    grades: Grades | None = None
    deductions: tuple[Deduction, ...] = ()
    _left: dict[str, tuple[int, int]] = field(default_factory=dict)

    @classmethod
    def of(cls, cluster: Cluster, *, uses_models: bool, by_grade: bool = False) -> ClusterCapacity:
        """Return the capacity of a cluster, by its resource models and by their grades if these are used."""
        summary = cluster.resource_summary
        if summary is None:
            return cls(cluster, None, 0, None)
        groups: Sequence[NodeGroup] | None = None
        if uses_models and summary.modelings:
            try:
                groups = node_groups_of(cluster)
            except ValueError:
                groups = None  # as upstream, the summary is used
        grades = Grades.of(cluster) if uses_models and by_grade else None
        return cls(cluster, summary, _free_pods(summary), groups, grades)

    def with_summary(self, summary: ResourceSummary) -> ClusterCapacity:
        """Return the capacity with another resource summary."""
        return ClusterCapacity(self.cluster, summary, _free_pods(summary), self.groups, self.grades)

    def left(self, name: str) -> tuple[int, int]:
        """Return the available amount of a resource: whole units, and thousandths if it is cpu."""
        left = self._left.get(name)
        if left is None:
            if self.summary is None or name not in self.summary.allocatable:
                return 0, 0  # not cached: there may be thousands of such names
            amount = self.summary.left(name)
            left = (amount.value, amount.milli_value if name == CPU else 0)
            if len(self._left) < _MAX_LEFT:
                self._left[name] = left
        return left

    def units(self, name: str) -> int:
        """Return the available amount of a resource, of cpu in thousandths; 0 if there is no whole unit."""
        whole, thousandths = self.left(name)
        if whole <= 0:
            return 0
        return thousandths if name == CPU else whole

    @property
    def needs_scalar_path(self) -> bool:
        """Whether columns do not apply: there are models, or the thousandths of cpu have overflowed."""
        return self.groups is not None or self.grades is not None or self.units(CPU) < 0


def _free_pods(summary: ResourceSummary) -> int:
    allocatable, allocated, allocating = (
        pods.get(PODS, ZERO).value for pods in (summary.allocatable, summary.allocated, summary.allocating)
    )
    return max(0, wrap64(allocatable - allocated - allocating))


_MAX_LEFT: Final = 32
_MAX_UNITS: Final = 32
"""Resources with a column; the least recently used column is dropped."""

_UNKNOWN: Final = ClusterCapacity(Cluster(""), None, 0, None)


class CapacityColumns:
    """The capacities of the clusters that pass a set of filters, one per row; refreshed for changed clusters."""

    def __init__(self, look_up: Callable[[Cluster], ClusterCapacity]) -> None:
        """Take a function that returns the capacity of a cluster."""
        self._look_up = look_up
        self._cursor = Cursor()
        self._rows: Mapping[str, int] = {}
        self._capacities: list[ClusterCapacity] = []
        self._pods = columns.column(())
        self._units: OrderedDict[str, Column] = OrderedDict()
        self._scalar: set[int] = set()

    def refresh(self, results: FilterResults, similar: CapacityColumns | None = None) -> None:
        """Refresh the clusters that have changed since the last call.

        Args:
            results: The clusters that pass the filters.
            similar: The capacities of clusters that pass other filters; those of the same clusters are used if there
                are none yet.
        """
        names = self._cursor.changed_since(results)
        if names is None:
            self._capacities = [self._look_up(cluster) for cluster in results.feasible]
            self._pods = columns.column([capacity.pods for capacity in self._capacities])
            self._units.clear()
            if similar is not None:
                self._take_units(similar, results.rows)
            self._scalar = {
                row for row, capacity in enumerate(self._capacities) if capacity.needs_scalar_path
            }
        else:
            if self._rows is not results.rows:
                self._reindex(results)
            for row in results.passing_rows(names):
                capacity = self._capacities[row] = self._look_up(results.feasible[row])
                self._pods[row] = capacity.pods
                for name, units in self._units.items():
                    units[row] = capacity.units(name)
                (self._scalar.add if capacity.needs_scalar_path else self._scalar.discard)(row)
        self._rows = results.rows
        self._cursor.advance(results)

    def _take_units(self, similar: CapacityColumns, rows: Mapping[str, int]) -> None:
        """Take the columns of another object, and compute the rows of clusters that it does not have."""
        theirs = similar._capacities
        source = [similar._rows.get(name, -1) for name in rows]
        missing = [
            row for row, other in enumerate(source) if other < 0 or theirs[other] is not self._capacities[row]
        ]
        for name, units in similar._units.items():
            taken = columns.reindexed(units, source)
            for row in missing:
                taken[row] = self._capacities[row].units(name)
            self._units[name] = taken

    def _reindex(self, results: FilterResults) -> None:
        """Move the values to the new rows of their clusters; rows of new clusters get 0."""
        before = [self._rows.get(name, -1) for name in results.rows]
        self._capacities = [self._capacities[row] if row >= 0 else _UNKNOWN for row in before]
        self._pods = columns.reindexed(self._pods, before)
        for name, units in self._units.items():
            self._units[name] = columns.reindexed(units, before)
        self._scalar = {now for now, row in enumerate(before) if row in self._scalar}

    def pods(self, rows: Column) -> Column:
        """Return how many pods fit, wrapped to 32 bits."""
        return columns.fits(self._pods, (), rows)

    def fits(self, amounts: Iterable[tuple[str, int]], rows: Column) -> Column:
        """Return how many times a request fits, wrapped to 32 bits; invalid for ``scalar_rows``.

        Args:
            amounts: Resource names with the requested amounts, of cpu in thousandths; > 0.
            rows: The rows to compute.
        """
        # A generator: no more columns are created once nothing fits.
        return columns.fits(self._pods, ((self._units_of(name), amount) for name, amount in amounts), rows)

    def scalar_rows(self, rows: Column) -> Sequence[int]:
        """Return the indexes in ``rows`` of clusters to which columns do not apply."""
        if not self._scalar:
            return ()
        return [index for index, row in enumerate(rows.tolist()) if row in self._scalar]

    def _units_of(self, name: str) -> Column:
        units = self._units.get(name)
        if units is None:
            units = columns.column([capacity.units(name) for capacity in self._capacities])
            self._units[name] = units
            if len(self._units) > _MAX_UNITS:
                self._units.popitem(last=False)
        else:
            self._units.move_to_end(name)
        return units


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
        return cls(minimums, [grade.nodes for grade in summary.modelings], len(cluster.resource_models))

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
