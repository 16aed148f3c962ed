"""Edits of an expression that is not known, which ends every decision."""

from __future__ import annotations

from collections.abc import Iterator

from karmada_advisor.whynot.vocabulary.context import Context
from karmada_scheduler.api.matching import EFFECTS, SET_OPERATORS, TOLERATION_OPERATORS
from karmada_scheduler.api.names import nearest
from karmada_scheduler.framework.diagnosis import InvalidExpressionError
from karmada_scheduler.framework.edits import PLACEMENT, Edit, Harm


def proposals(context: Context) -> Iterator[Edit]:
    """Yield that the expression at which the decision ended is written as it may be meant, or that it goes."""
    decision = context.outcome.scheduled.decision
    error = None if decision is None else decision.error
    if not isinstance(error, InvalidExpressionError):
        return
    path = error.path
    known: dict[str, tuple[str, ...]] = {"operator": SET_OPERATORS}
    op, name, harm, caution = "dropExpression", "expression", Harm.WIDENS, ""
    if path[0] == "clusterTolerations":
        op, name, harm = "dropToleration", "toleration", Harm.NARROWS
        caution = "It gives up what the toleration was meant to admit."
        known = {"operator": TOLERATION_OPERATORS, "effect": EFFECTS}
    found = context.mine(*PLACEMENT, *path)
    for field, values in known.items() if isinstance(found, dict) else ():
        written = found.get(field) or ""
        if written not in values and (near := nearest(str(written), values)):
            text = f"write {field} {near} instead of {written}, which is not known"
            yield context.on_policy.set("correctExpression", (*path, field), near, text, extra=-0.4)
    if path[0] == "replicaScheduling":
        # Without the expression, the weight would be that of all clusters.
        op, name, path = "dropWeight", "static weight", path[: path.index("targetCluster")]
        caution = "It gives up the weight that the owner of the policy asked for."
    shown = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")
    text = f"drop the {name} {shown}, which is not known"
    yield context.on_policy.remove(op, path, text, extra=0.1, harm=harm, caution=caution)
