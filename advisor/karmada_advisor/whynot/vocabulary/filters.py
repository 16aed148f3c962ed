"""Edits for a cluster that a filter refuses, and of an expression that is not known, which ends every decision."""

from __future__ import annotations

from collections.abc import Iterator

from karmada_advisor.whynot.vocabulary.context import Context
from karmada_scheduler.api.matching import EFFECTS, SET_OPERATORS, TOLERATION_OPERATORS
from karmada_scheduler.api.names import nearest
from karmada_scheduler.framework.diagnosis import InvalidExpressionError
from karmada_scheduler.framework.edits import PLACEMENT, Edit, EditsPlugin, Harm
from karmada_scheduler_plugins.placement_edits import drop_term


def proposals(context: Context) -> Iterator[Edit]:
    """Yield the edits of the plugin that refuses the cluster first, and the one that drops the affinity term in use."""
    offered = _of_plugin(context)
    yield from offered
    yield from (change for change in _without_term(context) if change not in offered)


def _of_plugin(context: Context) -> list[Edit]:
    framework = context.objects.rules.frameworks.of(context.binding)
    for plugin in framework.plugins.unique if framework is not None else ():
        if plugin.name == context.blocker.code and isinstance(plugin, EditsPlugin):
            try:
                return [change for change in plugin.edits(context) if isinstance(change, Edit)]
            except Exception:  # noqa: BLE001 (a plugin can raise anything)
                return []
    return []


def _without_term(context: Context) -> Iterator[Edit]:
    """Yield the edit that drops the term in which the cluster is refused, if another term follows."""
    listed = context.placement_items("clusterAffinities")
    if context.attempt is None or len(listed) < 2:
        return
    for index, term in enumerate(listed):
        if isinstance(term, dict) and term.get("affinityName") == context.attempt.affinity_name:
            yield drop_term(context, index, context.attempt.affinity_name, extra=1.0)


def corrections(context: Context) -> Iterator[Edit]:
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
