"""StrictPriority: free capacity is held for the bindings that wait for it, in the order of their priorities. Off by default.

docs/priority.md explains it for operators.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

from karmada_scheduler import framework as fw
from karmada_scheduler.api.binding import HEALTHY, Binding
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.placement import SPREAD_BY_CLUSTER, SPREAD_BY_REGION
from karmada_scheduler.api.well_known import SCHEDULED_CONDITION
from karmada_scheduler.core.cluster_groups import last_constraint, preferred_first
from karmada_scheduler.core.condition import QUOTA_EXCEEDED
from karmada_scheduler.core.select_clusters import ignores_spread, select_clusters
from karmada_scheduler_plugins._better_first import EVERYWHERE
from karmada_scheduler_plugins._capacity_ledger import CapacityLedger, StrictPriorityArgs
from karmada_scheduler_plugins._held_capacity import Request, Waiting, fit_empty, rank_of, request_of

WAITS_EVENT: Final = "WaitsForCapacity"
WAITS: Final = "Waits for capacity: "
"""In the condition of every binding that waits for capacity."""
NET_SECONDS: Final = 300.0
"""After this time a binding that waits is tried again without being enqueued."""
FIRST: Final = 20
"""So many of the ranking are tried again every ``retrySeconds`` if they fit by what clusters report, and did not fit."""
_SHOWN: Final = 3


class StrictPriority:
    """Hold free capacity for the bindings that wait for it, in the order of their priorities, and wake the first that fits."""

    name = "StrictPriority"
    trusted = True
    post_filter_for = frozenset({"capacity", "filter"})

    def __init__(self, args: StrictPriorityArgs, handle: fw.Handle, *, deducts: bool = True) -> None:
        """Take the args of the profile, which must be the same in all."""
        self._args, self._handle = args, handle
        known = handle.shared.setdefault(self.name, CapacityLedger(args, handle, deducts=deducts))
        assert isinstance(known, CapacityLedger)
        if known.args != args:
            raise ValueError(
                f"its args must be those of the profile {known.profile}: all wait for the same capacity"
            )
        self._ledger, self._first = known, known.first

    def observe(self, old: Binding | Cluster | None, new: Binding | Cluster | None, /) -> None:
        """Follow what clusters report, and the bindings that wait."""
        present = new or old
        if present is None:
            self._ledger.clear()
            self._first.clear()
        elif isinstance(present, Cluster):
            self._ledger.follow(present.name, new if isinstance(new, Cluster) else None)
        elif new is None or present.deleting:
            self._ledger.forget(present.key)
            self._first.forget(present.key)
        else:
            self._follow(present, is_new=old is None)

    def _follow(self, binding: Binding, *, is_new: bool) -> None:
        key, status, waiting = binding.key, binding.status, self._ledger.waiting.get(binding.key)
        condition = status.condition(SCHEDULED_CONDITION) or {}
        text, version = str(condition.get("message")), (binding.uid, binding.generation)
        if waiting is not None and (waiting.binding.uid, waiting.binding.generation) != version:
            self._ledger.remove(key)
        if binding.spec.priority >= self._args.hold_from and condition.get("reason") == QUOTA_EXCEEDED:
            self._first.put(key.namespace, binding, self._args.hold_seconds, text)
        else:
            self._first.drop(key.namespace, key)
        is_known = waiting is not None or key in self._ledger.decided
        if is_known or WAITS not in text or condition.get("status") != "False":
            self._first.drop(EVERYWHERE, key)
        else:  # another process has let it wait
            self._first.put(EVERYWHERE, binding, 0)
            if is_new:
                self._handle.enqueue(key)
        if status.aggregated_status and key in self._ledger.decided:
            shares, totals = dict(binding.spec.clusters), status.reported_by_cluster()
            healthy = [report.cluster_name for report in status.aggregated_status if report.health == HEALTHY]
            has_all = [name for name, (total, _) in totals.items() if total >= shares.get(name, 0)]
            self._ledger.reported(key, (*healthy, *has_all))

    def pre_enqueue(self, context: fw.PreEnqueueContext, /) -> fw.Result:
        """Let those of better rank go first that a quota refuses, and those that waited before this scheduler started."""
        first = self._first.before(context.binding)
        if first is None:
            return fw.SUCCESS
        return fw.Result.unschedulable(f"{first} goes first", retry_after=self._args.retry_seconds)

    @property
    def estimates_nothing(self) -> bool:
        """Whether nobody waits, or waited for what is decided, so that decisions need not ask."""
        ledger = self._ledger
        return not ledger.named or not (ledger.waiting or ledger.waited)

    def estimate_replicas(self, context: fw.EstimateContext, /) -> fw.ReplicaEstimate:
        """Let a binding see only what is not held for those of better rank."""
        self._ledger.tick()
        self._ledger.confirm(context.cycle.binding)
        binding = context.cycle.binding
        rank = rank_of(binding)
        less = self._ledger.less_for(rank, request_of(binding, sets=_counts_sets(binding, context.needed)))
        first = next((waiting for waiting in self._ledger.ranked if waiting.holds and waiting.total), None)
        owner = (
            first.binding.key
            if first is not None and first.rank < rank
            else "decisions that are not reported"
        )
        return fw.ReplicaEstimate(less=less, reason=f"held for {owner}")

    def post_filter(self, context: fw.PostFilterContext, /) -> fw.Result:
        """Hold what is free for a binding that does not fit."""
        binding, ledger, now = context.cycle.binding, self._ledger, self._handle.now()
        before = ledger.waiting.get(binding.key)
        self._first.drop(EVERYWHERE, binding.key)
        shortage = None if self._handle.is_dry_run else context.shortage
        waiting = None if shortage is None else self._waiting(context, shortage, before, now)
        if waiting is None or shortage is None:
            if before is not None and before.term == context.cycle.affinity_name:
                ledger.remove(binding.key)
            return fw.Result.unschedulable("nothing is held for it")
        ledger.add(
            waiting, [candidate.name for candidate in shortage.candidates if candidate.allocatable > 0]
        )
        if not waiting.fits:  # else it fits by what clusters report, and does not
            waiting.not_before = now
        condition = binding.status.condition(SCHEDULED_CONDITION) or {}
        if before is None and WAITS not in str(condition.get("message")):
            text = self._text(waiting)
            self._handle.record_event(binding, warning=False, reason=WAITS_EVENT, text=text)
        return self._answer(waiting)

    def reserve(self, context: fw.BindContext, /) -> fw.Result:
        """Let the binding wait no more, and deduct what it takes until clusters report it."""
        binding, before = context.binding, dict(context.binding.spec.clusters)
        sets = len(binding.spec.components) > 1
        count = {name: 1 if sets else replicas for name, replicas in context.targets}
        if sets:
            before = dict.fromkeys(before, 1)
        added = {name: replicas - before.get(name, 0) for name, replicas in count.items()}
        self._ledger.decide(binding, added, request_of(binding, sets=sets))
        return fw.SUCCESS

    def unreserve(self, context: fw.BindContext, /) -> None:
        """Let the binding wait again, unless the decision may be stored."""
        binding = context.binding
        if not context.may_be_stored:
            self._ledger.undo(binding.key)
            stored = self._handle.binding(binding.key)
            if stored is None or stored.generation != binding.generation:
                self._ledger.remove(binding.key)

    async def run(self) -> None:
        """End holds in time, also while nothing is decided."""
        import asyncio  # answers from files start without it

        while True:
            await asyncio.sleep(1.0)
            self._ledger.tick()

    def _waiting(
        self, context: fw.PostFilterContext, shortage: fw.Shortage, before: Waiting | None, now: float
    ) -> Waiting | None:
        """Return how the binding waits; None if its clusters could not take it if they were empty."""
        cycle = context.cycle
        binding, candidates, needed = cycle.binding, shortage.candidates, shortage.needed
        request = request_of(binding, sets=_counts_sets(binding, needed))
        spread = () if ignores_spread(cycle.placement) else cycle.placement.spread_constraints
        at_most = 0
        if spread and last_constraint(cycle.placement, SPREAD_BY_REGION) is not None:
            candidates = self._in_regions(cycle, candidates, needed, request)
        elif spread and (constraint := last_constraint(cycle.placement, SPREAD_BY_CLUSTER)) is not None:
            at_most = constraint.max_groups
        chosen, assigned = candidates, dict(binding.spec.clusters)
        if at_most:
            empty = {
                candidate.name: max(candidate.available, fit_empty(candidate.cluster, request))
                for candidate in candidates
            }
            kept = before.chosen or () if before is not None else ()
            pool = [candidate for candidate in candidates if at_most > 1 or empty[candidate.name] >= needed]
            chosen = sorted(pool, key=lambda candidate: (candidate.name not in kept, -candidate.available))[
                :at_most
            ]
            if sum(empty[candidate.name] for candidate in chosen) < needed:
                chosen = sorted(pool, key=lambda candidate: -empty[candidate.name])[:at_most]
        total = 0
        for candidate in chosen:
            total += max(candidate.available, fit_empty(candidate.cluster, request))
            if total >= needed:
                break
        else:
            return None
        missing = needed - sum(assigned.get(candidate.name, 0) for candidate in chosen)
        rests_until = before.rests_until if before is not None else 0.0
        return Waiting(
            binding,
            rank_of(binding),
            request,
            max(1, missing),
            _same(frozenset(candidate.name for candidate in candidates)),
            frozenset(candidate.name for candidate in chosen) if at_most else None,
            since=before.since if before is not None else now,
            term=cycle.affinity_name,
            may_hold=binding.key.namespace not in self._args.best_effort_namespaces and now >= rests_until,
            rests_until=rests_until,
            not_before=now + self._args.retry_seconds,
        )

    def _in_regions(
        self, cycle: fw.Cycle, candidates: Sequence[fw.Candidate], needed: int, request: Request
    ) -> Sequence[fw.Candidate]:
        """Return the candidates that would be selected by region if nothing were held."""
        less = self._ledger.less_for(rank_of(cycle.binding), request)
        opened = preferred_first(
            candidate._replace(available=candidate.available + less.get(candidate.name, 0))
            for candidate in candidates
        )
        try:
            chosen = select_clusters(
                cycle.placement, opened, replicas=cycle.binding.spec.replicas, needed=needed
            )
        except fw.SchedulingError:
            return ()
        names = {candidate.name for candidate in chosen}
        return [candidate for candidate in candidates if candidate.name in names]

    def _answer(self, waiting: Waiting) -> fw.Result:
        """Return the text for the condition, and when the binding is tried again if nothing wakes it."""
        is_first = self._ledger.place_of(waiting) <= FIRST
        soon = is_first and waiting.total >= waiting.missing
        delay = float(self._args.retry_seconds) if soon else NET_SECONDS
        return fw.Result(fw.Code.PENDING, (self._text(waiting),), retry_after=delay)

    def _text(self, waiting: Waiting) -> str:
        ranked, place = self._ledger.ranked, self._ledger.place_of(waiting)
        text = f"{WAITS}{_ordinal(place)} of {len(ranked)} by priority"
        capacity = waiting.found if waiting.holds else {}
        held = sorted(
            (name for name in capacity if waiting.counts(name)), key=lambda name: (-capacity[name], name)
        )
        if held:
            more = f" and {len(held) - _SHOWN} more clusters" if len(held) > _SHOWN else ""
            count, since = min(waiting.total, waiting.missing), datetime.fromtimestamp(waiting.since, UTC)
            text += f"; {count} of {waiting.missing} replicas are held on {', '.join(held[:_SHOWN])}{more} since {since:%H:%M} UTC"
        else:
            text += "; no capacity is held for it"
        return text if place == 1 else f"{text}; first is {ranked[0].binding.key}"


def _counts_sets(binding: Binding, needed: int) -> bool:
    return needed == 1 and bool(binding.spec.components)


def _ordinal(number: int) -> str:
    last = 0 if number // 10 % 10 == 1 else number % 10
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(last, 'th') }"


@lru_cache(maxsize=32)
def _same(names: frozenset[str]) -> frozenset[str]:
    """Return one object for equal sets: many bindings have the same clusters."""
    return names
