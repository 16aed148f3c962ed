"""The words that the text and the Markdown of a plan share: head, summary, classes, amounts, and changes field by field.

A long value is cut around the difference, never before it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from karmada_advisor.explain.amounts import counted
from karmada_advisor.state.model import Target
from karmada_advisor.views.document import Line, TextBlock
from karmada_advisor.views.text import Style, printable
from karmada_advisor.whatif.plan import model
from karmada_advisor.whatif.plan.capacity_model import Capacity, Demand
from karmada_advisor.whatif.plan.objects import ChangeShown, FieldChange, value_text

_GI: Final = 2**30
_MI: Final = 2**20
_MANY: Final = {"policy": "policies"}

NOT_JUDGED: Final = model.Effect.NOT_JUDGED.value

BAD: Final = frozenset({"stuck", "unplaced", "undecided", NOT_JUDGED, "cannot-start"})
"""The classes that are marked."""


_ALWAYS_SUMMED: Final = ("moved", "unplaced", "stuck")
_SUMMED: Final = (
    *("moved", "placed", "unplaced", "stuck", "held", "undecided"),
    *("deleted", NOT_JUDGED, "cannot-start", "pending"),
)
"""The classes of the last line, in its order."""


def head(plan: model.Plan) -> str:
    """Return what changes, in one phrase."""
    changed = [change for change in plan.changes if change.sign != "="]
    if not changed:
        return "nothing changed"
    if is_in_head(changed):
        return f"cluster {changed[0].object.removeprefix('Cluster/')} {changed[0].text}"
    kinds = Counter(_kind(change.object) for change in changed)
    listed = [counted(count, kind, _MANY.get(kind, "")) for kind, count in kinds.items()]
    return f"{', '.join(listed)} changed"


def is_in_head(changes: Sequence[ChangeShown]) -> bool:
    """Return whether the head has the whole change: one flag about one cluster."""
    only = changes[0] if len(changes) == 1 else None
    return only is not None and only.object.startswith("Cluster/") and bool(only.text) and not only.fields


def _kind(shown: str) -> str:
    kind, separator, _ = shown.partition("/")
    if not separator:
        return "setting"
    if kind in {"PropagationPolicy", "ClusterPropagationPolicy"}:
        return "policy"
    if kind == "Cluster":
        return "cluster"
    return "binding" if kind.endswith("ResourceBinding") else "object"


def against(plan: model.Plan) -> str:
    """Return against what the plan was made."""
    counts = f"{counted(plan.clusters, 'cluster')}, {counted(plan.total, 'binding')}"
    return f"{counts} (fleet {plan.provenance.fleet_text})"


def summary(plan: model.Plan) -> str:
    """Return the last line."""
    counts = plan.counts
    failing = sum(binding.later is not None and bool(binding.later.error) for binding in plan.bindings)
    said = (name for name in _SUMMED if counts[name] or name in _ALWAYS_SUMMED)
    text = ", ".join(f"{counts[name]:,} {class_words(name)}" for name in said)
    others = (
        (counts["adopted"], "adopted", "adopted", ""),
        (counts["released"], "released", "released", ""),
        (counts[model.Effect.LATENT.value] - failing, "moves", "move", " at the next rebalance"),
        (failing, "fails", "fail", " at the next rebalance"),
        (plan.after_rebalance.get(NOT_JUDGED, 0), "is", "are", " not judged for the next rebalance"),
        (len(plan.overcommitted), "cluster", "clusters", " overcommitted"),
        (len(plan.blocked), "deletion", "deletions", " blocked"),
        (len(plan.warnings), "warning", "warnings", ""),
    )
    text += "".join(f"; {counted(count, one, many)}{end}" for count, one, many, end in others if count)
    return f"Plan: {text}."


def moves(totals: model.Totals) -> str:
    """Return how many replicas stop and start."""
    if totals.stops == totals.starts:
        text = counted(totals.stops, "replica stops and starts", "replicas stop and start")
    else:
        stops = counted(totals.stops, "replica stops", "replicas stop")
        text = f"{stops}, {counted(totals.starts, 'starts', 'start')}"
    if totals.entirely:
        text += f"; {counted(totals.entirely, 'binding moves', 'bindings move')} entirely"
    if totals.without_replicas:
        text += f"; {counted(totals.without_replicas, 'has', 'have')} no replicas"
    return text


def class_words(name: str) -> str:
    """Return the name of a class for people."""
    return name.replace("-", " ")


def rows(plan: model.Plan) -> list[tuple[str, int, int | None]]:
    """Return the rows of the table of classes: name, at once, after a rebalance (None where that says nothing)."""
    unrelated = plan.not_derived or 0
    kept = plan.counts["unchanged"] + plan.counts["latent"] - unrelated
    now = {**plan.counts, "unchanged": kept}
    later = {**plan.after_rebalance, "deferred": now["deferred"]}
    later["unchanged"] -= unrelated
    names = (name for name in model.CLASSES if name != model.Effect.LATENT.value)
    found: list[tuple[str, int, int | None]] = [(name, now[name], later.get(name)) for name in names]
    if plan.not_derived is not None:
        found.append(("not derived", unrelated, unrelated))
    return [row for row in found if row[1] or row[2] or row[0] in {"unchanged", "moved"}]


_REMARKS: Final = {
    "stuck": "{keep} placement, every further decision fails",
    "held": "{stay} until what holds {them} lets go",
    "undecided": "{stay}, because nobody decides",
    "unplaced": "{have} no cluster afterwards",
    "deferred": "their policy is Lazy: they change when their template does",
    "released": "no policy claims them any more; they keep their placement",
    "adopted": "a policy claims them that did not before",
    NOT_JUDGED: "the rules by which their scheduler decides, or their replicas, are not known",
    "cannot-start": "have replicas that are assigned and cannot start: the cluster is not ready, or cordoned, or dispatching is suspended",
    "pending": "unchanged, without a cluster before and after",
}
_OF_ONE: Final = {"keep": "keeps its", "stay": "stays as it is", "them": "it", "have": "has"}
_OF_MANY: Final = {"keep": "keep their", "stay": "stay as they are", "them": "them", "have": "have"}


def remark(plan: model.Plan, name: str) -> str:
    """Return what the row of a class adds."""
    if name == "moved" and plan.counts["latent"]:
        now = f"{moves(plan.totals)} at once; " if plan.counts["moved"] else ""
        return f"{now}{moves(plan.latent)}{' at the next rebalance' if now else ''}"
    if name == "moved" and plan.counts["moved"]:
        return moves(plan.totals)
    text = _REMARKS.get(name, "").format_map(_OF_ONE if plan.counts.get(name) == 1 else _OF_MANY)
    if name == NOT_JUDGED and plan.after_rebalance.get(name):
        known = f"; {text}" if plan.counts[name] else ""
        return f"there was no time to decide about a rebalance{known}"
    return text


def claim_texts(plan: model.Plan) -> list[tuple[str, list[str]]]:
    """Return for each change of a claim what it is, and the bindings with it."""
    found: dict[str, list[str]] = {}
    for binding in plan.bindings:
        before = binding.policy_before
        if binding.claim is model.ClaimChange.RELEASED:
            of = f" by {before}" if before else ""
            text = f"released{of}: no policy claims them any more, they keep their placement"
        elif binding.claim is model.ClaimChange.ADOPTED:
            text = f"adopted by {binding.policy}{f' from {before}' if before else ''}"
        else:
            continue
        found.setdefault(text, []).append(str(binding))
    return sorted(found.items(), key=lambda item: -len(item[1]))


def targets_of(binding: model.BindingPlan) -> Sequence[Target]:
    """Return the clusters that a binding has in the end: at once, later, or after a rebalance."""
    if binding.held is not None:
        return binding.held.targets
    return binding.after if binding.later is None else binding.later.targets


def mode_text(capacity: Capacity) -> str:
    """Return what a capacity mode means."""
    if capacity.mode == "burst":
        return "the decisions do not see each other (gate SchedulingOvercommitProtection is off)"
    return "each decision sees those before it (gate SchedulingOvercommitProtection is on)"


def asked(demand: Demand) -> str:
    """Return what is asked and free of one resource."""
    free = "?" if demand.free is None else amount(demand.resource, demand.free)
    text = f"{amount(demand.resource, demand.asked)} / {free}"
    if demand.is_over and demand.free is not None and demand.free > 0:
        text += f"  x{demand.asked / demand.free:.1f}"
    return text


def amount(resource: str, value: float) -> str:
    """Return an amount for people."""
    if resource != "cpu" and abs(value) >= _MI and resource != "pods":
        unit, name = (_GI, "Gi") if abs(value) >= _GI else (_MI, "Mi")
        return f"{_rounded(value / unit)}{name}"
    return _rounded(value)


def _rounded(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 200 or value == int(value) else f"{value:,.1f}"


LONGEST: Final = 120
"""Characters of a value that are shown."""

_FIELDS: Final = 8
_KEPT: Final = 24
"""Characters that both values have before the difference."""

_COLOURS: Final = {"+": "green", "-": "red", "~": "yellow"}
_SIGNS: Final = {"+": "is new", "-": "is deleted", "=": "is as it was"}


def change_lines(change: ChangeShown, style: Style) -> Iterator[TextBlock]:
    """Yield the lines of one changed object."""
    what = "" if change.fields else change.text or _SIGNS.get(change.sign, "")
    sign = (change.sign, _COLOURS.get(change.sign, "faint"))
    yield Line([("  ", ""), sign, (f" {change.object}   {what}", "")], hang=6)
    shown = style.first(change.fields, _FIELDS)
    for field in shown:
        yield from _field_lines(field, style)
    if len(change.fields) > len(shown):
        yield f"      and {len(change.fields) - len(shown)} more fields (--all)"


def _field_lines(field: FieldChange, style: Style) -> Iterator[TextBlock]:
    path, before, after = field_texts(field, 0 if style.unfolded else LONGEST)
    lead = f"      {path}: "
    if not before or not after:
        sign, value = ("+", after) if after else ("-", before)
        yield Line(f"    {sign} {path}: {value}", _COLOURS[sign], hang=8)
    elif len(lead) + len(before) + len(after) + 4 <= style.width:
        yield Line([(lead, ""), (before, "red"), (" -> ", ""), (after, "green")])
    else:
        yield lead
        yield Line(f"        - {before}", "red", hang=12)
        yield Line(f"        + {after}", "green", hang=12)


def field_texts(field: FieldChange, longest: int = LONGEST) -> tuple[str, str, str]:
    """Return the path, and both values; "" for one that there is not.

    Args:
        field: The field.
        longest: Characters of a value that are shown; 0 for all.
    """
    before = "" if field.before is None else printable(value_text(field.before))
    after = "" if field.after is None else printable(value_text(field.after))
    return printable(field.path), *around_difference(before, after, longest)


def around_difference(one: str, other: str, longest: int) -> tuple[str, str]:
    """Return two texts; if one is too long, both without what they begin with alike, and cut after the difference."""
    if not longest or max(len(one), len(other)) <= longest:
        return one, other
    pairs = enumerate(zip(one, other, strict=False))
    same = next((index for index, (left, right) in pairs if left != right), min(len(one), len(other)))
    start = max(0, same - _KEPT)
    return _window(one, start, longest), _window(other, start, longest)


def _window(text: str, start: int, longest: int) -> str:
    begin = "..." if start else ""
    cut = text[start:]
    return begin + (cut if len(cut) <= longest else f"{cut[: longest - 3]}...")
