"""An explanation as headings, paragraphs, lists and tables: what Markdown and HTML have in common."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from karmada_advisor.explain.model import Explanation
from karmada_advisor.explain.trace_model import ClusterRow
from karmada_advisor.views.state import ROW_HEADING, answer, row_cells, shows_rows, would_be
from karmada_advisor.views.text import provenance_text
from karmada_advisor.views.text_tables import combination_cells
from karmada_scheduler.structs import Struct


class Heading(Struct, frozen=True):
    """A heading; the first one of a document is its title."""

    text: str


class Paragraph(Struct, frozen=True):
    """A sentence or more; ``lead`` is shown in bold before it."""

    text: str
    lead: str = ""


class Items(Struct, frozen=True):
    """A list; each item has a part in bold (which may be empty) and a text."""

    items: Sequence[tuple[str, str]]


class Table(Struct, frozen=True):
    """A table.

    Attributes:
        caption: What it shows.
        align: One character per column, ``>`` for right.
        more: Rows that are left out.
    """

    caption: str
    heading: Sequence[str]
    rows: Sequence[Sequence[str]]
    align: str = ""
    more: int = 0


Block = Heading | Paragraph | Items | Table


def document_of(explanation: Explanation, *, rows: int) -> Iterator[Block]:
    """Yield the parts of an explanation, the answer first.

    Args:
        explanation: The explanation.
        rows: The most rows of a table.
    """
    binding = explanation.binding
    state = explanation.state
    yield Heading(f"{binding}: {state.words.lower()}")
    yield Paragraph(answer(state, partial(_listed, limit=rows)), state.words)
    if next_text := would_be(explanation, partial(_listed, limit=rows)):
        yield Paragraph(next_text)
    if binding.policy is not None:
        yield Paragraph(str(binding.policy), "Policy")
    yield Paragraph(provenance_text(explanation), "Source")
    if shows_rows(state.rows):
        yield Table("What runs", ROW_HEADING, [row_cells(each) for each in state.rows[:rows]], " > >")
    if explanation.causes:
        yield Heading("Causes")
        yield Items([(each.code, each.text) for each in explanation.causes])
    if explanation.remedies:
        yield Table(
            "Any one of these changes places it; each was verified by deciding again",
            ("Side", "Object", "Change", "Result", "To consider"),
            [
                (
                    each.side,
                    each.subject,
                    each.change,
                    _listed([*map(str, each.result)], rows),
                    " ".join([*(edit.instead for edit in each.edits if edit.instead), each.caution]).strip(),
                )
                for each in explanation.remedies
            ],
        )
    yield from _steps(explanation, rows)
    remarks = [("warning", each) for each in explanation.warnings]
    remarks += [
        ("defect of this explanation", f"{each.trace} {each.place}: {each.ours} and {each.decision} differ")
        for each in explanation.mismatches
    ]
    remarks += [("note", each) for each in explanation.notes]
    if remarks:
        yield Items(remarks)


def _steps(explanation: Explanation, rows: int) -> Iterator[Block]:
    if explanation.funnel:
        yield Table(
            "Steps",
            ("Step", "Before", "After", "What happened", "Decisive"),
            [
                (
                    each.name,
                    f"{each.before:,}",
                    "" if each.after is None else f"{each.after:,}",
                    each.text,
                    "decisive" if each.decisive else "",
                )
                for each in explanation.funnel
            ],
            " >>",
        )
    if explanation.refusals:
        yield Table(
            "Refusals, by the first plugin that refuses each cluster",
            ("Clusters", "Plugin", "Reason", "Names"),
            [
                (f"{each.count:,}", each.plugin, each.reason, _listed(each.names, rows))
                for each in explanation.refusals
            ],
            ">",
        )
    passing = [each for each in explanation.clusters if not each.refusals]
    if passing:
        shown = sorted(passing, key=lambda row: not row.is_target)[:rows]
        yield Table(
            "Clusters that pass the filters",
            ("Cluster", "Score", "Available replicas", "Limited by", "Selected", "Replicas"),
            [_cluster(each) for each in passing if each in shown],
            " >>  >",
            len(passing) - len(shown),
        )
    trace = explanation.selection
    if trace is not None and trace.combinations:
        yield Table(
            "Sets of regions",
            ("Regions", "Clusters", "Weight", "Result"),
            [combination_cells(each) for each in trace.combinations],
            " >>",
            max(0, trace.more_combinations),
        )


def _cluster(row: ClusterRow) -> tuple[str, ...]:
    capacity = row.capacity
    limit = "" if capacity is None else f"{capacity.limited_by} {capacity.free} free".strip()
    selected = {None: "", True: "yes", False: f"no: {row.not_selected_because}"}[row.selected]
    return (
        row.name,
        str(row.score),
        "" if capacity is None else f"{capacity.available:,}",
        limit if capacity is not None and capacity.limited_by else "",
        selected,
        f"{row.replicas:,}" if row.replicas else "",
    )


def _listed(names: Sequence[str], limit: int) -> str:
    """Return names, those beyond the limit as their number."""
    if len(names) <= limit:
        return ", ".join(names)
    return f"{', '.join(names[:limit])} and {len(names) - limit:,} more"
