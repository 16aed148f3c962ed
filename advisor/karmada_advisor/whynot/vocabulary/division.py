"""Edits of how replicas are divided, and of their number."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from karmada_advisor.explain.amounts import counted
from karmada_advisor.whynot.goals import has_replicas
from karmada_advisor.whynot.quantities import amounts_of
from karmada_advisor.whynot.vocabulary.context import Context
from karmada_scheduler.api.placement import AGGREGATED, DIVIDED, WEIGHTED
from karmada_scheduler.core.select_clusters import ignores_spread
from karmada_scheduler.framework.edits import PLACEMENT, Edit, Harm

_STRATEGY = ("replicaScheduling",)
_WEIGHTS = (*_STRATEGY, "weightPreference", "staticWeightList")


def proposals(context: Context) -> Iterator[Edit]:
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
    selected = sum(each.available for each in attempt.selected) if attempt is not None else 0
    total = context.available
    fails = attempt is not None and attempt.error is not None
    up = [max(base, 1) + 1, max(present, 1) + 1, 2 * max(base, 1), 4 * max(base, 1), 20 * max(base, 1)]
    down = [selected, total, present, base // 2, 1]
    amounts = [each for each in (down + up if fails else up + down) if 0 < each < 2**31 and each != base]

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
    heaviest = max((each.get("weight") or 0 for each in rules if isinstance(each, dict)), default=1)
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
