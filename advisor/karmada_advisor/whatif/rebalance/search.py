"""The search: the binding with the largest gain per replica that moves comes next, within the bounds.

It is computed as it is executed, in batches. Bindings of one batch are decided about the same clusters, and do not see each
other. With SchedulingOvercommitProtection, each sees those before it. The next batch is decided as if all replicas of those before it
had stopped and started.

The greedy search is lazy: a gain is computed again only when its binding is the next one.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator

from karmada_advisor.explain.inputs import rebalanced
from karmada_advisor.whatif.plan.decide import PlannedDecision, PlanSide, grouped
from karmada_advisor.whatif.plan.effects import same, shift, targets
from karmada_advisor.whatif.rebalance import model
from karmada_advisor.whatif.rebalance.candidates import Gain, Inputs, Usage, gain_of, reason_of
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.core.available_replicas import Assumed
from karmada_scheduler.core.classify import ScheduleType
from karmada_scheduler.dryrun.dry_run import NOTHING_ASSUMED
from karmada_scheduler.framework.snapshot import ChangeLog, Snapshot
from karmada_scheduler.structs import Struct, replace


class _Candidate(Struct):
    """A binding, with the last decision about its rebalance."""

    binding: Binding
    reason: model.Reason
    outcome: PlannedDecision
    decided_at: int
    gained_at: int


class RebalanceSearch:
    """One search; what it finds is known after ``run``.

    Attributes:
        looked_at: How many bindings had a rebalance decided.
        batches: What the proposal moves.
        left: Why others are not in it.
        skipped: How many were not looked at, by reason.
        usage: What is allocated after all batches.
    """

    def __init__(self, inputs: Inputs) -> None:
        """Start with the clusters as they are."""
        self._inputs = inputs
        self._log = ChangeLog()
        self.usage = Usage(inputs.clusters)
        self._bindings = {binding.key: binding for binding in inputs.bindings}
        self._side = self._next_side()
        self._assumed: Assumed = NOTHING_ASSUMED
        self._heap: list[tuple[float, float, int, _Candidate, Gain]] = []
        self._numbers = itertools.count()
        self.left: dict[BindingKey, model.Left] = {}
        self.batches: list[model.Batch] = []
        self.skipped = Counter[model.Skipped]()
        self.looked_at = 0
        self._per_namespace: Counter[str] = Counter()
        self._stops = self._chosen = 0

    def run(self) -> None:
        """Choose bindings, in batches, until a bound is reached, or nothing has a gain."""
        inputs = self._inputs
        reasons: dict[BindingKey, model.Reason] = {}
        for binding in inputs.bindings:
            match reason_of(binding, inputs, self._side):
                case model.Reason() as reason:
                    reasons[binding.key] = reason
                case model.Left() as left:
                    self.left[binding.key] = left
                case model.Skipped() as why:
                    self.skipped[why] += 1
        wanted = grouped(binding for binding in inputs.bindings if binding.key in reasons)
        self.looked_at = len(wanted)
        for number, binding in enumerate(wanted, 1):
            self._offer(_Candidate(binding, reasons[binding.key], self._decide(binding), 0, 0))
            inputs.progress(number, len(wanted))
        while self._heap and not self._is_full():
            moves = tuple(self._batch())
            if not moves:
                break
            self.batches.append(model.Batch(len(self.batches) + 1, moves))
            self._side = self._next_side(moves)
            self._assumed = NOTHING_ASSUMED
        for *_, candidate, _ in self._heap:
            self.left[candidate.binding.key] = self._full_reason()

    def _is_full(self) -> bool:
        bounds = self._inputs.bounds
        return self._stops >= bounds.max_moves or self._chosen >= (bounds.max_bindings or math.inf)

    def _full_reason(self) -> model.Left:
        is_bound = self._chosen >= (self._inputs.bounds.max_bindings or math.inf)
        return model.Left.MAX_BINDINGS if is_bound else model.Left.MAX_MOVES

    def _next_side(self, moves: Iterable[model.BindingMove] = ()) -> PlanSide:
        """Return the clusters and bindings as they are after the batches so far."""
        for name in {target.name for move in moves for target in (*move.before, *move.after)}:
            self._log.append(name)
        snapshot = Snapshot.of(self.usage.clusters(), log=self._log)
        return PlanSide(self._inputs.rules, snapshot, self._bindings.values())

    def _decide(self, binding: Binding) -> PlannedDecision:
        return self._side.decide(rebalanced(binding), ScheduleType.RECONCILE, self._assumed)[0]

    @property
    def _decision_number(self) -> int:
        """What a decision depends on: the batches so far, or the bindings chosen so far if decisions see each other."""
        return self._chosen if self._inputs.rules.is_coupled else len(self.batches)

    def _offer(self, candidate: _Candidate) -> None:
        """Put a candidate into the heap, or note why it is left."""
        inputs, binding = self._inputs, candidate.binding
        reason = self._unusable(candidate)
        if reason is None:
            gain = gain_of(binding, candidate.outcome.targets, self.usage, inputs, candidate.reason)
            if gain.suffices(inputs.bounds.min_gain):
                candidate.gained_at = self._chosen
                heapq.heappush(
                    self._heap, (-gain.weight, -gain.per_move, next(self._numbers), candidate, gain)
                )
                return
            reason = model.Left.NO_GAIN
        self.left[binding.key] = reason

    def _unusable(self, candidate: _Candidate) -> model.Left | None:
        """Return why the last decision about a candidate is no proposal; None if it may be one."""
        before, outcome = candidate.binding.spec.clusters, candidate.outcome
        if outcome.error:
            return model.Left.FAILS
        if same(outcome.targets, before):
            return (
                model.Left.LOCALITY_KEEPS
                if self._keeps_locality(candidate.binding)
                else model.Left.SAME_PLACEMENT
            )
        replicas = sum(target.replicas for target in before)
        stops = shift(before, outcome.targets).stops
        if stops > replicas - math.ceil(self._inputs.bounds.min_kept * replicas):
            return model.Left.BELOW_MIN_KEPT
        return None

    def _keeps_locality(self, binding: Binding) -> bool:
        """Return whether only maxGroups, which the present clusters meet, keeps out a cluster that the goal wants."""
        present = {target.name for target in binding.spec.clusters}
        placement = binding.spec.placement
        limits = [
            constraint.max_groups
            for constraint in (placement.spread_constraints if placement is not None else ())
            if constraint.spread_by_field == "cluster"
        ]
        if not limits or len(present) < min(limits):
            return False
        shares = self.usage.shares
        fullest = max((shares[name] for name in present if name in shares), default=0.0)
        wanted = (
            {self._inputs.fill} if self._inputs.fill else {name for name in shares if shares[name] < fullest}
        )
        return self._side.passes(binding, wanted - present)

    def _batch(self) -> Iterator[model.BindingMove]:
        """Choose the bindings of the next batch."""
        size = 0
        while self._heap and size < self._inputs.bounds.batch_size and not self._is_full():
            *_, candidate, gain = heapq.heappop(self._heap)
            if candidate.decided_at != self._decision_number:
                candidate.outcome = self._decide(candidate.binding)
                candidate.decided_at = self._decision_number
                self._offer(candidate)
            elif candidate.gained_at != self._chosen:
                self._offer(candidate)
            elif (reason := self._out_of_bounds(candidate)) is not None:
                self.left[candidate.binding.key] = reason
            else:
                size += 1
                yield self._choose(candidate, gain)

    def _out_of_bounds(self, candidate: _Candidate) -> model.Left | None:
        bounds, binding = self._inputs.bounds, candidate.binding
        if self._stops + shift(binding.spec.clusters, candidate.outcome.targets).stops > bounds.max_moves:
            return model.Left.MAX_MOVES
        most = bounds.max_per_namespace
        if most is not None and self._per_namespace[binding.key.namespace] >= most:
            return model.Left.MAX_PER_NAMESPACE
        return None

    def _choose(self, candidate: _Candidate, gain: Gain) -> model.BindingMove:
        binding, after = candidate.binding, candidate.outcome.targets
        moved = shift(binding.spec.clusters, after)
        self._stops += moved.stops
        self._chosen += 1
        self._per_namespace[binding.key.namespace] += 1
        self.usage.move(binding.spec, binding.spec.clusters, after)
        self._assumed = self._inputs.rules.assuming(self._assumed, binding, after)
        self._bindings[binding.key] = replace(binding, spec=replace(binding.spec, clusters=after))
        if self._inputs.rules.is_coupled:
            self._side = PlanSide(self._inputs.rules, self._side.snapshot, self._bindings.values())
        return model.BindingMove(
            *binding.key,
            model.RebalancedWorkload(*binding.spec.resource[:4]),
            candidate.reason,
            targets(binding.spec.clusters),
            targets(after),
            moved.stops,
            moved.starts,
            round(gain.total, 9),
        )
