"""Who waits for room, and which free room is theirs, for StrictPriority.

A hold is not a number that is written down once: what a waiting binding finds free on a cluster, after those of better rank, is
held for it. So holds never exceed what is free, and grow when Pods end. The room of a cluster is shared again when the cluster
reports, and when who waits for it changes; nothing walks over all bindings or clusters.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
from typing import Final, NamedTuple

from karmada_scheduler.api.binding import Binding, BindingKey, Component, TargetCluster, footprint
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.quantity import MAX_INT32, Quantity
from karmada_scheduler.framework import Snapshot
from karmada_scheduler.structs import IdentityStruct, Struct, field

MOST_WOKEN: Final = 50
"""Bindings that one change of a cluster enqueues, in rank order."""
UNREPORTED_SECONDS: Final = 300.0
"""How long a decision counts as taken at most, as with the gate SchedulingOvercommitProtection."""
REPORT_SECONDS: Final = 12.0
"""How long it counts after its cluster has the replicas: Karmada reports the resources of a cluster every ten seconds."""

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
        for name, amount in (*((name, _thousandths(found)) for name, found in asked), ("pods", 1000)):
            amounts[name] = amounts.get(name, 0) + amount * each.replicas
    return tuple(sorted((name, amount) for name, amount in amounts.items() if amount > 0))


def fit(free: Mapping[str, int], request: Request) -> int:
    """Return how many replicas fit into free amounts."""
    return max(0, min((free.get(name, 0) // amount for name, amount in request), default=MAX_INT32))


def fit_empty(cluster: Cluster, request: Request) -> int:
    """Return how many replicas a cluster could take if it were empty."""
    has = cluster.resource_summary.allocatable if cluster.resource_summary else {}
    return fit({name: _thousandths(has[name]) for name, _ in request if name in has}, request)


class Waiting(IdentityStruct):
    """A binding that waits for room.

    Attributes:
        binding: As it was when it did not fit.
        rank: Its rank.
        request: What one replica takes.
        missing: Replicas, or 1 set of components.
        clusters: The clusters that may take it.
        chosen: Those of them on which it holds room; None for all.
        since: When it began to hold, or to wait, in seconds since 1970.
        term: The affinity term that the hold is for.
        may_hold: Whether room is held for it, if the limit of low priorities lets it.
        rests_until: When it may hold again.
        not_before: When it may be woken: what clusters report says that it fits, and it did not.
        holds: Whether room is held for it.
        room: What it finds on clusters, after those of better rank.
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
    is_woken: bool = False
    room: dict[str, int] = field(default_factory=dict)
    total: int = 0

    def counts(self, name: str) -> bool:
        """Return whether what it finds on a cluster is held for it."""
        return self.chosen is None or name in self.chosen

    def find(self, name: str, count: int) -> None:
        """Note how many replicas fit on a cluster."""
        before = self.room.pop(name, 0)
        if count:
            self.room[name] = count
        if self.counts(name):
            self.total += count - before


class _Part(NamedTuple):
    """Equal replicas on one cluster."""

    request: Request
    count: int


class _Decided(Struct):
    """A decision that clusters do not report yet.

    Attributes:
        parts: What it adds, by cluster.
        until: When it counts no more.
        waiting: The binding as it waited; None if it did not.
        before: An earlier decision.
        is_reported: Whether its clusters have the replicas.
    """

    parts: dict[str, _Part]
    until: float
    waiting: Waiting | None = None
    before: _Decided | None = None
    is_reported: bool = False


class _Shared(Struct):
    """The room of a cluster, and whose it is.

    Attributes:
        decided: What is decided and not reported.
        found: Who finds how much, in rank order.
        holds: Those of them who hold it.
        seen: What is free as decisions see it.
        free: What is free besides ``decided``.
        left: What the holds leave of it.
        knows_nodes: Whether the cluster reports its nodes, so that a small replica may take a place of a large one.
    """

    decided: dict[BindingKey, _Part] = field(default_factory=dict)
    found: dict[BindingKey, tuple[Waiting, int]] = field(default_factory=dict)
    holds: list[tuple[Waiting, int]] = field(default_factory=list)
    seen: dict[str, int] = field(default_factory=dict)
    free: dict[str, int] = field(default_factory=dict)
    left: dict[str, int] = field(default_factory=dict)
    knows_nodes: bool = False

    def less(self, rank: Rank, request: Request) -> int:
        """Return how many replicas fewer fit for a rank than the cluster reports."""
        holds = [_Part(each.request, count) for each, count in self.holds if each.rank < rank]
        if self.knows_nodes:
            decided = self.decided.values() if self.seen is not self.free else ()
            return sum(_places(part, request) for part in (*decided, *holds))
        left = self.left
        if len(holds) < len(self.holds):
            left = dict(self.free)
            for part in holds:
                _take(left, part)
        return fit(self.seen, request) - fit(left, request)


class Limits(NamedTuple):
    """Whose room is held, and for how long.

    Attributes:
        hold_from: The least priority that holds all that it needs.
        hold_seconds: After this time a hold rests for as long; 0 for no end.
        max_held_percent: What lower priorities hold of the fleet, besides the first of them.
    """

    hold_from: int = 1
    hold_seconds: int = 3600
    max_held_percent: int = 5


class Ledger:
    """The waiting bindings of all profiles, and the room that is theirs.

    Attributes:
        limits: Whose room is held.
        waiting: Those that wait, by key.
        ranked: The same in rank order.
    """

    def __init__(
        self,
        limits: Limits,
        *,
        clusters: Callable[[], Snapshot],
        wake: Callable[[BindingKey], None],
        now: Callable[[], float],
        ended: Callable[[Waiting], None],
        deducts: bool,
    ) -> None:
        """Start empty.

        Args:
            limits: Whose room is held.
            clusters: Returns the clusters as they report.
            wake: Enqueues a binding.
            now: Returns the seconds since 1970.
            ended: Called when a hold has come to its end.
            deducts: Whether decisions that clusters do not report are to be deducted, because the estimators do not.
        """
        self.limits: Final = limits
        self._snapshot, self._wake, self._now, self._ended, self._deducts = (
            clusters,
            wake,
            now,
            ended,
            deducts,
        )
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self.waiting: dict[BindingKey, Waiting] = {}
        self.ranked: list[Waiting] = []
        self._requests = Counter[Request]()
        self._shared: dict[str, _Shared] = {}
        self._named: set[str] = set()
        self._decided: dict[BindingKey, _Decided] = {}
        self._low: list[Waiting] = []
        self._clusters: dict[str, Cluster] = {}
        self._fleet = Counter[str]()
        self._due = math.inf

    @property
    def is_idle(self) -> bool:
        """Whether nothing is held, and no decision is to be deducted."""
        return not self._named

    def place_of(self, waiting: Waiting) -> int:
        """Return the place of a binding in the ranking, from 1."""
        return bisect_left(self.ranked, waiting.rank, key=_RANK) + 1

    def add(self, waiting: Waiting, rooms: Iterable[str]) -> None:
        """Let a binding wait, or wait again after another attempt; ``rooms`` are the clusters that can take some of it."""
        names, before = set(rooms), self._drop(waiting.binding.key)
        if before is not None:
            names |= before.room.keys()
            waiting.holds = before.holds and waiting.may_hold
        self.waiting[waiting.binding.key] = waiting
        insort(self.ranked, waiting, key=_RANK)
        self._requests[waiting.request] += 1
        self._share(names | self._update_holders(waiting))

    def remove(self, key: BindingKey) -> None:
        """Let a binding wait no more, and share what it held."""
        if (waiting := self._drop(key)) is not None:
            self._share(waiting.room.keys() | self._update_holders())

    def _drop(self, key: BindingKey) -> Waiting | None:
        waiting = self.waiting.pop(key, None)
        if waiting is not None:
            del self.ranked[bisect_left(self.ranked, waiting.rank, key=_RANK)]
            self._requests[waiting.request] -= 1
            if not self._requests[waiting.request]:
                del self._requests[waiting.request]
        return waiting

    def decide(self, binding: Binding, added: Mapping[str, int], request: Request) -> None:
        """Deduct a decision until clusters report it; ``added`` are the replicas that it adds, by cluster."""
        key, before = binding.key, self._decided.get(binding.key)
        if not self.waiting and before is None:
            return
        parts = {name: _Part(request, count) for name, count in added.items() if count > 0}
        for name, part in before.parts.items() if before is not None else ():
            if name in binding.spec.target_names:
                parts[name] = _Part(request, part.count + (parts[name].count if name in parts else 0))
        waiting = self._drop(key)
        decided = _Decided(parts, self._now() + UNREPORTED_SECONDS, waiting, before)
        names = self._put(key, decided) | self._update_holders()
        self._share(names if waiting is None else names | waiting.room.keys())

    def undo(self, key: BindingKey) -> None:
        """Take a decision back that was not written."""
        if (decided := self._decided.get(key)) is not None:
            self._share(self._put(key, decided.before))
            if decided.waiting is not None:
                decided.waiting.is_woken = False
                self.add(decided.waiting, [*decided.waiting.room])

    def reported(self, key: BindingKey, clusters: Iterable[str]) -> None:
        """Note that clusters have the replicas of a decision; a short time later they report what these take."""
        if (decided := self._decided.get(key)) is not None and decided.parts.keys() <= set(clusters):
            decided.until = min(decided.until, self._now() + REPORT_SECONDS)
            decided.is_reported = True
            self._due = min(self._due, decided.until)

    def forget(self, key: BindingKey) -> None:
        """Drop a binding that was deleted."""
        self._share(self._put(key, None))
        self.remove(key)

    def _put(self, key: BindingKey, decided: _Decided | None) -> set[str]:
        """Replace the decision about a binding; return its clusters."""
        before, names = self._decided.pop(key, None), set[str]()
        if before is not None:
            names |= before.parts.keys()
            for name in names:
                self._shared[name].decided.pop(key)
        if decided is not None:
            self._decided[key] = decided
            self._due = min(self._due, decided.until)
            for name, part in decided.parts.items():
                self._shared.setdefault(name, _Shared()).decided[key] = part
            names |= decided.parts.keys()
        return names

    def follow(self, name: str, new: Cluster | None) -> None:
        """Take a change of a cluster; the same one twice changes nothing."""
        old = self._clusters.pop(name, None)
        if new is not None:
            self._clusters[name] = new
        if new is old:
            return
        for each, sign in ((old, -1), (new, 1)):
            if each is not None and each.resource_summary is not None:
                for resource, amount in each.resource_summary.allocatable.items():
                    self._fleet[resource] += sign * _thousandths(amount)
        if (shared := self._shared.get(name)) is not None:
            for key in [key for key in shared.decided if self._decided[key].is_reported]:
                self._share(self._put(key, None))
        if self.waiting or name in self._shared:
            self._share([name])

    def less_for(self, rank: Rank, request: Request) -> dict[str, int]:
        """Return how many replicas fewer fit for a rank than clusters report, by cluster."""
        less = {name: self._shared[name].less(rank, request) for name in self._named}
        return {name: min(count, MAX_INT32) for name, count in less.items() if count > 0}

    def first_before(self, rank: Rank) -> Waiting | None:
        """Return the first that holds room, if it is of better rank."""
        first = next((each for each in self.ranked if each.holds and each.total), None)
        return first if first is not None and first.rank < rank else None

    def tick(self) -> None:
        """End what has come to its end."""
        now = self._now()
        if now < self._due:
            return
        for key in [key for key, each in self._decided.items() if each.until <= now]:
            self._share(self._put(key, None))
        for each in [each for each in self.ranked if self._end_of(each) <= now]:
            each.may_hold, each.rests_until = False, now + self.limits.hold_seconds
            self._share(each.room.keys() | self._update_holders(each))
            self._ended(each)
        ends = (*(each.until for each in self._decided.values()), *map(self._end_of, self.ranked))
        self._due = min(ends, default=math.inf)

    def _end_of(self, waiting: Waiting) -> float:
        seconds = self.limits.hold_seconds
        return waiting.since + seconds if seconds and waiting.holds else math.inf

    def _update_holders(self, changed: Waiting | None = None) -> set[str]:
        """Decide for whom room is held; return the clusters of those for whom that changes.

        All of the priorities from ``hold_from`` hold. Of the others those that need less together than the limit, in rank
        order, and the first in any case.
        """
        lowest = 1 - self.limits.hold_from
        start = bisect_left(self.ranked, lowest, key=lambda each: each.rank[0])
        limit = {name: amount * self.limits.max_held_percent // 100 for name, amount in self._fleet.items()}
        low: list[Waiting] = []
        for each in (each for each in self.ranked[start:] if each.may_hold):
            needs = [(name, amount * each.missing) for name, amount in each.request]
            if low and any(limit.get(name, 0) < amount for name, amount in needs):
                break
            if low:
                limit.update({name: limit[name] - amount for name, amount in needs})
            low.append(each)
        names, holding = set[str](), {id(each) for each in low}
        for each in {*low, *self._low} | ({changed} if changed is not None else set()):
            holds = each.may_hold and (each.rank[0] < lowest or id(each) in holding)
            if holds != each.holds:
                each.holds, each.since = holds, self._now()
                names |= each.room.keys()
            self._due = min(self._due, self._end_of(each))
        self._low = low
        return names

    def _share(self, names: Iterable[str]) -> None:
        """Give the room of clusters to those who wait for it, in rank order, and wake those who find enough."""
        snapshot = self._snapshot()
        for name in names:
            self._share_one(name, snapshot.get(name))

    def _share_one(self, name: str, cluster: Cluster | None) -> None:
        shared = self._shared.setdefault(name, _Shared())
        summary = None if cluster is None or cluster.deleting else cluster.resource_summary
        shared.knows_nodes = summary is not None and bool(summary.modelings)
        seen = {each: _thousandths(summary.left(each)) for each in summary.allocatable} if summary else {}
        shared.free = dict(seen)
        for part in shared.decided.values():
            _take(shared.free, part)
        shared.seen = seen if self._deducts else shared.free
        before, shared.found, shared.holds = shared.found, {}, []
        left, rooms, full = dict(shared.free), dict[Request, int](), set[Request]()
        for each in self.ranked:
            if len(full) == len(self._requests):
                break
            if name not in each.clusters or each.request in full:
                continue
            if (room := rooms.get(each.request)) is None:
                room = rooms[each.request] = fit(left, each.request)
            if not room:
                full.add(each.request)
                continue
            found = shared.found[each.binding.key] = (each, min(room, each.missing))
            if each.holds and each.counts(name):
                shared.holds.append(found)
                _take(left, _Part(each.request, found[1]))
                rooms.clear()
        shared.left = left
        for key, (each, _) in before.items():
            if key not in shared.found:
                each.find(name, 0)
        for each, count in shared.found.values():
            each.find(name, count)
        self._name(name, shared)
        self._wake_fitting(shared)

    def _name(self, name: str, shared: _Shared) -> None:
        """Note whether decisions have to know of a cluster: something is held there, or was and is decided."""
        if shared.holds or any(self._decided[key].waiting is not None for key in shared.decided):
            self._named.add(name)
        else:
            self._named.discard(name)
        if not shared.found and not shared.decided:
            del self._shared[name]

    def _wake_fitting(self, shared: _Shared) -> None:
        now, woken = self._now(), 0
        for each, count in shared.found.values():
            fits = max(each.total, count) >= each.missing
            if fits and not each.is_woken and now >= each.not_before and woken < MOST_WOKEN:
                each.is_woken, woken = True, woken + 1
                self._wake(each.binding.key)


_RANK: Final = attrgetter("rank")


def _thousandths(amount: Quantity) -> int:
    power = amount.exponent + 3
    return amount.unscaled * 10**power if power >= 0 else amount.unscaled // 10**-power


def _take(free: dict[str, int], part: _Part) -> None:
    for name, amount in part.request:
        free[name] = free.get(name, 0) - amount * part.count


def _places(part: _Part, request: Request) -> int:
    """Return how many places for another request some replicas may take on nodes; a small one may take a place alone."""
    asked = dict(part.request)
    return part.count * max(1, *(-(-asked.get(name, 0) // amount) for name, amount in request))
