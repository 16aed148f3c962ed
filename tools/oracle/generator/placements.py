"""Placements: their affinities, tolerations and spread constraints."""

from __future__ import annotations

from collections.abc import Sequence

from tools.oracle.generator.affinities import draw_affinity, draw_terms
from tools.oracle.generator.rng import Random, ScenarioProfile
from tools.oracle.generator.strategies import draw_strategy
from tools.oracle.generator.values import TAINT_KEYS, Manifest


def draw_placement(rng: Random, profile: ScenarioProfile, names: Sequence[str], spec: Manifest) -> Manifest:
    """Make a placement, mostly one that admission accepts."""
    made: Manifest = {}
    strategy = draw_strategy(rng, profile, names)
    dynamic = strategy is not None and (
        strategy.get("replicaDivisionPreference") == "Aggregated"
        or "dynamicWeight" in strategy.get("weightPreference", {})
    )
    luck = rng.random()
    if luck < 0.35 + profile.strict * 0.3:
        made["clusterAffinity"] = draw_affinity(rng, profile, names)
    elif luck < 0.8:
        made["clusterAffinities"] = draw_terms(
            rng, profile, names, overflow=profile.tiers and (dynamic or rng.chance(0.05))
        )
    if rng.chance(0.01):
        made["clusterAffinity"] = draw_affinity(rng, profile, names)
    if rng.chance(0.3 + profile.strict * 0.4):
        made["clusterTolerations"] = [_draw_toleration(rng) for _ in range(rng.upto(2) or 1)]
    elif rng.chance(profile.tiny * 0.2):
        made["clusterTolerations"] = []
    sets = bool(spec.get("components")) and rng.chance(0.7)
    if sets or rng.chance(0.5):
        made["spreadConstraints"] = _draw_constraints(rng, profile, one_cluster=sets)
    if strategy is not None:
        made["replicaScheduling"] = strategy
    if "workloadAffinityGroups" in spec and rng.chance(0.5):
        made["workloadAffinity"] = {"affinity": {"groupByLabelKey": "app"}}
    return made


def _draw_toleration(rng: Random) -> Manifest:
    toleration: Manifest = {}
    if rng.chance(0.6):
        toleration["key"] = rng.pick(TAINT_KEYS)
    if rng.chance(0.7):
        toleration["operator"] = rng.pick(
            ("Exists", "Exists", "Equal", "Gt", "Lt", "X") if rng.chance(0.1) else ("Exists", "Equal")
        )
    if rng.chance(0.4) and toleration.get("operator") != "Exists":
        toleration["value"] = rng.pick(("a", "b"))
    if rng.chance(0.3):
        toleration["effect"] = rng.pick(("NoSchedule", "NoExecute"))
    return toleration


def _draw_constraints(rng: Random, profile: ScenarioProfile, *, one_cluster: bool) -> list[Manifest]:
    if one_cluster:
        constraints = [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}]
        if rng.chance(0.1):
            constraints.append({"spreadByField": "region", "minGroups": 1, "maxGroups": 1})
        return constraints
    if rng.chance(profile.tiny * 0.2):
        return []
    fields = rng.pick(
        (
            ("cluster",), ("cluster",), ("cluster",), ("cluster",), ("region", "cluster"), ("region", "cluster"),
            ("cluster", "region"), ("region",), ("zone", "cluster"), ("provider", "cluster"), ("zone", "region", "cluster"),
            ("provider", "region"), ("zone",), ("provider",), ("", "cluster"), ("cluster", "cluster"), ("region", "region"),
            ("zone", "region", "provider", "cluster"),
        )
    )  # fmt: skip
    constraints = []
    for field in fields:
        low = rng.pick((0, 1, 1, 1, 1, 2, 2, 3)) if field != "cluster" else rng.pick((0, 1, 1, 1, 2, 2, 3, 4))
        high = low + rng.upto(4)
        constraint: Manifest = {"spreadByField": field} if field else {"spreadByLabel": "env"}
        if low or rng.chance(profile.tiny):
            constraint["minGroups"] = low
        if high and not rng.chance(0.06):
            constraint["maxGroups"] = high
        constraints.append(constraint)
    return constraints
