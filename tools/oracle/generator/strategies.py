"""How replicas are divided."""

from __future__ import annotations

from collections.abc import Sequence

from tools.oracle.generator.affinities import draw_affinity
from tools.oracle.generator.rng import Random, ScenarioProfile
from tools.oracle.generator.values import Manifest


def draw_strategy(rng: Random, profile: ScenarioProfile, names: Sequence[str]) -> Manifest | None:
    luck = rng.random()
    if luck < 0.12:
        return None
    if luck < 0.27:
        return {"replicaSchedulingType": "Duplicated"}
    if luck < 0.285:
        return rng.pick(
            (
                {"replicaSchedulingType": "Divided"},
                {"replicaSchedulingType": "Other", "replicaDivisionPreference": "Odd"},
                {},
                {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Odd"},
                {"replicaSchedulingType": "Duplicated", "replicaDivisionPreference": "Weighted"},
            )
        )
    if luck < 0.55:
        return {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"}
    strategy: Manifest = {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted"}
    if luck < 0.78:
        strategy["weightPreference"] = {"dynamicWeight": "AvailableReplicas"}
        if rng.chance(0.04):
            strategy["weightPreference"]["staticWeightList"] = _draw_weights(rng, profile, names)
    elif luck < 0.95:
        strategy["weightPreference"] = {"staticWeightList": _draw_weights(rng, profile, names)}
    elif luck < 0.97:
        strategy["weightPreference"] = {}
    return strategy


def _draw_weights(rng: Random, profile: ScenarioProfile, names: Sequence[str]) -> list[Manifest]:
    rules = []
    for _ in range(0 if rng.chance(profile.tiny) else 1 + rng.upto(3)):
        luck = rng.random()
        if luck < 0.6:
            target: Manifest = {"clusterNames": rng.some(names, max(2, len(names) // 2), 1)}
        else:
            target = draw_affinity(rng, profile, names)
        weight = (
            rng.pick((1, 1, 2, 3, 5, 10, 100)) if rng.chance(0.95) else rng.pick((0, 999999937, 2**40, 2**62))
        )
        rules.append({"targetCluster": target, "weight": weight})
    return rules
