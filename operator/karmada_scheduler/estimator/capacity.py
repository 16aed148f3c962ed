"""What clusters can still take, as integers: of one cluster, and as columns of all that pass a set of filters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from karmada_scheduler import columns
from karmada_scheduler.api.cluster import Cluster, ResourceSummary
from karmada_scheduler.api.quantity import ZERO, wrap64
from karmada_scheduler.columns import Column
from karmada_scheduler.estimator.nodes import Run, runs_of
from karmada_scheduler.estimator.resources import CPU, PODS
from karmada_scheduler.framework.memo import Followed, Verdicts

NOTHING: Final = (0, 0)


@dataclass(slots=True)
class Capacity:
    """What one cluster can still take, worked out when the cluster is first seen.

    Attributes:
        pods: Never negative.
        room: Resource name to what is left, in whole units and in thousandths.
        runs: Its virtual nodes; None where there are no usable models.
    """

    cluster: Cluster
    pods: int
    room: Mapping[str, tuple[int, int]]
    runs: Sequence[Run] | None

    def units(self, name: str) -> int:
        """Return what is left of a resource, cpu in thousandths; 0 where there is not one whole unit."""
        whole, thousandths = self.room.get(name, NOTHING)
        if whole <= 0:
            return 0
        return thousandths if name == CPU else whole

    @property
    def is_odd(self) -> bool:
        """Whether columns cannot tell what fits: there are virtual nodes, or thousandths of cpu that overflowed."""
        return self.runs is not None or self.units(CPU) < 0


def capacity_of(cluster: Cluster, summary: ResourceSummary | None, *, uses_models: bool) -> Capacity:
    """Work out what a cluster with this summary can take."""
    if summary is None:
        return Capacity(cluster, 0, {}, None)
    runs: Sequence[Run] | None = None
    if uses_models and summary.modelings:
        try:
            runs = runs_of(cluster)
        except ValueError:
            runs = None  # the summary has to do, as upstream does
    return Capacity(cluster, free_pods(summary), room_of(summary), runs)


def free_pods(summary: ResourceSummary) -> int:
    """Return how many pods are left."""
    allocatable, allocated, allocating = (
        pods.get(PODS, ZERO).value for pods in (summary.allocatable, summary.allocated, summary.allocating)
    )
    return max(0, wrap64(allocatable - allocated - allocating))


def room_of(summary: ResourceSummary) -> dict[str, tuple[int, int]]:
    """Return what is left of each resource, in whole units and in thousandths."""
    return {name: (room.value, room.milli_value) for name, room in summary.room.items()}


class CapacityColumns:
    """The capacities of the clusters that pass a set of filters, in rows; kept true for those that change."""

    def __init__(self, look_up: Callable[[Cluster], Capacity]) -> None:
        """Take who knows the capacity of a single cluster."""
        self._look_up = look_up
        self._followed = Followed()
        self._rows: Mapping[str, int] = {}
        self._capacities: list[Capacity] = []
        self._pods = columns.column(())
        self._units: dict[str, Column] = {}
        self._odd: set[int] = set()

    def refresh(self, verdicts: Verdicts) -> None:
        """Look at the clusters that have changed since the last time."""
        names = self._followed.news(verdicts)
        if names is None or self._rows is not verdicts.rows:
            self._capacities = [self._look_up(cluster) for cluster in verdicts.feasible]
            self._pods = columns.column([capacity.pods for capacity in self._capacities])
            self._units.clear()
            self._odd = {row for row, capacity in enumerate(self._capacities) if capacity.is_odd}
        else:
            for row in verdicts.rows_of(names):
                capacity = self._capacities[row] = self._look_up(verdicts.feasible[row])
                self._pods[row] = capacity.pods
                for name, units in self._units.items():
                    units[row] = capacity.units(name)
                (self._odd.add if capacity.is_odd else self._odd.discard)(row)
        self._rows = verdicts.rows
        self._followed.caught_up(verdicts)

    def pods(self, rows: Column) -> Column:
        """Return how many pods fit, cut to 32 bits."""
        return columns.how_often(self._pods, (), rows)

    def how_often(self, amounts: Iterable[tuple[str, int]], rows: Column) -> Column:
        """Return how often a request fits, cut to 32 bits; what is said of an odd cluster is void.

        Args:
            amounts: Resource names and what is wanted of it, cpu in thousandths; > 0.
            rows: The clusters that are asked about.
        """
        return columns.how_often(self._pods, [(self._units_of(name), each) for name, each in amounts], rows)

    def odd_among(self, rows: Column) -> Sequence[int]:
        """Return which of these rows columns cannot tell about, counted from 0."""
        if not self._odd:
            return ()
        return [place for place, row in enumerate(rows.tolist()) if row in self._odd]

    def _units_of(self, name: str) -> Column:
        units = self._units.get(name)
        if units is None:
            units = columns.column([capacity.units(name) for capacity in self._capacities])
            self._units[name] = units
        return units
