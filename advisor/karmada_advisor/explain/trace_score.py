"""The scores of all candidates by plugin, and their order of preference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from karmada_advisor.explain.inputs import ExplainInputs
from karmada_advisor.explain.model import Mismatch, ScoreCell
from karmada_advisor.explain.trace_filter import may_call_again
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.core.cluster_groups import tier_of
from karmada_scheduler.core.decision import TermAttempt
from karmada_scheduler.core.ordering.candidates import sort_key
from karmada_scheduler.framework.cycle import Cycle
from karmada_scheduler.framework.scheduling_points import (
    NormalizeScoreContext,
    NormalizeScorePlugin,
    PreScorePlugin,
    ScoreContext,
    ScorePlugin,
)


class ScoreTrace(NamedTuple):
    """Scores by cluster name."""

    cells: Mapping[str, tuple[ScoreCell, ...]]
    mismatches: Sequence[Mismatch]


def trace_score(attempt: TermAttempt, inputs: ExplainInputs) -> ScoreTrace:
    """Call the Score plugins again, and compare with the scores and the order of the decision."""
    cycle = attempt.cycle
    assert cycle is not None  # every attempt of a decision has one
    clusters = sorted((each.cluster for each in attempt.candidates), key=lambda cluster: cluster.name)
    weights = inputs.framework.plugins.weights
    raw_by_plugin = {
        plugin.name: _scores(plugin, cycle, clusters)
        for plugin in inputs.framework.plugins.score
        if may_call_again(plugin) and not isinstance(plugin, PreScorePlugin)
    }
    cells: dict[str, list[ScoreCell]] = {cluster.name: [] for cluster in clusters}
    mismatches: list[Mismatch] = []
    recorded = {plugin: list(totals) for plugin, totals in attempt.scores.items()} if clusters else {}
    for plugin, totals in recorded.items():
        weight = weights.get(plugin, 1)
        again = raw_by_plugin.get(plugin)
        if len(totals) != len(clusters):
            mismatches.append(Mismatch("score", plugin, str(len(clusters)), str(len(totals))))
            continue
        for index, cluster in enumerate(clusters):
            raw, normalized = (None, totals[index] // weight) if again is None else again[index]
            cells[cluster.name].append(ScoreCell(plugin, raw, normalized, weight, totals[index]))
            if normalized * weight != totals[index]:
                place = f"{cluster.name} {plugin}"
                mismatches.append(Mismatch("score", place, str(normalized * weight), str(totals[index])))
    for each in attempt.candidates:
        ours = sum(cell.total for cell in cells[each.name]), tier_of(cycle, each.cluster)
        if ours != (each.score, each.tier):
            mismatches.append(Mismatch("score", each.name, str(ours), str((each.score, each.tier))))
    ordered = [each.name for each in sorted(attempt.candidates, key=sort_key)]
    if ordered != (found := [each.name for each in attempt.candidates]):
        mismatches.append(Mismatch("score", "order", str(ordered), str(found)))
    return ScoreTrace({name: tuple(each) for name, each in cells.items()}, mismatches)


def _scores(plugin: ScorePlugin, cycle: Cycle, clusters: Sequence[Cluster]) -> list[tuple[int, int]]:
    """Return raw and normalized scores."""
    raw = [plugin.score(ScoreContext(cycle, cluster)) for cluster in clusters]
    if isinstance(plugin, NormalizeScorePlugin) and clusters:
        return list(
            zip(raw, plugin.normalize_score(NormalizeScoreContext(cycle, clusters, raw)), strict=True)
        )
    return [(each, each) for each in raw]
