"""The forecast of losses as text: the sentence for the person on call, the domains, then what is behind the figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from karmada_advisor.explain.amounts import counted, shown_units
from karmada_advisor.explain.model import Target
from karmada_advisor.plan.load import CPU
from karmada_advisor.survive.classify import LossClass
from karmada_advisor.survive.loss import Loss
from karmada_advisor.survive.model import (
    BindingLoss,
    BindingLosses,
    DomainLoss,
    LossCounts,
    LossRemedy,
    Overcommitted,
    SurvivalReport,
)
from karmada_advisor.views.layout import Style, printable, table
from karmada_advisor.views.survive_words import (
    FIGURES,
    by_domain,
    capacity_of,
    figures,
    fleet_remedies,
    groups,
    kinds,
    remedies_of,
    remedy_words,
)

_COLUMNS: Final = (*map(str.upper, FIGURES), "BY ITSELF")
_OPTIONAL: Final = (8, 7, 5, 4, 6, 3, 9)
"""Columns that are left out first if the text is narrow."""
_TARGETS: Final = 4
_DOMAINS: Final = 3
"""Domains of a kind whose losses are shown in detail."""
_GROUPS: Final = 4
_CLUSTERS: Final = 3


def survive_text(report: SurvivalReport, style: Style, *, top: int) -> str:
    """Return the text for people.

    Args:
        report: The report.
        style: How to write.
        top: The most domains of a kind, and of details.
    """
    limit = len(report.domains) if style.unfolded else top
    sections = [
        [*_head(report, style)],
        [*_domains(report, style, limit)],
        *([*each] for each in _details(report, style, limit)),
        [*_remarks(report, style)],
        [*_result(report, style)],
    ]
    return "\n\n".join("\n".join(each) for each in sections if each) + "\n"


def _head(report: SurvivalReport, style: Style) -> Iterator[str]:
    fleet = f"Fleet {report.provenance.fleet_text}, {counted(report.totals.bindings, 'binding')}."
    yield from style.wrap(f"Survive: {printable(report.summary)} {fleet}", indent="  ")


def _domains(report: SurvivalReport, style: Style, limit: int) -> Iterator[str]:
    rows: list[tuple[str, ...]] = []
    for kind in kinds(report):
        found = [each for each in report.domains if each.kind == kind]
        shown = [each for each in found if style.unfolded or _matters(each)][:limit]
        rows.append((f"  {printable(kind.upper())}", *_COLUMNS))
        rows += [_row(each) for each in shown]
        if left := [each for each in found if each.done][len(shown) :]:
            rows.append((_left(left, kind), *([""] * len(_COLUMNS))))
    yield from table((), rows, style, align="<>>>>>>>><", optional=_OPTIONAL, spilling=0)


def _matters(domain: DomainLoss) -> bool:
    found = domain.chosen
    return domain.done and bool(found.dark or found.missing or found.interrupted or found.swept_replicas)


def _left(domains: Sequence[DomainLoss], kind: str) -> str:
    counted_ = f"{len(domains):,} more {kind}{'' if len(domains) == 1 else 's'}"
    if not any(_matters(each) for each in domains):
        return f"  {printable(counted_)}: nothing dark, nothing missing (--all)"
    return f"  {printable(counted_)} (--all)"


def _row(domain: DomainLoss) -> tuple[str, ...]:
    name = f"{'!' if domain.is_spof else ' '} {printable(domain.name)}"
    return name, *figures(domain), _itself(domain.itself)


def _itself(found: LossCounts) -> str:
    words = {LossClass.NOT_EVICTED: "stay", LossClass.SWEPT: "swept"}
    shown = [
        f"{found.counts[each.value]:,} {word}" for each, word in words.items() if found.counts[each.value]
    ]
    others = sum(
        count
        for name, count in found.counts.items()
        if name not in {LossClass.UNTOUCHED.value, *(each.value for each in words)}
    )
    if others:
        shown.append(f"{others:,} move")
    return ", ".join(shown) or "nothing"


def _details(report: SurvivalReport, style: Style, limit: int) -> Iterator[Iterator[str]]:
    listed = by_domain(report)
    seen: set[tuple[str, ...]] = set()
    for kind in kinds(report):
        shown = [
            number
            for number, each in enumerate(report.domains)
            if each.kind == kind and each.clusters not in seen and (_matters(each) or each.overcommitted)
        ][: limit if style.unfolded else _DOMAINS]
        for number in shown:
            seen.add(report.domains[number].clusters)
            yield _domain(report, number, listed.get(number, ()), style)


def _domain(
    report: SurvivalReport, number: int, found: Sequence[tuple[BindingLosses, BindingLoss]], style: Style
) -> Iterator[str]:
    domain, loss = report.domains[number], report.settings.loss
    head = printable(str(domain))
    dark = [each for each in found if each[1].dark]
    others = [each for each in found if not each[1].dark and each[1].effect is not LossClass.SWEPT]
    swept = [each for each in found if each[1].effect is LossClass.SWEPT]
    if dark:
        yield style.paint(f"! {head}: {counted(len(dark), 'workload')} dark", "bold")
        yield from _groups(report, number, dark, style)
    if others:
        missing = sum(each[1].missing for each in others)
        counted_ = counted(len(others), "workload")
        yield f"{'!' if missing else '~'} {head}: {counted_} more" + (
            f", {counted(missing, 'replica')} missing" if missing else ""
        )
        yield from _groups(report, number, others, style)
    for each in domain.overcommitted[: len(domain.overcommitted) if style.unfolded else _CLUSTERS]:
        yield from style.wrap(f"    {_asked(each)}", indent="      ")
    if len(domain.overcommitted) > _CLUSTERS and not style.unfolded:
        yield f"    and {counted(len(domain.overcommitted) - _CLUSTERS, 'more cluster')} (--all)"
    yield from _remedies(capacity_of(report, number), style)
    if swept:
        counted_ = counted(len(swept), "workload that is not on it", "workloads that are not on it")
        yield from style.wrap(
            f"! {head} sweeps {counted_} ({counted(domain.chosen.swept_replicas, 'replica restarts', 'replicas restart')}):"
            " it lets other regions win",
            indent="    ",
        )
        yield from _groups(report, number, swept, style)
    yield from _interrupted(domain, head, style, loss)


def _interrupted(domain: DomainLoss, head: str, style: Style, loss: Loss) -> Iterator[str]:
    found, times = domain.chosen, domain.times
    returning = found.interrupted - found.dark
    if returning <= 0 and times is None:
        return
    there = (
        sum(found.counts.values())
        - found.counts[LossClass.UNTOUCHED.value]
        - found.counts[LossClass.SWEPT.value]
    )
    text = f"{returning:,} of {there:,} are down until their new copy runs" if returning > 0 else ""
    if times is not None and loss is not Loss.DELETED:
        when = (
            f"estimated: noticed after {times.noticed} s, evicted from {_time(times.first)} on, the last after "
            f"{_time(times.last)}"
        )
        text = f"{text}; {when}" if text else when
    yield from style.wrap(f"~ {head}: {text}", indent="    ")


def _time(seconds: int) -> str:
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def _groups(
    report: SurvivalReport, number: int, found: Sequence[tuple[BindingLosses, BindingLoss]], style: Style
) -> Iterator[str]:
    ordered = groups(found, report.settings)
    shown = ordered if style.unfolded else ordered[:_GROUPS]
    for each in shown:
        yield from style.wrap(
            f"    {printable(each.policy)}  {len(each.members):,}   {each.what}"
            f"{f': {printable(each.message)}' if each.message else ''}",
            indent="      ",
        )
        for binding, loss in each.members if style.unfolded else each.members[:1]:
            others = len(each.members) - 1
            more = f"   and {others:,} more" if others and not style.unfolded else ""
            yield from style.wrap(
                f"      {printable(str(binding))}  {_placement(binding.before, style)} -> "
                f"{_placement(loss.after, style)}{more}",
                indent="        ",
            )
        yield from _remedies(remedies_of(report, number, each), style)
    if len(ordered) > len(shown):
        rest = sum(len(each.members) for each in ordered[len(shown) :])
        yield f"    and {counted(rest, 'more workload')} of {counted(len(ordered) - len(shown), 'group')} (--all)"


def _remedies(found: Sequence[LossRemedy], style: Style) -> Iterator[str]:
    for rank, each in enumerate(found, 1):
        yield from style.wrap(f"      {rank}  {printable(remedy_words(each))}", indent="         ")


def _placement(found: Sequence[Target], style: Style) -> str:
    names = [
        f"{printable(each.name)} {each.replicas:,}" if each.replicas else printable(each.name)
        for each in found
    ]
    return style.fold(names, limit=_TARGETS) or "nothing"


def _asked(found: Overcommitted) -> str:
    asked = ", ".join(
        f"{_amount(each.resource, each.asked)} of {_amount(each.resource, each.free or 0)} free {printable(each.resource)}"
        for each in found.demands
    )
    return f"{printable(found.name)} is asked for {asked}"


def _amount(resource: str, amount: float) -> str:
    return shown_units(resource, round(amount * 1000) if resource == CPU else round(amount))


def _remarks(report: SurvivalReport, style: Style) -> Iterator[str]:
    totals = report.totals
    left = [
        counted(count, one, many)
        for count, one, many in (
            (totals.pending_before, "pending before", "pending before"),
            (totals.followers, "follower", "followers"),
            (totals.deleting, "being deleted", "being deleted"),
        )
        if count
    ]
    if left:
        yield from style.wrap(f"  not judged: {', '.join(left)}", indent="    ")
    for each in fleet_remedies(report):
        yield from style.wrap(f"  to evict by itself: {printable(remedy_words(each))}", indent="    ")
    drifting = sum(each.drift for each in report.bindings)
    if drifting:
        yield from style.wrap(
            f"  drift: {counted(drifting, 'binding changes', 'bindings change')} without any loss; judged after that",
            indent="    ",
        )
    for note in report.notes:
        yield from style.wrap(f"  {printable(note)}", indent="    ")


def _result(report: SurvivalReport, style: Style) -> Iterator[str]:
    totals = report.totals
    dark = (
        f"{counted(totals.dark, 'workload goes', 'workloads go')} dark with some loss"
        if totals.dark
        else "nothing goes dark"
    )
    asked = ",".join(report.fail_on) or "none"
    verb = "fails" if len(report.failing) == 1 else "fail"
    failing = (
        f"{len(report.failing):,} of {counted(totals.domains, 'domain')} {verb} --fail-on {printable(asked)}"
    )
    if report.has_baseline:
        failing += " with more than in the baseline"
    left = sum(not each.done for each in report.domains)
    undone = f"; {counted(left, 'domain is', 'domains are')} not done" if left else ""
    yield from style.wrap(style.paint(f"Survive: {dark}; {failing}{undone}.", "bold"), indent="  ")
