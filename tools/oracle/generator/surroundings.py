"""What decisions depend on besides clusters and the binding: peers, assumed workloads, estimators."""

from __future__ import annotations

import json
from collections.abc import Sequence

from tools.oracle.generator.bindings import draw_component
from tools.oracle.generator.rng import Random, ScenarioProfile
from tools.oracle.generator.values import GROUPS, OWNERS, Manifest


def draw_peer(rng: Random, names: Sequence[str], index: int) -> Manifest:
    kind = "Deployment"
    name = f"{rng.pick('wwp')}{index}"
    groups: Manifest = {}
    if rng.chance(0.8):
        groups["affinityGroup"] = rng.pick(GROUPS)
    if rng.chance(0.5):
        groups["antiAffinityGroup"] = rng.pick(GROUPS)
    spec: Manifest = {
        "resource": {"apiVersion": "apps/v1", "kind": kind, "name": name, "namespace": "default"},
        "clusters": [
            {"name": n, "replicas": rng.upto(3)} for n in rng.some(names, max(1, len(names) * 3 // 4))
        ],
    }
    if groups or rng.chance(0.5):
        spec["workloadAffinityGroups"] = groups
    return {
        "apiVersion": "work.karmada.io/v1alpha2",
        "kind": "ResourceBinding",
        "metadata": {
            "name": f"{name}-{kind.lower()}",
            "namespace": "default" if rng.chance(0.8) else "other",
            "resourceVersion": rng.pick(("5", "10", "99")) if rng.chance(0.2) else "100",
        },
        "spec": spec,
    }


def draw_newer_peer(rng: Random, names: Sequence[str], peer: Manifest) -> Manifest:
    copy: Manifest = json.loads(json.dumps(peer))
    copy["metadata"]["resourceVersion"] = rng.pick(("5", "101", "101", "99", "100", "1000"))
    copy["spec"]["clusters"] = [{"name": n} for n in rng.some(names, len(names))]
    return copy


def draw_assumed(
    rng: Random, profile: ScenarioProfile, names: Sequence[str], *, several: bool
) -> list[Manifest]:
    """Make assumed workloads that their clusters do not report yet.

    Args:
        several: Whether a cluster may have more than one: their order is random upstream, and with
            resource models it decides (first fit). Sums do not depend on it.
    """
    entries = []
    for name in names:
        for owner in rng.some(OWNERS, 3 if several else 1):
            components = [draw_component(rng, profile, index) for index in range(rng.upto(2))]
            entries.append(
                {
                    "binding": f"default/{owner}",
                    "cluster": name,
                    "namespace": "default",
                    "components": components,
                }
            )
    return entries


def draw_estimates(rng: Random, names: Sequence[str]) -> Manifest:
    if rng.chance(0.15):
        return {"error": "estimator is away"}
    answers = {name: -1 if rng.chance(0.1) else rng.upto(rng.pick((3, 10, 50, 1000))) for name in names}
    if rng.chance(0.1):
        del answers[rng.pick(names)]
    return {"replicas": answers}
