"""A plan as text: the table of classes, then what fails, what moves and where capacity ends; the summary is last."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from karmada_advisor.explain.amounts import counted
from karmada_advisor.explain.model import Target
from karmada_advisor.plan.capacity_model import Capacity, ClusterLoad
from karmada_advisor.plan.model import BindingPlan, Effect, FailureGroup, Plan, PlanHeldBy
from karmada_advisor.views import plan_words as words
from karmada_advisor.views.layout import Style, folded_to, printable, table
from karmada_advisor.views.plan_changes import change_lines

_CHANGES: Final = 8
_GROUPS: Final = 4
_CAUSES: Final = 2
_CLUSTERS: Final = 3
_EXAMPLES: Final = 1
_DRIFT: Final = 5
_WARNINGS: Final = 10
_BLOCKERS: Final = 5
_NAMES: Final = 8
_TARGETS: Final = 6
_LEAST: Final = 20
_SHOWN_CLASSES: Final = (Effect.MOVED, Effect.PLACED, Effect.HELD, Effect.DELETED)
_MOVING: Final = frozenset({Effect.MOVED, Effect.PLACED, Effect.HELD, Effect.UNDECIDED, Effect.LATENT})
"""Classes of bindings that have other clusters in the end, or would have."""


def plan_text(plan: Plan, style: Style) -> str:
    """Return the text for people."""
    if not plan.bindings and not plan.drift and not plan.blocked:
        has_head = len(plan.changes) > 1 or plan.warnings or any(each.fields for each in plan.changes)
        head = [[*_head(plan, style)], [*_warnings(plan, style)]] if has_head else []
        return _joined([*head, [*_nothing(plan, style)]])
    sections = [
        [*_head(plan, style)],
        [*_warnings(plan, style)],
        [*_classes(plan, style)],
        [*_failures(plan, style)],
        [*_blocked(plan, style)],
        [*_examples(plan, style)],
        [*_claims(plan, style)],
        [*_latent(plan, style)],
        *([*_capacity(plan, each, style)] for each in plan.capacity[:1]),
        [*_remarks(plan, style)],
        [_summary(plan, style)],
    ]
    return _joined(sections)


def _joined(sections: Iterable[Sequence[str]]) -> str:
    return "\n\n".join("\n".join(each) for each in sections if each) + "\n"


def _summary(plan: Plan, style: Style) -> str:
    bad = plan.overcommitted or plan.blocked or any(plan.counts[name] for name in words.BAD)
    return style.paint(words.summary(plan), "red" if bad else "bold")


def _head(plan: Plan, style: Style) -> Iterator[str]:
    yield from style.wrap(f"Plan: {words.head(plan)}, against {words.against(plan)}", indent="  ")
    changed = plan.changes if style.unfolded else plan.changes[:_CHANGES]
    if words.is_in_head(plan.changes):
        return
    for each in changed:
        yield from change_lines(each, style)
    if len(plan.changes) > len(changed):
        yield f"  and {len(plan.changes) - len(changed)} more"


def _warnings(plan: Plan, style: Style) -> Iterator[str]:
    shown = plan.warnings if style.unfolded else plan.warnings[:_WARNINGS]
    for each in shown:
        yield from _marked("! warning:", words.warning_text(each), style, "yellow")
    if len(plan.warnings) > len(shown):
        yield f"! and {len(plan.warnings) - len(shown):,} more warnings (--all)"


def _blocked(plan: Plan, style: Style) -> Iterator[str]:
    for each in plan.blocked:
        yield from _marked("! blocked:", words.blocked_text(each), style, "red")
        shown = each.bindings if style.unfolded else each.bindings[:_BLOCKERS]
        for binding in shown:
            yield from style.wrap(f"    {words.blocker_text(binding)}", indent="      ")
        if len(each.bindings) > len(shown):
            yield f"    and {len(each.bindings) - len(shown):,} more (--all)"


def _claims(plan: Plan, style: Style) -> Iterator[str]:
    for text, names in words.claim_texts(plan):
        yield from style.wrap(f"  {text}:", indent="    ")
        yield from style.wrap(f"    {style.fold(names, limit=_NAMES)}", indent="      ")


def _marked(lead: str, text: str, style: Style, colour: str) -> Iterator[str]:
    """Yield a sentence in lines, with a painted beginning."""
    first, *rest = style.wrap(f"{lead} {text}", indent="    ")
    yield style.paint(lead, colour) + first[len(lead) :]
    yield from rest


def _nothing(plan: Plan, style: Style) -> Iterator[str]:
    warned = f", {counted(len(plan.warnings), 'warning')}" if plan.warnings else ""
    text = f"No changes{warned}. {counted(plan.total, 'binding keeps its', 'bindings keep their')} placement"
    notes = [printable(each) for each in plan.notes]
    yield from style.wrap(f"{text}; {'; '.join(notes)}." if notes else f"{text}.", indent="  ")


def _classes(plan: Plan, style: Style) -> Iterator[str]:
    rows = words.rows(plan)
    has_later = bool(plan.counts["latent"]) or plan.not_derived is not None
    cells = []
    for name, now, later in rows:
        mark = "!" if name in words.BAD else " "
        row = [f"{mark} {name}", f"{now:,}"]
        if has_later:
            row.append("" if later is None else f"{later:,}")
        cells.append([*row, words.remark(plan, name)])
    heading = ["", "AT ONCE", "AFTER A REBALANCE", ""] if has_later else []
    yield from table(heading, cells, style, align="<>><" if has_later else "<><")


def _failures(plan: Plan, style: Style) -> Iterator[str]:
    groups = plan.failures if style.unfolded else plan.failures[:_GROUPS]
    for group in groups:
        yield from _failure(plan, group, style)
    if len(plan.failures) > len(groups):
        rest = plan.failures[len(groups) :]
        fail = counted(sum(each.count for each in rest), "more fails", "more fail")
        yield f"! {fail} for {counted(len(rest), 'other reason')}"


def _failure(plan: Plan, group: FailureGroup, style: Style) -> Iterator[str]:
    name = "fails at the next rebalance" if group.effect is Effect.LATENT else group.effect.value
    colour = "yellow" if group.effect is Effect.HELD else "red"
    yield from _marked(f"! {name}:", words.failure_head(group), style, colour)
    for text in words.cause_texts(group.causes[:_CAUSES]):
        yield from style.wrap(f"    {text}", indent="      ")
    names = set(group.bindings[: 10 * _EXAMPLES])
    examples = [each for each in plan.bindings if str(each) in names][:_EXAMPLES]
    for example in examples:
        yield from _binding(example, style, more=group.count - len(examples))
    if group.disallowed:
        listed = style.fold(words.placement(group.disallowed), limit=_TARGETS)
        yield from style.wrap(f"    replicas that the policy no longer allows: {listed}", indent="      ")


def _binding(each: BindingPlan, style: Style, *, more: int = 0) -> Iterator[str]:
    """Yield the lines of one binding: what it has, and what it gets."""
    tail = f"      and {more:,} more" if more > 0 else ""
    later = words.targets_of(each)
    is_moving = each.effect in _MOVING and not (each.later is not None and each.later.error)
    lead = f"    {printable(str(each))}   {each.replicas:,}   "
    yield _placed(lead, each.before, "" if is_moving else tail, style)
    if is_moving:
        is_meant = each.held is not None and each.held.by is not PlanHeldBy.GUARD
        arrow = "would be " if is_meant else "-> "
        yield _placed(" " * max(4, len(lead) - len(arrow)) + arrow, later, tail, style)


def _placed(lead: str, targets: Sequence[Target], tail: str, style: Style) -> str:
    """Return a line with as many clusters as fit."""
    left = max(_LEAST, style.width - len(lead) - len(tail))
    return lead + (folded_to(words.placement(targets), left, style) or "no cluster") + tail


def _examples(plan: Plan, style: Style) -> Iterator[str]:
    for effect in _SHOWN_CLASSES:
        found = [each for each in plan.of(effect) if each.held is None or each.held.by is PlanHeldBy.GUARD]
        shown = found if style.unfolded else found[:_EXAMPLES]
        if found:
            yield f"  {effect.value}:"
        for number, each in enumerate(shown, 1):
            yield from _binding(each, style, more=len(found) - number if number == len(shown) else 0)


def _latent(plan: Plan, style: Style) -> Iterator[str]:
    moving = [each for each in plan.of(Effect.LATENT) if each.later is not None and not each.later.error]
    if not moving:
        return
    policies = {str(each.policy) for each in moving if each.policy is not None}
    of = f" of {printable(policies.pop())}" if len(policies) == 1 else ""
    yield from style.wrap(
        f"~ latent: {counted(len(moving), 'binding')}{of}, at the next rebalance (steady division keeps what is placed)",
        indent="    ",
    )
    gaining = [each for each in plan.latent_load if each.after > each.before]
    losing = [each for each in plan.latent_load if each.after < each.before]
    yield from _loads(gaining, style, is_difference=True)
    if losing:
        ordered = sorted(losing, key=lambda each: (each.after - each.before, each.name))
        names = [f"{printable(each.name)} {each.after - each.before:,}" for each in ordered]
        yield from style.wrap(f"    fewer: {style.fold(names, limit=4)}", indent="      ")
    shown = moving if style.unfolded else moving[:_EXAMPLES]
    for number, each in enumerate(shown, 1):
        yield from _binding(each, style, more=len(moving) - number if number == len(shown) else 0)


def _loads(loads: Sequence[ClusterLoad], style: Style, *, is_difference: bool = False) -> Iterator[str]:
    shown = loads if style.unfolded else loads[:_CLUSTERS]
    resources = ["cpu", "memory"]
    resources += sorted({name for each in shown for name in each.over} - set(resources))
    used = [name for name in resources if any(d.resource == name for each in shown for d in each.demands)]
    rows = []
    for each in shown:
        by_name = {demand.resource: demand for demand in each.demands}
        replicas = f"{each.after - each.before:+,}" if is_difference else f"{each.before:,} -> {each.after:,}"
        mark = "!" if each.over else " "
        cells = [words.asked(by_name[name]) if name in by_name else "" for name in used]
        rows.append([f"{mark} {printable(each.name)}", replicas, *cells])
    heading = ["  CLUSTER", "REPLICAS", *(f"{name.upper()} ASKED / FREE" for name in used)]
    if rows:
        yield from table(heading, rows, style, align="<>" + "<" * len(used), indent="  ")
    if len(loads) > len(shown):
        rest = loads[len(shown) :]
        names = [f"{printable(each.name)} {each.after - each.before:+,}" for each in rest]
        yield from style.wrap(f"    {style.fold(names, limit=3)}", indent="      ")


def _capacity(plan: Plan, capacity: Capacity, style: Style) -> Iterator[str]:
    gaining = [each for each in capacity.clusters if each.starts]
    if not gaining:
        return
    if capacity.overcommitted:
        yield from style.wrap(
            style.paint(f"! {capacity.mode} overcommit: ", "red") + words.mode_text(capacity), indent="    "
        )
    else:
        yield from style.wrap(f"  capacity: {words.mode_text(capacity)}", indent="    ")
    yield from _loads(gaining, style)
    for other in plan.capacity[1:]:
        yield from style.wrap(f"  {_other(other, style)}", indent="    ")


def _other(capacity: Capacity, style: Style) -> str:
    state = "on" if capacity.mode == "accounted" else "off"
    names = [
        f"{printable(each.name)} {each.starts:,}"
        for each in sorted(capacity.clusters, key=lambda each: (-each.starts, each.name))
        if each.starts
    ]
    listed = style.fold(names, limit=_TARGETS)
    fits = (
        f"all {capacity.fitting:,} fit"
        if not capacity.failing
        else f"{capacity.fitting:,} fit, {capacity.failing:,} do not"
    )
    over = (
        f"; overcommitted: {style.fold([printable(each) for each in capacity.overcommitted])}"
        if capacity.overcommitted
        else ""
    )
    return (
        f"with the gate {state}, {fits}: {listed}{over}" if listed else f"with the gate {state}, {fits}{over}"
    )


def _remarks(plan: Plan, style: Style) -> Iterator[str]:
    if plan.drift is None:
        yield "drift: not computed"
    elif not plan.drift:
        yield "drift: none (nothing would change without this change)"
    else:
        names = style.fold([printable(str(each)) for each in plan.drift], limit=_DRIFT)
        change = counted(len(plan.drift), "binding changes", "bindings change")
        yield from style.wrap(f"drift: {change} at the next event without this change: {names}", indent="  ")
    for note in plan.notes:
        yield from style.wrap(printable(note), indent="  ")
