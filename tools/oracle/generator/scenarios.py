"""Scenarios: settings, clusters and bindings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tools.oracle.generator.bindings import draw_binding
from tools.oracle.generator.clusters import draw_cluster
from tools.oracle.generator.rng import Random, ScenarioProfile
from tools.oracle.generator.surroundings import draw_assumed, draw_estimates, draw_newer_peer, draw_peer

Scenario = dict[str, Any]
DECISION_GATES = (
    "CustomizedClusterResourceModeling",
    "MultiplePodTemplatesScheduling",
    "SchedulingOvercommitProtection",
    "WorkloadAffinity",
    "PriorityBasedScheduling",
)
PLUGIN_LISTS: tuple[list[str], ...] = (
    ["*", "-TaintToleration"],
    ["*", "-ClusterLocality"],
    ["*", "-ClusterAffinity", "-APIEnablement"],
    ["*", "--SpreadConstraint"],
    ["-ClusterEviction", "*"],
    ["ClusterAffinity", "SpreadConstraint", "ClusterLocality"],
    ["*", "-TaintToleration", "TaintToleration"],
    ["-TaintToleration"],
    ["nosuch"],
    [],
)


def scenarios(seed: int, *, cases: int, first: int = 0, step: int = 1) -> Iterator[Scenario]:
    """Yield scenarios first, first + step, ... of a seed that together have at least this many cases in all steps."""
    index = produced = 0
    while produced < cases:
        rng = Random(f"{seed}/{index}")
        size = _draw_size(rng)
        count = _bindings_for(rng, size)
        produced += count
        if index % step == first:
            yield draw_scenario(rng, clusters=size, bindings=count, identity=f"{seed}/{index}")
        index += 1


def _draw_size(rng: Random) -> int:
    luck = rng.random()
    if luck < 0.72:
        return 1 + rng.upto(7)
    if luck < 0.95:
        return 9 + rng.upto(10)
    if luck < 0.995:
        return 20 + rng.upto(40)
    return 61 + rng.upto(439)


def _bindings_for(rng: Random, clusters: int) -> int:
    return (20 if clusters < 20 else 8 if clusters < 61 else 3) + rng.upto(4)


def draw_scenario(rng: Random, *, clusters: int, bindings: int, identity: str) -> Scenario:
    """Make one scenario."""
    extreme = rng.pick((0.0, 0.0, 0.0, 0.005, 0.03, 0.15))
    vast = rng.chance(0.1)
    profile = ScenarioProfile(
        odd=rng.pick((0.0, 0.02, 0.02, 0.15, 0.4)),
        extreme=extreme,
        strict=rng.pick((0.05, 0.2, 0.35, 0.6)),
        capacity=rng.pick((2, 10, 40, 150, 1000)),
        models=rng.pick((0.0, 0.0, 0.0, 0.4, 1.0)),
        vast=vast,
        tiers=not (vast or extreme),
        tiny=rng.pick((0.0, 0.0, 0.02, 0.2)),
    )
    gates = {
        "CustomizedClusterResourceModeling": rng.chance(0.75),
        "MultiplePodTemplatesScheduling": rng.chance(0.4),
        "SchedulingOvercommitProtection": rng.chance(0.3),
        "WorkloadAffinity": rng.chance(0.25),
        "PriorityBasedScheduling": rng.chance(0.1),
    }
    names = _draw_names(rng, clusters)
    made: Scenario = {
        "id": identity,
        "gates": gates,
        "plugins": rng.pick(PLUGIN_LISTS) if rng.chance(0.15) else ["*"],
        "emptyWorkloadPropagation": rng.chance(0.2),
        "clusters": [draw_cluster(rng, profile, name) for name in names],
        "bindings": [],
    }
    if gates["WorkloadAffinity"] and rng.chance(0.8):
        made["peers"] = [draw_peer(rng, names, index) for index in range(1 + rng.upto(5))]
        if rng.chance(0.4):
            made["assigning"] = [
                draw_newer_peer(rng, names, peer) for peer in made["peers"] if rng.chance(0.5)
            ]
    if rng.chance((0.7 if profile.models == 0 else 0.3) if gates["SchedulingOvercommitProtection"] else 0.05):
        made["assumed"] = draw_assumed(rng, profile, names, several=profile.models == 0)
    if rng.chance(0.12):
        made["accurate"] = draw_estimates(rng, names)
    made["bindings"] = [draw_binding(rng, profile, names, index, gates) for index in range(bindings)]
    return made


def _draw_names(rng: Random, count: int) -> list[str]:
    style: Callable[[int], str] = rng.pick(
        (
            lambda i: f"m{i}",
            lambda i: f"member{i:04}",
            lambda i: f"{'abc'[i % 3]}-{i}.x",
            lambda i: f"c{i * 7919 % 10007}",
        )
    )
    names = [style(i) for i in range(1, count + 1)]
    rng.shuffle(names)
    return names
