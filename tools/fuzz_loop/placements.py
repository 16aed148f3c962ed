"""Random placements that Karmada's webhooks would accept: all strategies, affinities, constraints.

Odd values are the business of tools/oracle; here the placements change on a living binding, so names repeat
(clusters, labels, affinity terms) and most changes move something.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from random import Random
from typing import TypeVar

from tools.controlplane import Object

T = TypeVar("T")

LABELS = {"tier": ("gold", "silver"), "env": ("prod", "dev", "test")}
REGIONS = ("ra", "rb", "rc")
PROVIDERS = ("paper", "stone")
TAINTS: tuple[tuple[str, str], ...] = (("k1", "a"), ("k1", "b"), ("k2", ""))
TERMS = ("t1", "t2", "t3")


class Dice(Random):
    """Draws, in the words of this package."""

    def chance(self, probability: float) -> bool:
        """Tell whether something of this probability happens."""
        return self.random() < probability

    def pick(self, items: Sequence[T]) -> T:
        """Draw one item."""
        return items[int(self.random() * len(items))]

    def between(self, least: int, most: int) -> int:
        """Draw an integer, both ends included."""
        return least + int(self.random() * (most - least + 1))

    def some(self, items: Sequence[T], least: int, most: int) -> list[T]:
        """Draw a few different items, in random order."""
        return self.sample(items, min(len(items), self.between(least, most)))


def placement(dice: Dice, clusters: Sequence[str]) -> Object:
    """Draw a placement on clusters of these names."""
    made: Object = {}
    luck = dice.random()
    if luck < 0.55:
        made["clusterAffinity"] = affinity(dice, clusters)
    elif luck < 0.9:
        made["clusterAffinities"] = [term(dice, clusters, name) for name in dice.some(TERMS, 1, len(TERMS))]
    if dice.chance(0.35):
        made["clusterTolerations"] = [toleration(dice) for _ in range(dice.between(1, 2))]
    if dice.chance(0.4):
        made["spreadConstraints"] = constraints(dice)
    if dice.chance(0.9):
        made["replicaScheduling"] = strategy(dice, clusters)
    return made


def edited(dice: Dice, old: Object, clusters: Sequence[str]) -> Object:
    """Return a placement that differs from an old one in one part."""
    made = copy.deepcopy(old)
    terms = made.get("clusterAffinities")
    if terms and dice.chance(0.6):
        luck = dice.random()
        if luck < 0.3:
            number = dice.between(0, len(terms) - 1)
            terms[number] = term(dice, clusters, terms[number]["affinityName"])
        elif luck < 0.5 and len(terms) > 1:
            del terms[dice.between(0, len(terms) - 1)]
        elif luck < 0.7 and (
            free := [name for name in TERMS if name not in [t["affinityName"] for t in terms]]
        ):
            terms.insert(dice.between(0, len(terms)), term(dice, clusters, dice.pick(free)))
        else:
            dice.shuffle(terms)
        return made
    part = dice.pick(("replicaScheduling", "spreadConstraints", "clusterTolerations"))
    if part in made and part != "replicaScheduling" and dice.chance(0.4):
        del made[part]
    elif part == "replicaScheduling":
        made[part] = strategy(dice, clusters)
    elif part == "spreadConstraints":
        made[part] = constraints(dice)
    else:
        made[part] = [toleration(dice)]
    return made


def affinity(dice: Dice, clusters: Sequence[str]) -> Object:
    """Draw what selects clusters; {} selects all."""
    made: Object = {}
    luck = dice.random()
    if luck < 0.5:
        made["clusterNames"] = dice.some(clusters, 1, len(clusters))
    elif luck < 0.85:
        key = dice.pick(tuple(LABELS))
        if dice.chance(0.6):
            made["labelSelector"] = {"matchLabels": {key: dice.pick(LABELS[key])}}
        else:
            operator = dice.pick(("In", "NotIn", "Exists", "DoesNotExist"))
            expression: Object = {"key": key, "operator": operator}
            if operator in {"In", "NotIn"}:
                expression["values"] = dice.some(LABELS[key], 1, 2)
            made["labelSelector"] = {"matchExpressions": [expression]}
    if dice.chance(0.15):
        made["exclude"] = dice.some(clusters, 1, 2)
    if dice.chance(0.15):
        key, values = dice.pick((("region", REGIONS), ("provider", PROVIDERS)))
        operator = dice.pick(("In", "NotIn"))
        made["fieldSelector"] = {
            "matchExpressions": [{"key": key, "operator": operator, "values": dice.some(values, 1, 2)}]
        }
    return made


def term(dice: Dice, clusters: Sequence[str], name: str) -> Object:
    """Draw an affinity term; some have tiers to overflow to."""
    made: Object = {"affinityName": name, **affinity(dice, clusters)}
    if dice.chance(0.2):
        made["clusterNames"] = dice.some(clusters, 1, 2)
        made["overflowAffinities"] = [
            {"affinityName": f"over{tier}", **affinity(dice, clusters)} for tier in range(dice.between(1, 2))
        ]
    return made


def toleration(dice: Dice) -> Object:
    """Draw a toleration of the taints of this package, always for ever."""
    key, value = dice.pick(TAINTS)
    made: Object = {"key": key, "operator": "Exists"}
    if dice.chance(0.4):
        made = {"key": key, "operator": "Equal", "value": value}
    if dice.chance(0.4):
        made["effect"] = dice.pick(("NoSchedule", "NoExecute"))
    return made


def constraints(dice: Dice) -> list[Object]:
    """Draw spread constraints: clusters alone, or regions and clusters."""
    low = dice.pick((1, 1, 2, 2, 3))
    clusters = {"spreadByField": "cluster", "minGroups": low, "maxGroups": low + dice.between(0, 3)}
    if dice.chance(0.6):
        return [clusters]
    low = dice.pick((1, 1, 2))
    return [{"spreadByField": "region", "minGroups": low, "maxGroups": low + dice.between(0, 1)}, clusters]


def strategy(dice: Dice, clusters: Sequence[str]) -> Object:
    """Draw how replicas are divided."""
    luck = dice.random()
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
                    "targetCluster": affinity(dice, clusters),
                    "weight": dice.pick((1, 1, 2, 3, 5)),
                }
                for _ in range(dice.between(1, 3))
            ]
        }
    return made


def tolerates(placement: Object, taint: Object) -> bool:
    """Tell whether a placement tolerates a taint, as Kubernetes has it."""
    return any(
        item.get("key", "") in {"", taint["key"]}
        and item.get("effect", "") in {"", taint["effect"]}
        and (item.get("operator") == "Exists" or item.get("value", "") == taint.get("value", ""))
        for item in placement.get("clusterTolerations") or ()
    )
