"""The answer to "why not" as text: why, verified changes with their whole effect, and what was tried."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from karmada_advisor.explain.amounts import counted
from karmada_advisor.explain.model import Cause, Stage
from karmada_advisor.state.model import HeldBy, Target
from karmada_advisor.views.document import Line, Section, Table, TextBlock
from karmada_advisor.views.state import NO_RESULT, headline, remarks
from karmada_advisor.views.text import Style, text
from karmada_advisor.whynot.clusters import WhyNotCluster, WhyNotClusters
from karmada_advisor.whynot.model import EditShown, GoalType, VerifiedRemedy, WhyNot
from karmada_scheduler.framework.edits import Side

_CLUSTERS: Final = 4
_TRIED: Final = 8
_NAMES: Final = 3
_CLAIMED: Final = "Each was verified by the rules of Karmada's detector."
_CLAIMING: Final = "Changes after which a policy claims it"
VERIFIED: Final = "Each was verified by deciding again; none of their parts can be left out."


def why_not_text(found: WhyNot, style: Style) -> str:
    """Return the answer for people."""
    return text(_sections(found, style), style)


def _sections(found: WhyNot, style: Style) -> Iterator[Section]:
    yield _head(found, style)
    if not found.next_holds:
        yield _answers(found, style) if found.remedies else [none_found(found)]
        yield _end(found, style)


def _head(found: WhyNot, style: Style) -> Iterator[TextBlock]:
    yield f"{found.binding}   {headline(found.state, partial(style.fold, limit=_CLUSTERS))}"
    if sentence := first_line(found, style):
        yield sentence
    for number, cause in enumerate(found.causes):
        yield Line(f"{cause_label(number, cause):<9}{cause.code}: {cause.text}", hang=9)


def cause_label(number: int, cause: Cause) -> str:
    """Return what stands before a cause: why the goal does not hold, or what else holds it back."""
    if number == 0:
        return "WHY"
    return "AND NOW" if cause.stage is Stage.TRIGGER else "AND"


def first_line(found: WhyNot, style: Style) -> str:
    """Return the answer in one sentence; "" if the state says it. What would be decided is named so."""
    count = found.binding.replicas
    asked = f"the {counted(count, 'replica')} of {found.binding}" if count else str(found.binding)
    if found.goal.type is GoalType.PLACED:
        return _would_be(found, style) if found.next_holds and not found.holds else ""
    if found.goal.type is GoalType.OFF_CLUSTER:
        is_off = all(target.name != found.cluster for target in found.present) and not found.goal.as_new
        end = f". {_would_be(found, style)}" if found.next_holds and not found.holds else ""
        return f"{found.cluster} has {'none' if found.holds or is_off else 'some'} of {asked}{end}"
    is_there = any(target.name == found.cluster for target in found.present)
    if found.next_holds or is_there:
        return _holds(found, asked, style)
    where = "" if found.state.clusters or found.goal.as_new else ", which is placed nowhere"
    few = f"fewer than {found.goal.replicas}" if found.goal.replicas > 1 else "none"
    return f"{found.cluster} has {few} of {asked}{where}"


def _holds(found: WhyNot, asked: str, style: Style) -> str:
    is_stored = (found.holds or not found.next_holds) and not found.goal.as_new
    has = found.present if is_stored else found.next.result
    count = next((target.replicas for target in has if target.name == found.cluster), 0)
    share = f"{count} of {asked}" if count else asked
    if is_stored:
        return f"{found.cluster} has {share}"
    return f"{found.cluster} would get {share}. {_would_be(found, style)}"


def _would_be(found: WhyNot, style: Style) -> str:
    """Return what a decision now would give, or what limits that where a quota has refused the last one."""
    if found.state.held_by is HeldBy.QUOTA and found.notes:
        return " ".join(found.notes)
    return f"Would be: {_placement(found.next.result, style)} (a decision now)."


def _answers(found: WhyNot, style: Style) -> Iterator[TextBlock]:
    """Yield the changes that reach the goal, those on the cluster first."""
    here, others = by_place(found)
    end = f". {VERIFIED if found.search.decisions else _CLAIMED}"
    number = 1
    for title, remedies in (
        (title_text(found), here),
        (f"Changes that place the binding without {found.cluster}", others),
    ):
        if remedies:
            yield Line(f"{title}{end}", hang=0)
            end = ":"
        for remedy in remedies:
            yield from _remedy(number, remedy, style)
            number += 1


def by_place(found: WhyNot) -> tuple[Sequence[VerifiedRemedy], Sequence[VerifiedRemedy]]:
    """Return the changes that reach the goal, and those that place the binding without the cluster in question."""
    is_anywhere = not found.search.decisions or found.goal.type is not GoalType.ON_CLUSTER
    others = [remedy for remedy in found.remedies if not is_anywhere and not remedy.uses_cluster]
    return [remedy for remedy in found.remedies if remedy not in others], others


def title_text(found: WhyNot) -> str:
    """Return the title of the changes that reach the goal."""
    match found.goal.type:
        case GoalType.PLACED:
            return "Changes that place it" if found.search.decisions else _CLAIMING
        case GoalType.OFF_CLUSTER:
            return f"Changes after which it leaves {found.cluster}"
        case _:
            return f"Changes that put replicas on {found.cluster}" if found.search.decisions else _CLAIMING


def _is_searched(found: WhyNot) -> bool:
    """Return whether the rules are known by which changes could be verified."""
    return not found.causes or found.causes[0].code != "PluginsNotKnown"


def none_found(found: WhyNot) -> str:
    """Return that no change was found, and how far the search went."""
    facts = found.search
    if not _is_searched(found):
        return "No change is promised."
    if not facts.decisions:
        return "No change of a policy is known after which it is claimed."
    if facts.complete:
        most, tried = counted(facts.max_depth, "change"), counted(facts.decisions, "decision")
        return f"None found: no set of up to {most} that this search knows reaches it ({tried})."
    if not facts.ended_by:
        return (
            "None found: each change that may help at the step which refuses was tried, alone and with others; changes without "
            f"any effect were not combined further ({counted(facts.decisions, 'decision')})."
        )
    is_timeout = facts.ended_by == "timeout"
    bound = f"--timeout {facts.timeout_seconds:g}s" if is_timeout else f"--max-runs {facts.max_runs}"
    return f"None found within {bound}; a wider search may find one."


def _remedy(number: int, remedy: VerifiedRemedy, style: Style) -> Iterator[TextBlock]:
    for index, edit in enumerate(remedy.edits):
        lead, joined = ("     ", "and ") if index else (f"  {number:<3}", "")
        yield Line(f"{lead}{edit.side.value:<10} {joined}{described(edit)}{boundary(edit)}", hang=16)
    facts = [f"moves {remedy.moves}"]
    if remedy.touches.bindings > 1:
        facts.append(f"touches {remedy.touches.bindings} bindings")
    if not remedy.touches.checked:
        facts.append("other bindings not checked")
    yield Line(f"{'':<13}-> {_placement(remedy.result, style)}   {', '.join(facts)}", hang=16)
    for remark in remarks(remedy):
        yield Line(f"{'':<16}{remark}", hang=16)


def boundary(edit: EditShown) -> str:
    """Return what is not enough; "" for an edit without an amount."""
    if edit.minimal is None:
        return ""
    return f"; {edit.minimal.fails_at}{edit.minimal.unit} is not enough"


def described(edit: EditShown) -> str:
    """Return an edit, with its cluster."""
    if edit.side in {Side.CLUSTER, Side.COMPETITOR} and edit.object.kind == "Cluster":
        return f"{edit.object.name}: {edit.text}"
    return edit.text


def _placement(placement: Sequence[Target], style: Style) -> str:
    return style.fold([*map(str, placement)], limit=_CLUSTERS) or NO_RESULT


def _end(found: WhyNot, style: Style) -> Iterator[TextBlock]:
    if found.ineffective:
        tried = [described(edit) for change in found.ineffective for edit in change.edits]
        yield f"Without effect (tried): {style.fold(tried, limit=_TRIED, separator='; ')}."
    for note in found.notes:
        yield f"Note: {note}"
    if found.search.decisions and _is_searched(found):
        yield extent(found)


def extent(found: WhyNot) -> str:
    """Return what the search does not know, and how far it went."""
    facts = found.search
    parts, decisions = counted(facts.max_depth, "part"), counted(facts.decisions, "decision")
    singles = "every" if facts.exhausted_singles else "not every"
    ended = f" The search ended by its bound ({facts.ended_by})." if facts.ended_by and found.remedies else ""
    return (
        f"Unknown to this search: Pods pending in member clusters, changes of more than {parts}. {decisions} in "
        f"{facts.seconds:.1f} s; {singles} single change of the step that refuses was tried.{ended}"
    )


def why_not_cluster_text(found: WhyNotCluster, style: Style) -> str:
    """Return which bindings a cluster does not have, for people: a line per cause with three names."""
    counts = [
        f"{counted(found.bindings, 'binding')}: {counted(found.present, 'is', 'are')} on it",
        f"{counted(found.at_once, 'gets', 'get')} it at the next decision",
        f"{found.after_rebalance} would after a WorkloadRebalancer",
    ]
    sections: list[Section] = [[f"{found.cluster}, of {', '.join(counts)}"]]
    if found.groups:
        rows = []
        for group in found.groups:
            names = style.fold(group.names, limit=_NAMES)
            rows.append((str(group.count), group.code, group.stage.value, names))
        sections.append([Table(("BINDINGS", "CAUSE", "STEP", "NAMES"), rows, ">")])
    if found.not_looked_at:
        left = counted(found.not_looked_at, "binding was", "bindings were")
        sections.append([f"{left} not looked at (--timeout)."])
    return text(sections, style)


def clusters_line(found: WhyNotClusters, style: Style) -> str:
    """Return how many of several clusters have replicas, or get some, in one sentence."""
    have = "has" if len(found.present) == 1 else "have"
    head = f"{len(found.present)} of {counted(len(found.clusters), 'cluster')} with {found.where} {have} replicas"
    soon = f"; at the next decision {style.fold(found.at_once, limit=_CLUSTERS)}" if found.at_once else ""
    return f"{head} of {found.answer.binding}{soon}"


def why_not_clusters_text(found: WhyNotClusters, style: Style) -> str:
    """Return why several clusters have no replicas, for people: a line per cause, and what the best of them needs."""
    answer, lines = found.answer, list[TextBlock]([clusters_line(found, style)])
    for group in found.groups:
        others = f" (likewise {style.fold(group.names[1:], limit=_NAMES)})" if group.count > 1 else ""
        lines.append(Line(f"{group.count:>4}  {group.code}: {group.text}{others}", hang=6))
    if found.searched > 1:
        lines.append(f"Of {found.searched} clusters that were searched, {answer.cluster} needs the least.")
    return text([lines, *_sections(answer, style)], style)
