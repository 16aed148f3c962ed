"""Causes of the division of replicas."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from karmada_advisor.explain.amounts import counted
from karmada_advisor.explain.model import Cause, Stage
from karmada_advisor.explain.situation import Basis, Situation
from karmada_advisor.explain.trace_model import DivideTrace, DivisionRow
from karmada_scheduler.api.placement import AGGREGATED, Placement
from karmada_scheduler.core.assign_replicas import DYNAMIC_WEIGHT, STATIC_WEIGHT, static_weights


def of_cluster(basis: Basis, cluster: str) -> Iterator[Cause]:
    """Yield why a selected cluster gets no replicas."""
    trace = basis.divide
    if trace is None or trace.error:
        return
    if not any(each.name == cluster for each in basis.attempt.selected):
        return
    row = next((each for each in trace.rows if each.name == cluster), None)
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
    used = {each.name: each.weight for each in trace.rows}
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
    if selected and not static_weights(situation.inputs.binding.spec.placement or Placement(), selected):
        text = "no rule of the static weights selects a selected cluster, so all have the same weight"
        evidence = {"clusters": [candidate.name for candidate in selected], "weights": {}}
        yield Cause("WeightMissing", Stage.DIVIDE, evidence, text)
        return
    named = {row.name for row in trace.rows if row.weight}
    missing = [each.name for each in selected if each.name not in named]
    if missing:
        shown = ", ".join(missing[:5])
        text = f"no rule of the static weights selects {shown}, so the weight is 0"
        yield Cause("WeightMissing", Stage.DIVIDE, {"clusters": missing, "weights": _weights(trace)}, text)
