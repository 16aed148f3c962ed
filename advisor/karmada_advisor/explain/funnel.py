"""The steps from all clusters to the result, and one row per cluster with its way through them."""

from __future__ import annotations

from collections import Counter
from typing import Final

from karmada_advisor.explain.amounts import first_names
from karmada_advisor.explain.situation import Basis, Situation
from karmada_advisor.explain.trace_candidates import DELETED
from karmada_advisor.explain.trace_model import ClusterRow, DivideTrace, FunnelStage, SelectTrace
from karmada_advisor.explain.trace_select import LOSSES
from karmada_scheduler.structs import replace

_NAMED: Final = 4
LOST_BY: Final = {
    "weight": "less weight",
    "clusters": "same weight, fewer clusters",
    "groupClusters": "same weight, same number of clusters; a region of it has more clusters",
    "groupWeight": "same weight, same number of clusters; by the weight of single regions",
    "name": "same weight, same number of clusters; later in order of names",
    "superset": "a part of it suffices, and is taken",
}


def funnel_of(situation: Situation) -> tuple[FunnelStage, ...]:
    """Return the steps that were reached, the decisive one marked."""
    basis = situation.shown
    if not basis.filter:
        return ()
    total = len(basis.filter)
    passing = sum(not refusals for refusals in basis.filter.values())
    decisive = _decisive(basis)
    stages = [FunnelStage("FILTER", total, passing, _filter_text(basis), decisive == "FILTER")]
    if basis.select is not None:
        stages.append(FunnelStage("SCORE", passing, None, _score_text(basis), decisive == "SCORE"))
        selected, text = len(basis.attempt.selected), _select_text(basis.select)
        stages.append(FunnelStage("SELECT", passing, selected, text, decisive == "SELECT"))
    if basis.divide is not None:
        replicas, text = basis.divide.replicas, _divide_text(basis.divide)
        stages.append(FunnelStage("DIVIDE", replicas, None, text, decisive == "DIVIDE"))
    return tuple(stages)


def _decisive(basis: Basis) -> str:
    """Return the step that determines the answer: where it fails, else the last one with a choice."""
    if basis.select is None:
        return "FILTER"
    divide = basis.divide
    if basis.select.error or (basis.select.losses and not (divide is not None and divide.error)):
        return "SELECT"
    if divide is not None and (divide.error or divide.strategy not in {"Duplicated", "none"}):
        return "DIVIDE"
    return "FILTER" if any(basis.filter.values()) else "DIVIDE"


def _filter_text(basis: Basis) -> str:
    counted = basis.filter.counted()
    kinds = [(refusal, basis.filter[refusal.names[0]][0].evidence.kind) for refusal in counted]
    if not kinds:
        return "none refused"
    if sum(refusal.count for refusal, _ in kinds) <= _NAMED:
        ordered = sorted(kinds, key=lambda pair: pair[0].plugin)
        names = (f"{name} ({kind})" for refusal, kind in ordered for name in refusal.names)
        return f"refused: {', '.join(names)}"
    counts = Counter[str]()
    for refusal, kind in kinds:
        counts[kind] += refusal.count
    return f"refused: {', '.join(f'{count:,} {kind}' for kind, count in counts.items())}"


def _score_text(basis: Basis) -> str:
    scores = {candidate.name: candidate.score for candidate in basis.attempt.candidates}
    if not scores:
        return "no candidates"
    if len(set(scores.values())) == 1:
        same = next(iter(scores.values()))
        if not same and not basis.cycle.current_clusters:
            return "all 0: no candidate held replicas before, so scores decide nothing"
        return f"all {same}: scores decide nothing"
    held = [name for name in scores if name in basis.cycle.current_clusters]
    if set(scores.values()) == {0, 100} and all((scores[name] == 100) == (name in held) for name in scores):
        return f"present clusters 100: {first_names(held, 5)}; all others 0"
    best = max(scores.values())
    return f"highest {best}: {first_names([name for name, score in scores.items() if score == best], 5)}"


def _select_text(trace: SelectTrace) -> str:
    """Return the selection in one line."""
    if trace.error:
        return trace.error
    if trace.by == "all":
        if trace.ignored:
            return "all: static weights switch spread constraints off"
        return "all: there is no spread constraint"
    if trace.by == "plugin":
        return "by a Select plugin"
    if trace.by == "cluster":
        least, most = trace.limits.get("cluster", (0, 0))
        swapped = f"; {len(trace.swaps)} exchanged for more available replicas" if trace.swaps else ""
        wanted = f"{most}" if least == most else f"{least} to {most}"
        return f"{wanted} cluster{'' if most == 1 else 's'} by score, available replicas and name{swapped}"
    if not trace.combinations:
        return "by region"
    text = f"regions {' + '.join(trace.combinations[0].names)}"
    tied = next((found for found in trace.combinations[1:] if found.lost_by in _TIES), None)
    return text if tied is None else f"{text}; tied with {' + '.join(tied.names)}, {_TIES[tied.lost_by]}"


_TIES: Final = {
    "name": "taken by order of names",
    "groupWeight": "taken by the weight of single regions",
    "groupClusters": "taken because it begins with fewer clusters",
}


def _divide_text(trace: DivideTrace) -> str:
    """Return the division in one line."""
    if trace.error:
        return trace.error
    if trace.strategy == "none":
        return "no replicas to divide: every selected cluster gets the object"
    if not trace.replicas:
        return "nothing to divide"
    if trace.strategy == "Duplicated":
        return "every selected cluster gets all"
    if trace.mode == "plugin":
        return f"by the plugin {trace.strategy}"
    weights = " : ".join(f"{row.weight:,}" for row in trace.rows[:8] if row.weight)
    more = " : ..." if len(trace.rows) > 8 else ""
    what = "by static weights" if trace.strategy == "StaticWeight" else "by room"
    by = f"{what} {weights}{more}"
    if trace.strategy == "Aggregated":
        by = f"over the fewest clusters, {by}"
    kept = sum(row.kept for row in trace.rows)
    match trace.mode:
        case "keep":
            return "all kept where they are"
        case "up":
            return f"{kept:,} kept, {trace.divided:,} more {by}"
        case "down":
            return f"shrunk in proportion to what is there, {weights}{more}"
        case "fresh":
            return f"again from the start, {by}"
    return by


def rows_of(situation: Situation) -> tuple[ClusterRow, ...]:
    """Return a row per cluster: those that pass in the order of preference, then the others by name."""
    basis = situation.shown
    if not basis.filter:
        return ()
    trace, rows = basis.select, list[ClusterRow]()
    failed, losses = (False, {}) if trace is None else (bool(trace.error), trace.losses)
    for rank, candidate in enumerate(basis.attempt.candidates, 1):
        name, loss = candidate.name, None if failed else losses.get(candidate.name)
        row = replace(
            _row(situation, name),
            refusals=(),
            scores=basis.score.get(name, ()),
            score=candidate.score,
            tier=candidate.tier,
            capacity=basis.capacity.get(name),
            rank=rank,
            selected=None if failed else loss is None,
            not_selected_because="" if loss is None else LOSSES[loss].short,
        )
        rows.append(row)
    return (*rows, *(_row(situation, name) for name, refusals in basis.filter.items() if refusals))


def _row(situation: Situation, name: str) -> ClusterRow:
    refusals = situation.shown.filter[name]
    found = situation.snapshot.get(name)
    return ClusterRow(
        name=name,
        region=found.region if found is not None else "",
        refusals=tuple(refusal.cell for refusal in refusals),
        not_called=() if refusals[:1] == (DELETED,) else situation.shown.filter.not_called,
        replicas=situation.placement.get(name, 0),
        is_target=name in situation.placement,
        present=situation.present.get(name),
    )


def capacity_note(situation: Situation) -> str:
    """Return where the available replicas come from."""
    cells = situation.shown.capacity.values()
    if not cells:
        return ""
    sources = sorted({cell.source for cell in cells if cell.source})
    if not sources:
        return "no estimator was asked: the workload has no replicas"
    text = ", ".join("general estimator" if source == "general-estimator" else source for source in sources)
    end = "No estimator in a member cluster was asked."
    return f"{text}, from the resource summaries of the clusters as they were read. {end}"
