"""Virtual nodes of a cluster, made from its resource models, and first-fit placement on them.

Equal nodes stand together as one run, so the cost depends on the number of different nodes, not on how
many there are.

Source: karmada v1.18.2 pkg/util/assigningresource scheduling simulator, pkg/estimator/client/general.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from karmada_scheduler.api.binding import Component
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.quantity import wrap64
from karmada_scheduler.estimator.resources import PLAIN, Amounts, amounts, how_often

PODS_PER_NODE: Final = 110


@dataclass(frozen=True, slots=True)
class Run:
    """Equal nodes in a row.

    Attributes:
        free: What each has left.
        pods: How many pods each can still take.
        nodes: How many there are.
    """

    free: Amounts
    pods: int
    nodes: int


def runs_of(cluster: Cluster) -> list[Run]:
    """Make the nodes that a cluster's models describe, smallest grade first.

    A node has exactly the least of its grade, so the usual grade 0 takes nothing. Least amounts that Go's
    arithmetic turns negative count as nothing; upstream goes astray on them.

    Raises:
        ValueError: The models cannot be used; then the summary has to do.
    """
    summary = cluster.resource_summary
    if summary is None:
        raise ValueError("resource summary is nil")
    if not cluster.resource_models:
        raise ValueError("no resource models defined")
    minimums = {model.grade: model.minimums for model in cluster.resource_models}
    nodes: dict[int, int] = {}
    for grade, count in summary.modelings:
        if count < 0:
            raise ValueError(f"negative node count for grade {grade}")
        nodes[grade] = nodes.get(grade, 0) + count
    return [
        Run(
            {name: max(0, amount) for name, amount in amounts(minimums[grade]).items()},
            PODS_PER_NODE,
            nodes[grade],
        )
        for grade in sorted(nodes)
        if grade in minimums and nodes[grade] > 0
    ]


def fit_alone(runs: Iterable[Run], request: Amounts) -> int:
    """Return how many replicas of one request fit on the nodes in all."""
    return sum(run.nodes * how_often(run.free, request, pods=run.pods) for run in runs)


def place_sets(runs: list[Run], components: Sequence[Component], *, most: int) -> int:
    """Place sets of all components, each replica on the first node with room, until one does not fit.

    What a set took before it failed stays taken, as upstream does not roll back. The runs are changed.
    """
    requests = [_request(component) for component in components]
    sets = 0
    while sets < most:
        for component, request in zip(components, requests, strict=True):
            if not _place(runs, request, component.replicas):
                return sets
        sets += 1
    return sets


def _request(component: Component) -> Amounts:
    requirements = component.replica_requirements
    return amounts(requirements.resource_request) if requirements is not None else {}


def _place(runs: list[Run], request: Amounts, replicas: int) -> bool:
    """Place replicas of one component, splitting the run in which the last one lands."""
    index, remaining = 0, replicas
    while index < len(runs) and remaining > 0:
        run = runs[index]
        fit = how_often(run.free, request, pods=run.pods)
        if fit > 0:
            filled, rest = divmod(remaining, fit)
            filled = min(filled, run.nodes)
            pieces = [_less(run, request, fit, nodes=filled)]
            remaining -= filled * fit
            if filled < run.nodes and rest and remaining:
                pieces.append(_less(run, request, remaining, nodes=1))
                remaining = 0
            used = sum(piece.nodes for piece in pieces)
            pieces.append(Run(run.free, run.pods, run.nodes - used))
            pieces = [piece for piece in pieces if piece.nodes]
            runs[index : index + 1] = pieces
            index += len(pieces)
        else:
            index += 1
    return remaining <= 0


def _less(run: Run, request: Amounts, times: int, *, nodes: int) -> Run:
    """Take a request off some nodes, in Go's int64: what is below zero, or overflows to it, adds room."""
    free = dict(run.free)
    for name, amount in request.items():
        if name in free or name in PLAIN:
            free[name] = max(0, wrap64(free.get(name, 0) - wrap64(amount * times)))
    return Run(free, run.pods - times, nodes)
