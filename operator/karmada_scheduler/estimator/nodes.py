"""Virtual nodes of a cluster, made from its resource models, and first-fit placement on them.

Equal nodes stand together as one run, so the cost depends on the number of different nodes, not on how
many there are.

Source: karmada v1.18.2 pkg/util/assigningresource scheduling simulator, pkg/estimator/client/general.go.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from karmada_scheduler.api.binding import Component
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.quantity import wrap64
from karmada_scheduler.estimator.resources import PLAIN, Amounts, amounts, fits
from karmada_scheduler.framework.diagnosis import OverBudgetError

PODS_PER_NODE: Final = 110

_MOST_VISITED: Final = 250_000
"""Runs that are looked at, for all components of all sets, before counting is given up; at some 10 microseconds."""
_MOST_STATES: Final = 1000

Wanted = tuple[Amounts, int]
"""What one replica of a component takes, and how many there are."""


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """Equal nodes in a row.

    Attributes:
        free: What each has left.
        pods: How many pods each can still take.
        nodes: How many there are.
    """

    free: Amounts
    pods: int
    nodes: int


def node_groups_of(cluster: Cluster) -> list[NodeGroup]:
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
        NodeGroup(
            {name: max(0, amount) for name, amount in amounts(minimums[grade]).items()},
            PODS_PER_NODE,
            nodes[grade],
        )
        for grade in sorted(nodes)
        if grade in minimums and nodes[grade] > 0
    ]


def fit_alone(runs: Iterable[NodeGroup], request: Amounts) -> int:
    """Return how many replicas of one request fit on the nodes in all."""
    return sum(run.nodes * fits(run.free, request, pods=run.pods) for run in runs)


def place_set(runs: list[NodeGroup], components: Sequence[Component]) -> bool:
    """Place one set of all components, each replica on the first node with room; tell whether all found one.

    What was taken before one did not fit stays taken, as upstream does not roll back. The runs are changed.
    """
    return _place_all(runs, _wanted(components))


def count_sets(runs: Sequence[NodeGroup], components: Sequence[Component], *, most: int) -> int:
    """Return how many sets of all components fit one after the other, each replica on the first node with room.

    Sets that fit as a whole on the first node with room are placed at once. And when the nodes in front of the
    untouched rest of a run come to look as they did some sets ago, what happened in between happens again for as long
    as the rest lasts, so it is counted and not done.

    Raises:
        OverBudgetError: It would take seconds.
    """
    wanted = [(request, replicas) for request, replicas in _wanted(components) if replicas > 0]
    # Then a node that is full may have room again, so nothing can be said of the sets to come.
    grows = any(amount < 0 for request, _ in wanted for amount in request.values())
    left, sets, seen, visited = list(runs), 0, _Seen(), 0
    while sets < most:
        left = _tidied(left, () if grows else wanted)
        if not grows:
            sets += seen.repeated(left, sets, most)
        at_once = 0 if grows else min(_sets_on_first(left, wanted), most - sets)
        if at_once > 1:
            _take_sets(left, wanted, at_once)
            sets += at_once
        elif sets < most:
            if not _place_all(left, wanted):
                return sets
            sets += 1
        visited += (1 + len(left)) * len(wanted)
        if visited > _MOST_VISITED:
            raise OverBudgetError(
                f"the nodes of its resource models differ too much to count more than {sets} sets"
            )
    return sets


class _Seen:
    """The nodes as they were after each set, to find out that they are so again."""

    def __init__(self) -> None:
        self._states: dict[Hashable, tuple[int, int]] = {}

    def repeated(self, left: list[NodeGroup], sets: int, most: int) -> int:
        """Count the sets that repeat what was seen, and take the nodes for them off the largest run.

        A state is all runs but for the number of nodes in the largest. Where two are equal, all that was taken in
        between came from that run, and goes on to as long as it is never used up.
        """
        if not left:
            return 0
        place = max(range(len(left)), key=lambda index: left[index].nodes)
        largest = left[place]
        state = (
            place,
            tuple(
                [(frozenset(run.free.items()), run.pods, run is not largest and run.nodes) for run in left]
            ),
        )
        sets_then, nodes_then = self._states.get(state, (0, 0))
        if nodes_then <= largest.nodes:
            if len(self._states) >= _MOST_STATES:
                self._states.clear()
            self._states[state] = sets, largest.nodes
            return 0
        nodes, more = nodes_then - largest.nodes, sets - sets_then
        times = min((largest.nodes - 1) // nodes, (most - sets) // more)
        if times:
            left[place] = NodeGroup(largest.free, largest.pods, largest.nodes - times * nodes)
            self._states.clear()
        return times * more


def _tidied(runs: Sequence[NodeGroup], wanted: Sequence[Wanted]) -> list[NodeGroup]:
    """Leave out nodes that can take nothing of what is wanted (if that is given), and join equal neighbours."""
    tidy: list[NodeGroup] = []
    for run in runs:
        if wanted and not any(fits(run.free, request, pods=run.pods) for request, _ in wanted):
            continue
        if tidy and tidy[-1].pods == run.pods and tidy[-1].free == run.free:
            tidy[-1] = NodeGroup(run.free, run.pods, tidy[-1].nodes + run.nodes)
        else:
            tidy.append(run)
    return tidy


def _sets_on_first(runs: Sequence[NodeGroup], wanted: Sequence[Wanted]) -> int:
    """Return how many whole sets the first node can take."""
    if not runs:
        return 0
    per_set, pods = _per_set(wanted)
    return fits(runs[0].free, per_set, pods=runs[0].pods // pods) if pods else 0


def _take_sets(runs: list[NodeGroup], wanted: Sequence[Wanted], times: int) -> None:
    """Take whole sets off the first node."""
    first = runs[0]
    per_set, pods = _per_set(wanted)
    free = {name: amount - times * per_set.get(name, 0) for name, amount in first.free.items()}
    rest = [NodeGroup(first.free, first.pods, first.nodes - 1)] if first.nodes > 1 else []
    runs[:1] = [NodeGroup(free, first.pods - times * pods, 1), *rest]


def _per_set(wanted: Sequence[Wanted]) -> tuple[Amounts, int]:
    total: Amounts = {}
    for request, replicas in wanted:
        for name, amount in request.items():
            total[name] = total.get(name, 0) + amount * replicas
    return total, sum(replicas for _, replicas in wanted)


def _wanted(components: Sequence[Component]) -> list[Wanted]:
    wanted = []
    for component in components:
        requirements = component.replica_requirements
        request = amounts(requirements.resource_request) if requirements is not None else {}
        wanted.append((request, component.replicas))
    return wanted


def _place_all(runs: list[NodeGroup], wanted: Sequence[Wanted]) -> bool:
    return all(_place(runs, request, replicas) for request, replicas in wanted)


def _place(runs: list[NodeGroup], request: Amounts, replicas: int) -> bool:
    """Place replicas of one component, splitting the run in which the last one lands."""
    index, remaining = 0, replicas
    while index < len(runs) and remaining > 0:
        run = runs[index]
        fit = fits(run.free, request, pods=run.pods)
        if fit > 0:
            filled, rest = divmod(remaining, fit)
            filled = min(filled, run.nodes)
            pieces = [_less(run, request, fit, nodes=filled)]
            remaining -= filled * fit
            if filled < run.nodes and rest and remaining:
                pieces.append(_less(run, request, remaining, nodes=1))
                remaining = 0
            used = sum(piece.nodes for piece in pieces)
            pieces.append(NodeGroup(run.free, run.pods, run.nodes - used))
            pieces = [piece for piece in pieces if piece.nodes]
            runs[index : index + 1] = pieces
            index += len(pieces)
        else:
            index += 1
    return remaining <= 0


def _less(run: NodeGroup, request: Amounts, times: int, *, nodes: int) -> NodeGroup:
    """Take a request off some nodes, in Go's int64: what is below zero, or overflows to it, adds room."""
    free = dict(run.free)
    for name, amount in request.items():
        if name in free or name in PLAIN:
            free[name] = max(0, wrap64(free.get(name, 0) - wrap64(amount * times)))
    return NodeGroup(free, run.pods - times, nodes)
