"""A plan as text and Markdown: the table of classes, then what fails, what moves and where capacity ends; the summary is last."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from karmada_advisor.explain.amounts import counted
from karmada_advisor.views import plan_words as words
from karmada_advisor.views.document import Details, Line, Section, Table, TextBlock, document_of
from karmada_advisor.views.markup import fitting
from karmada_advisor.views.state import placed
from karmada_advisor.views.text import Style, of_document, text
from karmada_advisor.whatif.plan.capacity_model import Capacity, ClusterLoad
from karmada_advisor.whatif.plan.model import BindingPlan, Effect, FailureGroup, Plan, PlanHeldBy
from karmada_scheduler.structs import replace

_ROWS: Final = 50
"""Bindings of a class in Markdown."""

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
_SHOWN_CLASSES: Final = (Effect.MOVED, Effect.PLACED, Effect.HELD, Effect.DELETED)
_MOVING: Final = frozenset({Effect.MOVED, Effect.PLACED, Effect.HELD, Effect.UNDECIDED, Effect.LATENT})
"""Classes of bindings that have other clusters in the end, or would have."""


def plan_text(plan: Plan, style: Style) -> str:
    """Return the text for people."""
    return text(_sections(plan, style), style)


def plan_markdown(plan: Plan) -> str:
    """Return the Markdown for a comment on a pull request; lists are cut, with their counts, until it is short enough."""
    title = words.summary(plan).removesuffix(".")
    return fitting(lambda rows: document_of(title, _sections(plan, of_document(rows))), _ROWS)


def _sections(plan: Plan, style: Style) -> Iterator[Section]:
    if not plan.bindings and not plan.drift and not plan.blocked:
        if len(plan.changes) > 1 or plan.warnings or any(change.fields for change in plan.changes):
            yield from (_head(plan, style), _warnings(plan, style))
        yield [_nothing(plan)]
        return
    yield from (_head(plan, style), _warnings(plan, style), [_classes(plan)], _failures(plan, style))
    yield from (_blocked(plan, style), _examples(plan, style), _claims(plan, style), _latent(plan, style))
    yield from (_capacity(plan, capacity, style) for capacity in plan.capacity[:1])
    yield _remarks(plan, style)
    is_bad = plan.overcommitted or plan.blocked or any(plan.counts[name] for name in words.BAD)
    yield [Line(words.summary(plan), "red" if is_bad else "bold", breaks=False)]


def _head(plan: Plan, style: Style) -> Iterator[TextBlock]:
    yield f"Plan: {words.head(plan)}, against {words.against(plan)}"
    if words.is_in_head(plan.changes):
        return
    changed = style.first(plan.changes, _CHANGES)
    for change in changed:
        yield from words.change_lines(change, style)
    if len(plan.changes) > len(changed):
        yield f"  and {len(plan.changes) - len(changed)} more"


def _warnings(plan: Plan, style: Style) -> Iterator[TextBlock]:
    shown = style.first(plan.warnings, _WARNINGS)
    for warning in shown:
        yield _marked("! warning:", str(warning), "yellow")
    if len(plan.warnings) > len(shown):
        yield f"! and {len(plan.warnings) - len(shown):,} more warnings (--all)"


def _blocked(plan: Plan, style: Style) -> Iterator[TextBlock]:
    for deletion in plan.blocked:
        yield _marked("! blocked:", f"{deletion.object} {deletion.text}", "red")
        shown = style.first(deletion.bindings, _BLOCKERS)
        for blocker in shown:
            name = "stays" if blocker.effect is Effect.UNCHANGED else blocker.effect.value
            yield f"    {blocker}   {name}: {blocker.text}"
        if len(deletion.bindings) > len(shown):
            yield f"    and {len(deletion.bindings) - len(shown):,} more (--all)"


def _claims(plan: Plan, style: Style) -> Iterator[TextBlock]:
    for claim, names in words.claim_texts(plan):
        yield f"  {claim}:"
        yield f"    {style.fold(names, limit=_NAMES)}"


def _marked(lead: str, rest: str, colour: str) -> Line:
    """Return a sentence with a painted beginning."""
    return Line([(lead, colour), (f" {rest}", "")])


def _nothing(plan: Plan) -> str:
    warned = f", {counted(len(plan.warnings), 'warning')}" if plan.warnings else ""
    pending = plan.counts["pending"]
    kept = f"{counted(plan.total - pending, 'binding keeps its', 'bindings keep their')} placement"
    if pending:
        kept += f", {counted(pending, 'stays', 'stay')} without a cluster"
    notes = f"; {'; '.join(plan.notes)}" if plan.notes else ""
    return f"No changes{warned}. {kept}{notes}."


def _classes(plan: Plan) -> Table:
    has_later = bool(plan.counts["latent"]) or words.NOT_JUDGED in plan.after_rebalance
    has_later = has_later or plan.not_derived is not None
    rows = []
    for name, now, later in words.rows(plan):
        counts = [f"{now:,}", *(["" if later is None else f"{later:,}"] if has_later else [])]
        mark = "!" if name in words.BAD else " "
        rows.append([f"{mark} {words.class_words(name)}", *counts, words.remark(plan, name)])
    heading = ["", "AT ONCE", "AFTER A REBALANCE", ""] if has_later else []
    return Table(heading, rows, "<>><" if has_later else "<><")


def _failures(plan: Plan, style: Style) -> Iterator[TextBlock]:
    groups = style.first(plan.failures, _GROUPS)
    for group in groups:
        yield from _failure(plan, group, style)
    if rest := plan.failures[len(groups) :]:
        fail = counted(sum(group.count for group in rest), "more fails", "more fail")
        yield f"! {fail} for {counted(len(rest), 'other reason')}"


def _failure(plan: Plan, group: FailureGroup, style: Style) -> Iterator[TextBlock]:
    is_later = group.effect is Effect.LATENT
    name = "fails at the next rebalance" if is_later else words.class_words(group.effect.value)
    colour = "yellow" if group.effect is Effect.HELD else "red"
    of = f" of {group.policy}" if group.policy is not None else ""
    yield _marked(f"! {name}:", f"{counted(group.count, 'binding')}{of}, {group.message}", colour)
    yield from (f"    {cause.code}: {cause.text}" for cause in group.causes[:_CAUSES])
    names = set(group.bindings)
    found = [binding for binding in plan.bindings if str(binding) in names]
    yield Details(counted(group.count, "binding"), [*_listed(found, style, group.count)])
    if group.disallowed:
        listed = style.fold([*map(str, group.disallowed)], limit=_TARGETS)
        yield f"    replicas that the policy no longer allows: {listed}"


def _binding(binding: BindingPlan, style: Style, *, more: int = 0) -> Iterator[TextBlock]:
    """Yield the lines of one binding: what it has, and what it gets."""
    tail = f"      and {more:,} more" if more > 0 else ""
    is_moving = binding.effect in _MOVING and not (binding.later is not None and binding.later.error)
    lead = f"    {binding}   {binding.replicas:,}   "
    yield placed(lead, binding.before, style, "" if is_moving else tail)
    if is_moving:
        arrow = "would be " if _is_meant(binding) else "-> "
        lead = " " * max(4, len(lead) - len(arrow)) + arrow
        yield replace(placed(lead, words.targets_of(binding), style, tail), continues=True)


def _is_meant(binding: BindingPlan) -> bool:
    """Return whether a person or a quota holds a binding, so that what it would get is not what it gets."""
    return binding.held is not None and binding.held.by is not PlanHeldBy.GUARD


def _listed(bindings: Sequence[BindingPlan], style: Style, count: int) -> Iterator[TextBlock]:
    """Yield the first bindings, with the number of the others of so many."""
    shown = style.first(bindings, _EXAMPLES)
    for binding in shown:
        more = count - len(shown) if binding is shown[-1] else 0
        yield from _binding(binding, style, more=more)


def _examples(plan: Plan, style: Style) -> Iterator[TextBlock]:
    for effect in _SHOWN_CLASSES:
        found = [binding for binding in plan.of(effect) if not _is_meant(binding)]
        if found:
            blocks = [*_listed(found, style, len(found))]
            yield Details(f"{len(found):,} {effect.value}", blocks, f"  {effect.value}:")


def _latent(plan: Plan, style: Style) -> Iterator[TextBlock]:
    latent = plan.of(Effect.LATENT)
    moving = [binding for binding in latent if binding.later is not None and not binding.later.error]
    if not moving:
        return
    policies = {str(binding.policy) for binding in moving if binding.policy is not None}
    of = f" of {policies.pop()}" if len(policies) == 1 else ""
    count = counted(len(moving), "binding")
    yield f"~ latent: {count}{of}, at the next rebalance (steady division keeps what is placed)"
    gaining = [load for load in plan.latent_load if load.after > load.before]
    losing = [load for load in plan.latent_load if load.after < load.before]
    yield from _loads(gaining, style, is_difference=True)
    if losing:
        ordered = sorted(losing, key=lambda load: (load.after - load.before, load.name))
        names = [f"{load.name} {load.after - load.before:,}" for load in ordered]
        yield f"    fewer: {style.fold(names, limit=4)}"
    yield Details(f"{len(moving):,} latent", [*_listed(moving, style, len(moving))])


def _loads(loads: Sequence[ClusterLoad], style: Style, *, is_difference: bool = False) -> Iterator[TextBlock]:
    shown = style.first(loads, _CLUSTERS)
    asked = [{demand.resource: demand for demand in load.demands} for load in shown]
    resources = ["cpu", "memory"]
    resources += sorted({name for load in shown for name in load.over} - set(resources))
    used = [name for name in resources if any(name in demands for demands in asked)]
    rows = []
    for load, demands in zip(shown, asked, strict=True):
        change = f"{load.after - load.before:+,}" if is_difference else f"{load.before:,} -> {load.after:,}"
        cells = [words.asked(demands[name]) if name in demands else "" for name in used]
        rows.append([f"{'!' if load.over else ' '} {load.name}", change, *cells])
    heading = ["  CLUSTER", "REPLICAS", *(f"{name.upper()} ASKED / FREE" for name in used)]
    if rows:
        yield Table(heading, rows, "<>", indent=2)
    if rest := loads[len(shown) :]:
        names = [f"{load.name} {load.after - load.before:+,}" for load in rest]
        yield f"    {style.fold(names, limit=3)}"


def _capacity(plan: Plan, capacity: Capacity, style: Style) -> Iterator[TextBlock]:
    gaining = [load for load in capacity.clusters if load.starts]
    if not gaining:
        return
    if capacity.overcommitted:
        yield Line([(f"! {capacity.mode} overcommit: ", "red"), (words.mode_text(capacity), "")])
    else:
        yield f"  capacity: {words.mode_text(capacity)}"
    yield from _loads(gaining, style)
    yield from (f"  {_other(other, style)}" for other in plan.capacity[1:])


def _other(capacity: Capacity, style: Style) -> str:
    state = "on" if capacity.mode == "accounted" else "off"
    loads = sorted(capacity.clusters, key=lambda load: (-load.starts, load.name))
    names = [f"{load.name} {load.starts:,}" for load in loads if load.starts]
    listed = f": {style.fold(names, limit=_TARGETS)}" if names else ""
    fits = f"all {capacity.fitting:,} fit"
    if capacity.failing:
        fits = f"{capacity.fitting:,} fit, {capacity.failing:,} do not"
    over = f"; overcommitted: {style.fold(capacity.overcommitted)}" if capacity.overcommitted else ""
    return f"with the gate {state}, {fits}{listed}{over}"


def _remarks(plan: Plan, style: Style) -> Iterator[TextBlock]:
    if plan.drift is None:
        yield "drift: not computed"
    elif not plan.drift:
        yield "drift: none (nothing would change without this change)"
    else:
        names = style.fold([*map(str, plan.drift)], limit=_DRIFT)
        change = counted(len(plan.drift), "binding changes", "bindings change")
        yield f"drift: {change} at the next event without this change: {names}"
    yield from plan.notes
