"""How the replicas were divided, to the last seat."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from typing import Final, NamedTuple

from karmada_advisor.explain.trace_model import DivideTrace, DivisionRow
from karmada_scheduler.api.quantity import wrap32
from karmada_scheduler.core.algorithms import webster
from karmada_scheduler.core.assign_replicas import (
    DOWN,
    DUPLICATED,
    FRESH,
    NO_REPLICAS,
    divides_by_tiers,
)
from karmada_scheduler.core.decision import TermAttempt
from karmada_scheduler.framework.cycle import Cycle, KeptDivision, KeptSteps
from karmada_scheduler.framework.extension_points import Point
from karmada_scheduler.structs import replace

_STEP: Final = "failed to assign replicas: "
"""How the errors of the step begin."""
_MODES: Final = {DOWN: "down", FRESH: "fresh"}
_MAX_SEATS: Final = 50_000
"""Seats that are numbered one by one."""


def trace_divide(cycle: Cycle, attempt: TermAttempt, kept: KeptSteps) -> DivideTrace:
    """Return the division, with the order in which the replicas were given."""
    replicas = cycle.binding.spec.replicas
    if kept.divisions is None:
        targets = attempt.targets or ()
        rows = tuple(DivisionRow(each.name, 0, 0.0, 0.0, 0, each.replicas, 0, 0.0) for each in targets)
        return DivideTrace(kept.answered.get(Point.ASSIGN, ""), "plugin", replicas, rows=rows)
    error = "" if attempt.error is None else str(attempt.error).removeprefix(_STEP)
    if not kept.divisions:
        return DivideTrace("", "first", replicas, error=error)
    descending = webster.prefers_descending_names(cycle.binding.spec.resource.uid)
    by_tiers = divides_by_tiers(cycle) and kept.divisions[0].strategy != NO_REPLICAS
    traces = [
        _traced(each, each.members[0].tier if by_tiers else 0, descending=descending)
        for each in kept.divisions
    ]
    if not by_tiers:
        return replace(traces[0], error=error)
    return replace(
        traces[-1],
        replicas=replicas,
        divided=sum(each.divided for each in traces),
        rows=tuple(row for each in traces for row in each.rows),
        unused=tuple(name for each in traces for name in each.unused),
        available=sum(each.available for each in attempt.selected),
        error=error,
    )


def _traced(division: KeptDivision, tier: int, *, descending: bool) -> DivideTrace:
    strategy, replicas = division.strategy, division.replicas
    if strategy in {DUPLICATED, NO_REPLICAS}:
        rows = tuple(
            DivisionRow(each.name, 0, 0.0, float(each.replicas), 0, each.replicas, 0, 0.0, tier)
            for each in division.seats
        )
        return DivideTrace(strategy, "first", replicas, division.divided, rows=rows)
    is_kept, kept = division.votes is None and not division.step, dict[str, int]()
    for target in division.scheduled:  # of a name listed twice the last counts, unless nothing is divided
        kept[target.name] = target.replicas + (kept.get(target.name, 0) if is_kept else 0)
    is_up = sum(target.replicas for target in division.scheduled) != 0
    mode = "keep" if is_kept else _MODES.get(division.step, "up" if is_up else "first")
    weights, seats = dict(division.votes or ()), {each.name: each.replicas for each in division.seats}
    total = sum(weight for _, weight in division.votes or ())
    order = _order(division.divided, weights, descending=descending) if seats else _Order({}, 0.0, ())
    rows = tuple(
        DivisionRow(
            name=name,
            weight=(weight := weights.get(name, 0)),
            share=weight / total if total else 0.0,
            exact=weight / total * division.divided if total else 0.0,
            kept=kept.get(name, 0),
            seats=(given := seats.get(name, 0)),
            last_seat=order.last_seats.get(name, 0),
            next_at=weight / (2 * given + 1),
            tier=tier,
        )
        for name in sorted({*seats, *kept})
    )
    is_over = division.votes is None and not is_kept  # the clusters cannot take all replicas
    names = () if is_over else (each.name for each in division.members)
    return DivideTrace(
        strategy,
        mode,
        replicas,
        division.divided,
        "descending" if descending else "ascending",
        rows=() if is_over else rows,
        tied=order.tied,
        last_quotient=order.last_quotient,
        unused=tuple(name for name in names if name not in weights and name not in kept),
        available=division.available if is_over else wrap32(total) if division.step else 0,
    )


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
