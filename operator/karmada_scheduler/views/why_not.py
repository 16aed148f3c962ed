"""The answer to "why not" as text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from karmada_scheduler.whynot.edits import Edit, Side
from karmada_scheduler.whynot.model import Placement, Remedy, WhyNot

_SHOWN_CLUSTERS = 4
_SHOWN_TRIED = 8


def text(found: WhyNot, *, width: int = 100, show_all: bool = False) -> str:
    """Return the answer for people.

    Args:
        found: The answer.
        width: Columns; long lines are wrapped.
        show_all: Whether lists are shown in full.
    """
    return "\n".join(_lines(found, width, None if show_all else _SHOWN_CLUSTERS)) + "\n"


def _lines(found: WhyNot, width: int, most: int | None) -> Iterator[str]:
    yield from _wrapped(_head(found, most), width)
    if found.holds:
        return
    for number, cause in enumerate(found.causes):
        label = "WHY" if number == 0 else "AND NOW" if cause.stage == "trigger" else "AND"
        code = f"{cause.code}: {cause.text}" if cause.text and cause.text != cause.code else cause.code
        yield from _wrapped(f"{label:<8} {code}", width, " " * 9)
    here = [each for each in found.remedies if each.uses_cluster or found.goal != "onCluster"]
    elsewhere = [each for each in found.remedies if each not in here]
    yield ""
    if not found.remedies:
        yield from _wrapped(_none_found(found), width)
    number = 1
    for title, remedies in (
        (_title(found, here), here),
        (f"Changes that place the binding without {found.cluster}", elsewhere),
    ):
        if not remedies:
            continue
        yield from _wrapped(
            f"{title}. Each was verified by deciding again; none of their parts can be left out.", width
        )
        for remedy in remedies:
            yield from _remedy(number, remedy, width, most)
            number += 1
    yield ""
    if found.ineffective:
        tried = [_described(each.edit) for each in found.ineffective]
        shown = tried if most is None else tried[:_SHOWN_TRIED]
        more = f"; and {len(tried) - len(shown)} more" if len(shown) < len(tried) else ""
        yield from _wrapped(f"Without effect (tried): {'; '.join(shown)}{more}.", width)
    yield from _wrapped(_limits(found), width)


def _head(found: WhyNot, most: int | None) -> str:
    where = f" ({placement_text(found.present, most)})" if found.present else ", which is placed nowhere"
    if found.goal == "placed":
        state = "is placed" if found.holds else "is not placed"
        return f"{found.key} {state}: {found.replicas} replicas wanted" + (
            f" ({placement_text(found.present, most)})" if found.present else ""
        )
    if found.goal == "offCluster":
        verb = "has none of" if found.holds else "has some of"
        return f"{found.cluster} {verb} the {found.replicas} replicas of {found.key}{where}"
    if found.holds:
        placed = {each.name: each.replicas for each in found.scheduled}
        count = placed.get(found.cluster, 0)
        return f"{found.cluster} has {count or 'the'}{' of the' if count else ''} {found.replicas} replicas of {found.key}: {placement_text(found.scheduled, most)}"
    if found.wanted > 1:
        return f"{found.cluster} has fewer than {found.wanted} of the {found.replicas} replicas of {found.key}{where}"
    return f"{found.cluster} has none of the {found.replicas} replicas of {found.key}{where}"


def _title(found: WhyNot, remedies: Sequence[Remedy]) -> str:  # noqa: ARG001
    if found.goal == "placed":
        return "Changes that place it"
    if found.goal == "offCluster":
        return f"Changes after which it leaves {found.cluster}"
    return f"Changes that put replicas on {found.cluster}"


def _none_found(found: WhyNot) -> str:
    facts = found.search
    if facts.complete:
        return f"None found: no set of up to {facts.max_depth} changes of the vocabulary reaches it ({facts.runs} decisions tried)."
    bound = f"--timeout {facts.timeout:g}s" if facts.ended_by == "timeout" else f"--max-runs {facts.max_runs}"
    return f"None found within {bound}; a wider search may find one."


def _remedy(number: int, remedy: Remedy, width: int, most: int | None) -> Iterator[str]:
    for index, edit in enumerate(remedy.edits):
        lead = f"  {number}  " if index == 0 else "     and "
        indent = " " * 17
        yield from _wrapped(f"{lead}{edit.side.value:<11} {_described(edit)}{_boundary(edit)}", width, indent)
    facts = [f"moves {remedy.moves}"]
    if remedy.touches.bindings > 1:
        facts.append(f"touches {remedy.touches.bindings} bindings")
    if not remedy.touches.checked:
        facts.append("other bindings not checked")
    yield from _wrapped(
        f"       -> {placement_text(remedy.result, most)}   {', '.join(facts)}", width, " " * 10
    )


def _boundary(edit: Edit) -> str:
    if edit.minimal is None:
        return ""
    unit = edit.quantity.unit if edit.quantity is not None else ""
    return f"; {edit.minimal.fails_at}{unit} is not enough"


def _described(edit: Edit) -> str:
    if edit.side in {Side.CLUSTER, Side.COMPETITOR} and edit.target.kind == "Cluster":
        return f"{edit.target.name}: {edit.text}"
    return edit.text


def placement_text(placement: Placement, most: int | None = _SHOWN_CLUSTERS) -> str:
    """Return clusters with their replicas, the first ones of many."""
    if not placement:
        return "no cluster"
    shown = placement if most is None or len(placement) <= most + 1 else placement[:most]
    listed = ", ".join(f"{each.name} {each.replicas}" if each.replicas else each.name for each in shown)
    return listed if len(shown) == len(placement) else f"{listed} and {len(placement) - len(shown)} more"


def _limits(found: WhyNot) -> str:
    facts = found.search
    singles = "all kinds of single changes were" if facts.exhausted_singles else "not all single changes were"
    ended = "" if not facts.ended_by else f" The search ended by its bound ({facts.ended_by})."
    return (
        f"Unknown to this search: Pods pending in member clusters, changes of more than {facts.max_depth} parts. "
        f"{facts.decisions} decisions tried in {facts.seconds:.1f} s; {singles}.{ended}"
    )


def _wrapped(line: str, width: int, indent: str = "  ") -> list[str]:
    return textwrap.wrap(
        line,
        width,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
        drop_whitespace=True,
    ) or [""]
