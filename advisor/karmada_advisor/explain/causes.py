"""Why a binding is where it is, or a cluster does not have it: codes in a written order of precedence.

docs/explain.md lists the codes and the order. The first cause of a list is the primary one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from karmada_advisor.explain import (
    causes_capacity,
    causes_failure,
    causes_objects,
    causes_select,
    causes_state,
    causes_trigger,
)
from karmada_advisor.explain.amounts import counted
from karmada_advisor.explain.model import Cause, NextState, Stage
from karmada_advisor.explain.situation import Basis, Situation
from karmada_advisor.explain.trace_model import DivideTrace, DivisionRow
from karmada_scheduler.api.names import nearest
from karmada_scheduler.api.placement import AGGREGATED, Placement
from karmada_scheduler.core.assign_replicas import DYNAMIC_WEIGHT, STATIC_WEIGHT, static_weights
from karmada_scheduler.structs import replace

_FAILED: Final = (NextState.NOT_PLACED, NextState.STUCK)


def causes_of_binding(situation: Situation) -> list[Cause]:
    """Return why a binding is where it is, or nowhere."""
    if not situation.is_decided:
        found = [*causes_state.of_copies(situation), *causes_trigger.of_state(situation)]
        return ranked([*found, *causes_state.reported_by_events(situation)])
    stored = list(causes_state.of_state(situation))
    if not situation.inputs.is_judged:
        unknown = causes_state.of_unknown_rules(situation)
        return ranked([*stored, *unknown, *causes_state.of_record(situation)])
    if situation.state in _FAILED:
        return ranked(
            [
                *stored,
                *causes_state.of_refusal(situation),
                *causes_state.of_unreadable_annotation(situation),
                *causes_trigger.before_failure(situation),
                *causes_failure.of_failure(situation),
            ]
        )
    if situation.state is NextState.NO_REPLICAS:
        return ranked(causes_trigger.of_no_replicas(situation))
    if situation.over_quota is not None:
        refused = causes_capacity.over_quota(situation)
        return ranked([*stored, *refused, *causes_state.reported_by_events(situation)])
    return ranked(
        [
            *causes_state.of_refusal(situation),
            *causes_state.of_graceful_move(situation),
            *causes_state.of_guard_warning(situation),
            *stored,
            *causes_objects.waiting(situation),
            *causes_objects.of_placed(situation),
            *causes_capacity.burst(situation),
            *causes_trigger.of_placed(situation),
            *causes_select.of_placed(situation),
            *of_placed(situation),
            *causes_capacity.own_replicas(situation),
            *causes_trigger.after_placement(situation),
            *causes_state.of_unreadable_annotation(situation),
            *causes_objects.summary_counts(situation),
            *causes_state.reported_by_events(situation),
            *causes_objects.policy_chosen(situation),
        ]
    ) or ranked(causes_state.of_waiting(situation))


def causes_of_cluster(situation: Situation, cluster: str) -> list[Cause]:
    """Return why a cluster has none of the replicas; none if it has some."""
    if situation.is_on(situation.placement, cluster):
        return []
    if situation.snapshot.get(cluster) is None:
        near = nearest(cluster, (member.name for member in situation.snapshot))
        text = f"{cluster} does not exist" + (f"; nearest: {near}" if near else "")
        evidence = {"cluster": cluster, "nearest": near}
        return ranked([Cause("ClusterUnknown", Stage.POLICY, evidence, text)])
    if not situation.is_decided:
        return ranked(causes_trigger.of_state(situation))
    found = ranked(_of_known(situation, cluster))
    if not found and situation.state is NextState.NO_REPLICAS:
        return ranked(causes_trigger.of_no_replicas(situation))
    return found


def _of_known(situation: Situation, cluster: str) -> Iterable[Cause]:
    """Yield the causes about a known cluster.

    A cause of the trigger comes first only if a new decision puts replicas on the cluster; otherwise it comes last,
    because asking for a decision changes nothing.
    """
    yield from causes_objects.lazy_policy(situation)
    yield from causes_objects.claim_held(situation)
    before, after = causes_trigger.of_cluster(situation, cluster)
    basis = situation.shown
    if not situation.is_shown_as_new and situation.now.decision.error is None:
        yield from before
        basis = situation.rebalanced if situation.present else situation.now
    yield from _stages(situation, basis, cluster)
    yield from after


def _stages(situation: Situation, basis: Basis, cluster: str) -> Iterable[Cause]:
    """Yield the causes of the steps of one decision, in their order."""
    if not basis.decision.attempts:
        return
    refused = causes_select.refusals_of(situation, basis, cluster)
    yield from refused
    if refused:
        return
    yield from causes_select.of_cluster(situation, basis, cluster)
    yield from of_cluster(basis, cluster)
    if basis.decision.error is not None:
        yield from causes_failure.of_failure(situation)


def ranked(causes: Iterable[Cause]) -> list[Cause]:
    """Return each code once, the first one as the primary cause."""
    found: dict[str, Cause] = {}
    for cause in causes:
        found.setdefault(cause.code, cause)
    return [replace(cause, primary=index == 0) for index, cause in enumerate(found.values())]


def of_cluster(basis: Basis, cluster: str) -> Iterator[Cause]:
    """Yield why a selected cluster gets no replicas."""
    trace = basis.divide
    if trace is None or trace.error:
        return
    if not any(target.name == cluster for target in basis.attempt.selected):
        return
    row = next((other for other in trace.rows if other.name == cluster), None)
    if row is not None and row.seats + row.kept > 0:
        return
    if trace.strategy == STATIC_WEIGHT and (row is None or not row.weight):
        text = f"no rule of the static weights selects {cluster}, so its weight is 0"
        yield Cause("WeightMissing", Stage.DIVIDE, {"cluster": cluster, "weights": _weights(trace)}, text)
    elif cluster in trace.unused and trace.strategy == AGGREGATED:
        yield _fewest(trace, cluster)
    elif row is None or not row.weight:
        text = f"{cluster} can take no replica"
        evidence = {"cluster": cluster, **basis.limit_of(cluster)}
        yield Cause("NotEnoughRoom", Stage.CAPACITY, evidence, text)
    else:
        yield no_seat(trace, row)


def no_seat(trace: DivideTrace, row: DivisionRow) -> Cause:
    """Return why a cluster with a weight gets none of the replicas."""
    weights = _weights(trace)
    evidence: dict[str, Any] = {"cluster": row.name, "weights": weights, "replicas": trace.divided}
    evidence |= {"nextAt": round(row.next_at, 3), "lastQuotient": round(trace.last_quotient, 3)}
    if row.name in trace.tied:
        evidence |= {"tied": list(trace.tied), "order": f"{trace.ties} names"}
        return Cause("TieByUid", Stage.DIVIDE, evidence, _tie(trace))
    shown = f"{trace.last_quotient:.3g} of the last replica is more than {row.next_at:.3g}"
    if trace.divided < len(weights):
        text = f"{trace.divided} of {len(weights)} clusters can get a replica, and {row.name} has less weight: {shown}"
        return Cause("Seats", Stage.DIVIDE, evidence, text)
    text = f"the weight of {row.name} is too small for one of {counted(trace.divided, 'replica')}: {shown}"
    return Cause("ZeroSeats", Stage.DIVIDE, evidence, text)


def _tie(trace: DivideTrace) -> str:
    parity = f"the parity of the template's uid prefers {trace.ties} names"
    return f"{', '.join(trace.tied)} tied for the last replica; {parity}, so {trace.tied[0]} got it"


def _fewest(trace: DivideTrace, cluster: str) -> Cause:
    used = {row.name: row.weight for row in trace.rows}
    suffices = "suffices" if len(used) == 1 else "suffice"
    replicas = counted(trace.replicas, "replica")
    text = f"as few clusters as possible are used, and {', '.join(used)} {suffices} for {replicas}"
    evidence = {"cluster": cluster, "used": used, "unused": list(trace.unused)}
    return Cause("AggregatedFewest", Stage.DIVIDE, evidence, text)


def _weights(trace: DivideTrace) -> dict[str, int]:
    return {row.name: row.weight for row in trace.rows if row.weight}


def of_placed(situation: Situation) -> Iterator[Cause]:
    """Yield what the division did that a reader of the policy may not expect."""
    trace = situation.shown.divide
    if trace is None:
        return
    if trace.mode == "down" and not situation.placement_changed:
        kept = {row.name: row.weight for row in trace.rows}
        text = "replicas are removed in proportion to what is there: no cluster gains, whatever it can take"
        yield Cause("SteadyShrinks", Stage.DIVIDE, {"before": kept, "replicas": trace.replicas}, text)
        return
    if trace.strategy not in {STATIC_WEIGHT, DYNAMIC_WEIGHT, AGGREGATED} or not trace.divided:
        return
    if trace.strategy == AGGREGATED:
        if trace.unused and trace.mode in {"first", "fresh"}:
            yield _fewest(trace, trace.unused[0])
        return
    empty = [row for row in trace.rows if row.weight and not row.seats and not row.kept]
    if trace.strategy == STATIC_WEIGHT:
        yield from _missing_weights(situation, trace)
    if empty:
        yield no_seat(trace, max(empty, key=lambda row: (row.next_at, row.name in trace.tied)))
    elif trace.tied and trace.mode in {"first", "fresh"}:
        evidence = {"tied": list(trace.tied), "order": f"{trace.ties} names", "weights": _weights(trace)}
        yield Cause("TieByUid", Stage.DIVIDE, evidence, _tie(trace))
    elif trace.strategy == STATIC_WEIGHT and any(abs(row.exact - row.seats) > 1e-9 for row in trace.rows):
        exact = {row.name: round(row.exact, 2) for row in trace.rows}
        seats = {row.name: row.seats for row in trace.rows}
        text = "whole replicas do not divide by the weights, so shares are rounded by Webster's method"
        evidence = {"weights": _weights(trace), "exact": exact, "seats": seats}
        yield Cause("RoundedAway", Stage.DIVIDE, evidence, text)


def _missing_weights(situation: Situation, trace: DivideTrace) -> Iterator[Cause]:
    selected = situation.shown.attempt.selected
    if selected and not static_weights(situation.spec.placement or Placement(), selected):
        text = "no rule of the static weights selects a selected cluster, so all have the same weight"
        evidence = {"clusters": [candidate.name for candidate in selected], "weights": {}}
        yield Cause("WeightMissing", Stage.DIVIDE, evidence, text)
        return
    named = {row.name for row in trace.rows if row.weight}
    missing = [candidate.name for candidate in selected if candidate.name not in named]
    if missing:
        shown = ", ".join(missing[:5])
        text = f"no rule of the static weights selects {shown}, so the weight is 0"
        yield Cause("WeightMissing", Stage.DIVIDE, {"clusters": missing, "weights": _weights(trace)}, text)
