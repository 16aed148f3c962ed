"""How the replicas were divided, to the last seat."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from karmada_advisor.explain.inputs import ExplainInputs
from karmada_advisor.explain.trace_model import DivideTrace, DivisionRow, Mismatch
from karmada_scheduler.api.binding import BindingSpec, TargetCluster
from karmada_scheduler.api.placement import AGGREGATED
from karmada_scheduler.api.quantity import wrap32, wrap64
from karmada_scheduler.core.algorithms import webster
from karmada_scheduler.core.algorithms.go_sort import sort_descending
from karmada_scheduler.core.assign_replicas import (
    DUPLICATED,
    STATIC_WEIGHT,
    divides_by_tiers,
    fewest_clusters,
    static_weights,
    strategy_of,
)
from karmada_scheduler.core.decision import TermAttempt
from karmada_scheduler.core.ordering.candidates import candidate_list
from karmada_scheduler.framework.cycle import Candidate, Cycle
from karmada_scheduler.framework.diagnosis import SchedulingError
from karmada_scheduler.structs import replace

_DEFAULT_ASSIGNER: Final = "DefaultAssigner"
_NO_REPLICAS: Final = "none"
_STEP: Final = "failed to assign replicas"
_MAX_SEATS: Final = 50_000
"""Seats that are numbered one by one."""


class _Votes(NamedTuple):
    """What is divided, and by which weights."""

    mode: str
    divided: int
    votes: Sequence[tuple[str, int]]
    kept: Mapping[str, int]
    checks: str = ""
    """The name of the step in the error if the weights, as available replicas, are too few; "" if they are no capacity."""


def trace_divide(cycle: Cycle, attempt: TermAttempt, inputs: ExplainInputs) -> DivideTrace:
    """Divide again, one replica at a time."""
    selected, spec, plugins = attempt.selected, cycle.binding.spec, inputs.framework.plugins.assign
    if not plugins or plugins[0].name != _DEFAULT_ASSIGNER:
        targets = attempt.targets or ()
        rows = tuple(DivisionRow(each.name, 0, 0.0, 0.0, 0, each.replicas, 0, 0.0) for each in targets)
        return DivideTrace(plugins[0].name if plugins else "", "plugin", spec.replicas, rows=rows)
    if not selected:
        return DivideTrace("", "first", spec.replicas, error="no clusters available to schedule")
    has_replicas = spec.replicas > 0 or spec.replica_requirements is not None
    if not has_replicas or len(spec.components) > 1:
        rows = tuple(DivisionRow(each.name, 0, 0.0, 0.0, 0, 0, 0, 0.0) for each in selected)
        return DivideTrace(_NO_REPLICAS, "first", spec.replicas, rows=rows)
    try:
        strategy = strategy_of(cycle.placement)
    except SchedulingError as problem:
        return DivideTrace("", "first", spec.replicas, error=str(problem))
    if divides_by_tiers(cycle):
        return _by_tiers(cycle, spec, selected, strategy)
    return _of_strategy(cycle, spec, selected, strategy, tier=0)


def _by_tiers(cycle: Cycle, spec: BindingSpec, selected: Sequence[Candidate], strategy: str) -> DivideTrace:
    """Fill one tier after the other, as ``core.assign_replicas`` does."""
    remaining, traces = spec.replicas, list[DivideTrace]()
    for tier in sorted({each.tier for each in selected}):
        members = [each for each in selected if each.tier == tier]
        share = wrap32(min(remaining, sum(member.available for member in members)))
        trace = _of_strategy(cycle, replace(spec, replicas=share), members, strategy, tier=tier)
        traces.append(trace)
        remaining = wrap32(remaining - share)
        if trace.error or remaining <= 0:
            break
    error = traces[-1].error
    if not error and remaining > 0:
        error = "Clusters available replicas are not enough to schedule."
    return replace(
        traces[-1],
        replicas=spec.replicas,
        divided=sum(each.divided for each in traces),
        rows=tuple(row for each in traces for row in each.rows),
        unused=tuple(name for each in traces for name in each.unused),
        available=sum(each.available for each in selected),
        error=error,
    )


def _of_strategy(
    cycle: Cycle, spec: BindingSpec, selected: Sequence[Candidate], strategy: str, *, tier: int
) -> DivideTrace:
    if strategy == DUPLICATED:
        rows = tuple(
            DivisionRow(each.name, 0, 0.0, float(spec.replicas), 0, spec.replicas, 0, 0.0, tier)
            for each in selected
        )
        return DivideTrace(strategy, "first", spec.replicas, spec.replicas, rows=rows)
    if strategy == STATIC_WEIGHT:
        weights = static_weights(cycle.placement, selected)
        if not wrap64(sum(weights.values())):
            weights = {each.name: 1 for each in selected}
        return _apportioned(
            _Votes("first", spec.replicas, list(weights.items()), {}), spec, selected, strategy, tier
        )
    found = _available_votes(spec, selected, strategy, fresh=cycle.binding.reschedule_triggered)
    return _apportioned(found, spec, selected, strategy, tier)


def _available_votes(
    spec: BindingSpec, selected: Sequence[Candidate], strategy: str, *, fresh: bool
) -> _Votes:
    """Return what the strategies by available replicas divide."""
    scheduled = candidate_list(selected).only_candidates(spec.clusters)
    held: Counter[str] = Counter()
    for target in scheduled:
        held[target.name] += target.replicas
    assigned, missing = wrap32(sum(held.values())), 0
    kept: dict[str, int] = {}
    if fresh:
        available = [
            TargetCluster(each.name, wrap32(each.allocatable + held[each.name])) for each in selected
        ]
        mode, step, missing = "fresh", "failed to do fresh scale", spec.replicas
        available = sort_descending(available, lambda target: target.replicas)
    elif assigned > spec.replicas:
        mode, step, missing = "down", "failed to scale down", spec.replicas
        available = sort_descending(scheduled, lambda target: target.replicas)
    elif assigned < spec.replicas:
        mode, step, missing = "up" if assigned else "first", "failed to scale up", spec.replicas - assigned
        available = list(candidate_list(selected).by_available)
        kept = {
            target.name: target.replicas for target in scheduled
        }  # of a name listed twice, the last counts
    else:
        return _Votes("keep", 0, (), dict(held))
    total = wrap32(sum(each.replicas for each in available))
    if strategy == AGGREGATED and total >= missing:
        in_use = {target.name for target in scheduled if target.replicas > 0} if kept else set()
        available = fewest_clusters(missing, available, in_use)
    return _Votes(mode, missing, [(each.name, each.replicas) for each in available], kept, step)


def _apportioned(
    found: _Votes, spec: BindingSpec, selected: Sequence[Candidate], strategy: str, tier: int
) -> DivideTrace:
    descending = webster.prefers_descending_names(spec.resource.uid)
    total = sum(weight for _, weight in found.votes)
    trace = DivideTrace(
        strategy,
        found.mode,
        spec.replicas,
        found.divided,
        "descending" if descending else "ascending",
        available=wrap32(total) if found.checks else 0,
    )
    if found.checks and wrap32(total) < found.divided:
        error = f"{found.checks}: Clusters available replicas {wrap32(total)} are not enough to schedule."
        return replace(trace, error=error)
    weights = dict(found.votes)
    seats: Mapping[str, int] = {}
    if found.mode != "keep" and wrap64(total):
        seats = webster.allocate(found.divided, weights, descending_names=descending)
    order = _order(found.divided, weights, descending=descending) if seats else _Order({}, 0.0, ())
    rows = tuple(
        DivisionRow(
            name=name,
            weight=(weight := weights.get(name, 0)),
            share=weight / total if total else 0.0,
            exact=weight / total * found.divided if total else 0.0,
            kept=found.kept.get(name, 0),
            seats=(given := seats.get(name, 0)),
            last_seat=order.last_seats.get(name, 0),
            next_at=weight / (2 * given + 1),
            tier=tier,
        )
        for name in sorted({*seats, *found.kept})
    )
    unused = tuple(each.name for each in selected if each.name not in weights and each.name not in found.kept)
    return replace(trace, rows=rows, unused=unused, tied=order.tied, last_quotient=order.last_quotient)


class _Order(NamedTuple):
    """The order in which replicas were given.

    Attributes:
        last_seats: Cluster to the number of the last replica that it got.
        last_quotient: The quotient of the last replica.
        tied: The clusters that had the highest quotient and equally few replicas before the last one was given, the
            one that got it first; empty if it was one cluster.
    """

    last_seats: Mapping[str, int]
    last_quotient: float
    tied: tuple[str, ...]


def _order(seats: int, votes: Mapping[str, int], *, descending: bool) -> _Order:
    """Give replicas one at a time by Webster's method; of very many, nothing is numbered."""
    if not 0 < seats <= _MAX_SEATS:
        return _Order({}, 0.0, ())
    names = sorted(votes, reverse=descending)
    queue = [(-float(votes[name]), 0, rank, name) for rank, name in enumerate(names)]
    heapq.heapify(queue)
    last: dict[str, int] = {}
    for seat in range(1, seats):
        _, count, rank, name = queue[0]
        quotient = float(votes[name]) / float(2 * count + 3)
        heapq.heapreplace(queue, (-quotient, count + 1, rank, name))
        last[name] = seat
    best, count, _, name = queue[0]
    last[name] = seats
    tied = sorted((each for each in queue if each[:2] == (best, count)), key=lambda each: each[2])
    return _Order(last, -best, tuple(each[3] for each in tied) if len(tied) > 1 else ())


def compare_divide(attempt: TermAttempt, trace: DivideTrace, inputs: ExplainInputs) -> list[Mismatch]:
    """Return where a trace does not equal the decision."""
    if trace.mode == "plugin":
        return []
    if attempt.targets is None:
        expected = f"{_STEP}: {trace.error}"
        found = str(attempt.error)
        return [] if found == expected else [Mismatch("divide", "error", expected, found)]
    mismatches: list[Mismatch] = []
    theirs: Counter[str] = Counter()
    for target in attempt.targets:
        theirs[target.name] += target.replicas
    ours = {row.name: row.kept + row.seats for row in trace.rows}
    if trace.strategy != _NO_REPLICAS:
        ours = {name: count for name, count in ours.items() if count > 0}
    if inputs.empty_workload_propagation:
        ours = {each.name: 0 for each in attempt.selected} | ours
    if trace.error or ours != dict(theirs):
        mismatches.append(Mismatch("divide", "targets", trace.error or str(ours), str(dict(theirs))))
    counted = Counter({row.name: row.last_seat for row in trace.rows if row.last_seat})
    if counted and not trace.error:
        best = max(counted.values())
        if best != trace.divided and not any(row.tier for row in trace.rows):
            mismatches.append(Mismatch("divide", "last seat", str(best), str(trace.divided)))
    return mismatches
