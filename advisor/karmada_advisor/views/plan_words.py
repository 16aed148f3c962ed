"""The words that the text and the Markdown of a plan share: head, summary, amounts, and names that cannot do harm."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from karmada_advisor.explain.amounts import counted
from karmada_advisor.explain.model import Cause, Target
from karmada_advisor.plan.capacity_model import Capacity, Demand
from karmada_advisor.plan.change_model import ChangeShown
from karmada_advisor.plan.model import (
    BindingPlan,
    BlockedDeletion,
    Blocker,
    ClaimChange,
    Effect,
    FailureGroup,
    Plan,
    PlanWarning,
    Totals,
)
from karmada_advisor.views.layout import printable

_GI: Final = 2**30
_MI: Final = 2**20
_MANY: Final = {"policy": "policies"}

BAD: Final = frozenset({"stuck", "unplaced", "undecided"})
"""The classes that are marked."""


def head(plan: Plan) -> str:
    """Return what changes, in one phrase."""
    changed = [each for each in plan.changes if each.sign != "="]
    if not changed:
        return "nothing changed"
    if is_in_head(changed):
        return printable(f"cluster {changed[0].object.removeprefix('Cluster/')} {changed[0].text}")
    kinds = Counter(_kind(each.object) for each in changed)
    listed = [counted(count, kind, _MANY.get(kind, "")) for kind, count in kinds.items()]
    return f"{', '.join(listed)} changed"


def is_in_head(changes: Sequence[ChangeShown]) -> bool:
    """Return whether the head has the whole change: one flag about one cluster."""
    return (
        len(changes) == 1
        and changes[0].object.startswith("Cluster/")
        and bool(changes[0].text)
        and not changes[0].fields
    )


def _kind(shown: str) -> str:
    kind, separator, _ = shown.partition("/")
    if not separator:
        return "setting"
    if kind in {"PropagationPolicy", "ClusterPropagationPolicy"}:
        return "policy"
    if kind == "Cluster":
        return "cluster"
    return "binding" if kind.endswith("ResourceBinding") else "object"


def against(plan: Plan) -> str:
    """Return against what the plan was made."""
    counts = f"{counted(plan.clusters, 'cluster')}, {counted(plan.total, 'binding')}"
    return f"{counts} (fleet {plan.provenance.fleet_text})"


def summary(plan: Plan) -> str:
    """Return the last line."""
    counts = plan.counts
    shown = [
        f"{counts[name]:,} {name}"
        for name in (
            "moved",
            "placed",
            "unplaced",
            "stuck",
            "held",
            "undecided",
            "deleted",
        )
    ]
    kept = [
        each
        for each in shown
        if not each.startswith("0 ") or each.endswith((" moved", " unplaced", " stuck"))
    ]
    text = ", ".join(kept)
    for name in ("adopted", "released"):
        if counts[name]:
            text += f"; {counts[name]:,} {name}"
    failing = sum(1 for each in plan.bindings if each.later is not None and each.later.error)
    latent = counts[Effect.LATENT.value] - failing
    if latent:
        text += f"; {counted(latent, 'moves', 'move')} at the next rebalance"
    if failing:
        text += f"; {counted(failing, 'fails', 'fail')} at the next rebalance"
    if plan.overcommitted:
        text += f"; {counted(len(plan.overcommitted), 'cluster')} overcommitted"
    if plan.blocked:
        text += f"; {counted(len(plan.blocked), 'deletion')} blocked"
    if plan.warnings:
        text += f"; {counted(len(plan.warnings), 'warning')}"
    return f"Plan: {text}."


def moves(totals: Totals) -> str:
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


def rows(plan: Plan) -> list[tuple[str, int, int | None]]:
    """Return the rows of the table of classes: name, at once, after a rebalance (None where that says nothing)."""
    counts, rebalanced = plan.counts, plan.after_rebalance
    unrelated = plan.not_derived or 0
    found: list[tuple[str, int, int | None]] = [
        (
            "unchanged",
            counts["unchanged"] + counts["latent"] - unrelated,
            rebalanced["unchanged"] - unrelated,
        ),
        ("moved", counts["moved"], rebalanced["moved"]),
        ("placed", counts["placed"], None),
        ("unplaced", counts["unplaced"], None),
        ("stuck", counts["stuck"], rebalanced["stuck"]),
        ("held", counts["held"], None),
        ("undecided", counts["undecided"], None),
        ("deferred", counts["deferred"], counts["deferred"]),
        ("deleted", counts["deleted"], None),
        ("adopted", counts["adopted"], None),
        ("released", counts["released"], None),
    ]
    if plan.not_derived is not None:
        found.append(("not derived", unrelated, unrelated))
    return [each for each in found if each[1] or each[2] or each[0] in {"unchanged", "moved"}]


def remark(plan: Plan, name: str) -> str:
    """Return what the row of a class adds."""
    is_one = plan.counts.get(name) == 1
    keep, have = ("keeps its", "has") if is_one else ("keep their", "have")
    match name:
        case "moved" if plan.counts["latent"]:
            now = f"{moves(plan.totals)} at once; " if plan.counts["moved"] else ""
            return f"{now}{moves(plan.latent)}{' at the next rebalance' if now else ''}"
        case "moved" if plan.counts["moved"]:
            return moves(plan.totals)
        case "stuck":
            return f"{keep} placement, every further decision fails"
        case "held":
            return f"{'stays as it is' if is_one else 'stay as they are'} until what holds {'it' if is_one else 'them'} lets go"
        case "undecided":
            return f"{'stays as it is' if is_one else 'stay as they are'}, because nobody decides"
        case "unplaced":
            return f"{have} no cluster afterwards"
        case "deferred":
            return "their policy is Lazy: they change when their template does"
        case "released":
            return "no policy claims them any more; they keep their placement"
        case "adopted":
            return "another policy claims them"
    return ""


def failure_head(group: FailureGroup) -> str:
    """Return how many bindings fail, and why."""
    count = counted(group.count, "binding")
    of = f" of {group.policy}" if group.policy is not None else ""
    return printable(f"{count}{of}, {group.message}")


def warning_text(warning: PlanWarning) -> str:
    """Return a warning in one line."""
    return printable(f"{warning.code}: {warning.object}: {warning.field}: {warning.text}")


def blocked_text(deletion: BlockedDeletion) -> str:
    """Return what a deletion waits for, without the names of the bindings."""
    return printable(f"{deletion.object} {deletion.text}")


def blocker_text(blocker: Blocker) -> str:
    """Return why a binding keeps a cluster from going."""
    name = "stays" if blocker.effect is Effect.UNCHANGED else blocker.effect.value
    return printable(f"{blocker}   {name}: {blocker.text}")


def claim_texts(plan: Plan) -> list[tuple[str, list[str]]]:
    """Return for each change of a claim what it is, and the bindings with it."""
    found: dict[str, list[str]] = {}
    for each in plan.bindings:
        if each.claim is ClaimChange.RELEASED:
            of = f" by {each.policy_before}" if each.policy_before else ""
            text = f"released{of}: no policy claims them any more, they keep their placement"
        elif each.claim is ClaimChange.ADOPTED:
            of = f" from {each.policy_before}" if each.policy_before else ""
            text = f"adopted by {each.policy}{of}"
        else:
            continue
        found.setdefault(printable(text), []).append(printable(str(each)))
    return sorted(found.items(), key=lambda item: -len(item[1]))


def cause_texts(causes: Iterable[Cause]) -> list[str]:
    """Return the sentences of causes, the primary one first."""
    return [printable(f"{each.code}: {each.text}") for each in causes]


def targets_of(each: BindingPlan) -> Sequence[Target]:
    """Return the clusters that a binding has in the end: at once, later, or after a rebalance."""
    if each.held is not None:
        return each.held.targets
    return each.after if each.later is None else each.later.targets


def placement(targets: Sequence[Target]) -> list[str]:
    """Return clusters with their replicas, as they are listed."""
    return [printable(str(each)) for each in targets]


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
