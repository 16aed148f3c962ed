"""How many replicas each candidate can take and which resource limits it, and how replicas were divided, to the last seat."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from karmada_advisor.explain.amounts import request_of, shown
from karmada_advisor.explain.inputs import ExplainInputs
from karmada_advisor.explain.trace_model import CapacityCell, DivideTrace, DivisionRow, Estimate
from karmada_scheduler.api.binding import BindingSpec, ReplicaRequirements
from karmada_scheduler.api.cluster import Cluster, GradeCount, ResourceSummary
from karmada_scheduler.api.quantity import MAX_INT32, wrap32
from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.core.algorithms import webster
from karmada_scheduler.core.assign_replicas import DOWN, DUPLICATED, FRESH, NO_REPLICAS, divides_by_tiers
from karmada_scheduler.core.available_replicas import (
    NO_OPINION,
    Assumed,
    LocalEstimator,
    counts,
    counts_component_sets,
)
from karmada_scheduler.core.decision import TermAttempt
from karmada_scheduler.estimator.general import GeneralEstimator
from karmada_scheduler.framework.cycle import Cycle, KeptDivision, KeptSteps
from karmada_scheduler.framework.extension_points import Point
from karmada_scheduler.structs import Struct, replace

_PODS = "pods"
_NODES = "nodes"
_SETS = "sets of components"


class _Limit(Struct, frozen=True):
    name: str
    free: str = ""
    requested: str = ""


def trace_capacity(
    cycle: Cycle, attempt: TermAttempt, kept: KeptSteps, inputs: ExplainInputs
) -> Mapping[str, CapacityCell]:
    """Return the capacity of the candidates by name; the estimators of this process say it for each resource alone."""
    spec, candidates = cycle.binding.spec, attempt.candidates
    algorithm = inputs.algorithm
    assumed = kept.assumed if algorithm.gates.enabled("SchedulingOvercommitProtection") else {}
    clusters = [candidate.cluster for candidate in candidates]
    is_counted, by_sets = counts(spec), counts_component_sets(spec, algorithm.gates)

    def asked(estimator: LocalEstimator, requirements: ReplicaRequirements | None) -> list[int | None]:
        if not is_counted:
            return [None] * len(clusters)
        if by_sets:
            namespace = spec.resource.namespace
            found = estimator.max_available_component_sets(clusters, spec.components, namespace, assumed)
        else:
            found = estimator.max_available_replicas(clusters, requirements, assumed)
        assert isinstance(found, Sequence)  # estimators of this process do not wait
        return [None if count == NO_OPINION else count for count in found]

    answers = {each.name: asked(each, spec.replica_requirements) for each in algorithm.estimators}
    limits: list[_Limit] = []
    if algorithm.estimators and by_sets:
        limits = [_Limit(_SETS)] * len(clusters)
    elif algorithm.estimators and is_counted:
        general = algorithm.estimators[0]
        limits = _limits(clusters, answers[general.name], spec, partial(asked, general))
    cells: dict[str, CapacityCell] = {}
    for index, candidate in enumerate(candidates):
        estimates = tuple(Estimate(name, values[index]) for name, values in answers.items())
        known = [estimate for estimate in estimates if estimate.replicas is not None]
        least = min(known, key=lambda estimate: estimate.replicas or 0, default=None)
        limit = limits[index] if limits else _Limit("")
        counted = known and is_counted and not by_sets
        bound = _bound(candidate.cluster, spec, assumed, algorithm.gates) if counted else ""
        changes = [found for found in kept.estimates if candidate.name in found[1].clusters]
        if changes and (least is None or candidate.allocatable != least.replicas):
            plugins = ", ".join(name for name, _ in changes)
            reasons = "; ".join(estimate.reason for _, estimate in changes if estimate.reason)
            least, limit = Estimate(plugins, candidate.allocatable), _Limit(reasons or plugins)
            estimates, bound = (*estimates, least), f"EstimateReplicas of {plugins}"
        cells[candidate.name] = CapacityCell(
            available=candidate.available,
            allocatable=candidate.allocatable,
            own=candidate.available - candidate.allocatable,
            estimates=estimates,
            source="" if least is None or candidate.allocatable == MAX_INT32 else least.estimator,
            limited_by=limit.name,
            free=limit.free,
            requested=limit.requested,
            assumed=tuple(str(work.binding) for work in assumed.get(candidate.name, ()) if work.binding),
            bounded_by=bound,
        )
    return cells


def _bound(cluster: Cluster, spec: BindingSpec, assumed: Assumed, gates: FeatureGates) -> str:
    """Return what the estimate for a cluster comes from: without it, there would be more."""
    summary = cluster.resource_summary or ResourceSummary()

    def estimate(modelings: tuple[GradeCount, ...], assumed: Assumed) -> int:
        changed, general = replace(summary, modelings=modelings), GeneralEstimator(gates)
        clusters = [replace(cluster, resource_summary=changed)]
        return general.max_available_replicas(clusters, spec.replica_requirements, assumed)[0]

    if summary.modelings and estimate((), assumed) > estimate(summary.modelings, assumed):
        grades = [modeling.grade for modeling in summary.modelings if modeling.nodes > 0]
        largest = f"no node above grade {max(grades)}" if grades else "no free node"
        return f"resource models: {largest}"
    if assumed.get(cluster.name) and estimate(summary.modelings, {}) > estimate(summary.modelings, assumed):
        return "assumed workloads"
    return "resource summary"


def _limits(
    clusters: Sequence[Cluster],
    total: Sequence[int | None],
    spec: BindingSpec,
    ask: Callable[[ReplicaRequirements | None], Sequence[int | None]],
) -> list[_Limit]:
    """Return the resource that limits each cluster: the one that alone allows as few replicas as all together."""
    requirements, pods = spec.replica_requirements or ReplicaRequirements(), ask(None)
    request, limits = request_of(spec), list[_Limit]()
    requests = {name: {name: amount} for name, amount in request.items()}
    alone = {name: ask(replace(requirements, resource_request=only)) for name, only in requests.items()}
    requested = {name: shown(name, amount) for name, amount in request.items()}
    for index, cluster in enumerate(clusters):
        summary = cluster.resource_summary
        if summary is None:
            limits.append(_Limit("no resource summary"))
            continue
        replicas = total[index]
        names = [source for source, answer in alone.items() if answer[index] == replicas != pods[index]]
        is_known = replicas is not None and (names or pods[index] == replicas)
        name = next(iter(names), _PODS) if is_known else _NODES
        free = "" if name == _NODES else shown(name, summary.left(name))
        limits.append(_Limit(name, free, requested.get(name, "")))
    return limits


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
        rows = tuple(DivisionRow(target.name, 0, 0.0, 0.0, 0, target.replicas, 0, 0.0) for target in targets)
        return DivideTrace(kept.answered.get(Point.ASSIGN, ""), "plugin", replicas, rows=rows)
    error = "" if attempt.error is None else str(attempt.error).removeprefix(_STEP)
    if not kept.divisions:
        return DivideTrace("", "first", replicas, error=error)
    descending = webster.prefers_descending_names(cycle.binding.spec.resource.uid)
    by_tiers = divides_by_tiers(cycle) and kept.divisions[0].strategy != NO_REPLICAS
    tiers = (division.members[0].tier if by_tiers else 0 for division in kept.divisions)
    pairs = zip(kept.divisions, tiers, strict=True)
    traces = [_traced(division, tier, descending=descending) for division, tier in pairs]
    if not by_tiers:
        return replace(traces[0], error=error)
    return replace(
        traces[-1],
        replicas=replicas,
        divided=sum(trace.divided for trace in traces),
        rows=tuple(row for trace in traces for row in trace.rows),
        unused=tuple(name for trace in traces for name in trace.unused),
        available=sum(candidate.available for candidate in attempt.selected),
        error=error,
    )


def _traced(division: KeptDivision, tier: int, *, descending: bool) -> DivideTrace:
    strategy, replicas = division.strategy, division.replicas
    if strategy in {DUPLICATED, NO_REPLICAS}:
        rows = tuple(
            DivisionRow(seat.name, 0, 0.0, float(seat.replicas), 0, seat.replicas, 0, 0.0, tier)
            for seat in division.seats
        )
        return DivideTrace(strategy, "first", replicas, division.divided, rows=rows)
    is_kept, kept = division.votes is None and not division.step, dict[str, int]()
    for target in division.scheduled:  # of a name listed twice the last counts, unless nothing is divided
        kept[target.name] = target.replicas + (kept.get(target.name, 0) if is_kept else 0)
    is_up = sum(target.replicas for target in division.scheduled) != 0
    mode = "keep" if is_kept else _MODES.get(division.step, "up" if is_up else "first")
    weights, seats = dict(division.votes or ()), {seat.name: seat.replicas for seat in division.seats}
    total = sum(weight for _, weight in division.votes or ())
    order = _order(seats, weights, descending=descending)
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
    names = () if is_over else (member.name for member in division.members)
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


class _Order(Struct, frozen=True):
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


def _order(seats: Mapping[str, int], votes: Mapping[str, int], *, descending: bool) -> _Order:
    """Number replicas in the order in which Webster's method gives them; of very many, nothing is numbered."""
    if not 0 < sum(seats.values()) <= _MAX_SEATS:
        return _Order({}, 0.0, ())
    names = sorted(votes, reverse=descending)

    def turn(rank: int, held: int) -> tuple[float, int, int]:
        return -(float(votes[names[rank]]) / float(2 * held + 1)), held, rank

    ranks = range(len(names))
    given = sorted(turn(rank, held) for rank in ranks for held in range(seats.get(names[rank], 0)))
    last = {names[rank]: number for number, (*_, rank) in enumerate(given, 1)}
    best, held, winner = given[-1]
    tied = [rank for rank in ranks if turn(rank, seats.get(names[rank], 0))[:2] == (best, held)]
    return _Order(last, -best, tuple(names[rank] for rank in (winner, *tied)) if tied else ())
