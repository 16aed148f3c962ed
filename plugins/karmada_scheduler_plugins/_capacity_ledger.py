"""The ledger of StrictPriority: who waits for capacity, and which free capacity is held for them.

A hold is not a number that is written down once: what a waiting binding finds free on a cluster, after those of better rank, is
held for it. So holds never exceed what is free, and grow when Pods end. The capacity of a cluster is shared again when the cluster
reports, and when who waits for it changes; nothing walks over all bindings or clusters.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush
from operator import attrgetter
from typing import Final

from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.quantity import MAX_INT32
from karmada_scheduler.framework import Handle
from karmada_scheduler.structs import Struct
from karmada_scheduler_plugins._better_first import BetterFirst
from karmada_scheduler_plugins._held_capacity import (
    EqualReplicas,
    FleetCapacity,
    Rank,
    Request,
    Shared,
    Waiting,
    fit,
    take,
    thousandths,
)

HOLD_ENDED: Final = "HoldEnded"
MOST_ENQUEUED: Final = 50
"""Bindings that one change of a cluster enqueues, in rank order."""
UNREPORTED_SECONDS: Final = 300.0
"""How long a decision counts as taken at most, as with the gate SchedulingOvercommitProtection."""
IDLE_SECONDS: Final = 60.0
"""The same while nobody waits, when there may be hundreds of decisions in a second."""
REPORT_SECONDS: Final = 12.0
"""How long it counts after its cluster has the replicas: Karmada reports the resources of a cluster every ten seconds."""

_RANK: Final = attrgetter("rank")


class _Decided(Struct, eq=False):
    """A decision that clusters do not report yet.

    Attributes:
        parts: What it adds, by cluster.
        until: When each of them counts no more.
        reported: The clusters that have the replicas.
        waiting: The binding as it waited; None if it did not.
        before: An earlier decision.
    """

    parts: dict[str, EqualReplicas]
    until: dict[str, float]
    reported: set[str]
    waiting: Waiting | None = None
    before: _Decided | None = None


def _within(low: int, high: int) -> dict[str, Callable[[object], int]]:
    """Return the metadata of a field that takes whole numbers of a range."""

    def read(value: object) -> int:
        if type(value) is not int or not low <= value <= high:
            raise ValueError(f"must be a whole number from {low} to {high}, got {value!r:.100}")
        return value

    return {"read": read}


@dataclass(frozen=True)
class StrictPriorityArgs:
    """The args of StrictPriority.

    Attributes:
        hold_from: Priorities from here on hold all that they need.
        hold_seconds: After this time a hold rests for as long; 0 for no end, at most 604,800.
        max_held_percent: What lower priorities hold together of the fleet's resources, besides the first of them; 0 to 100.
        best_effort_namespaces: Their bindings hold nothing.
        retry_seconds: The pause between attempts of who fits by what clusters report, and did not fit; 1 to 3,600.
    """

    hold_from: int = field(default=1, metadata=_within(-MAX_INT32, MAX_INT32))
    hold_seconds: int = field(default=3600, metadata=_within(0, 604_800))
    max_held_percent: int = field(default=5, metadata=_within(0, 100))
    best_effort_namespaces: tuple[str, ...] = ()
    retry_seconds: int = field(default=15, metadata=_within(1, 3600))


class CapacityLedger:
    """The waiting bindings of all profiles, and the capacity that is theirs.

    Attributes:
        args: Whose capacity is held.
        profile: The profile that was made first.
        first: Those that go first, whatever capacity there is.
        waiting: Those that wait, by key.
        ranked: The same in rank order.
        decided: Decisions that clusters do not report yet.
        named: The clusters that decisions have to know of: something is held there, or is decided.
        waited: Those of ``decided`` that waited.
    """

    def __init__(self, args: StrictPriorityArgs, handle: Handle, *, deducts: bool) -> None:
        """Start empty; ``deducts`` is whether ``decided`` is to be deducted, because the estimators do not."""
        self.args: Final = args
        self.profile: Final = handle.profile
        self.first: Final = BetterFirst(handle)
        self._handle, self._deducts = handle, deducts
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self.waiting: dict[BindingKey, Waiting] = {}
        self.ranked: list[Waiting] = []
        self._requests = Counter[Request]()
        self._shared: dict[str, Shared] = {}
        self.named: set[str] = set()
        self.decided: dict[BindingKey, _Decided] = {}
        self.waited: set[BindingKey] = set()
        self._low: list[Waiting] = []
        self._fleet = FleetCapacity()
        self._ends: list[tuple[float, BindingKey]] = []
        self._due = math.inf

    def place_of(self, waiting: Waiting) -> int:
        """Return the place of a binding in the ranking, from 1."""
        return bisect_left(self.ranked, waiting.rank, key=_RANK) + 1

    def add(self, waiting: Waiting, clusters: Iterable[str]) -> None:
        """Let a binding wait, or wait again after another attempt; ``clusters`` are those that can take some of it."""
        names, before = set(clusters), self._drop(waiting.binding.key)
        if before is not None:
            names |= before.found.keys()
            waiting.holds = before.holds and waiting.may_hold
        self.waiting[waiting.binding.key] = waiting
        insort(self.ranked, waiting, key=_RANK)
        self._requests[waiting.request] += 1
        if len(self.waiting) == 1:  # what was decided before is shared only now
            names |= self.named
        self._share(names | self._update_holders(waiting))

    def remove(self, key: BindingKey) -> None:
        """Let a binding wait no more, and share what it held."""
        if (waiting := self._drop(key)) is not None:
            self._share(waiting.found.keys() | self._update_holders())

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
        key, before = binding.key, self.decided.get(binding.key)
        parts = {name: EqualReplicas(request, count) for name, count in added.items() if count > 0}
        for name, part in before.parts.items() if before is not None else ():
            if name in binding.spec.target_names:
                parts[name] = EqualReplicas(
                    request, part.number + (parts[name].number if name in parts else 0)
                )
        seconds = UNREPORTED_SECONDS if self.waiting else IDLE_SECONDS
        waiting, until = self._drop(key), dict.fromkeys(parts, self._handle.now() + seconds)
        former = frozenset(waiting.found if waiting is not None else ())
        names = self._put(key, _Decided(parts, until, set(), waiting, before))
        self._share(names | former | self._update_holders())

    def undo(self, key: BindingKey) -> None:
        """Take a decision back that was not written."""
        if (decided := self.decided.get(key)) is not None:
            self._share(self._put(key, decided.before))
            if decided.waiting is not None:
                decided.waiting.is_enqueued = False
                decided.waiting.not_before = (
                    self._handle.now() + self.args.retry_seconds
                )  # after its own pause
                self.add(decided.waiting, decided.waiting.clusters)

    def reported(self, key: BindingKey, clusters: Iterable[str]) -> None:
        """Note that clusters have the replicas of a decision; a short time later they report what these take."""
        decided, soon = self.decided[key], self._handle.now() + REPORT_SECONDS
        for name in decided.parts.keys() & set(clusters) - decided.reported:
            decided.reported.add(name)
            decided.until[name] = min(decided.until[name], soon)
            heappush(self._ends, (soon, key))
            if not self._deducts:
                self._share([name])

    def confirm(self, binding: Binding) -> None:
        """Deduct nothing for clusters that a binding has not got: of the write of that decision nothing was heard."""
        decided, targets = self.decided.get(binding.key), binding.spec.target_names
        if decided is not None:
            self._release(binding.key, decided.parts.keys() - targets)

    def forget(self, key: BindingKey) -> None:
        """Drop a binding that was deleted."""
        self._share(self._put(key, None))
        self.remove(key)

    def _put(self, key: BindingKey, decided: _Decided | None) -> set[str]:
        """Replace the decision about a binding; return its clusters."""
        before, names, waited = self.decided.pop(key, None), set[str](), key in self.waited
        self.waited.discard(key)
        if before is not None:
            names |= before.parts.keys()
            for name in names:
                self._shared[name].decided.pop(key)
        if decided is not None and decided.parts:
            self.decided[key] = decided
            if waited or decided.waiting is not None:
                self.waited.add(key)
            heappush(self._ends, (min(decided.until.values()), key))
            for name, part in decided.parts.items():
                self._shared.setdefault(name, Shared()).decided[key] = part
            names |= decided.parts.keys()
        return names

    def _release(self, key: BindingKey, names: Iterable[str]) -> None:
        """Deduct a decision no more on some of its clusters."""
        decided = self.decided[key]
        for name in names:
            del decided.parts[name], decided.until[name], self._shared[name].decided[key]
        if not decided.parts:
            del self.decided[key]
            self.waited.discard(key)
        self._share(names)

    def follow(self, name: str, new: Cluster | None) -> None:
        """Take a change of a cluster; the same one twice changes nothing."""
        if not self._fleet.follow(name, new):
            return
        if (shared := self._shared.get(name)) is not None:
            for key in [key for key in shared.decided if name in self.decided[key].reported]:
                self._release(key, [name])
        if self.waiting or name in self._shared:
            self._share([name])

    def less_for(self, rank: Rank, request: Request) -> dict[str, int]:
        """Return how many replicas fewer fit for a rank than clusters report, by cluster."""
        less = {name: self._shared[name].less(rank, request) for name in self.named}
        return {name: min(count, MAX_INT32) for name, count in less.items() if count > 0}

    def tick(self) -> None:
        """End what has come to its end."""
        now = self._handle.now()
        while self._ends and self._ends[0][0] <= now:
            key = heappop(self._ends)[1]
            if (decided := self.decided.get(key)) is not None:
                self._release(key, [name for name, until in decided.until.items() if until <= now])
                heappush(self._ends, (min(decided.until.values(), default=math.inf), key))
        if now < self._due:
            return
        for waiting in [waiting for waiting in self.ranked if self._end_of(waiting) <= now]:
            waiting.may_hold, waiting.rests_until = False, now + self.args.hold_seconds
            self._share(waiting.found.keys() | self._update_holders(waiting))
            text = f"no capacity is held for it for {self.args.hold_seconds} s, because it did not fit for as long"
            self._handle.record_event(waiting.binding, warning=True, reason=HOLD_ENDED, text=text)
        self._due = min(map(self._end_of, self.ranked), default=math.inf)

    def _end_of(self, waiting: Waiting) -> float:
        seconds = self.args.hold_seconds
        return waiting.since + seconds if seconds and waiting.holds else math.inf

    def _update_holders(self, changed: Waiting | None = None) -> set[str]:
        """Decide for whom capacity is held; return the clusters of those for whom that changes.

        All of the priorities from ``hold_from`` hold. Of the others those that need less together than the limit, in rank
        order, and the first in any case.
        """
        lowest = 1 - self.args.hold_from
        start = bisect_left(self.ranked, float(lowest), key=lambda each: each.rank[0])
        limit = {
            name: amount * self.args.max_held_percent // 100 for name, amount in self._fleet.amounts.items()
        }
        low: list[Waiting] = []
        for waiting in (waiting for waiting in self.ranked[start:] if waiting.may_hold):
            needs = [(name, amount * waiting.missing) for name, amount in waiting.request]
            if low and any(limit.get(name, 0) < amount for name, amount in needs):
                break
            if low:
                limit.update({name: limit[name] - amount for name, amount in needs})
            low.append(waiting)
        names, holding = set[str](), {id(waiting) for waiting in low}
        for waiting in {*low, *self._low} | ({changed} if changed is not None else set()):
            holds = waiting.may_hold and (waiting.rank[0] < lowest or id(waiting) in holding)
            if holds != waiting.holds:
                waiting.holds, waiting.since = holds, self._handle.now()
                names |= waiting.found.keys()
            self._due = min(self._due, self._end_of(waiting))
        self._low = low
        return names

    def _share(self, names: Iterable[str]) -> None:
        """Give the capacity of clusters to those who wait for it, in rank order, and wake those who find enough."""
        snapshot = self._handle.snapshot()
        for name in sorted(names):  # the same order in every run, as bindings are enqueued on the way
            self._share_one(name, snapshot.get(name))

    def _share_one(self, name: str, cluster: Cluster | None) -> None:
        shared = self._shared.setdefault(name, Shared())
        if not self.waiting and not self.waited and not shared.found:
            self._name(name, shared)
            return
        self._look(name, cluster, shared)
        before, shared.found, shared.holds = shared.found, {}, []
        left, fits, full = dict(shared.free), dict[Request, int](), set[Request]()
        for waiting in self.ranked:
            if len(full) == len(self._requests):
                break
            if name not in waiting.clusters or waiting.request in full:
                continue
            if (capacity := fits.get(waiting.request)) is None:
                capacity = fits[waiting.request] = fit(left, waiting.request)
            if not capacity:
                full.add(waiting.request)
                continue
            found = shared.found[waiting.binding.key] = (waiting, min(capacity, waiting.missing))
            if waiting.holds and waiting.counts(name):
                shared.holds.append(found)
                take(left, EqualReplicas(waiting.request, found[1]))
                fits.clear()
        shared.left, shared.known = left, {}
        for key, (waiting, _) in before.items():
            if key not in shared.found:
                waiting.find(name, 0)
        for waiting, count in shared.found.values():
            waiting.find(name, count)
        self._name(name, shared)
        self._wake_fitting(shared)

    def _look(self, name: str, cluster: Cluster | None, shared: Shared) -> None:
        """Note what is free on a cluster, for decisions and besides what is decided."""
        summary = None if cluster is None or cluster.deleting else cluster.resource_summary
        shared.knows_nodes = summary is not None and bool(summary.modelings)
        seen = {each: thousandths(summary.left(each)) for each in summary.allocatable} if summary else {}
        shared.unseen = []
        for key, part in shared.decided.items():
            if self._deducts or name in self.decided[key].reported:
                shared.unseen.append(part)
            else:  # the gate deducts it until it is reported
                take(seen, part)
        shared.seen, shared.free = seen, dict(seen)
        for part in shared.unseen:
            take(shared.free, part)

    def _name(self, name: str, shared: Shared) -> None:
        """Note whether decisions have to know of a cluster: something is held there, or is decided."""
        if shared.holds or shared.decided:
            self.named.add(name)
        else:
            self.named.discard(name)
        if not shared.found and not shared.decided:
            del self._shared[name]

    def _wake_fitting(self, shared: Shared) -> None:
        now, enqueued = self._handle.now(), 0
        for waiting, count in shared.found.values():
            fits = max(waiting.total, count) >= waiting.missing
            if fits and not waiting.is_enqueued and now >= waiting.not_before and enqueued < MOST_ENQUEUED:
                waiting.is_enqueued, enqueued = True, enqueued + 1
                self._handle.enqueue(waiting.binding.key)
