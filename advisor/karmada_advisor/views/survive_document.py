"""The forecast of losses as Markdown, and as one HTML file with a heat map and without scripts.

The heat map is a table with links: rows are policies, columns are domains, the worst first. Colour is never the only
carrier: each cell has the letter of the worst class, and the numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from typing import Final

from karmada_advisor.explain.amounts import counted
from karmada_advisor.survive.classify import LossClass
from karmada_advisor.survive.model import BindingLoss, BindingLosses, DomainLoss, SurvivalReport
from karmada_advisor.views.html import STYLE, html_page
from karmada_advisor.views.layout import printable
from karmada_advisor.views.markdown import cut, escaped
from karmada_advisor.views.survive_words import (
    FIGURES,
    WHAT,
    LossGroup,
    by_domain,
    capacity_of,
    figures,
    fleet_remedies,
    groups,
    kinds,
    policy_name,
    remedies_of,
    remedy_words,
)

_ROWS: Final = 60
_GROUPS: Final = 12
_DETAILS: Final = 20
_MARKDOWN_DOMAINS: Final = 10

LETTERS: Final = {
    LossClass.CLEARED: "C",
    LossClass.UNPLACED: "U",
    LossClass.FROZEN: "F",
    LossClass.BLOCKED: "B",
    LossClass.STUCK: "T",
    LossClass.SHORT: "S",
    LossClass.NOT_EVICTED: "N",
    LossClass.HELD: "D",
    LossClass.SWEPT: "W",
    LossClass.MOVES: "M",
    LossClass.HOLDS: "H",
}
"""The letter of each class in the heat map, the worst class first."""

_WORST: Final = {each: number for number, each in enumerate(LETTERS)}
_CELLS: Final = f"""{STYLE}
.losses th, .losses td {{ padding: .2rem .35rem; }}
.losses td {{ text-align: center; white-space: nowrap; }}
.losses thead th {{ vertical-align: bottom; writing-mode: vertical-rl; }}
.losses thead th:first-child {{ writing-mode: horizontal-tb; }}
a {{ color: inherit; }}
a:focus-visible {{ outline: 3px solid; }}
.worst {{ background: #a11; color: #fff; }}
.bad {{ background: #f6b26b; color: #000; }}
.fair {{ background: #ffe599; color: #000; }}
.good {{ background: #d9ead3; color: #000; }}
"""
_SHADES: Final = {"C": "worst", "U": "worst", "M": "fair", "W": "fair", "H": "good"}


def survive_markdown(report: SurvivalReport) -> str:
    """Return the Markdown, below 60,000 characters."""
    failing = set(report.failing)
    lines = ["### Survive", "", escaped(report.summary), ""]
    for kind in kinds(report):
        found = [(number, each) for number, each in enumerate(report.domains) if each.kind == kind]
        lines += [
            f"| {escaped(kind)} | {' | '.join(FIGURES)} |",
            f"|---|{'---:|' * len(FIGURES)}",
            *(
                f"| {'**' if number in failing else ''}{escaped(each.name)}{'**' if number in failing else ''} | "
                f"{' | '.join(_figures(each))} |"
                for number, each in found[:_MARKDOWN_DOMAINS]
            ),
        ]
        if len(found) > _MARKDOWN_DOMAINS:
            lines += ["", f"and {len(found) - _MARKDOWN_DOMAINS:,} more"]
        lines.append("")
    listed = by_domain(report)
    for number in sorted(failing)[:_MARKDOWN_DOMAINS]:
        lines += [f"**{escaped(str(report.domains[number]))}**", ""]
        for each in groups(listed.get(number, ()), report.settings)[:_GROUPS]:
            lines.append(f"- {escaped(_group_text(each))}")
            lines += [f"  1. {escaped(remedy_words(one))}" for one in remedies_of(report, number, each)]
        lines += [f"- {escaped(remedy_words(each))}" for each in capacity_of(report, number)]
        lines.append("")
    lines += [f"- to evict by itself: {escaped(remedy_words(each))}" for each in fleet_remedies(report)]
    lines += [f"- {escaped(each)}" for each in report.notes]
    return cut("\n".join(lines).rstrip() + "\n")


def survive_html(report: SurvivalReport) -> str:
    """Return the HTML document."""
    listed = by_domain(report)
    body = f"""<p><strong>{_text(report.summary)}</strong></p>
<p>Fleet {_text(report.provenance.fleet)}, {_text(report.provenance.at)}, {_text(report.provenance.source)},
{counted(report.totals.bindings, "binding")}; {len(report.failing):,} of
{counted(report.totals.domains, "domain")} with something of --fail-on {_text(",".join(report.fail_on))}.</p>
<h2>Heat map</h2>
{heat_map(report)}
{"".join(_tables(report))}
{"".join(_details(report, listed))}
{_notes(report)}"""
    return html_page("What survives the loss of a cluster", body, style=_CELLS)


def _notes(report: SurvivalReport) -> str:
    settings = [f"To evict by itself: {remedy_words(each)}" for each in fleet_remedies(report)]
    notes = [*settings, *report.notes]
    return f"<h2>Notes</h2>\n<ul>{''.join(f'<li>{_text(each)}</li>' for each in notes)}</ul>" if notes else ""


def _text(text: str) -> str:
    return escape(printable(text))


def _figures(domain: DomainLoss) -> Sequence[str]:
    return figures(domain) if domain.done else ["not done", *([""] * (len(FIGURES) - 1))]


def _group_text(group: LossGroup) -> str:
    message = f": {group.message}" if group.message else ""
    return printable(
        f"{group.policy}, {len(group.members):,}: {group.what}{message} (such as {group.members[0][0]})"
    )


def heat_map(report: SurvivalReport, link: Callable[[DomainLoss], str] | None = None) -> str:
    """Return the heat map as HTML.

    Args:
        report: The report.
        link: Returns where a domain is described; None for the sections of the document.
    """
    return "".join(_map(report, by_domain(report), link))


def _map(
    report: SurvivalReport,
    listed: Mapping[int, Sequence[tuple[BindingLosses, BindingLoss]]],
    link: Callable[[DomainLoss], str] | None,
) -> Iterator[str]:
    def target(number: int) -> str:
        if link is not None:
            return escape(link(report.domains[number]), quote=True)
        return f"#d{number}" if number < _DETAILS else ""

    columns = [number for number in range(len(report.domains)) if listed.get(number)]
    cells: dict[str, dict[int, list[BindingLoss]]] = {}
    for number in columns:
        for binding, loss in listed[number]:
            cells.setdefault(policy_name(binding), {}).setdefault(number, []).append(loss)
    if not cells:
        yield "<p>None of these losses does more to a workload than move it.</p>\n"
        return
    rows = sorted(cells, key=lambda name: (_badness(cells[name]), name))
    shown = columns[:_ROWS]
    every = " (all with --all)" if link is None else ""
    legend = ", ".join(f"{letter} {each.value}" for each, letter in LETTERS.items())
    yield f"<p>Each cell: the worst class, and of the bindings of the policy that do not simply move or hold{every}, how many are dark. {legend}."
    yield " A dot: nothing.</p>\n"
    yield '<div class="table"><table class="losses"><caption>Policies by domains, the worst first</caption>\n<thead><tr><th scope="col">Policy</th>'
    for number in shown:
        name = _text(str(report.domains[number]))
        yield f'<th scope="col">{_linked(name, target(number))}</th>'
    yield "</tr></thead><tbody>\n"
    for name in rows[:_ROWS]:
        yield f'<tr><th scope="row">{_text(name)}</th>'
        yield from (_cell(cells[name].get(number, []), target(number)) for number in shown)
        yield "</tr>\n"
    yield "</tbody></table></div>\n"
    left = [
        counted(count, "more policy", "more policies") if what else counted(count, "more domain")
        for what, count in ((True, len(rows) - _ROWS), (False, len(columns) - _ROWS))
        if count > 0
    ]
    if left:
        yield f"<p>{' and '.join(left)}; the tables below have all domains.</p>\n"


def _badness(found: Mapping[int, Sequence[BindingLoss]]) -> tuple[int, int]:
    losses = [each for some in found.values() for each in some]
    return -sum(each.dark for each in losses), -sum(each.missing for each in losses)


def _linked(text: str, target: str, label: str = "") -> str:
    label = f' aria-label="{label}"' if label else ""
    return f'<a href="{target}"{label}>{text}</a>' if target else text


def _cell(losses: Sequence[BindingLoss], target: str) -> str:
    if not losses:
        return "<td>·</td>"
    worst = min((each.effect for each in losses), key=_WORST.__getitem__)
    letter, dark = LETTERS[worst], sum(each.dark for each in losses)
    shade = "worst" if dark else _SHADES.get(letter, "bad")
    title = escape(f"{WHAT[worst]}; {dark} dark of {len(losses)}", quote=True)
    text = f"{letter} {dark}/{len(losses)}"
    return f'<td class="{shade}" title="{title}">{_linked(text, target, title)}</td>'


def _tables(report: SurvivalReport) -> Iterator[str]:
    yield "<h2>Domains</h2>\n"
    for kind in kinds(report):
        heads = "".join(f'<th scope="col" class="number">{each}</th>' for each in FIGURES)
        yield f'<div class="table"><table><caption>By {_text(kind)}, the worst first</caption>\n'
        yield f'<thead><tr><th scope="col">{_text(kind)}</th>{heads}</tr></thead><tbody>\n'
        for number, each in enumerate(report.domains):
            if each.kind == kind:
                cells = "".join(f'<td class="number">{figure}</td>' for figure in _figures(each))
                name = _linked(_text(each.name), f"#d{number}" if number < _DETAILS else "")
                yield f'<tr><th scope="row">{name}</th>{cells}</tr>\n'
        yield "</tbody></table></div>\n"


def _without_groups(domain: DomainLoss) -> str:
    """Return what is said about a loss of which no binding is listed."""
    if not domain.done:
        return "Not done: the time of --timeout was over."
    moves, holds = (domain.chosen.counts[each.value] for each in (LossClass.MOVES, LossClass.HOLDS))
    if not moves and not holds:
        return "Nothing happens."
    return f"Nothing is dark, missing or interrupted: {moves:,} move, {holds:,} hold (--all lists them)."


def _details(
    report: SurvivalReport, listed: Mapping[int, Sequence[tuple[BindingLosses, BindingLoss]]]
) -> Iterator[str]:
    for number, domain in enumerate(report.domains[:_DETAILS]):
        yield f'<section id="d{number}" tabindex="-1"><h2>{_text(str(domain))}</h2>\n'
        found = groups(listed.get(number, ()), report.settings)
        if not found:
            yield f"<p>{_without_groups(domain)}</p></section>\n"
            continue
        yield "<ul>"
        for each in found[:_GROUPS]:
            mends = remedies_of(report, number, each)
            listed_ = "".join(f"<li>{_text(remedy_words(one))}</li>" for one in mends)
            yield f"<li>{escape(_group_text(each))}{f'<ol>{listed_}</ol>' if mends else ''}</li>"
        yield from (f"<li>{_text(remedy_words(each))}</li>" for each in capacity_of(report, number))
        yield "</ul>\n"
        if len(found) > _GROUPS:
            yield f"<p>and {counted(len(found) - _GROUPS, 'more group')}</p>\n"
        yield "</section>\n"
