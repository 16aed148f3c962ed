"""The forecast of losses as text: the sentence for the person on call, the domains, then what is behind the figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from karmada_advisor.explain.amounts import counted, shown_units
from karmada_advisor.state.stored import duration
from karmada_advisor.views.document import Cell, Line, Section, Table, TextBlock
from karmada_advisor.views.text import Style, text
from karmada_advisor.whatif.plan.load import CPU
from karmada_advisor.whatif.survive import model
from karmada_advisor.whatif.survive.classify import LossClass
from karmada_advisor.whatif.survive.domains import kind_order
from karmada_advisor.whatif.survive.loss import Loss
from karmada_scheduler.structs import Struct

FIGURES: Final = ("Dark", "Missing", "Interrupted", "Short", "Stuck", "Swept", "Moves", "Holds")
"""The columns of ``figures``."""

_COUNTED: Final = (LossClass.SHORT, LossClass.STUCK, LossClass.SWEPT, LossClass.MOVES, LossClass.HOLDS)

BindingAndLoss = tuple[model.BindingLosses, model.BindingLoss]
"""A binding with one of its losses."""


class LossGroup(Struct, frozen=True):
    """Bindings of a policy that a loss treats alike.

    Attributes:
        policy: In words.
        effect: The class.
        what: The class in words.
        message: What the scheduler writes; "" without a failure.
        members: The bindings, with the loss.
    """

    policy: str
    effect: LossClass
    what: str
    message: str
    members: Sequence[BindingAndLoss]


def kinds(report: model.SurvivalReport) -> list[str]:
    """Return the kinds of domains, in the order in which they are listed."""
    return sorted({domain.kind for domain in report.domains}, key=kind_order)


def figures(domain: model.DomainLoss) -> list[str]:
    """Return what a loss does in numbers."""
    found = domain.chosen
    counts = (found.counts[effect.value] for effect in _COUNTED)
    return [f"{figure:,}" for figure in (found.dark, found.missing, found.interrupted, *counts)]


def by_domain(report: model.SurvivalReport) -> Mapping[int, Sequence[BindingAndLoss]]:
    """Return the listed bindings of each domain, by its index."""
    found: dict[int, list[BindingAndLoss]] = {}
    for binding in report.bindings:
        for loss in binding.losses:
            for number in loss.domains:
                found.setdefault(number, []).append((binding, loss))
    return found


def groups(found: Sequence[BindingAndLoss], settings: model.LossSettings) -> list[LossGroup]:
    """Return the groups of some bindings, the largest first."""
    members: dict[tuple[str, LossClass, str], list[BindingAndLoss]] = {}
    for binding, loss in found:
        members.setdefault((policy_name(binding), loss.effect, loss.message), []).append((binding, loss))
    ordered = sorted(members.items(), key=lambda item: (-len(item[1]), item[0][0], item[0][1].value))
    return [
        LossGroup(policy, effect, _what(effect, of_group, settings), message, of_group)
        for (policy, effect, message), of_group in ordered
    ]


def _what(effect: LossClass, members: Sequence[BindingAndLoss], settings: model.LossSettings) -> str:
    if any(loss.pending for _, loss in members):
        return "short: placed, but there is no capacity where it is placed"
    if effect is LossClass.MOVES and any(loss.missing for _, loss in members):
        return "moves, and less runs there than is wanted"
    if effect is LossClass.BLOCKED:
        return f"{effect.words}, for {duration(settings.eviction_timeout)} at most"
    return effect.words


def policy_name(binding: model.BindingLosses) -> str:
    """Return the policy of a binding, in words."""
    return str(binding.policy) if binding.policy is not None else "no known policy"


def remedies_of(report: model.SurvivalReport, number: int, group: LossGroup) -> list[model.LossRemedy]:
    """Return what mends a group of bindings in the loss of a domain."""
    policy = group.members[0][0].policy
    found = (remedy for remedy in report.remedies if policy is not None and number in remedy.domains)
    return [remedy for remedy in found if remedy.policy == policy and remedy.effect is group.effect]


def capacity_of(report: model.SurvivalReport, number: int) -> list[model.LossRemedy]:
    """Return the least capacity to add so that nothing is short in the loss of a domain."""
    found = (remedy for remedy in report.remedies if remedy.policy is None and number in remedy.domains)
    return [remedy for remedy in found if remedy.effect is LossClass.SHORT]


def fleet_remedies(report: model.SurvivalReport) -> list[model.LossRemedy]:
    """Return what concerns the fleet: settings, and capacity that suffices for several losses."""
    of_fleet = (remedy for remedy in report.remedies if remedy.policy is None)
    return [remedy for remedy in of_fleet if remedy.flags or remedy.effect is LossClass.NOT_EVICTED]


def remedy_words(remedy: model.LossRemedy) -> str:
    """Return a remedy in words: the edits, whether they need the owner's word, and what moves today."""
    parts = [", and ".join(edit.text for edit in remedy.edits)]
    if remedy.effect is LossClass.SHORT and remedy.policy is None:
        parts.append("the least that suffices, verified")
    elif not remedy.verified:
        parts.append("not decided again")
    if remedy.needs_owner:
        parts.append("needs the owner's word")
    if remedy.moves_today:
        parts.append(f"moves {counted(remedy.moves_today, 'replica')} today")
    elif remedy.starts_today:
        parts.append(f"starts {counted(remedy.starts_today, 'replica')} today")
    return "; ".join(parts)


DESCRIBED: Final = 20
"""Domains that a document describes."""

_NO_FIGURES: Final = [""] * (len(FIGURES) - 1)
_COLUMNS: Final = (*map(str.upper, FIGURES), "BY ITSELF")
_ALIGN: Final = "<>>>>>>>><"
_OPTIONAL: Final = (8, 7, 5, 4, 6, 3, 9)
"""Columns that are left out first if the text is narrow."""
_TARGETS: Final = 4
_DOMAINS: Final = 3
"""Domains of a kind whose losses are shown in detail."""
_GROUPS: Final = 4
_CLUSTERS: Final = 3


def survive_text(report: model.SurvivalReport, style: Style, *, top: int) -> str:
    """Return the text for people.

    Args:
        report: The report.
        style: How to write.
        top: The most domains of a kind, and of details.
    """
    return text(survive_sections(report, style, top=top), style)


def survive_sections(report: model.SurvivalReport, style: Style, *, top: int) -> Iterator[Section]:
    """Yield the sections of the text; ``top`` as in ``survive_text``."""
    limit = len(report.domains) if style.unfolded else top
    fleet = f"Fleet {report.provenance.fleet_text}, {counted(report.totals.bindings, 'binding')}."
    yield [f"Survive: {report.summary} {fleet}"]
    yield domain_tables(report, style, limit)
    yield from _details(report, style, limit)
    yield remarks(report)
    yield [_result(report)]


def domain_tables(report: model.SurvivalReport, style: Style, limit: int) -> Iterator[Table]:
    """Yield a table of the domains of each kind; those that fail are in bold, and lead to their description."""
    for kind in kinds(report):
        found = [(number, domain) for number, domain in enumerate(report.domains) if domain.kind == kind]
        shown = [pair for pair in found if style.unfolded or _matters(pair[1])][:limit]
        rows = [_row(number, domain, is_failing=number in report.failing) for number, domain in shown]
        if left := [domain for _, domain in found if domain.done][len(shown) :]:
            rows.append((_left(left, kind), *([""] * len(_COLUMNS))))
        heading, caption = (f"  {kind.upper()}", *_COLUMNS), f"By {kind}, the worst first"
        yield Table(heading, rows, _ALIGN, caption, optional=_OPTIONAL, spilling=0, kind="domains")


def _row(number: int, domain: model.DomainLoss, *, is_failing: bool) -> Sequence[str | Cell]:
    name = Cell(f"{'!' if domain.is_spof else ' '} {domain.name}", is_failing, anchor(number))
    if not domain.done:
        return name, "not done", *_NO_FIGURES, ""
    return name, *figures(domain), _itself(domain.itself)


def anchor(number: int) -> str:
    """Return the link to the description of a domain in a document; "" if it has none."""
    return f"#d{number}" if number < DESCRIBED else ""


def _matters(domain: model.DomainLoss) -> bool:
    found = domain.chosen
    not_judged = found.counts[LossClass.NOT_JUDGED.value]
    lost = found.dark or found.missing or found.interrupted or found.swept_replicas
    return domain.done and bool(lost or not_judged)


def _left(domains: Sequence[model.DomainLoss], kind: str) -> str:
    rest = "" if any(map(_matters, domains)) else ": nothing dark, nothing missing"
    return f"  {counted(len(domains), f'more {kind}')}{rest} (--all)"


def _itself(found: model.LossCounts) -> str:
    words = {
        LossClass.NOT_EVICTED.value: "stay",
        LossClass.SWEPT.value: "swept",
        LossClass.NOT_JUDGED.value: "not judged",
    }
    shown = [f"{found.counts[name]:,} {word}" for name, word in words.items() if found.counts[name]]
    apart = {LossClass.UNTOUCHED.value, *words}
    others = sum(count for name, count in found.counts.items() if name not in apart)
    if others:
        shown.append(f"{others:,} move")
    return ", ".join(shown) or "nothing"


def _details(report: model.SurvivalReport, style: Style, limit: int) -> Iterator[Section]:
    listed = by_domain(report)
    seen: set[tuple[str, ...]] = set()
    for kind in kinds(report):
        shown = [
            number
            for number, domain in enumerate(report.domains)
            if domain.kind == kind
            and domain.clusters not in seen
            and (_matters(domain) or domain.overcommitted)
        ][: limit if style.unfolded else max(_DOMAINS, style.least)]
        for number in shown:
            seen.add(report.domains[number].clusters)
            yield domain_section(report, number, listed.get(number, ()), style)


def domain_section(
    report: model.SurvivalReport, number: int, found: Sequence[BindingAndLoss], style: Style
) -> Iterator[TextBlock]:
    """Yield what the loss of a domain does to some bindings, with what mends it."""
    domain = report.domains[number]
    dark = [pair for pair in found if pair[1].dark]
    others = [pair for pair in found if not pair[1].dark and pair[1].effect is not LossClass.SWEPT]
    swept = [pair for pair in found if pair[1].effect is LossClass.SWEPT]
    if dark:
        yield Line(f"! {domain}: {counted(len(dark), 'workload')} dark", "bold")
        yield from _listed_groups(report, number, dark, style)
    if others:
        missing = sum(loss.missing for _, loss in others)
        end = f", {counted(missing, 'replica')} missing" if missing else ""
        yield f"{'!' if missing else '~'} {domain}: {counted(len(others), 'workload')} more{end}"
        yield from _listed_groups(report, number, others, style)
    shown = style.first(domain.overcommitted, _CLUSTERS)
    yield from (f"    {_asked(cluster)}" for cluster in shown)
    if len(domain.overcommitted) > len(shown):
        yield f"    and {counted(len(domain.overcommitted) - len(shown), 'more cluster')} (--all)"
    yield from _remedies(capacity_of(report, number))
    if swept:
        count = counted(len(swept), "workload that is not on it", "workloads that are not on it")
        restart = counted(domain.chosen.swept_replicas, "replica restarts", "replicas restart")
        yield f"! {domain} sweeps {count} ({restart}): it lets other regions win"
        yield from _listed_groups(report, number, swept, style)
    yield from _interrupted(domain, report.settings.loss)


def _interrupted(domain: model.DomainLoss, loss: Loss) -> Iterator[TextBlock]:
    found, times = domain.chosen, domain.times
    returning = found.interrupted - found.dark
    if returning <= 0 and times is None:
        return
    apart = found.counts[LossClass.UNTOUCHED.value] + found.counts[LossClass.SWEPT.value]
    there = sum(found.counts.values()) - apart
    parts = [f"{returning:,} of {there:,} are down until their new copy runs"] if returning > 0 else []
    if times is not None and loss is not Loss.DELETED:
        evicted = f"evicted from {_time(times.first)} on, the last after {_time(times.last)}"
        parts.append(f"estimated: noticed after {times.noticed} s, {evicted}")
    yield f"~ {domain}: {'; '.join(parts)}"


def _time(seconds: int) -> str:
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def _listed_groups(
    report: model.SurvivalReport, number: int, found: Sequence[BindingAndLoss], style: Style
) -> Iterator[TextBlock]:
    ordered = groups(found, report.settings)
    shown = style.first(ordered, _GROUPS)
    for group in shown:
        message = f": {group.message}" if group.message else ""
        yield f"    {group.policy}  {len(group.members):,}   {group.what}{message}"
        members = style.first(group.members, 1)
        others = len(group.members) - len(members)
        more = f"   and {others:,} more" if others else ""
        for binding, loss in members:
            lists = ([*map(str, targets)] for targets in (binding.before, loss.after))
            before, after = (style.fold(listed, limit=_TARGETS) or "nothing" for listed in lists)
            after = "not judged" if loss.effect is LossClass.NOT_JUDGED else after
            yield f"      {binding}  {before} -> {after}{more}"
        yield from _remedies(remedies_of(report, number, group))
    if len(ordered) > len(shown):
        rest = ordered[len(shown) :]
        workloads = counted(sum(len(group.members) for group in rest), "more workload")
        yield f"    and {workloads} of {counted(len(rest), 'group')} (--all)"


def _remedies(found: Sequence[model.LossRemedy]) -> Iterator[TextBlock]:
    for rank, remedy in enumerate(found, 1):
        yield Line(f"      {rank}  {remedy_words(remedy)}", hang=9)


def _asked(found: model.Overcommitted) -> str:
    asked = ", ".join(
        f"{_amount(demand.resource, demand.asked)} of {_amount(demand.resource, demand.free or 0)} free {demand.resource}"
        for demand in found.demands
    )
    return f"{found.name} is asked for {asked}"


def _amount(resource: str, amount: float) -> str:
    return shown_units(resource, round(amount * 1000) if resource == CPU else round(amount))


def remarks(report: model.SurvivalReport) -> Iterator[TextBlock]:
    """Yield what is not judged, settings that help, and notes."""
    totals = report.totals
    counts = (
        (totals.pending_before, "pending before", "pending before"),
        (totals.followers, "follower", "followers"),
        (totals.deleting, "being deleted", "being deleted"),
    )
    if left := [counted(count, one, many) for count, one, many in counts if count]:
        yield f"  not judged: {', '.join(left)}"
    for remedy in fleet_remedies(report):
        yield f"  to evict by itself: {remedy_words(remedy)}"
    if drifting := sum(binding.drift for binding in report.bindings):
        change = counted(drifting, "binding changes", "bindings change")
        yield f"  drift: {change} without any loss; judged after that"
    yield from (f"  {note}" for note in report.notes)


def _result(report: model.SurvivalReport) -> Line:
    totals = report.totals
    goes = counted(totals.dark, "workload goes", "workloads go")
    dark = f"{goes} dark with some loss" if totals.dark else "nothing goes dark"
    verb = "fails" if len(report.failing) == 1 else "fail"
    failing = f"{len(report.failing):,} of {counted(totals.domains, 'domain')} {verb}"
    failing += f" --fail-on {','.join(report.fail_on) or 'none'}"
    if report.has_baseline:
        failing += " with more than in the baseline"
    left = sum(not domain.done for domain in report.domains)
    undone = f"; {counted(left, 'domain is', 'domains are')} not done" if left else ""
    if totals.not_judged:
        undone += f"; {counted(totals.not_judged, 'binding is', 'bindings are')} not judged"
    return Line(f"Survive: {dark}; {failing}{undone}.", "bold")
