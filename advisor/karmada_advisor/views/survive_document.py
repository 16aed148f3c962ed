"""The forecast of losses as a document, with a heat map where it is a page, and as test cases.

The heat map is a table with links: rows are policies, columns are domains, the worst first. Colour is never the only
carrier: each cell has the letter of the worst class, and the numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from karmada_advisor.explain.amounts import counted
from karmada_advisor.views import document
from karmada_advisor.views import survive_text as texts
from karmada_advisor.views.markup import fitting, html, html_of
from karmada_advisor.views.text import Style, lines, of_document
from karmada_advisor.whatif.survive.classify import LossClass
from karmada_advisor.whatif.survive.model import BindingLoss, DomainLoss, SurvivalReport
from karmada_scheduler.structs import replace

_ROWS: Final = 60
_GROUPS: Final = 12
_MARKDOWN_DOMAINS: Final = 10

LETTERS: Final = {
    LossClass.CLEARED: "C",
    LossClass.UNPLACED: "U",
    LossClass.FROZEN: "F",
    LossClass.BLOCKED: "B",
    LossClass.STUCK: "T",
    LossClass.SHORT: "S",
    LossClass.NOT_EVICTED: "N",
    LossClass.NOT_JUDGED: "?",
    LossClass.HELD: "D",
    LossClass.SWEPT: "W",
    LossClass.MOVES: "M",
    LossClass.HOLDS: "H",
}
"""The letter of each class in the heat map, the worst class first."""

_WORST: Final = {effect: number for number, effect in enumerate(LETTERS)}
_SHADES: Final = {"C": "worst", "U": "worst", "M": "fair", "W": "fair", "H": "good"}


def survive_markdown(report: SurvivalReport) -> str:
    """Return the Markdown, below 60,000 characters: the domains that fail, with their groups."""

    def written(rows: int) -> Iterator[document.Block]:
        sections = texts.survive_sections(report, of_document(rows), top=_MARKDOWN_DOMAINS)
        return document.document_of("Survive", sections)

    return fitting(written, _GROUPS)


def survive_html(report: SurvivalReport) -> str:
    """Return the HTML document: the heat map, all domains, and the groups of the worst ones."""
    return html(_page(report), "losses.css")


def heat_map(report: SurvivalReport, link: Callable[[DomainLoss], str]) -> str:
    """Return the heat map as HTML; ``link`` returns where a domain is described."""
    return html_of(_heat_map(report, lambda number: link(report.domains[number])))


def survive_suites(report: SurvivalReport) -> list[document.Suite]:
    """Return a test case per domain, so that CI shows which ones flip.

    A domain fails if it has something of ``--fail-on``, and is skipped if it is not done. The names of the cases and
    their number depend on the clusters alone.
    """
    listed = texts.by_domain(report)
    order = sorted(range(len(report.domains)), key=lambda number: report.domains[number].name)
    cases = [(report.domains[number].kind, _case(report, number, listed.get(number, ()))) for number in order]
    by_kind = {kind: [case for of, case in cases if of == kind] for kind in texts.kinds(report)}
    return [document.Suite(f"survive.{kind}", of_kind) for kind, of_kind in by_kind.items()]


def _case(report: SurvivalReport, number: int, found: Sequence[texts.BindingAndLoss]) -> document.Case:
    domain, chosen = report.domains[number], report.domains[number].chosen
    case = document.Case(f"survive.{domain.kind}", domain.name)
    if not domain.done:
        return replace(case, outcome="skipped", message="not done (--timeout)")
    if number not in report.failing:
        return case
    lost = f"{counted(chosen.dark, 'workload')} dark, {counted(chosen.missing, 'replica')} missing"
    not_judged = chosen.counts[LossClass.NOT_JUDGED.value]
    lost += f", {not_judged:,} not judged" if not_judged else ""
    message = f"{lost}, {chosen.interrupted:,} interrupted (--fail-on {','.join(report.fail_on)})"
    section = texts.domain_section(report, number, found, Style())
    return replace(case, outcome="failure", message=message, lines=[*lines(section, Style())])


def _page(report: SurvivalReport) -> Iterator[document.Block]:
    yield document.Heading("What survives the loss of a cluster")
    yield document.Paragraph("", report.summary)
    provenance = report.provenance
    domains = f"{len(report.failing):,} of {counted(report.totals.domains, 'domain')}"
    yield document.Paragraph(
        f"Fleet {provenance.fleet}, {provenance.at}, {provenance.source}, {counted(report.totals.bindings, 'binding')}; "
        f"{domains} with something of --fail-on {','.join(report.fail_on)}."
    )
    yield document.Heading("Heat map")
    yield from _heat_map(report, texts.anchor, " (all with --all)")
    yield document.Heading("Domains")
    yield from texts.domain_tables(report, of_document(0, unfolded=True), len(report.domains))
    listed = texts.by_domain(report)
    for number, domain in enumerate(report.domains[: texts.DESCRIBED]):
        yield document.Heading(str(domain), f"d{number}")
        if found := listed.get(number):
            yield from document.blocks_of(texts.domain_section(report, number, found, of_document(_GROUPS)))
        else:
            yield document.Paragraph(_without_groups(domain))
    if notes := [*document.blocks_of(texts.remarks(report))]:
        yield from (document.Heading("Notes"), *notes)


def _without_groups(domain: DomainLoss) -> str:
    """Return what is said about a loss of which no binding is listed."""
    if not domain.done:
        return "Not done: the time of --timeout was over."
    moves, holds = (domain.chosen.counts[effect.value] for effect in (LossClass.MOVES, LossClass.HOLDS))
    if not moves and not holds:
        return "Nothing happens."
    return f"Nothing is dark, missing or interrupted: {moves:,} move, {holds:,} hold (--all lists them)."


def _heat_map(
    report: SurvivalReport, target: Callable[[int], str], hint: str = ""
) -> Iterator[document.Block]:
    listed = texts.by_domain(report)
    columns = [number for number in range(len(report.domains)) if listed.get(number)]
    losses: dict[str, dict[int, list[BindingLoss]]] = {}
    for number in columns:
        for binding, loss in listed[number]:
            losses.setdefault(texts.policy_name(binding), {}).setdefault(number, []).append(loss)
    if not losses:
        yield document.Paragraph("None of these losses does more to a workload than move it.")
        return
    names, shown = sorted(losses, key=lambda name: (_badness(losses[name]), name)), columns[:_ROWS]
    occur = {loss.effect for found in losses.values() for cell in found.values() for loss in cell}
    legend = ", ".join(f"{letter} {effect.value}" for effect, letter in LETTERS.items() if effect in occur)
    yield document.Paragraph(
        "Each cell: the worst class, and of the bindings of the policy that do not simply move or hold"
        f"{hint}, how many are dark. {legend}. A dot: nothing."
    )
    heading = [document.Cell(str(report.domains[number]), link=target(number)) for number in shown]
    rows = [
        (name, *(_cell(losses[name].get(number, []), target(number)) for number in shown))
        for name in names[:_ROWS]
    ]
    caption = "Policies by domains, the worst first"
    yield document.Table(("Policy", *heading), rows, caption=caption, kind="losses")
    left = [counted(len(names) - _ROWS, "more policy", "more policies")] if len(names) > _ROWS else []
    left += [counted(len(columns) - _ROWS, "more domain")] if len(columns) > _ROWS else []
    if left:
        yield document.Paragraph(f"{' and '.join(left)}; the tables below have all domains.")


def _badness(found: Mapping[int, Sequence[BindingLoss]]) -> tuple[int, int]:
    losses = [loss for some in found.values() for loss in some]
    return -sum(loss.dark for loss in losses), -sum(loss.missing for loss in losses)


def _cell(losses: Sequence[BindingLoss], link: str) -> str | document.Cell:
    if not losses:
        return "·"
    worst = min((loss.effect for loss in losses), key=_WORST.__getitem__)
    letter, dark = LETTERS[worst], sum(loss.dark for loss in losses)
    shade = "worst" if dark else _SHADES.get(letter, "bad")
    title = f"{worst.words}; {dark} dark of {len(losses)}"
    return document.Cell(f"{letter} {dark}/{len(losses)}", link=link, title=title, shade=shade)
