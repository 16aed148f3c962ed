"""Edits for a cluster that a filter refuses, that is not selected, that gets no replicas, or that is to be left: mostly of the placement."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from karmada_advisor.explain.amounts import counted
from karmada_advisor.whynot.goals import has_replicas
from karmada_advisor.whynot.quantities import amounts_of
from karmada_advisor.whynot.vocabulary.context import Context
from karmada_scheduler.api.matching import EFFECTS, SET_OPERATORS, TOLERATION_OPERATORS
from karmada_scheduler.api.names import nearest
from karmada_scheduler.api.placement import AGGREGATED, DIVIDED, SPREAD_BY_CLUSTER, SPREAD_BY_REGION, WEIGHTED
from karmada_scheduler.core.select_clusters import ignores_spread
from karmada_scheduler.framework.diagnosis import InvalidExpressionError
from karmada_scheduler.framework.edits import PLACEMENT, Edit, EditsPlugin, Harm, Path
from karmada_scheduler_plugins.placement_edits import (
    drop_constraint,
    drop_constraints,
    drop_term,
    overflow,
    select,
)
from karmada_scheduler_plugins.selector_edits import matches

_STRATEGY = ("replicaScheduling",)
_WEIGHTS = (*_STRATEGY, "weightPreference", "staticWeightList")


def limits(context: Context) -> Iterator[Edit]:
    """Yield other limits, and none at all."""
    constraints = context.placement_items("spreadConstraints")
    candidates = context.attempt.candidates if context.attempt is not None else ()
    regions = {candidate.cluster.region for candidate in candidates} - {""}
    most = {SPREAD_BY_CLUSTER: len(candidates), SPREAD_BY_REGION: len(regions)}
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
    joint = -2.0 if edited and all(edit.op == "setGroups" for edit in edited) else 0.0
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


def only(context: Context) -> Iterator[Edit]:
    """Yield the affinity that selects nothing else by name."""
    for path, found in context.affinity_paths():
        names = found.get("clusterNames") if isinstance(found, dict) else None
        if names != [context.name]:
            yield context.on_policy.set(
                "selectOnly", (*path, "clusterNames"), [context.name], f"clusterNames: [{context.name}]", extra=2.5,
                harm=Harm.NARROWS, caution="It takes every other cluster out of the policy.",
            )  # fmt: skip
        return


def competitors(context: Context) -> Iterator[Edit]:
    """Yield edits that take selected clusters, or their regions, out of the affinity."""
    regions: dict[str, None] = {}
    for number, other in enumerate(context.competitors()):
        yield from exclude(context, other.name, extra=0.1 * number)
        region = other.cluster.region
        if region and region != context.cluster.region:
            regions[region] = None
    for region in regions:
        for path, _ in context.affinity_paths():
            caution = f"It takes all clusters of {region} out of the policy."
            yield exclude_region(context, path, region, harm=Harm.NARROWS, caution=caution)
            break


def exclude_region(context: Context, path: Path, region: str, **rest: Any) -> Edit:
    """Return that an affinity no longer selects the clusters of a region."""
    return context.on_policy.append(
        "excludeRegion", (*path, "fieldSelector", "matchExpressions"),
        {"key": "region", "operator": "NotIn", "values": [region]}, f"region NotIn [{region}]", extra=0.5, **rest,
    )  # fmt: skip


def exclude(context: Context, name: str, *, extra: float = 0.0) -> Iterator[Edit]:
    """Yield the edit that takes one cluster out of the affinity; harmless if another one is asked for, or this one is left."""
    harm = Harm.NONE if context.is_wanted or name == context.name else Harm.NARROWS
    caution = "" if name == context.name else f"It takes {name}, which the policy allows, out of it."
    for path, found in context.affinity_paths():
        names = (found.get("clusterNames") or ()) if isinstance(found, dict) else ()
        if name in names and len(names) > 1:
            yield context.on_policy.remove(
                "removeClusterName", (*path, "clusterNames", names.index(name)), f"remove {name} from clusterNames",
                extra=extra, harm=harm, caution=caution,
            )  # fmt: skip
        else:
            yield context.on_policy.append(
                "excludeCluster", (*path, "exclude"), name, f"exclude {name}", extra=extra, harm=harm,
                caution=caution,
            )  # fmt: skip


def tiers(context: Context) -> Iterator[Edit]:
    """Yield edits of the tiers: the cluster in the main affinity of its term, or as overflow of another term."""
    candidate = context.blocker.candidate
    if candidate is not None and candidate.tier > 0:
        for path, found in context.affinity_paths():
            if isinstance(found, dict):
                yield from select(context, path, found)
            break
    if context.cycle.placement.cluster_affinity is None and context.binding.spec.is_workload:
        for index, term in enumerate(context.placement_items("clusterAffinities")):
            if isinstance(term, dict) and not matches(term, context.cluster):
                yield overflow(context, index, str(term.get("affinityName")))


def of_refusal(context: Context) -> Iterator[Edit]:
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


def divisions(context: Context) -> Iterator[Edit]:
    """Yield other numbers of replicas, weights and strategies."""
    yield from replicas(context)
    yield from _weights(context)
    yield from strategies(context)


def replicas(context: Context) -> Iterator[Edit]:
    """Yield more and fewer replicas."""
    spec = context.binding.spec
    if not has_replicas(context.binding):
        return
    base = spec.replicas
    present = sum(target.replicas for target in spec.clusters)
    attempt = context.attempt
    selected = sum(candidate.available for candidate in attempt.selected) if attempt is not None else 0
    total = context.available
    fails = attempt is not None and attempt.error is not None
    up = [max(base, 1) + 1, max(present, 1) + 1, 2 * max(base, 1), 4 * max(base, 1), 20 * max(base, 1)]
    down = [selected, total, present, base // 2, 1]
    amounts = [count for count in (down + up if fails else up + down) if 0 < count < 2**31 and count != base]

    def build(amount: int) -> Edit:
        text = f"{counted(amount, 'replica')} ({base} now)"
        return context.on_workload.set("setReplicas", ("spec", "replicas"), amount, text)

    yield from amounts_of(build, base=base, amounts=amounts)


def _weights(context: Context) -> Iterator[Edit]:
    """Yield a static weight for the cluster."""
    preference = context.mine(*PLACEMENT, *_STRATEGY, "weightPreference")
    if not ignores_spread(context.cycle.placement):
        return
    rules = preference.get("staticWeightList") if isinstance(preference, dict) else None
    rules = rules if isinstance(rules, list) else []
    heaviest = max((rule.get("weight") or 0 for rule in rules if isinstance(rule, dict)), default=1)
    for index, rule in enumerate(rules):
        if isinstance(rule, dict) and (rule.get("targetCluster") or {}).get("clusterNames") == [context.name]:
            yield from _weight(context, index, rule.get("weight") or 0, heaviest)
            return

    def build(amount: int) -> Edit:
        value = {"targetCluster": {"clusterNames": [context.name]}, "weight": amount}
        text = f"weight {amount} for {context.name}"
        return context.on_policy.append("addWeight", _WEIGHTS, value, text)

    yield from amounts_of(build, base=0, amounts=[1, heaviest, 10 * heaviest])


def _weight(context: Context, index: int, base: int, heaviest: int) -> Iterator[Edit]:
    def build(amount: int) -> Edit:
        text = f"weight {amount} for {context.name} ({base} now)"
        path = (*_WEIGHTS, index, "weight")
        return context.on_policy.set("setWeight", path, amount, text)

    yield from amounts_of(build, base=base, amounts=[heaviest + 1, 10 * heaviest, 1000 * heaviest])


def strategies(context: Context) -> Iterator[Edit]:
    """Yield the other strategies; those that ignore capacity come last."""
    divided = {"replicaSchedulingType": DIVIDED, "replicaDivisionPreference": WEIGHTED}
    weight = {"targetCluster": {"clusterNames": [context.name]}, "weight": 1}
    dynamic: dict[str, Any] = {**divided, "weightPreference": {"dynamicWeight": "AvailableReplicas"}}
    choices: list[tuple[str, dict[str, Any], float]] = [
        ("Divided by available replicas", dynamic, 0.6),
        ("Aggregated", {**divided, "replicaDivisionPreference": AGGREGATED}, 0.9),
        ("Divided by equal weights", divided, 2.5),
        ("Duplicated", {"replicaSchedulingType": "Duplicated"}, 2.6),
        (
            f"Divided by static weights, all to {context.name}",
            {**divided, "weightPreference": {"staticWeightList": [weight]}},
            2.7,
        ),
    ]
    current = context.mine(*PLACEMENT, *_STRATEGY)
    for text, value, extra in choices:
        if value != current:
            ignores_capacity = extra > 1.0
            yield context.on_policy.set(
                "setStrategy", _STRATEGY, value, f"replicaScheduling: {text}", extra=extra,
                harm=Harm.UNCHECKED if ignores_capacity else Harm.NONE,
            )  # fmt: skip
