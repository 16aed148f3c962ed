"""What Filter and Score plugins answer when they are called again about the clusters of a decision."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from karmada_advisor.explain.filter_evidence import evidence_of
from karmada_advisor.explain.inputs import ExplainInputs
from karmada_advisor.explain.trace_model import FilterCell, Mismatch, Refusal, ScoreCell
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.core.cluster_groups import tier_of
from karmada_scheduler.core.decision import TermAttempt
from karmada_scheduler.core.ordering.candidates import sort_key
from karmada_scheduler.framework.cycle import Cycle
from karmada_scheduler.framework.plugin import Plugin
from karmada_scheduler.framework.result import Result
from karmada_scheduler.framework.scheduling_points import (
    FilterContext,
    FilterPlugin,
    NormalizeScoreContext,
    NormalizeScorePlugin,
    PreFilterPlugin,
    PreScorePlugin,
    ScoreContext,
    ScorePlugin,
)

DELETED: Final = FilterCell("", "the cluster is being deleted", "being deleted")
_IN_TREE: Final = "karmada_scheduler_plugins."


class FilterRow(NamedTuple):
    """What the filters say about one cluster.

    Attributes:
        refusals: The first one is the one that counts.
        not_called: The plugins that were not called again.
    """

    refusals: tuple[FilterCell, ...] = ()
    not_called: tuple[str, ...] = ()


class FilterTrace(NamedTuple):
    """The answers of the filters by cluster name, in the order of names."""

    rows: Mapping[str, FilterRow]
    mismatches: Sequence[Mismatch]

    def refusals(self) -> tuple[Refusal, ...]:
        """Return the first refusals, counted; the most frequent first, then in the order of plugins."""
        groups: dict[tuple[str, str], list[str]] = defaultdict(list)
        first: dict[tuple[str, str], FilterCell] = {}
        for name, row in self.rows.items():
            if row.refusals:
                cell = row.refusals[0]
                key = (cell.plugin, str(cell.evidence.get("clause", cell.short)))
                groups[key].append(name)
                first.setdefault(key, cell)
        found = [Refusal(key[0], first[key].reason, key[1], tuple(names)) for key, names in groups.items()]
        return tuple(sorted(found, key=lambda each: (-each.count, each.plugin, each.short)))


def may_call_again(plugin: Plugin) -> bool:
    """Return whether an explanation may call a plugin: it is one of ours, or declares ``free_of_side_effects = True``."""
    return type(plugin).__module__.startswith(_IN_TREE) or (
        getattr(plugin, "free_of_side_effects", False) is True
    )


def trace_filter(cycle: Cycle, attempt: TermAttempt, inputs: ExplainInputs) -> FilterTrace:
    """Call the Filter plugins for every cluster, without stopping at the first refusal.

    A plugin that may not be called again, or whose PreFilter may have skipped it, is known by its first refusals only,
    like extenders.
    """
    filters = _filters(inputs)
    rows: dict[str, FilterRow] = {}
    mismatches: list[Mismatch] = []
    for cluster in cycle.snapshot:
        row = rows[cluster.name] = _row(attempt, cycle, cluster, inputs, filters)
        if row.refusals[:1] == (DELETED,):
            continue
        recorded = attempt.diagnosis.result_by_cluster.get(cluster.name)
        ours = (row.refusals[0].plugin, row.refusals[0].reason) if row.refusals else None
        theirs = None if recorded is None else (recorded.plugin, recorded.message)
        if ours != theirs:
            mismatches.append(Mismatch("filter", cluster.name, str(ours), str(theirs)))
    return FilterTrace(rows, mismatches)


def trace_cluster(cycle: Cycle, attempt: TermAttempt, inputs: ExplainInputs, name: str) -> FilterRow | None:
    """Call the Filter plugins for one cluster; None if it is unknown."""
    cluster = cycle.snapshot.get(name)
    return None if cluster is None else _row(attempt, cycle, cluster, inputs, _filters(inputs))


class _Filters(NamedTuple):
    """The Filter plugins that are called again, and the names of the others."""

    called: Sequence[FilterPlugin]
    others: tuple[str, ...]


def _filters(inputs: ExplainInputs) -> _Filters:
    plugins = inputs.framework.plugins.filter
    called = [each for each in plugins if _is_called(each)]
    return _Filters(called, tuple(each.name for each in plugins if each not in called))


def _row(
    attempt: TermAttempt, cycle: Cycle, cluster: Cluster, inputs: ExplainInputs, filters: _Filters
) -> FilterRow:
    if cluster.deleting:
        return FilterRow((DELETED,))
    cells = [cell for each in filters.called if (cell := _answer(each, cycle, cluster, inputs)) is not None]
    recorded = attempt.diagnosis.result_by_cluster.get(cluster.name)
    if recorded is not None and all(recorded.plugin != each.name for each in filters.called):
        cells.insert(0, _cell(recorded.plugin, recorded, cycle, cluster, inputs))
    return FilterRow(tuple(cells), filters.others)


def _is_called(plugin: FilterPlugin) -> bool:
    return may_call_again(plugin) and not isinstance(plugin, PreFilterPlugin)


def _answer(plugin: FilterPlugin, cycle: Cycle, cluster: Cluster, inputs: ExplainInputs) -> FilterCell | None:
    """Return the refusal of one plugin, None if the cluster passes."""
    try:
        result = plugin.filter(FilterContext(cycle, cluster))
    except Exception as problem:  # noqa: BLE001 (a plugin can raise anything; the decision has failed as well)
        return FilterCell(plugin.name, f"failed: {problem}", "failed")
    if not isinstance(result, Result) or not result.is_refusal:
        return None
    return _cell(plugin.name, result, cycle, cluster, inputs)


def _cell(plugin: str, result: Result, cycle: Cycle, cluster: Cluster, inputs: ExplainInputs) -> FilterCell:
    found = evidence_of(plugin, cycle, cluster, inputs)
    return FilterCell(plugin, result.message, found.short or result.message, found.fields)


class ScoreTrace(NamedTuple):
    """Scores by cluster name."""

    cells: Mapping[str, tuple[ScoreCell, ...]]
    mismatches: Sequence[Mismatch]


def trace_score(cycle: Cycle, attempt: TermAttempt, inputs: ExplainInputs) -> ScoreTrace:
    """Call the Score plugins again, and compare with the scores and the order of the decision."""
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
