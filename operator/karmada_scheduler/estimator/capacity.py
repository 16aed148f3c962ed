"""What clusters can still take, as integers: of one cluster, and as columns of all that pass a set of filters."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from karmada_scheduler.api.cluster import Cluster, ResourceSummary
from karmada_scheduler.api.quantity import ZERO, wrap64
from karmada_scheduler.core.algorithms import columns
from karmada_scheduler.core.algorithms.columns import Column
from karmada_scheduler.estimator.nodes import NodeGroup, node_groups_of
from karmada_scheduler.estimator.resources import CPU, PODS
from karmada_scheduler.framework.runtime.filter_cache import Cursor, FilterResults


@dataclass(slots=True)
class Capacity:
    """What one cluster can still take, worked out when it is first asked for.

    Attributes:
        summary: None where the cluster has not reported.
        pods: Never negative.
        runs: Its virtual nodes; None where there are no usable models.
    """

    cluster: Cluster
    summary: ResourceSummary | None
    pods: int
    runs: Sequence[NodeGroup] | None
    _left: dict[str, tuple[int, int]] = field(default_factory=dict)

    @classmethod
    def of(cls, cluster: Cluster, *, uses_models: bool) -> Capacity:
        """Look at a cluster."""
        summary = cluster.resource_summary
        if summary is None:
            return cls(cluster, None, 0, None)
        runs: Sequence[NodeGroup] | None = None
        if uses_models and summary.modelings:
            try:
                runs = node_groups_of(cluster)
            except ValueError:
                runs = None  # the summary has to do, as upstream does
        return cls(cluster, summary, _free_pods(summary), runs)

    def with_summary(self, summary: ResourceSummary) -> Capacity:
        """Return what the cluster could take if it had reported something else."""
        return Capacity(self.cluster, summary, _free_pods(summary), self.runs)

    def left(self, name: str) -> tuple[int, int]:
        """Return what is left of a resource, in whole units, and of cpu in thousandths."""
        left = self._left.get(name)
        if left is None:
            if self.summary is None or name not in self.summary.allocatable:
                return 0, 0  # not remembered: there may be thousands of such names
            amount = self.summary.left(name)
            left = (amount.value, amount.milli_value if name == CPU else 0)
            if len(self._left) < _MOST_LEFT:
                self._left[name] = left
        return left

    def units(self, name: str) -> int:
        """Return what is left of a resource, cpu in thousandths; 0 where there is not one whole unit."""
        whole, thousandths = self.left(name)
        if whole <= 0:
            return 0
        return thousandths if name == CPU else whole

    @property
    def needs_scalar_path(self) -> bool:
        """Whether columns cannot tell what fits: there are virtual nodes, or thousandths of cpu that overflowed."""
        return self.runs is not None or self.units(CPU) < 0


def _free_pods(summary: ResourceSummary) -> int:
    allocatable, allocated, allocating = (
        pods.get(PODS, ZERO).value for pods in (summary.allocatable, summary.allocated, summary.allocating)
    )
    return max(0, wrap64(allocatable - allocated - allocating))


_MOST_LEFT: Final = 32
_MOST_UNITS: Final = 32
"""Resources that are kept in columns; requests for others than these have to be counted cluster by cluster anew."""

_UNKNOWN: Final = Capacity(Cluster(""), None, 0, None)


class CapacityColumns:
    """The capacities of the clusters that pass a set of filters, in rows; kept true for those that change."""

    def __init__(self, look_up: Callable[[Cluster], Capacity]) -> None:
        """Take who knows the capacity of a single cluster."""
        self._look_up = look_up
        self._followed = Cursor()
        self._rows: Mapping[str, int] = {}
        self._capacities: list[Capacity] = []
        self._pods = columns.column(())
        self._units: OrderedDict[str, Column] = OrderedDict()
        self._scalar: set[int] = set()

    def refresh(self, verdicts: FilterResults) -> None:
        """Look at the clusters that have changed since the last time."""
        names = self._followed.news(verdicts)
        if names is None:
            self._capacities = [self._look_up(cluster) for cluster in verdicts.feasible]
            self._pods = columns.column([capacity.pods for capacity in self._capacities])
            self._units.clear()
            self._scalar = {
                row for row, capacity in enumerate(self._capacities) if capacity.needs_scalar_path
            }
        else:
            if self._rows is not verdicts.rows:
                self._lay_out(verdicts)
            for row in verdicts.rows_of(names):
                capacity = self._capacities[row] = self._look_up(verdicts.feasible[row])
                self._pods[row] = capacity.pods
                for name, units in self._units.items():
                    units[row] = capacity.units(name)
                (self._scalar.add if capacity.needs_scalar_path else self._scalar.discard)(row)
        self._rows = verdicts.rows
        self._followed.caught_up(verdicts)

    def _lay_out(self, verdicts: FilterResults) -> None:
        """Move what is known to the rows where it belongs now; the rows of clusters that are new hold nothing yet."""
        before = [self._rows.get(name, -1) for name in verdicts.rows]
        self._capacities = [self._capacities[row] if row >= 0 else _UNKNOWN for row in before]
        self._pods = columns.reindexed(self._pods, before)
        for name, units in self._units.items():
            self._units[name] = columns.reindexed(units, before)
        self._scalar = {now for now, row in enumerate(before) if row in self._scalar}

    def pods(self, rows: Column) -> Column:
        """Return how many pods fit, cut to 32 bits."""
        return columns.fits(self._pods, (), rows)

    def fits(self, amounts: Iterable[tuple[str, int]], rows: Column) -> Column:
        """Return how often a request fits, cut to 32 bits; what is said of an odd cluster is void.

        Args:
            amounts: Resource names and what is wanted of it, cpu in thousandths; > 0.
            rows: The clusters that are asked about.
        """
        # Made one after the other, and no more of them once nothing fits.
        return columns.fits(self._pods, ((self._units_of(name), each) for name, each in amounts), rows)

    def scalar_rows(self, rows: Column) -> Sequence[int]:
        """Return which of these rows columns cannot tell about, counted from 0."""
        if not self._scalar:
            return ()
        return [place for place, row in enumerate(rows.tolist()) if row in self._scalar]

    def _units_of(self, name: str) -> Column:
        units = self._units.get(name)
        if units is None:
            units = columns.column([capacity.units(name) for capacity in self._capacities])
            self._units[name] = units
            if len(self._units) > _MOST_UNITS:
                self._units.popitem(last=False)
        else:
            self._units.move_to_end(name)
        return units
