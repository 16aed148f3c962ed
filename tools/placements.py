"""Random placements for living control planes: all strategies, affinities, constraints.

Odd values are the business of tools/oracle; here the placements change on a living binding, so names repeat
(clusters, labels, affinity terms) and most changes move replicas.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

from tools.controlplane import Object
from tools.oracle.generator.rng import Random

LABELS = {"tier": ("gold", "silver"), "env": ("prod", "dev", "test")}
REGIONS = ("ra", "rb", "rc")
PROVIDERS = ("paper", "stone")
TAINTS: tuple[tuple[str, str], ...] = (("k1", "a"), ("k1", "b"), ("k2", ""))
TERMS = ("t1", "t2", "t3")


def placement(choices: Random, clusters: Sequence[str]) -> Object:
    """Draw a placement on clusters of these names."""
    made: Object = {}
    luck = choices.random()
    if luck < 0.55:
        made["clusterAffinity"] = affinity(choices, clusters)
    elif luck < 0.9:
        made["clusterAffinities"] = [
            term(choices, clusters, name) for name in choices.some(TERMS, len(TERMS), 1)
        ]
    if choices.chance(0.35):
        made["clusterTolerations"] = [toleration(choices) for _ in range(choices.between(1, 2))]
    if choices.chance(0.4):
        made["spreadConstraints"] = constraints(choices)
    if choices.chance(0.9):
        made["replicaScheduling"] = strategy(choices, clusters)
    return made


def for_policy(choices: Random, clusters: Sequence[str]) -> Object:
    """Draw a placement that the webhook of policies accepts: one that overflows divides by capacity."""
    made = placement(choices, clusters)
    strategy = made.get("replicaScheduling", {})
    by_capacity = strategy.get(
        "replicaDivisionPreference"
    ) == "Aggregated" or "dynamicWeight" in strategy.get("weightPreference", {})
    for item in made.get("clusterAffinities") or () if not by_capacity else ():
        item.pop("overflowAffinities", None)
    return made


def edited(choices: Random, old: Object, clusters: Sequence[str]) -> Object:
    """Return a placement that differs from an old one in one part."""
    made = copy.deepcopy(old)
    terms = made.get("clusterAffinities")
    if terms and choices.chance(0.6):
        luck = choices.random()
        if luck < 0.3:
            number = choices.between(0, len(terms) - 1)
            terms[number] = term(choices, clusters, terms[number]["affinityName"])
        elif luck < 0.5 and len(terms) > 1:
            del terms[choices.between(0, len(terms) - 1)]
        elif luck < 0.7 and (
            free := [name for name in TERMS if name not in [t["affinityName"] for t in terms]]
        ):
            terms.insert(choices.between(0, len(terms)), term(choices, clusters, choices.pick(free)))
        else:
            choices.shuffle(terms)
        return made
    part = choices.pick(("replicaScheduling", "spreadConstraints", "clusterTolerations"))
    if part in made and part != "replicaScheduling" and choices.chance(0.4):
        del made[part]
    elif part == "replicaScheduling":
        made[part] = strategy(choices, clusters)
    elif part == "spreadConstraints":
        made[part] = constraints(choices)
    else:
        made[part] = [toleration(choices)]
    return made


def affinity(choices: Random, clusters: Sequence[str]) -> Object:
    """Draw what selects clusters; {} selects all."""
    made: Object = {}
    luck = choices.random()
    if luck < 0.5:
        made["clusterNames"] = choices.some(clusters, len(clusters), 1)
    elif luck < 0.85:
        key = choices.pick(tuple(LABELS))
        if choices.chance(0.6):
            made["labelSelector"] = {"matchLabels": {key: choices.pick(LABELS[key])}}
        else:
            operator = choices.pick(("In", "NotIn", "Exists", "DoesNotExist"))
            expression: Object = {"key": key, "operator": operator}
            if operator in {"In", "NotIn"}:
                expression["values"] = choices.some(LABELS[key], 2, 1)
            made["labelSelector"] = {"matchExpressions": [expression]}
    if choices.chance(0.15):
        made["exclude"] = choices.some(clusters, 2, 1)
    if choices.chance(0.15):
        key, values = choices.pick((("region", REGIONS), ("provider", PROVIDERS)))
        operator = choices.pick(("In", "NotIn"))
        made["fieldSelector"] = {
            "matchExpressions": [{"key": key, "operator": operator, "values": choices.some(values, 2, 1)}]
        }
    return made


def term(choices: Random, clusters: Sequence[str], name: str) -> Object:
    """Draw an affinity term; some have tiers to overflow to."""
    made: Object = {"affinityName": name, **affinity(choices, clusters)}
    if choices.chance(0.2):
        made["clusterNames"] = choices.some(clusters, 2, 1)
        made["overflowAffinities"] = [
            {"affinityName": f"over{tier}", **affinity(choices, clusters)}
            for tier in range(choices.between(1, 2))
        ]
    return made


def toleration(choices: Random) -> Object:
    """Draw a toleration of the taints of this package, always for ever."""
    key, value = choices.pick(TAINTS)
    made: Object = {"key": key, "operator": "Exists"}
    if choices.chance(0.4):
        made = {"key": key, "operator": "Equal", "value": value}
    if choices.chance(0.4):
        made["effect"] = choices.pick(("NoSchedule", "NoExecute"))
    return made


def constraints(choices: Random) -> list[Object]:
    """Draw spread constraints: clusters alone, or regions and clusters."""
    low = choices.pick((1, 1, 2, 2, 3))
    clusters = {"spreadByField": "cluster", "minGroups": low, "maxGroups": low + choices.between(0, 3)}
    if choices.chance(0.6):
        return [clusters]
    low = choices.pick((1, 1, 2))
    return [{"spreadByField": "region", "minGroups": low, "maxGroups": low + choices.between(0, 1)}, clusters]


def strategy(choices: Random, clusters: Sequence[str]) -> Object:
    """Draw how replicas are divided."""
    luck = choices.random()
    if luck < 0.25:
        return {"replicaSchedulingType": "Duplicated"}
    made: Object = {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"}
    if luck < 0.5:
        return made
    made["replicaDivisionPreference"] = "Weighted"
    if luck < 0.75:
        made["weightPreference"] = {"dynamicWeight": "AvailableReplicas"}
    elif luck < 0.95:
        made["weightPreference"] = {
            "staticWeightList": [
                {
                    "targetCluster": affinity(choices, clusters),
                    "weight": choices.pick((1, 1, 2, 3, 5)),
                }
                for _ in range(choices.between(1, 3))
            ]
        }
    return made


def tolerates(placement: Object, taint: Object) -> bool:
    """Return whether a placement tolerates a taint, as Kubernetes has it."""
    return any(
        item.get("key", "") in {"", taint["key"]}
        and item.get("effect", "") in {"", taint["effect"]}
        and (item.get("operator") == "Exists" or item.get("value", "") == taint.get("value", ""))
        for item in placement.get("clusterTolerations") or ()
    )
