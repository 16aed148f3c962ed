"""An explanation as text and document: the answer in the second line, the decisive step marked, then the evidence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from karmada_advisor.explain.amounts import counted, listed
from karmada_advisor.explain.model import Explanation, NextState, Remedy, RemedySearch, Tense
from karmada_advisor.explain.overview import BindingName, ExplanationSummary, StateGroup
from karmada_advisor.explain.trace_model import FunnelStage
from karmada_advisor.state.model import ClusterStatus, StateName
from karmada_advisor.state.stored import age
from karmada_advisor.views import state as states
from karmada_advisor.views.document import Block, Line, Section, Table, TextBlock, document_of
from karmada_advisor.views.explanation_tables import ROWS, clusters, combinations, division, terms
from karmada_advisor.views.kubectl import resource_name
from karmada_advisor.views.text import Style, of_document, text, unbroken
from karmada_scheduler.api.binding import KINDS

DECISIVE: Final = "<- decides"


def explanation_text(explanation: Explanation, style: Style, *, quiet: bool = False) -> str:
    """Return the text; with ``quiet`` the answer, the steps, and what is wrong."""
    return text(explanation_sections(explanation, style, quiet=quiet), style)


def explanation_document(explanation: Explanation, rows: int, *, unfolded: bool = False) -> Iterator[Block]:
    """Yield the parts of the document for tickets and pull requests, with so many rows of a table."""
    title = f"{explanation.binding}: {explanation.state.words.lower()}"
    yield from document_of(title, explanation_sections(explanation, of_document(rows, unfolded=unfolded)))


def explanation_sections(explanation: Explanation, style: Style, *, quiet: bool = False) -> Iterator[Section]:
    """Yield the sections of the text."""
    head, steps = _head(explanation, style), funnel(explanation, style)
    if quiet:
        yield [*head, *steps, *_warnings(explanation)]
        return
    yield from (head, _rows(explanation, style), steps, _warnings(explanation))
    if len(explanation.funnel) > 1 or style.unfolded:
        yield clusters(explanation, style)
    yield terms(explanation)
    if explanation.selection is not None:
        yield combinations(explanation.selection, style)
    if explanation.division is not None:
        yield division(explanation.division, style)
    yield from (_causes(explanation), _remedies(explanation, style), _end(explanation))


def _head(explanation: Explanation, style: Style) -> Iterator[TextBlock]:
    binding, state, fold = explanation.binding, explanation.state, partial(style.fold, limit=12)
    policy = [f"policy {binding.policy}"] if binding.policy is not None else []
    template = [f"of {binding.template}"] if binding.has_uncommon_template else []
    yield unbroken([str(binding), *template, asked_text(explanation), *policy])
    rest = states.answer(state, fold)
    yield Line([(state.words, state.colour), (f"   {rest}" if rest else "", "")])
    if next_text := states.would_be(explanation, fold):
        yield next_text
    yield provenance_text(explanation)


def asked_text(explanation: Explanation) -> str:
    """Return what the binding asks for: replicas and the request of each."""
    binding = explanation.binding
    if explanation.state.name is StateName.UNKNOWN:
        return "replicas not known"
    if not binding.replicas and not binding.request:
        return "no replicas"
    count = counted(binding.replicas, "replica")
    return f"{count} of {listed(binding.request)}" if binding.request else f"{count} without requests"


def provenance_text(explanation: Explanation) -> str:
    """Return where an explanation comes from, and what the next decision is."""
    provenance, record = explanation.provenance, explanation.provenance.record
    asks = explanation.trigger is not None and explanation.trigger.asks
    now = "" if provenance.tense is Tense.REPLAYED else " now"
    shown = f"{provenance.tense.value}{now} from {provenance.source}"
    if provenance.rules:
        shown += f" by the rules of {provenance.rules}"
    if provenance.basis == "first":
        shown += ", as a first decision: it gives the placement that the binding has"
    if record is not None:
        ago = "" if record.age_seconds is None else f" ({age(record.age_seconds)} ago)"
        event = f", {record.event}" if record.event else ""
        same = {True: "with the same result", False: "with another result", None: "not compared"}
        recorded = f"recorded {record.at} by {record.process}, {record.schedule_class}{event}{ago}"
        shown = f"{recorded}; the steps below are {shown}, {same[record.agrees]}"
    elif provenance.no_record:
        shown += f"; no record ({provenance.no_record})"
    if not explanation.schedule:
        return f"{shown}."
    return f"{shown}{', ' if asks and record is None else '. Now: '}{explanation.schedule}."


def _rows(explanation: Explanation, style: Style) -> Iterator[TextBlock]:
    rows = explanation.state.rows
    shown: Sequence[ClusterStatus] = rows
    if not states.shows_rows(rows):
        return
    if len(rows) > max(ROWS, style.least) + 1 and not style.unfolded:
        shown = style.first(sorted(rows, key=lambda row: not row.reason), ROWS)
    yield Table(states.ROW_HEADING, [states.row_cells(row) for row in shown], " > >", spilling=5)
    if len(shown) < len(rows):
        yield f"and {len(rows) - len(shown):,} more clusters (--all)"


def funnel(explanation: Explanation, style: Style, *, depth: int = 2) -> Iterator[TextBlock]:
    """Yield the steps of the decision, ``depth`` columns from the left; the decisive one is marked."""
    counts = [_counts(stage) for stage in explanation.funnel]
    is_only = len(counts) == 1
    for stage, count in zip(explanation.funnel, counts, strict=True):
        head = f"{'':<{depth}}{stage.name:<6}  {count:<{max(map(len, counts))}}   "
        shown = head if is_only and explanation.refusals else head + stage.text
        yield from _stage(shown.rstrip(), len(head), style, is_decisive=stage.decisive)
        if is_only:
            yield from _refusals(explanation, style, depth + 2)


def _counts(stage: FunnelStage) -> str:
    return f"{stage.before:,}" if stage.after is None else f"{stage.before:,} -> {stage.after:,}"


def _stage(shown: str, depth: int, style: Style, *, is_decisive: bool) -> Iterator[TextBlock]:
    """Yield a step; the mark is below it where the last line is full."""
    if not is_decisive:
        yield Line(shown, hang=depth)
        return
    *before, last = style.wrap(shown, indent=" " * depth)
    if len(last) + 3 + len(DECISIVE) > style.width:
        before, last = [*before, last], " " * (depth - 3)
    yield from before
    yield Line([(f"{last}   ", ""), (DECISIVE, "yellow")], breaks=False)


def _refusals(explanation: Explanation, style: Style, depth: int) -> Iterator[TextBlock]:
    heads = [(str(refusal.count), refusal.plugin or "-", refusal.short) for refusal in explanation.refusals]
    if heads:
        left = style.width - depth - sum(2 + max(len(row[column]) for row in heads) for column in range(3))
        folded = (style.fold_to(refusal.names, left) for refusal in explanation.refusals)
        rows = [(*head, names) for head, names in zip(heads, folded, strict=True)]
        yield Table((), rows, ">", indent=depth)


def _warnings(explanation: Explanation) -> Iterator[TextBlock]:
    for warning in explanation.warnings:
        yield Line(f"  ! {warning}", "yellow")


def _causes(explanation: Explanation) -> Iterator[TextBlock]:
    if explanation.causes:
        yield "Causes"
    for cause in explanation.causes:
        yield Line([("  ", ""), (cause.code, "bold" if cause.primary else ""), (f": {cause.text}", "")])


_ARRIVING: Final = frozenset({"overwrite", "resumeDispatching"})
"""Edits after which no other decision is made: what is placed arrives."""


def _remedies(explanation: Explanation, style: Style) -> Iterator[TextBlock]:
    search = explanation.remedy_search
    arriving = [each for each in explanation.remedies if each.edits[0].op in _ARRIVING]
    found = [each for each in explanation.remedies if each not in arriving]
    if found and all(remedy.result for remedy in found):
        yield Line("Any one of these places it (each verified by deciding again):", breaks=False)
    elif found:
        yield "After any one of these a policy claims it (each verified by the rules of Karmada's detector):"
    yield from _remedy_lines(found, style)
    if arriving:
        yield "After any one of these, changes arrive on its clusters:"
    yield from _remedy_lines(arriving, style)
    if search is not None and (end := _search_end(search, explanation)):
        yield end


def _remedy_lines(remedies: Sequence[Remedy], style: Style) -> Iterator[TextBlock]:
    """Yield one line per change with its result at the end; below it where that is too wide."""
    side, subject, change = (
        max((len(getattr(remedy, name)) for remedy in remedies), default=0)
        for name in ("side", "subject", "change")
    )
    depth = side + subject + 6
    results = [f"-> {style.fold([*map(str, remedy.result)]) or states.NO_RESULT}" for remedy in remedies]
    fits = depth + change + 2 + max(map(len, results), default=0) <= style.width
    for remedy, result in zip(remedies, results, strict=True):
        lead = f"  {remedy.side:<{side}}  {remedy.subject:<{subject}}  "
        if fits:
            yield Line(f"{lead}{remedy.change:<{change}}  {result}", breaks=False)
        else:
            yield Line(f"{lead}{remedy.change}", hang=depth)
            yield Line(f"{'':<{depth}}{result}", hang=depth)
        for remark in states.remarks(remedy):
            yield Line(f"{'':<{depth}}{remark}", hang=depth)


def _search_end(search: RemedySearch, explanation: Explanation) -> str:
    """Return how the search for remedies ended; "" if there is nothing to say."""
    found, would_be = explanation.remedies, explanation.would_be
    is_undecided = explanation.state.name is StateName.NOT_DECIDED_YET
    if is_undecided and would_be is not None and would_be.outcome is NextState.PLACED:
        return "It is not decided yet: the decision that is due places it."
    if search.ended_by:
        is_timeout = search.ended_by == "timeout"
        bound = f"{search.timeout_seconds:g} s (--timeout)" if is_timeout else f"{search.runs} tries"
        result = "" if found else ", and no change that places it was found"
        return f"The search for changes ended after {bound}{result}. `why-not --placed --timeout 30s` searches on."
    tried = f"{search.runs} sets of changes were tried"
    return (
        ""
        if found or explanation.state.name is StateName.PLACED
        else f"No change that why-not knows places it; {tried}."
    )


def _end(explanation: Explanation) -> Iterator[TextBlock]:
    for note in explanation.notes:
        yield f"note: {note}"
    condition = explanation.condition
    if condition is not None:
        shown = f"condition Scheduled={condition.status} {condition.reason}"
        if condition.since:
            shown += f" since {condition.since}"
        if condition.status == "True" and not condition.is_current:
            shown += ", about an older generation"
        if not condition.agrees:
            shown += "; a decision now would write another one"
        if condition.message != explanation.state.message:
            shown += f': "{condition.message}"'
        yield shown


_OVERVIEW_GROUPS: Final = 10
_OVERVIEW_NAMES: Final = 3


def overview_text(found: ExplanationSummary, rows: Sequence[BindingName], style: Style) -> str:
    """Return the text; with ``rows``, a list of all bindings, if lists are unfolded."""
    return text(_overview(found, rows, style), style)


def _overview(found: ExplanationSummary, rows: Sequence[BindingName], style: Style) -> Iterator[Section]:
    counts = ", ".join(f"{count:,} {state}" for state, count in reversed(list(found.counts.items())))
    scope = f" {found.scope}" if found.scope else ""
    where = f"{counted(found.total, 'binding')}{scope} on {counted(found.clusters, 'cluster')}"
    provenance = found.provenance
    rules = f"causes decided again by the rules of {provenance.rules}"
    notes = [f"states as stored at {provenance.source}; {rules}"]
    if found.templates:
        one, many = "template has no binding and runs nowhere", "templates have no binding and run nowhere"
        notes.append(counted(found.templates, one, many))
    if not found.knows_templates:
        notes.append("templates without a binding are not in it, as they were not read (--workloads)")
    if found.undecided:
        left = counted(found.undecided, "binding was", "bindings were")
        why = "because there was no time: grouped by what is stored"
        notes.append(f"the cause of {left} not looked for, {why}")
    if found.replicas is not None and found.replicas.wanted:
        notes.insert(0, f"replicas: {found.replicas}")
    yield [f"{where}: {counts or 'there is none'}", *notes]
    shown = style.first(found.groups, _OVERVIEW_GROUPS)
    yield from (_group(group, style) for group in shown)
    if rest := found.groups[len(shown) :]:
        bindings = sum(len(group.bindings) for group in rest)
        yield [f"and {bindings:,} more bindings in {len(rest):,} more groups (--all)"]
    if style.unfolded and rows:
        cells = [(str(row), *row.headline.partition("   ")[::2]) for row in rows]
        yield [Table(("NAME", "STATE", "CLUSTERS"), cells)]
    if found.groups:
        first = found.groups[0].bindings[0]
        named = first.name if first.kind in KINDS else resource_name(first.kind, first.name)
        name = f"-n {first.namespace} {named}" if first.namespace else f"crb/{first.name}"
        yield [Line(f"`explain {name}` says more about one.", breaks=False)]


def _group(group: StateGroup, style: Style) -> Iterator[TextBlock]:
    cause = group.cause
    like = "for example, " if group.example else ""
    why = f"{cause.code}: {like}{cause.text}" if cause is not None else group.text
    reason = f" ({group.reason})" if group.reason else ""
    count = f"{len(group.bindings):>5,}  "
    yield Line([(count, ""), (group.words, group.colour), (f"{reason}   {why}", "")], hang=7)
    names = style.fold([*map(str, group.bindings)], limit=_OVERVIEW_NAMES, separator="  ")
    yield Line(f"       {names}", hang=7)
