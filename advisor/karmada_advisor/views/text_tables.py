"""The tables of an explanation: clusters, terms, combinations of regions, and the division of replicas."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from karmada_advisor.explain.funnel import LOST_BY
from karmada_advisor.explain.model import Explanation
from karmada_advisor.explain.trace_model import ClusterRow, Combination, DivideTrace, SelectTrace
from karmada_advisor.views.layout import Style, table

ROWS: Final = 12
_REFUSED_ROWS: Final = 5


def clusters(explanation: Explanation, style: Style) -> Iterator[str]:
    """Yield the clusters that pass, and the first that are refused."""
    passing = [row for row in explanation.clusters if not row.refusals]
    refused = [row for row in explanation.clusters if row.refusals]
    if not passing and not refused:
        return
    shown_passing, shown_refused = _folded(passing, ROWS, style), _folded(refused, _REFUSED_ROWS, style)
    heading = ("CLUSTER", "FILTER", "SCORE", "ROOM", "LIMITED BY", "SELECTED", "REPLICAS")
    rows = [_cluster(row) for row in [*shown_passing, *shown_refused]]
    yield from table(heading, rows, style, align="  >>  >", optional=(4,), spilling=5)
    hidden = len(passing) - len(shown_passing), len(refused) - len(shown_refused)
    if any(hidden):
        more = [f"{hidden[0]:,} more that pass"] if hidden[0] else []
        more += [f"{hidden[1]:,} more that are refused"] if hidden[1] else []
        yield f"and {', '.join(more)} (--all)"
    if explanation.capacity_note:
        yield from style.wrap(f"Room: {explanation.capacity_note}", indent="  ")


def _folded(rows: list[ClusterRow], limit: int, style: Style) -> list[ClusterRow]:
    """Return the rows to show: all, or the targets and the first others."""
    return rows if style.unfolded or len(rows) <= limit + 1 else first_rows(rows, limit)


def first_rows(rows: Sequence[ClusterRow], limit: int) -> list[ClusterRow]:
    """Return as many rows in their order: the targets, then others."""
    targets = [row for row in rows if row.is_target][:limit]
    others = [row for row in rows if not row.is_target][: limit - len(targets)]
    kept = {row.name for row in (*targets, *others)}
    return [row for row in rows if row.name in kept]


def _cluster(row: ClusterRow) -> tuple[str, ...]:
    if row.refusals:
        cell = row.refusals[0]
        short = cell.short.removesuffix(f":{cell.evidence.get('effect')}")
        more = f" and {len(row.refusals) - 1} more" if len(row.refusals) > 1 else ""
        text = f"{cell.plugin}: {short}{more}" if cell.plugin else short
        return row.name, text, "-", "-", "", "", f"{row.replicas}" if row.replicas else ""
    limit, capacity = "", row.capacity
    if capacity is not None and capacity.limited_by:
        limit = f"{capacity.limited_by} {capacity.free} free" if capacity.free else capacity.limited_by
    available = "" if capacity is None else f"{capacity.available:,}" if capacity.source else "-"
    selected = {None: "", True: "yes", False: f"no: {row.not_selected_because}"}[row.selected]
    replicas = f"{row.replicas:,}" if row.replicas else ""
    return row.name, "ok", str(row.score), available, limit, selected, replicas


def terms(explanation: Explanation, style: Style) -> Iterator[str]:
    """Yield the affinity terms."""
    if explanation.terms:
        yield "Affinity terms, in order"
        rows = [(each.name, each.outcome, each.text) for each in explanation.terms]
        yield from table(("TERM", "OUTCOME", ""), rows, style, indent="  ")


def combinations(trace: SelectTrace, style: Style) -> Iterator[str]:
    """Yield the sets of regions that were compared."""
    if not trace.combinations:
        return
    least, most = trace.limits["region"]
    wanted = f"exactly {least}" if least == most else f"{least} to {most}"
    clusters = trace.limits.get("cluster")
    end = f", {clusters[0]} to {clusters[1]} clusters" if clusters is not None else ""
    yield f"Regions: {wanted} wanted{end}"
    shown = trace.combinations if style.unfolded else trace.combinations[:4]
    hidden = len(trace.combinations) - len(shown) + max(0, trace.more_combinations)
    rows = [combination_cells(each) for each in shown]
    if hidden:
        rows[-1] = (*rows[-1][:3], f"{rows[-1][3]}   and {hidden:,} more")
    yield from table(("REGIONS", "CLUSTERS", "WEIGHT", ""), rows, style, align=" >>", indent="  ")
    if trace.more_combinations < 0:
        yield "  there are too many other sets to list"


def combination_cells(found: Combination) -> tuple[str, str, str, str]:
    """Return a set of regions with its clusters, its weight, and what became of it."""
    result = "taken" if found.taken else LOST_BY[found.lost_by]
    return " + ".join(found.names), str(found.clusters), str(found.weight), result


def division(trace: DivideTrace, style: Style) -> Iterator[str]:
    """Yield how replicas were divided; nothing if they were not, or by a plugin."""
    if (
        not trace.divided
        or trace.strategy in {"Duplicated", "none"}
        or trace.mode == "plugin"
        or not trace.rows
    ):
        return
    names = {
        "StaticWeight": "static weights",
        "DynamicWeight": "dynamic weight",
        "Aggregated": "aggregated over the fewest clusters",
    }
    modes = {
        "up": ", the additional replicas",
        "down": ", in proportion to what is there",
        "fresh": ", again from the start",
    }
    yield f"Division: {names[trace.strategy]}{modes.get(trace.mode, '')}, Webster's method"
    kept = any(row.kept for row in trace.rows)
    rows = trace.rows if style.unfolded or len(trace.rows) <= ROWS + 1 else trace.rows[:ROWS]
    cells = [
        (
            row.name,
            f"{row.weight:,}",
            f"{100 * row.share:.0f}%",
            f"{row.exact:.1f}",
            str(row.kept) if kept else "",
            str(row.seats),
            f"{row.last_seat}." if row.last_seat else "-",
            f"{row.next_at:.3f}",
        )
        for row in rows
    ]
    heading = ("CLUSTER", "WEIGHT", "SHARE", "EXACT", "KEPT", "SEATS", "LAST SEAT", "NEXT AT")
    columns = [index for index in range(len(heading)) if kept or heading[index] != "KEPT"]
    picked = [[each[index] for index in columns] for each in cells]
    yield from table([heading[index] for index in columns], picked, style, align=" >>>>>>>", indent="  ")
    if len(rows) < len(trace.rows):
        yield f"  and {len(trace.rows) - len(rows):,} more"
    if trace.tied:
        yield from style.wrap(
            f"  {', '.join(trace.tied)} tied for the last seat; the parity of the uid prefers {trace.ties} names.",
            indent="  ",
        )
