"""One row per cluster, with its way through the decision."""

from __future__ import annotations

from karmada_advisor.explain.model import CapacityCell, ClusterRow
from karmada_advisor.explain.situation import Situation
from karmada_advisor.explain.traces import Traces

_REASONS = {
    "weight": "region has less weight",
    "clusters": "region has fewer clusters",
    "groupClusters": "lost a tie of regions",
    "groupWeight": "lost a tie of regions",
    "name": "lost a tie of regions",
    "superset": "region is not needed",
    "insufficient": "region is in no sufficient set",
}
_CLUSTER_REASONS = {
    "tier": "overflow affinity, not needed",
    "score": "lower score",
    "available": "less room",
    "name": "later in order of names",
    "maximum": "the maximum is reached",
    "swap": "exchanged for more room",
    "plugin": "not chosen by the plugin",
}


def rows_of(situation: Situation) -> tuple[ClusterRow, ...]:
    """Return a row per cluster: those that pass in the order of preference, then the others by name."""
    traces = situation.shown.traces
    if traces is None or not traces.filter.rows:
        return ()
    passing = [_passing(situation, traces, index) for index in range(len(traces.attempt.candidates))]
    refused = [_refused(situation, traces, name) for name, row in traces.filter.rows.items() if row.refusals]
    return (*passing, *refused)


def _passing(situation: Situation, traces: Traces, index: int) -> ClusterRow:
    candidate = traces.attempt.candidates[index]
    name = candidate.name
    row = traces.filter.rows.get(name)
    loss = traces.select.losses.get(name) if traces.select is not None else None
    failed = traces.select is not None and bool(traces.select.error)
    return ClusterRow(
        name=name,
        region=candidate.cluster.region,
        not_called=row.not_called if row is not None else (),
        scores=traces.score.cells.get(name, ()) if traces.score is not None else (),
        score=candidate.score,
        tier=candidate.tier,
        capacity=_capacity(traces, name),
        rank=index + 1,
        selected=None if failed else loss is None,
        not_selected_because="" if loss is None or failed else reason_of(loss),
        replicas=situation.placement.get(name, 0),
        is_target=name in situation.placement,
        present=situation.present.get(name),
    )


def reason_of(loss: str) -> str:
    """Return why a cluster was not selected, in a few words."""
    kind, _, criterion = loss.partition(":")
    if kind == "region":
        return _REASONS.get(criterion, "region is not selected")
    return _CLUSTER_REASONS.get(kind, kind)


def _refused(situation: Situation, traces: Traces, name: str) -> ClusterRow:
    row = traces.filter.rows[name]
    found = situation.inputs.snapshot.get(name)
    return ClusterRow(
        name=name,
        region=found.region if found is not None else "",
        refusals=row.refusals,
        not_called=row.not_called,
        replicas=situation.placement.get(name, 0),
        is_target=name in situation.placement,
        present=situation.present.get(name),
    )


def _capacity(traces: Traces, name: str) -> CapacityCell | None:
    return traces.capacity.cells.get(name) if traces.capacity is not None else None


def capacity_note(situation: Situation) -> str:
    """Return where the available replicas come from."""
    traces = situation.shown.traces
    if traces is None or traces.capacity is None or not traces.capacity.cells:
        return ""
    sources = sorted({each.source for each in traces.capacity.cells.values() if each.source})
    if not sources:
        return "no estimator was asked: the workload has no replicas"
    text = ", ".join("general estimator" if each == "general-estimator" else each for each in sources)
    text = f"{text}, from the resource summaries of the clusters as they were read"
    if situation.inputs.estimators.session is None:
        return f"{text}. No estimator in a member cluster was asked."
    return f"{text}, or from the estimators in the member clusters."
