"""An explanation as text: the answer in the second line, the decisive step marked, then the evidence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from karmada_advisor.explain.amounts import listed
from karmada_advisor.explain.funnel import LOST_BY
from karmada_advisor.explain.model import Explanation, Tense
from karmada_advisor.explain.remedy_model import Remedy, RemedySearch
from karmada_advisor.explain.trace_model import ClusterRow, DivideTrace, FunnelStage, SelectTrace
from karmada_advisor.state.stored import age
from karmada_advisor.views.layout import Style, folded_to, table
from karmada_advisor.views.remedies import remarks
from karmada_advisor.views.state import NO_RESULT, ROW_HEADING, headline, row_cells, shows_rows, would_be

DECISIVE: Final = "<- decides"
_ROWS: Final = 12
_REFUSED_ROWS: Final = 5


def explanation_text(explanation: Explanation, style: Style, *, quiet: bool = False) -> str:
    """Return the text; with ``quiet`` the answer, the steps, and what is wrong."""
    lines = list(_head(explanation, style))
    funnel = list(funnel_lines(explanation, style))
    warnings = list(_warnings(explanation, style))
    if quiet:
        return "\n".join([*lines, *funnel, *warnings]) + "\n"
    sections = [lines, list(_rows(explanation, style)), funnel, warnings, *_tables(explanation, style)]
    sections += [list(_remedies(explanation, style)), list(_end(explanation, style))]
    return "\n\n".join("\n".join(section) for section in sections if section) + "\n"


def _head(explanation: Explanation, style: Style) -> Iterator[str]:
    binding = explanation.binding
    parts = [str(binding), asked_text(explanation)]
    if binding.policy is not None:
        parts.append(f"policy {binding.policy}")
    yield from style.wrap_parts(parts, indent="  ")
    state = explanation.state
    fold = partial(style.fold, limit=12)
    first, *rest = style.wrap(headline(state, fold), indent="  ")
    yield style.paint(state.words, state.colour) + first[len(state.words) :]
    yield from rest
    if next_text := would_be(explanation, fold):
        yield from style.wrap(next_text, indent="  ")
    yield from style.wrap(provenance_text(explanation), indent="  ")


def asked_text(explanation: Explanation) -> str:
    """Return what the binding asks for: replicas and the request of each."""
    binding = explanation.binding
    if not binding.replicas and not binding.request:
        return "no replicas"
    count = f"{binding.replicas:,} replica{'' if binding.replicas == 1 else 's'}"
    return f"{count} of {listed(binding.request)}" if binding.request else f"{count} without requests"


def provenance_text(explanation: Explanation) -> str:
    """Return where an explanation comes from, and what the next decision is."""
    provenance = explanation.provenance
    record = provenance.record
    asks = explanation.trigger is not None and explanation.trigger.asks
    now = "" if provenance.tense is Tense.REPLAYED else " now"
    text = f"{provenance.tense.value}{now} from {provenance.source}"
    if provenance.rules:
        text += f" by the rules of {provenance.rules}"
    if provenance.basis == "first":
        text += ", as a first decision: it gives the placement that the binding has"
    if record is not None:
        ago = "" if record.age_seconds is None else f" ({age(record.age_seconds)} ago)"
        event = f", {record.event}" if record.event else ""
        same = {True: "with the same result", False: "with another result", None: "not compared"}[
            record.agrees
        ]
        text = (
            f"recorded {record.at} by {record.process}, {record.schedule_class}{event}{ago}; the steps below are {text}, "
            f"{same}"
        )
    elif provenance.no_record:
        text += f"; no record ({provenance.no_record})"
    if not explanation.schedule:
        return f"{text}."
    return (
        f"{text}, {explanation.schedule}."
        if asks and record is None
        else f"{text}. Now: {explanation.schedule}."
    )


def _rows(explanation: Explanation, style: Style) -> Iterator[str]:
    rows = explanation.state.rows
    if not shows_rows(rows):
        return
    bad = [each for each in rows if each.reason]
    shown = (
        rows
        if style.unfolded or len(rows) <= _ROWS + 1
        else [*bad, *(e for e in rows if not e.reason)][:_ROWS]
    )
    yield from table(ROW_HEADING, [row_cells(each) for each in shown], style, align=" > >", spilling=5)
    if len(shown) < len(rows):
        yield f"and {len(rows) - len(shown):,} more clusters (--all)"


def funnel_lines(explanation: Explanation, style: Style) -> Iterator[str]:
    """Yield the steps of the decision; the decisive one is marked."""
    width = max((len(_counts(stage)) for stage in explanation.funnel), default=0)
    for stage in explanation.funnel:
        only = len(explanation.funnel) == 1
        text = "" if only and explanation.refusals else stage.text
        yield from _stage(stage, _counts(stage).ljust(width), text, style)
        if only:
            yield from _refusals(explanation, style)


def _counts(stage: FunnelStage) -> str:
    return f"{stage.before:,}" if stage.after is None else f"{stage.before:,} -> {stage.after:,}"


def _stage(stage: FunnelStage, counts: str, text: str, style: Style) -> Iterator[str]:
    head = f"  {stage.name:<6}  {counts}   "
    lines = style.wrap((head + text).rstrip(), indent=" " * len(head))
    if stage.decisive:
        if len(lines[-1]) + 3 + len(DECISIVE) > style.width:
            lines.append(" " * (len(head) - 3))
        marked = style.paint(DECISIVE, "yellow")
        lines[-1] = f"{lines[-1]}   {marked}"
    yield from lines


def _refusals(explanation: Explanation, style: Style) -> Iterator[str]:
    heads = [(str(each.count), each.plugin or "-", each.short) for each in explanation.refusals]
    if heads:
        taken = 4 + sum(2 + max(len(row[column]) for row in heads) for column in range(3))
        rows = [
            (*head, folded_to(each.names, style.width - taken, style))
            for head, each in zip(heads, explanation.refusals, strict=True)
        ]
        yield from table((), rows, style, align=">", indent="    ")


def _warnings(explanation: Explanation, style: Style) -> Iterator[str]:
    for each in explanation.mismatches:
        text = f"  ! defect of this explanation: the trace {each.trace} of {each.place} has {each.ours}, the decision {each.decision}"
        yield from (style.paint(line, "red") for line in style.wrap(text, indent="    "))
    for warning in explanation.warnings:
        yield from (style.paint(line, "yellow") for line in style.wrap(f"  ! {warning}", indent="    "))


def _tables(explanation: Explanation, style: Style) -> Iterator[list[str]]:
    if len(explanation.funnel) > 1 or style.unfolded:
        yield list(_clusters(explanation, style))
    yield list(_terms(explanation, style))
    if explanation.selection is not None:
        yield list(_combinations(explanation.selection, style))
    if explanation.division is not None:
        yield list(_division(explanation.division, style))
    yield list(_causes(explanation, style))


def _clusters(explanation: Explanation, style: Style) -> Iterator[str]:
    passing = [row for row in explanation.clusters if not row.refusals]
    refused = [row for row in explanation.clusters if row.refusals]
    if not passing and not refused:
        return
    shown_passing, shown_refused = _folded(passing, _ROWS, style), _folded(refused, _REFUSED_ROWS, style)
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
    if style.unfolded or len(rows) <= limit + 1:
        return rows
    targets = [row for row in rows if row.is_target][:limit]
    others = [row for row in rows if not row.is_target][: max(0, limit - len(targets))]
    kept = {row.name for row in [*targets, *others]}
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


def _terms(explanation: Explanation, style: Style) -> Iterator[str]:
    if explanation.terms:
        yield "Affinity terms, in order"
        rows = [(each.name, each.outcome, each.text) for each in explanation.terms]
        yield from table(("TERM", "OUTCOME", ""), rows, style, indent="  ")


def _combinations(trace: SelectTrace, style: Style) -> Iterator[str]:
    if not trace.combinations:
        return
    least, most = trace.limits["region"]
    wanted = f"exactly {least}" if least == most else f"{least} to {most}"
    clusters = trace.limits.get("cluster")
    end = f", {clusters[0]} to {clusters[1]} clusters" if clusters is not None else ""
    yield f"Regions: {wanted} wanted{end}"
    shown = trace.combinations if style.unfolded else trace.combinations[:4]
    hidden = len(trace.combinations) - len(shown) + max(0, trace.more_combinations)
    rows = [
        (
            " + ".join(each.names),
            str(each.clusters),
            str(each.weight),
            "taken" if each.taken else LOST_BY[each.lost_by],
        )
        for each in shown
    ]
    if hidden:
        rows[-1] = (*rows[-1][:3], f"{rows[-1][3]}   and {hidden:,} more")
    yield from table(("REGIONS", "CLUSTERS", "WEIGHT", ""), rows, style, align=" >>", indent="  ")
    if trace.more_combinations < 0:
        yield "  there are too many other sets to list"


def _division(trace: DivideTrace, style: Style) -> Iterator[str]:
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
    rows = trace.rows if style.unfolded or len(trace.rows) <= _ROWS + 1 else trace.rows[:_ROWS]
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


def _causes(explanation: Explanation, style: Style) -> Iterator[str]:
    if explanation.causes:
        yield "Causes"
        for each in explanation.causes:
            mark = style.paint(each.code, "bold") if each.primary else each.code
            first, *rest = style.wrap(f"  {each.code}: {each.text}", indent="    ")
            yield first.replace(each.code, mark, 1)
            yield from rest


def _remedies(explanation: Explanation, style: Style) -> Iterator[str]:
    if explanation.remedies:
        if all(each.result for each in explanation.remedies):
            yield "Any one of these places it (each verified by deciding again):"
        else:
            yield "After any one of these a policy claims it (each verified by the rules of Karmada's detector):"
        yield from _remedy_lines(explanation.remedies, style)
    if explanation.remedy_search is not None and (
        end := _search_end(explanation.remedy_search, found=bool(explanation.remedies))
    ):
        yield from style.wrap(end, indent="  ")


def _remedy_lines(remedies: Sequence[Remedy], style: Style) -> list[str]:
    """Return one line per change with its result at the end; below it where that is too wide."""
    side, subject = (max(len(getattr(each, name)) for each in remedies) for name in ("side", "subject"))
    leads = [f"  {each.side:<{side}}  {each.subject:<{subject}}  " for each in remedies]
    results = [f"-> {style.fold([*map(str, each.result)]) or NO_RESULT}" for each in remedies]
    indent = " " * len(leads[0])
    change = max(len(each.change) for each in remedies)
    lines = [
        f"{lead}{each.change:<{change}}  {result}"
        for lead, each, result in zip(leads, remedies, results, strict=True)
    ]
    fits = all(len(line) <= style.width for line in lines)
    return [
        line
        for lead, each, result, one in zip(leads, remedies, results, lines, strict=True)
        for text in (
            *([one] if fits else [f"{lead}{each.change}", f"{indent}{result}"]),
            *(f"{indent}{remark}" for remark in remarks(each)),
        )
        for line in ([text] if text is one else style.wrap(text, indent=indent))
    ]


def _search_end(search: RemedySearch, *, found: bool) -> str:
    """Return how the search for remedies ended; "" if there is nothing to say."""
    if search.ended_by:
        bound = (
            f"{search.timeout_seconds:g} s (--timeout)"
            if search.ended_by == "timeout"
            else f"{search.runs} tries"
        )
        result = "" if found else ", and no change that places it was found"
        return f"The search for changes ended after {bound}{result}. `why-not --placed --timeout 30s` searches on."
    return (
        "" if found else f"No change that why-not knows places it; {search.runs} sets of changes were tried."
    )


def _end(explanation: Explanation, style: Style) -> Iterator[str]:
    for note in explanation.notes:
        yield from style.wrap(f"note: {note}", indent="  ")
    condition = explanation.condition
    if condition is not None:
        text = f"condition Scheduled={condition.status} {condition.reason}"
        if condition.since:
            text += f" since {condition.since}"
        if condition.status == "True" and not condition.is_current:
            text += ", about an older generation"
        if not condition.agrees:
            text += "; a decision now would write another one"
        if condition.message != explanation.state.message:
            text += f': "{condition.message}"'
        yield from style.wrap(text, indent="  ")
