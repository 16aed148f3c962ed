"""Virtual nodes of a cluster, created from its resource models, first-fit placement on them, and the amounts that they add.

Equal nodes are one group, so the cost depends on the number of different nodes, not on their number. Amounts are int64 per
name, cpu in thousandths.

Source: karmada v1.18.2 pkg/util/assigningresource scheduling simulator, pkg/estimator/client/general.go,
pkg/util/resource.go, pkg/util/lifted/scheduler_resource.go.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Final

from karmada_scheduler.api.binding import Component
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.content_cache import cached_by_content
from karmada_scheduler.api.matching import is_label_key
from karmada_scheduler.api.quantity import MAX_INT64, Quantity, wrap64
from karmada_scheduler.framework.diagnosis import OverBudgetError
from karmada_scheduler.structs import Struct

CPU: Final = "cpu"
PODS: Final = "pods"

Amounts = dict[str, int]

PLAIN: Final = frozenset({CPU, "memory", "ephemeral-storage"})
"""Resources that every node has, with an amount of at least 0."""

PODS_PER_NODE: Final = 110

_MAX_VISITED: Final = 250_000
"""Visited groups, over all components of all sets, after which counting ends; some 10 microseconds each."""
_MAX_STATES: Final = 1000

Wanted = tuple[Amounts, int]
"""Resource request of one replica of a component, and the number of replicas."""


@cached_by_content(entries=4096, short=320, long_bytes=0)
def is_counted(name: str) -> bool:
    """Return whether nodes are checked for a resource; requests for other names are ignored there."""
    return (
        name in PLAIN
        or name.startswith(("hugepages-", "attachable-volumes-"))
        or "kubernetes.io/" in name
        or ("/" in name and not name.startswith("requests.") and is_label_key(f"requests.{name}"))
    )


def amounts(quantities: Mapping[str, Quantity]) -> Amounts:
    """Return quantities as amounts; names that nodes are not checked for are dropped."""
    return {
        name: quantity.milli_value if name == CPU else quantity.value
        for name, quantity in quantities.items()
        if is_counted(name)
    }


def fits(have: Mapping[str, int], request: Mapping[str, int], *, pods: int) -> int:
    """Return how many times a request fits, at most ``pods`` times."""
    most = MAX_INT64
    for name, amount in request.items():
        if amount > 0:
            most = min(most, have.get(name, 0) // amount)
    return min(most, pods)


class NodeGroup(Struct, frozen=True):
    """Equal nodes.

    Attributes:
        free: Free amounts of each node.
        pods: Pods that each node can still take.
        nodes: Number of nodes.
    """

    free: Amounts
    pods: int
    nodes: int


def node_groups_of(cluster: Cluster) -> list[NodeGroup]:
    """Return the nodes that a cluster's resource models describe, smallest grade first.

    A node has exactly the minimum of its grade, at least 0, so the usual grade 0 takes nothing.

    Raises:
        ValueError: The models cannot be used; the resource summary is used instead.
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


def fit_alone(groups: Iterable[NodeGroup], request: Amounts) -> int:
    """Return how many replicas of one request fit on all nodes."""
    return sum(group.nodes * fits(group.free, request, pods=group.pods) for group in groups)


def place_set(groups: list[NodeGroup], components: Sequence[Component]) -> bool:
    """Place one set of all components, each replica on the first node that can take it; return whether all fit.

    Replicas that were placed before one did not fit stay placed, as upstream does not roll back. ``groups`` is mutated.
    """
    return _place_all(groups, _wanted(components))


def count_sets(groups: Sequence[NodeGroup], components: Sequence[Component], *, most: int) -> int:
    """Return how many sets of all components fit one after the other, each replica on the first node that can take it.

    Sets that fit as a whole on the first node are placed at once. When all groups but the largest are equal to an earlier
    state, the placements in between repeat as long as the largest group lasts, so they are counted and not repeated.

    Raises:
        OverBudgetError: It would take seconds.
    """
    wanted = [(request, replicas) for request, replicas in _wanted(components) if replicas > 0]
    # With negative requests a full node can get capacity again, so later sets cannot be predicted.
    grows = any(amount < 0 for request, _ in wanted for amount in request.values())
    left, sets, seen, visited = list(groups), 0, _Seen(), 0
    while sets < most:
        left = _merged(left, () if grows else wanted)
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
        if visited > _MAX_VISITED:
            raise OverBudgetError(
                f"the nodes of its resource models differ too much to count more than {sets} sets"
            )
    return sets


class _Seen:
    """The states of the nodes after each set, to detect that a state repeats."""

    def __init__(self) -> None:
        self._states: dict[Hashable, tuple[int, int]] = {}

    def repeated(self, left: list[NodeGroup], sets: int, most: int) -> int:
        """Return the number of sets that repeat an earlier state, and remove their nodes from the largest group.

        A state is all groups without the number of nodes in the largest. If two are equal, the sets in between used
        only nodes of that group, and following sets do the same as long as it is not used up.
        """
        if not left:
            return 0
        place = max(range(len(left)), key=lambda index: left[index].nodes)
        largest = left[place]
        state = (
            place,
            tuple(
                [
                    (frozenset(group.free.items()), group.pods, group is not largest and group.nodes)
                    for group in left
                ]
            ),
        )
        sets_then, nodes_then = self._states.get(state, (0, 0))
        if nodes_then <= largest.nodes:
            if len(self._states) >= _MAX_STATES:
                self._states.clear()
            self._states[state] = sets, largest.nodes
            return 0
        nodes, more = nodes_then - largest.nodes, sets - sets_then
        times = min((largest.nodes - 1) // nodes, (most - sets) // more)
        if times:
            left[place] = NodeGroup(largest.free, largest.pods, largest.nodes - times * nodes)
            self._states.clear()
        return times * more


def _merged(groups: Sequence[NodeGroup], wanted: Sequence[Wanted]) -> list[NodeGroup]:
    """Return groups without nodes that can take none of the requests (if given), with equal neighbours joined."""
    merged: list[NodeGroup] = []
    for group in groups:
        if wanted and not any(fits(group.free, request, pods=group.pods) for request, _ in wanted):
            continue
        if merged and merged[-1].pods == group.pods and merged[-1].free == group.free:
            merged[-1] = NodeGroup(group.free, group.pods, merged[-1].nodes + group.nodes)
        else:
            merged.append(group)
    return merged


def _sets_on_first(groups: Sequence[NodeGroup], wanted: Sequence[Wanted]) -> int:
    """Return how many whole sets the first node can take."""
    if not groups:
        return 0
    per_set, pods = _per_set(wanted)
    return fits(groups[0].free, per_set, pods=groups[0].pods // pods) if pods else 0


def _take_sets(groups: list[NodeGroup], wanted: Sequence[Wanted], times: int) -> None:
    """Place whole sets on the first node."""
    first = groups[0]
    per_set, pods = _per_set(wanted)
    free = {name: amount - times * per_set.get(name, 0) for name, amount in first.free.items()}
    rest = [NodeGroup(first.free, first.pods, first.nodes - 1)] if first.nodes > 1 else []
    groups[:1] = [NodeGroup(free, first.pods - times * pods, 1), *rest]


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


def _place_all(groups: list[NodeGroup], wanted: Sequence[Wanted]) -> bool:
    return all(_place(groups, request, replicas) for request, replicas in wanted)


def _place(groups: list[NodeGroup], request: Amounts, replicas: int) -> bool:
    """Place replicas of one component; the group with the last replica is split."""
    index, remaining = 0, replicas
    while index < len(groups) and remaining > 0:
        group = groups[index]
        fit = fits(group.free, request, pods=group.pods)
        if fit > 0:
            filled = min(remaining // fit, group.nodes)
            pieces = [_less(group, request, fit, nodes=filled)]
            remaining -= filled * fit
            if filled < group.nodes and remaining:
                pieces.append(_less(group, request, remaining, nodes=1))
                remaining = 0
            used = sum(piece.nodes for piece in pieces)
            pieces.append(NodeGroup(group.free, group.pods, group.nodes - used))
            pieces = [piece for piece in pieces if piece.nodes]
            groups[index : index + 1] = pieces
            index += len(pieces)
        else:
            index += 1
    return remaining <= 0


def _less(group: NodeGroup, request: Amounts, times: int, *, nodes: int) -> NodeGroup:
    """Return nodes without a request, in Go's int64: a negative request, or one that overflows, adds capacity."""
    free = dict(group.free)
    for name, amount in request.items():
        if name in free or name in PLAIN:
            free[name] = max(0, wrap64(free.get(name, 0) - wrap64(amount * times)))
    return NodeGroup(free, group.pods - times, nodes)
