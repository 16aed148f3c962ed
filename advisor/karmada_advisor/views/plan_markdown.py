"""A plan as GitHub-flavoured Markdown, for a comment on a pull request.

Everything that comes from objects stands in code spans: there GitHub renders no mention, link, reference or HTML.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from karmada_advisor.explain.amounts import counted
from karmada_advisor.plan.model import BindingPlan, Effect, FailureGroup, Plan
from karmada_advisor.views import plan_words as words
from karmada_advisor.views.layout import printable
from karmada_advisor.views.markdown import MAX_CHARACTERS
from karmada_advisor.views.plan_changes import field_line

_ROWS: Final = 50
_LEAST_ROWS: Final = 1
_CHANGES: Final = 20
_FIELDS: Final = 12
_GROUPS: Final = 10
_TARGETS: Final = 12
_TEXT: Final = 400
_DETAILED: Final = (
    Effect.STUCK,
    Effect.UNPLACED,
    Effect.MOVED,
    Effect.PLACED,
    Effect.HELD,
    Effect.UNDECIDED,
    Effect.LATENT,
    Effect.DELETED,
)


def plan_markdown(plan: Plan) -> str:
    """Return the Markdown; lists are cut, with their counts, until it is short enough."""
    rows = _ROWS
    while True:
        text = "\n".join(_lines(plan, rows)) + "\n"
        if len(text) <= MAX_CHARACTERS or rows <= _LEAST_ROWS:
            return text
        rows //= 2


def _lines(plan: Plan, rows: int) -> Iterator[str]:
    yield f"### Scheduling plan: {_title(plan)}"
    yield ""
    yield from _changes(plan)
    yield from _classes(plan)
    yield from _warnings(plan)
    yield from _alerts(plan)
    for effect in _DETAILED:
        yield from _details(plan.of(effect), effect, rows)
    yield from _drift(plan, rows)
    for text, names in words.claim_texts(plan):
        yield f"- {code(text)}: {_placement(names)}"
    for note in plan.notes:
        yield f"- {code(note)}"
    if plan.notes or plan.counts["adopted"] or plan.counts["released"]:
        yield ""
    provenance = plan.provenance
    at = provenance.at.replace("T", " ").removesuffix("Z")
    when = f" · {at} UTC" if at else ""
    yield (
        f"<sub>fleet {provenance.fleet} · {counted(plan.clusters, 'cluster')} · {counted(plan.total, 'binding')}{when} · "
        "<code>karmada-pyscheduler plan</code></sub>"
    )


def _title(plan: Plan) -> str:
    counts = plan.counts

    def bindings(name: str) -> str:
        return counted(counts[name], "binding")

    if counts["stuck"]:
        return f"{bindings('stuck')} would be stuck"
    if counts["unplaced"]:
        return f"{bindings('unplaced')} would lose all clusters"
    if counts["undecided"]:
        return f"nobody would decide about {bindings('undecided')}"
    if plan.blocked:
        return f"{code(plan.blocked[0].object)} would stay Terminating"
    if plan.overcommitted:
        return f"{counted(len(plan.overcommitted), 'cluster')} would be overcommitted"
    if counts["moved"]:
        return f"{bindings('moved')} would move"
    if counts["latent"]:
        return f"{bindings('latent')} would change at the next rebalance"
    if counts["held"]:
        return f"{bindings('held')} would move later"
    if counts["placed"]:
        return f"{bindings('placed')} would be placed"
    return f"no changes, {counted(len(plan.warnings), 'warning')}" if plan.warnings else "no changes"


def _changes(plan: Plan) -> Iterator[str]:
    for each in plan.changes[:_CHANGES]:
        text = "" if each.fields else each.text
        yield f"- `{each.sign}` {code(each.object)} {code(text) if text else ''}".rstrip()
        for field in each.fields[:_FIELDS]:
            yield f"  - {code(field_line(field))}"
        if len(each.fields) > _FIELDS:
            yield f"  - and {len(each.fields) - _FIELDS} more fields"
    if len(plan.changes) > _CHANGES:
        yield f"- and {len(plan.changes) - _CHANGES} more"
    yield ""


def _classes(plan: Plan) -> Iterator[str]:
    yield "| | At once | After a rebalance |"
    yield "|---|---:|---:|"
    for name, now, later in words.rows(plan):
        is_bad = name in words.BAD and now
        moved = plan.latent.stops if name == "moved" else 0
        shown = "" if later is None else f"{later:,}"
        if moved and later:
            shown += f" ({counted(moved, 'replica')})"
        at_once = f"{now:,}"
        if name == "moved" and now:
            at_once += f" ({counted(max(plan.totals.stops, plan.totals.starts), 'replica')})"
        cells = [name, at_once, shown]
        yield f"| {' | '.join(f'**{each}**' if is_bad and each else each for each in cells)} |"
    yield ""


def _warnings(plan: Plan) -> Iterator[str]:
    if not plan.warnings:
        return
    yield "> [!WARNING]"
    for each in plan.warnings[:_CHANGES]:
        yield f"> - {code(words.warning_text(each))}"
    if len(plan.warnings) > _CHANGES:
        yield f"> - and {len(plan.warnings) - _CHANGES} more warnings"
    yield ""


def _alerts(plan: Plan) -> Iterator[str]:
    for deletion in plan.blocked[:_GROUPS]:
        yield "> [!CAUTION]"
        yield f"> **blocked**: {code(words.blocked_text(deletion))}"
        for blocker in deletion.bindings[:_GROUPS]:
            yield f"> - {code(words.blocker_text(blocker))}"
        if len(deletion.bindings) > _GROUPS:
            yield f"> - and {len(deletion.bindings) - _GROUPS:,} more"
        yield ""
    for group in plan.failures[:_GROUPS]:
        yield "> [!CAUTION]"
        yield f"> {_failure(group)}"
        for cause in words.cause_texts(group.causes[:2]):
            yield f"> {code(cause)}"
        yield ""
    if len(plan.failures) > _GROUPS:
        yield f"and {counted(len(plan.failures) - _GROUPS, 'more reason')}"
        yield ""
    if not plan.overcommitted:
        return
    capacity = plan.capacity[0]
    yield "> [!WARNING]"
    yield f"> **{len(capacity.overcommitted)} overcommitted**: {words.mode_text(capacity)}."
    for load in [each for each in capacity.clusters if each.over][:_GROUPS]:
        over = ", ".join(
            f"{code(demand.resource)} {words.asked(demand)}" for demand in load.demands if demand.is_over
        )
        yield f"> {code(load.name)}: {load.before:,} -> {load.after:,} replicas, asked / free: {over}"
    yield ""


def _failure(group: FailureGroup) -> str:
    count, is_one = f"**{counted(group.count, 'binding')}**", group.count == 1
    of = f" of {code(str(group.policy))}" if group.policy is not None else ""
    match group.effect:
        case Effect.STUCK:
            what = f"{'keeps its' if is_one else 'keep their'} placement, but every further decision fails"
        case Effect.UNPLACED:
            what = f"{'has' if is_one else 'have'} no cluster afterwards"
        case Effect.HELD:
            what = f"{'stays as it is' if is_one else 'stay as they are'}"
        case Effect.UNDECIDED:
            what = f"{'stays as it is' if is_one else 'stay as they are'}, and nobody decides about {'it' if is_one else 'them'}"
        case _:
            what = f"{'fails' if is_one else 'fail'} at the next rebalance"
    return f"{count}{of} {what}: {code(group.message)}"


def _details(found: Sequence[BindingPlan], effect: Effect, rows: int) -> Iterator[str]:
    if not found:
        return
    yield f"<details><summary>{len(found):,} {effect.value}</summary>"
    yield ""
    has_target = effect in {Effect.MOVED, Effect.PLACED, Effect.HELD, Effect.UNDECIDED, Effect.LATENT}
    stays = "Stays on" if effect is Effect.STUCK else "Before"
    yield f"| Binding | Replicas | {stays} |{' After |' if has_target else ''}"
    yield f"|---|---:|---|{'---|' if has_target else ''}"
    for each in found[:rows]:
        later = words.targets_of(each)
        after = f" {_placement(words.placement(later))} |" if has_target else ""
        yield f"| {code(str(each))} | {each.replicas:,} | {_placement(words.placement(each.before))} |{after}"
    yield ""
    if len(found) > rows:
        yield f"and {len(found) - rows:,} more"
        yield ""
    yield "</details>"
    yield ""


def _drift(plan: Plan, rows: int) -> Iterator[str]:
    if not plan.drift:
        return
    yield f"<details><summary>drift: {counted(len(plan.drift), 'changes', 'change')} without this change</summary>"
    yield ""
    for each in plan.drift[:rows]:
        yield f"- {code(str(each))}"
    if len(plan.drift) > rows:
        yield f"- and {len(plan.drift) - rows:,} more"
    yield ""
    yield "</details>"
    yield ""


def _placement(listed: Sequence[str]) -> str:
    if not listed:
        return "no cluster"
    text = ", ".join(listed[:_TARGETS])
    more = f" and {len(listed) - _TARGETS} more" if len(listed) > _TARGETS else ""
    return f"{code(text)}{more}"


def code(text: str) -> str:
    """Return a text as a code span that cannot end early, in a table cell as well."""
    shown = printable(text).replace("`", "'").replace("|", "\\|").strip()
    if len(shown) > _TEXT:
        shown = shown[: _TEXT - 3].rstrip("\\") + "..."
    return f"`{shown}`" if shown else ""
