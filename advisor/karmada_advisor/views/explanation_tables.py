"""The tables of an explanation: clusters, terms, combinations of regions, and the division of replicas."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from karmada_advisor.explain.amounts import counted
from karmada_advisor.explain.funnel import LOST_BY
from karmada_advisor.explain.model import Explanation
from karmada_advisor.explain.trace_model import ClusterRow, Combination, DivideTrace, SelectTrace
from karmada_advisor.views.document import Line, Table, TextBlock
from karmada_advisor.views.text import Style

ROWS: Final = 12
_REFUSED_ROWS: Final = 5
_STRATEGIES: Final = {
    "StaticWeight": "static weights",
    "DynamicWeight": "dynamic weight",
    "Aggregated": "aggregated over the fewest clusters",
}
_MODES: Final = {
    "up": ", the additional replicas",
    "down": ", in proportion to what is there",
    "fresh": ", again from the start",
}


def clusters(explanation: Explanation, style: Style) -> Iterator[TextBlock]:
    """Yield the clusters that pass, and the first that are refused."""
    passing = [row for row in explanation.clusters if not row.refusals]
    refused = [row for row in explanation.clusters if row.refusals]
    if not passing and not refused:
        return
    shown_passing, shown_refused = _folded(passing, ROWS, style), _folded(refused, _REFUSED_ROWS, style)
    heading = ("CLUSTER", "FILTER", "SCORE", "FREE", "LIMITED BY", "SELECTED", "REPLICAS")
    rows = [_cluster(row) for row in [*shown_passing, *shown_refused]]
    yield Table(heading, rows, "  >>  >", optional=(4,), spilling=5)
    hidden = len(passing) - len(shown_passing), len(refused) - len(shown_refused)
    if any(hidden):
        names = ("that pass", "that are refused")
        more = [f"{count:,} more {name}" for count, name in zip(hidden, names, strict=True) if count]
        yield f"and {', '.join(more)} (--all)"
    if explanation.capacity_note:
        yield f"Free: {explanation.capacity_note}"


def _folded(rows: list[ClusterRow], limit: int, style: Style) -> list[ClusterRow]:
    """Return the rows to show: all, or the targets and the first others."""
    limit = max(limit, style.least)
    return rows if style.unfolded or len(rows) <= limit + 1 else first_rows(rows, limit)


def first_rows(rows: Sequence[ClusterRow], limit: int) -> list[ClusterRow]:
    """Return as many rows in their order: the targets, then others."""
    targets = [row for row in rows if row.is_target][:limit]
    others = [row for row in rows if not row.is_target][: limit - len(targets)]
    kept = {row.name for row in (*targets, *others)}
    return [row for row in rows if row.name in kept]


def _cluster(row: ClusterRow) -> tuple[str, ...]:
    replicas = f"{row.replicas:,}" if row.replicas else ""
    if row.refusals:
        cell = row.refusals[0]
        short = cell.short.removesuffix(f":{cell.evidence.get('effect')}")
        more = f" and {len(row.refusals) - 1} more" if len(row.refusals) > 1 else ""
        return row.name, f"{cell.plugin}: {short}{more}" if cell.plugin else short, "-", "-", "", "", replicas
    capacity = row.capacity
    available = "" if capacity is None else f"{capacity.available:,}" if capacity.source else "-"
    return row.name, "ok", str(row.score), available, limited_by(row), selected(row), replicas


def limited_by(row: ClusterRow) -> str:
    """Return what limits the available replicas of a cluster; "" if nothing does."""
    if row.capacity is None or not row.capacity.limited_by:
        return ""
    bound = row.capacity.bounded_by
    if bound.startswith("resource models"):
        return bound
    free = f" {row.capacity.free} free" if row.capacity.free else ""
    less = ", less assumed workloads" if bound == "assumed workloads" else ""
    return f"{row.capacity.limited_by}{free}{less}"


def selected(row: ClusterRow) -> str:
    """Return whether a cluster was selected, or why not; "" for a refused one."""
    return {None: "", True: "yes", False: f"no: {row.not_selected_because}"}[row.selected]


def terms(explanation: Explanation) -> Iterator[TextBlock]:
    """Yield the affinity terms."""
    if explanation.terms:
        yield "Affinity terms, in order"
        rows = [(term.name, term.outcome, term.text) for term in explanation.terms]
        yield Table(("TERM", "OUTCOME", ""), rows, indent=2)


def clusters_wanted(trace: SelectTrace) -> str:
    """Return how many clusters regions are to have together, after a comma; "" without a constraint."""
    if "cluster" not in trace.limits:
        return ""
    least, most = trace.limits["cluster"]
    if not most:
        return f", at least {counted(least, 'cluster')}, one in each region"
    return f", {f'exactly {least}' if least == most else f'{least} to {most}'} clusters"


def combinations(trace: SelectTrace, style: Style) -> Iterator[TextBlock]:
    """Yield the sets of regions that were compared."""
    if not trace.combinations:
        return
    least, most = trace.limits["region"]
    wanted = f"exactly {least}" if least == most else f"{least} to {most}"
    yield f"Regions: {wanted} wanted{clusters_wanted(trace)}"
    rows = [combination_cells(combination) for combination in style.first(trace.combinations, 4)]
    hidden = len(trace.combinations) - len(rows) + max(0, trace.more_combinations)
    if hidden:
        rows[-1] = (*rows[-1][:3], f"{rows[-1][3]}   and {hidden:,} more")
    yield Table(("REGIONS", "CLUSTERS", "WEIGHT", ""), rows, " >>", indent=2)
    if trace.more_combinations < 0:
        yield "  there are too many other sets to list"


def combination_cells(found: Combination) -> tuple[str, str, str, str]:
    """Return a set of regions with its clusters, its weight, and what became of it."""
    result = "taken" if found.taken else LOST_BY[found.lost_by]
    return " + ".join(found.names), str(found.clusters), str(found.weight), result


def division_words(trace: DivideTrace) -> str:
    """Return how replicas were divided; "" if they were not, or by a plugin."""
    if not trace.divided or not trace.rows or trace.mode == "plugin" or trace.strategy not in _STRATEGIES:
        return ""
    return f"{_STRATEGIES[trace.strategy]}{_MODES.get(trace.mode, '')}"


def division(trace: DivideTrace, style: Style) -> Iterator[TextBlock]:
    """Yield how replicas were divided; nothing if they were not, or by a plugin."""
    how = division_words(trace)
    if not how:
        return
    yield Line(f"Division: {how}, Webster's method", breaks=False)
    kept = any(row.kept for row in trace.rows)
    rows = trace.rows if len(trace.rows) <= ROWS + 1 else style.first(trace.rows, ROWS)
    cells = [
        (
            row.name,
            f"{row.weight:,}",
            f"{100 * row.share:.0f}%",
            f"{row.exact:.1f}",
            *([str(row.kept)] if kept else []),
            str(row.seats),
            f"{row.last_seat}." if row.last_seat else "-",
            f"{row.next_at:.3f}",
        )
        for row in rows
    ]
    columns = ["KEPT"] if kept else []
    heading = ("CLUSTER", "WEIGHT", "SHARE", "EXACT", *columns, "SEATS", "LAST SEAT", "NEXT AT")
    yield Table(heading, cells, " >>>>>>>", indent=2)
    if len(rows) < len(trace.rows):
        yield f"  and {len(trace.rows) - len(rows):,} more"
    if trace.tied:
        tied = f"{', '.join(trace.tied)} tied for the last seat"
        yield f"  {tied}; the parity of the uid prefers {trace.ties} names."
