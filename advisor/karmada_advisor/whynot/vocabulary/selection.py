"""Edits of the spread constraints, for a cluster that is a candidate and not selected."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from karmada_advisor.whynot.quantities import amounts_of
from karmada_advisor.whynot.vocabulary.context import Context
from karmada_scheduler.api.placement import SPREAD_BY_CLUSTER, SPREAD_BY_REGION
from karmada_scheduler.framework.edits import Edit, Harm
from karmada_scheduler_plugins.placement_edits import drop_constraint, drop_constraints


def proposals(context: Context) -> Iterator[Edit]:
    """Yield other limits, and none at all."""
    constraints = context.placement_items("spreadConstraints")
    candidates = context.attempt.candidates if context.attempt is not None else ()
    most = {
        SPREAD_BY_CLUSTER: len(candidates),
        SPREAD_BY_REGION: len({each.cluster.region for each in candidates if each.cluster.region}),
    }
    for index, constraint in enumerate(constraints):
        name = str(constraint.get("spreadByField") or constraint.get("spreadByLabel") or "")
        yield from _limits(context, index, constraint, name, most.get(name, 1))
        yield drop_constraint(context, index, name)
    yield from drop_constraints(context)


def fewer_competitors(context: Context) -> Iterator[Edit]:
    """Yield smaller maxima: fewer clusters are selected, so that each gets more."""
    for index, constraint in enumerate(context.placement_items("spreadConstraints")):
        name = str(constraint.get("spreadByField") or "")
        yield from _limits(context, index, constraint, name, 0)


def _limits(context: Context, index: int, constraint: dict[str, Any], name: str, most: int) -> Iterator[Edit]:
    # Several limits may have to change together: the next one comes before other edits.
    edited = context.outcome.edits
    joint = -2.0 if edited and all(each.op == "setGroups" for each in edited) else 0.0
    for field in ("maxGroups", "minGroups"):
        base = constraint.get(field) or 0
        amounts = [most] if most > base else list(dict.fromkeys((max(1, most), 1))) if base > 1 else []
        if field == "minGroups" and base > 1 and most > base:
            amounts.append(1)
        if not most and field == "minGroups":
            continue
        harm = Harm.UNCHECKED if name == SPREAD_BY_CLUSTER and context.counts_sets else Harm.NONE

        def build(
            amount: int, field: str = field, base: int = base, harm: Harm = harm, joint: float = joint
        ) -> Edit:
            return context.on_policy.set(
                "setGroups", ("spreadConstraints", index, field), amount, f"{name} {field} {amount} ({base} now)",
                harm=harm, extra=joint,
            )  # fmt: skip

        yield from amounts_of(build, base=base, amounts=amounts)
