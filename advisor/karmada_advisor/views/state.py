"""The state of a binding in words: the first two lines of every answer about one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from karmada_advisor.explain.model import Explanation, NextState
from karmada_advisor.state.model import Applied, BindingState, ClusterStatus, Placed, StateName, Target
from karmada_advisor.views.document import Line
from karmada_advisor.views.text import Style

if TYPE_CHECKING:  # an explanation without remedies needs no search
    from karmada_advisor.explain.model import Remedy
    from karmada_advisor.whynot.model import VerifiedRemedy

ROW_HEADING = ("ON", "WANTED", "APPLIED", "READY", "HEALTH", "")
"""The columns of ``row_cells``."""

NO_RESULT = "Karmada then makes its binding"
"""What follows a change after which a policy claims a template: only with its binding is there a placement."""

_LEAST: Final = 20
"""Columns of the clusters in a line."""

Fold = Callable[[Sequence[str]], str]


def remarks(remedy: VerifiedRemedy | Remedy) -> list[str]:
    """Return what a person does instead of a patch, and what speaks against the remedy."""
    instead = dict.fromkeys(edit.instead for edit in remedy.edits if edit.instead)
    return [*instead, *([remedy.caution] if remedy.caution else [])]


def headline(state: BindingState, fold: Fold = ", ".join) -> str:
    """Return the words of a state, the stored clusters, and the reason."""
    rest = answer(state, fold)
    return f"{state.words}   {rest}" if rest else state.words


def answer(state: BindingState, fold: Fold = ", ".join) -> str:
    """Return the stored clusters, and the reason."""
    clusters = placement(state.clusters, fold, wanted=state.wanted)
    if clusters and state.placed is Placed.PART:
        clusters = f"{_stored(state)} of {state.wanted}: {clusters}"
    if state.name is StateName.STUCK:
        clusters = f"keeps {clusters}"
    return "; ".join(part for part in (clusters, state.text) if part)


def _stored(state: BindingState) -> int:
    total = sum(target.replicas for target in state.clusters)
    return total if total < state.wanted else min(target.replicas for target in state.clusters)


def placement(targets: Sequence[Target], fold: Fold = ", ".join, *, wanted: int = 1) -> str:
    """Return clusters with their replicas; names only for a workload without replicas."""
    return fold([f"{target.name} {target.replicas}" if wanted else target.name for target in targets])


def placed(lead: str, targets: Sequence[Target], style: Style, tail: str = "") -> Line:
    """Return a line of clusters with their replicas: as many as fit between its beginning and its end."""
    left = max(_LEAST, style.width - len(lead) - len(tail))
    shown = style.fold_to([*map(str, targets)], left) or "no cluster"
    return Line(f"{lead}{shown}{tail}", breaks=False)


def would_be(explanation: Explanation, fold: Fold = ", ".join) -> str:
    """Return what a decision now would give; "" if that is what is stored, and it is good."""
    found, state = explanation.would_be, explanation.state
    if found is None or (not found.differs and explanation.is_good):
        return ""
    targets = placement(found.placement, fold, wanted=explanation.binding.replicas)
    match found.outcome:
        case NextState.PLACED if not found.differs:
            return "A decision now would change nothing."
        case NextState.PLACED:
            return f"Would be: {targets} (a decision now)."
        case NextState.NO_REPLICAS:
            return "A decision now would place nothing: 0 replicas are wanted."
        case NextState.GATED:
            return f"A decision now is held at PreEnqueue: {found.text}"
    if state.name in {StateName.NOT_PLACED, StateName.STUCK}:
        return f"A decision now fails as well: {found.text}"
    kept = f"{targets} would stay, because " if found.placement else "Would be: not placed, because "
    return f"{kept}a decision now fails: {found.text}"


def shows_rows(rows: Sequence[ClusterStatus]) -> bool:
    """Return whether a table of what runs tells anything: a cluster has reported, or something is wrong."""
    return any(row.reason or row.applied is not Applied.NOT_REPORTED or row.health for row in rows)


def row_cells(row: ClusterStatus) -> tuple[str, ...]:
    """Return the cells of a row."""
    wanted = "leaving" if row.wanted is None else f"{row.wanted:,}" if row.wanted else "-"
    ready = "-" if row.ready is None else f"{row.ready:,}"
    note = f"{row.problem}: {row.message}" if row.problem and row.message else row.problem
    if row.required_by:
        note = "; ".join(filter(None, (f"required by {', '.join(row.required_by)}", note)))
    return row.name, wanted, row.applied.value, ready, row.health or "-", note
