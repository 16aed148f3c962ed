"""An explanation as text: the answer in the second line, the decisive step marked, then the evidence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from karmada_advisor.explain.amounts import counted, listed
from karmada_advisor.explain.model import Explanation, Tense
from karmada_advisor.explain.remedy_model import Remedy, RemedySearch
from karmada_advisor.explain.trace_model import FunnelStage
from karmada_advisor.state.stored import age
from karmada_advisor.views.layout import Style, folded_to, table
from karmada_advisor.views.state import (
    NO_RESULT,
    ROW_HEADING,
    headline,
    remarks,
    row_cells,
    shows_rows,
    would_be,
)
from karmada_advisor.views.text_tables import ROWS, clusters, combinations, division, terms

DECISIVE: Final = "<- decides"


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
    count = counted(binding.replicas, "replica")
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
        rows if style.unfolded or len(rows) <= ROWS + 1 else [*bad, *(e for e in rows if not e.reason)][:ROWS]
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
        yield list(clusters(explanation, style))
    yield list(terms(explanation, style))
    if explanation.selection is not None:
        yield list(combinations(explanation.selection, style))
    if explanation.division is not None:
        yield list(division(explanation.division, style))
    yield list(_causes(explanation, style))


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
