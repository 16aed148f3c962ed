"""What waits for capacity, and whose the capacity of a cluster is, for StrictPriority."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from karmada_scheduler.api.binding import Binding, BindingKey, Component, TargetCluster, footprint
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.quantity import MAX_INT32, Quantity
from karmada_scheduler.structs import Struct, field

Rank = tuple[float, float, BindingKey]
"""The order of waiting bindings: by priority, creation and key; the lowest is the first."""
Request = tuple[tuple[str, int], ...]
"""What one replica, or one set of components, takes of each resource, in thousandths; its Pods are a resource."""


def rank_of(binding: Binding) -> Rank:
    """Return the rank of a binding; of equal priorities the older one is the first."""
    created = binding.creation_timestamp
    return -binding.spec.priority, math.inf if created is None else created.timestamp(), binding.key


def request_of(binding: Binding, *, sets: bool) -> Request:
    """Return what a replica takes; with ``sets`` what all components take together."""
    workload = footprint(binding, TargetCluster("", 1))
    single = (Component("", 1, binding.spec.replica_requirements),)
    amounts: dict[str, int] = {}
    for each in workload.components if sets else single:
        asked = each.replica_requirements.resource_request.items() if each.replica_requirements else ()
        for name, amount in (*((name, thousandths(found)) for name, found in asked), ("pods", 1000)):
            amounts[name] = amounts.get(name, 0) + amount * each.replicas
    return tuple(sorted((name, amount) for name, amount in amounts.items() if amount > 0))


def fit(free: Mapping[str, int], request: Request) -> int:
    """Return how many replicas fit into free amounts."""
    count = MAX_INT32
    for name, amount in request:
        if (each := free.get(name, 0) // amount) < count:
            count = each
    return max(0, count)


def fit_empty(cluster: Cluster, request: Request) -> int:
    """Return how many replicas a cluster could take if it were empty."""
    has = cluster.resource_summary.allocatable if cluster.resource_summary else {}
    return fit({name: thousandths(has[name]) for name, _ in request if name in has}, request)


class Waiting(Struct, eq=False):
    """A binding that waits for capacity.

    Attributes:
        binding: As it was when it did not fit.
        rank: Its rank.
        request: What one replica takes.
        missing: Replicas, or 1 set of components.
        clusters: The clusters that may take it.
        chosen: Those of them on which it holds capacity; None for all.
        since: When it began to hold, or to wait, in seconds since 1970.
        term: The affinity term that the hold is for.
        may_hold: Whether capacity is held for it, if the limit of low priorities lets it.
        rests_until: When it may hold again.
        not_before: When it may be enqueued: what clusters report says that it fits, and it did not.
        holds: Whether capacity is held for it.
        found: What it finds on clusters, after those of better rank.
        total: The sum of what is held for it, or would be.
    """

    binding: Binding
    rank: Rank
    request: Request
    missing: int
    clusters: frozenset[str]
    chosen: frozenset[str] | None
    since: float
    term: str = ""
    may_hold: bool = True
    rests_until: float = 0.0
    not_before: float = 0.0
    holds: bool = False
    is_enqueued: bool = False
    found: dict[str, int] = field(default_factory=dict)
    total: int = 0

    @property
    def fits(self) -> bool:
        """Whether it finds all that it needs."""
        return max(self.total, *self.found.values(), 0) >= self.missing

    def counts(self, name: str) -> bool:
        """Return whether what it finds on a cluster is held for it."""
        return self.chosen is None or name in self.chosen

    def find(self, name: str, count: int) -> None:
        """Note how many replicas fit on a cluster."""
        before = self.found.pop(name, 0)
        if count:
            self.found[name] = count
        if self.counts(name):
            self.total += count - before


class EqualReplicas(Struct, frozen=True):
    """Equal replicas on one cluster."""

    request: Request
    number: int


class Shared(Struct, eq=False):
    """The capacity of a cluster, and whose it is.

    Attributes:
        decided: What is decided and not reported.
        unseen: The parts of ``decided`` that estimators do not deduct.
        found: The bindings that find capacity, with how many replicas fit, in rank order.
        holds: Those of ``found`` for which it is held.
        seen: What is free as decisions see it.
        free: What is free besides ``decided``.
        left: What the holds leave of it.
        knows_nodes: Whether the cluster reports its nodes, so that a small replica may take a place of a large one.
        known: How many replicas fewer of a request fit besides all that is held.
    """

    decided: dict[BindingKey, EqualReplicas] = field(default_factory=dict)
    unseen: list[EqualReplicas] = field(default_factory=list)
    found: dict[BindingKey, tuple[Waiting, int]] = field(default_factory=dict)
    holds: list[tuple[Waiting, int]] = field(default_factory=list)
    seen: dict[str, int] = field(default_factory=dict)
    free: dict[str, int] = field(default_factory=dict)
    left: dict[str, int] = field(default_factory=dict)
    knows_nodes: bool = False
    known: dict[Request, int] = field(default_factory=dict)

    def less(self, rank: Rank, request: Request) -> int:
        """Return how many replicas fewer fit for a rank than the cluster reports."""
        if not self.holds or self.holds[-1][0].rank < rank:  # all are of better rank, as for most
            if (known := self.known.get(request)) is None:
                known = self.known[request] = self._less(self.holds, self.left, request)
            return known
        holds = [hold for hold in self.holds if hold[0].rank < rank]
        left = dict(self.free)
        for waiting, count in holds:
            take(left, EqualReplicas(waiting.request, count))
        return self._less(holds, left, request)

    def _less(self, holds: Sequence[tuple[Waiting, int]], left: Mapping[str, int], request: Request) -> int:
        if not self.knows_nodes:
            return fit(self.seen, request) - fit(left, request)
        return sum(
            places(part, request)
            for part in (*self.unseen, *(EqualReplicas(waiting.request, count) for waiting, count in holds))
        )


class FleetCapacity:
    """What the clusters that exist can take, empty.

    Attributes:
        clusters: As they were last, by name.
        amounts: The sums of what they report as allocatable, in thousandths, by resource.
    """

    def __init__(self) -> None:
        self.clusters: dict[str, Cluster] = {}
        self.amounts = Counter[str]()

    def follow(self, name: str, new: Cluster | None) -> bool:
        """Take a change of a cluster; return whether it is one: the same one twice changes nothing."""
        old = self.clusters.pop(name, None)
        if new is not None:
            self.clusters[name] = new
        for each, sign in ((old, -1), (new, 1)) if new is not old else ():
            if each is not None and each.resource_summary is not None:
                for resource, amount in each.resource_summary.allocatable.items():
                    self.amounts[resource] += sign * thousandths(amount)
        return new is not old


def thousandths(amount: Quantity) -> int:
    power = amount.exponent + 3
    return int(amount.unscaled * 10**power) if power >= 0 else int(amount.unscaled // 10**-power)


def take(free: dict[str, int], part: EqualReplicas) -> None:
    for name, amount in part.request:
        free[name] = free.get(name, 0) - amount * part.number


def places(part: EqualReplicas, request: Request) -> int:
    """Return how many places for another request some replicas may take on nodes; a small one may take a place alone."""
    asked = dict(part.request)
    return part.number * max((1, *(-(-asked.get(name, 0) // amount) for name, amount in request)))
