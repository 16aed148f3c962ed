"""All bindings by state and cause, as text: one screen, the worst first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from karmada_advisor.explain.amounts import counted
from karmada_advisor.explain.overview import ExplanationSummary, StateGroup
from karmada_advisor.views.layout import Style

_GROUPS: Final = 10
_NAMES: Final = 3


def overview_text(found: ExplanationSummary, style: Style) -> str:
    """Return the text."""
    counts = ", ".join(f"{count:,} {state}" for state, count in reversed(list(found.counts.items())))
    scope = f" {found.scope}" if found.scope else ""
    where = f"{counted(found.total, 'binding')}{scope} on {counted(found.clusters, 'cluster')}"
    lines = style.wrap(f"{where}: {counts or 'there is none'}", indent="  ")
    rules = found.provenance.rules
    lines += style.wrap(
        f"states as stored at {found.provenance.source}; causes decided again by the rules of {rules}",
        indent="  ",
    )
    shown = found.groups if style.unfolded else found.groups[:_GROUPS]
    for group in shown:
        lines += ["", *_group(group, style)]
    if len(shown) < len(found.groups):
        rest = sum(len(each.bindings) for each in found.groups[_GROUPS:])
        lines += ["", f"and {rest:,} more bindings in {len(found.groups) - len(shown):,} more groups (--all)"]
    if found.groups:
        first = found.groups[0].bindings[0]
        name = f"crb/{first.name}" if not first.namespace else first.name
        where = f" -n {first.namespace}" if first.namespace else ""
        lines += ["", f"`explain{where} {name}` says more about one."]
    return "\n".join(lines) + "\n"


def _group(group: StateGroup, style: Style) -> Iterator[str]:
    cause = group.cause
    text = f"{cause.code}: {cause.text}" if cause is not None else group.text
    head = f"{len(group.bindings):>5,}  {group.words}"
    reason = f" ({group.reason})" if group.reason else ""
    first, *rest = style.wrap(f"{head}{reason}   {text}", indent="       ")
    yield first.replace(group.words, style.paint(group.words, group.colour), 1)
    yield from rest
    names = [str(each) for each in group.bindings]
    yield from style.wrap(f"       {style.fold(names, limit=_NAMES, separator='  ')}", indent="       ")
