"""The numbers of the charts; templates draw them, next to a table with the same numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from karmada_advisor.explain.model import Explanation
from karmada_advisor.explain.trace_model import ClusterRow
from karmada_scheduler.structs import Struct

FUNNEL_HEIGHT: Final = 64.0
_LEAST: Final = 2.0
"""The height of a step with few of many clusters, so that it is still seen."""


class FunnelStep(Struct, frozen=True):
    """A column of the funnel.

    Attributes:
        label: For people.
        count: Clusters.
        is_decisive: Whether the step that leads to this column determines the answer.
        points: The polygon from the column before to this one, "" for the first.
    """

    label: str
    count: int
    is_decisive: bool
    points: str


_LABELS: Final = {"FILTER": "pass the filters", "SELECT": "selected"}


def funnel(explanation: Explanation) -> tuple[FunnelStep, ...]:
    """Return the columns: all clusters, those that pass the filters, the selected ones, and those with a result."""
    stages = {step.name: step for step in explanation.funnel}
    first = stages.get("FILTER")
    if first is None:
        return ()
    found = [("clusters", first.before, False)]
    for name, label in _LABELS.items():
        stage = stages.get(name)
        if stage is not None and stage.after is not None:
            found.append((label, stage.after, stage.decisive))
    if "DIVIDE" in stages:
        targets = sum(1 for row in explanation.clusters if row.is_target)
        found.append(
            ("get replicas" if explanation.binding.replicas else "get it", targets, stages["DIVIDE"].decisive)
        )
    return tuple(
        FunnelStep(
            label, count, decisive, _points(index, found[index - 1][1], count, first.before) if index else ""
        )
        for index, (label, count, decisive) in enumerate(found)
    )


def _points(index: int, before: int, after: int, all_: int) -> str:
    """Return the band between two columns, 100 units apart: flat first, then it narrows."""
    left, right = (index - 1) * 100, index * 100
    middle = FUNNEL_HEIGHT / 2
    one, two = _height(before, all_) / 2, _height(after, all_) / 2
    bend = left + 62
    corners = [
        (left, middle - one),
        (bend, middle - one),
        (right, middle - two),
        (right, middle + two),
        (bend, middle + one),
        (left, middle + one),
    ]
    return " ".join(f"{x:g},{y:g}" for x, y in corners)


def _height(count: int, all_: int) -> float:
    if not count or not all_:
        return 0.0
    return max(_LEAST, FUNNEL_HEIGHT * count / all_)


class CapacityBar(Struct, frozen=True):
    """Available replicas of a cluster, and the replicas that it gets; both as percent of the largest number."""

    available: float
    replicas: float


def capacity_bars(rows: Sequence[ClusterRow]) -> dict[str, CapacityBar]:
    """Return the bars by cluster, on one scale."""
    most = max((max(_available(row), row.replicas) for row in rows), default=0)
    if not most:
        return {}
    return {
        row.name: CapacityBar(round(100 * _available(row) / most, 1), round(100 * row.replicas / most, 1))
        for row in rows
    }


def _available(row: ClusterRow) -> int:
    return row.capacity.available if row.capacity is not None and row.capacity.source else 0
