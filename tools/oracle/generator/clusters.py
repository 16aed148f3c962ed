"""Clusters: labels, taints, resource models and summaries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tools.oracle.generator.quantities import draw_pods, draw_quantity, usual_values
from tools.oracle.generator.rng import Random, ScenarioProfile
from tools.oracle.generator.values import (
    CONFIGS,
    LABELS,
    PROVIDERS,
    REGIONS,
    T0,
    TAINT_KEYS,
    TAINT_VALUES,
    WORKLOADS,
    ZONES,
    Manifest,
)


def draw_cluster(rng: Random, profile: ScenarioProfile, name: str) -> Manifest:
    metadata: Manifest = {"name": name}
    labels = {key: rng.pick(values) for key, values in LABELS.items() if rng.chance(0.5)}
    if labels or rng.chance(profile.tiny):
        metadata["labels"] = labels
    if rng.chance(0.04):
        metadata["deletionTimestamp"] = T0
    spec: Manifest = {"syncMode": rng.pick(("Push", "Pull"))}
    if rng.chance(0.85):
        spec["provider"] = rng.pick(PROVIDERS)
    if rng.chance(0.9):
        spec["region"] = rng.pick(REGIONS)
    if rng.chance(0.85):
        spec["zones"] = rng.some(ZONES, 3, 1)
    elif rng.chance(0.5):
        spec["zone"] = rng.pick(ZONES)
    if rng.chance(profile.strict * 0.5):
        spec["taints"] = [draw_taint(rng) for _ in range(1 + rng.upto(1))]
    status: Manifest = {"kubernetesVersion": "v1.35.3"}
    if rng.chance(profile.models):
        spec["resourceModels"] = _draw_models(rng, profile)
    _draw_enablements(rng, profile, status)
    if rng.chance(0.97):
        status["resourceSummary"] = _draw_summary(rng, profile, spec.get("resourceModels", ()))
    return {
        "apiVersion": "cluster.karmada.io/v1alpha1",
        "kind": "Cluster",
        "metadata": metadata,
        "spec": spec,
        "status": status,
    }


def draw_taint(rng: Random) -> Manifest:
    taint: Manifest = {"key": rng.pick(TAINT_KEYS)}
    if value := rng.pick(TAINT_VALUES):
        taint["value"] = value
    if effect := rng.pick(("NoSchedule", "NoSchedule", "NoExecute", "NoExecute", "PreferNoSchedule", "")):
        taint["effect"] = effect
    return taint


def _draw_enablements(rng: Random, profile: ScenarioProfile, status: Manifest) -> None:
    apis: dict[str, list[Manifest]] = {}
    for version, kind in dict.fromkeys((*WORKLOADS, *CONFIGS)):
        if not rng.chance(profile.strict * 0.12):
            apis.setdefault(version, []).append({"kind": kind, "name": kind.lower() + "s"})
    if apis:
        status["apiEnablements"] = [
            {"groupVersion": version, "resources": kinds} for version, kinds in apis.items()
        ]
    if rng.chance(0.8):
        status["conditions"] = [
            {
                "type": "Ready",
                "status": "True",
                "reason": "ClusterReady",
                "message": "",
                "lastTransitionTime": T0,
            },
            {
                "type": "CompleteAPIEnablements",
                "status": rng.pick(("True", "True", "True", "False", "Unknown")),
                "reason": "X",
                "message": "",
                "lastTransitionTime": T0,
            },
        ]


def _draw_models(rng: Random, profile: ScenarioProfile) -> list[Manifest]:
    profile = replace(profile, extreme=0.0)
    if rng.chance(0.3):
        cpu = (0, 1, 2, 4, 8, 16, 32, 64, 128)
        memory = (0, 4, 16, 32, 64, 128, 256, 512, 1024)
        return [
            {
                "grade": grade,
                "ranges": [
                    {"name": "cpu", "min": str(cpu[grade]), "max": str(2 * cpu[grade] or 1)},
                    {
                        "name": "memory",
                        "min": f"{memory[grade]}Gi" if grade else "0",
                        "max": f"{memory[grade] or 2}Gi",
                    },
                ],
            }
            for grade in range(9)
        ]
    models = []
    for grade in range(1 + rng.upto(4)):
        resources = [
            r
            for r in ("cpu", "memory", "nvidia.com/gpu", "pods", "foo")
            if rng.chance(0.75 if r < "n" else 0.15)
        ]
        if rng.chance(0.05):
            resources.append("cpu")  # the last of equal names counts
        ranges = [
            {"name": r, "min": draw_quantity(rng, profile, usual_values(r)), "max": "1000"} for r in resources
        ]
        models.append({"grade": rng.upto(4) if rng.chance(0.1) else grade, "ranges": ranges})
    if rng.chance(0.2):
        rng.shuffle(models)
    return models


def _draw_summary(rng: Random, profile: ScenarioProfile, models: Sequence[Manifest]) -> Manifest:
    capacity = max(1, rng.upto(profile.capacity))
    usual = {
        "cpu": (str(capacity), f"{capacity * 500}m", str(capacity * 2)),
        "memory": (f"{capacity}Gi", f"{capacity * 512}Mi", f"{capacity}G"),
        "pods": (str(capacity), "110", str(capacity * 3)),
        "ephemeral-storage": (f"{capacity * 10}Gi",),
        "nvidia.com/gpu": (str(capacity // 4), str(capacity)),
        "foo": (str(capacity),),
        "hugepages-2Mi": (f"{capacity}Gi",),
    }
    summary: Manifest = {}
    present = [name for name in usual if rng.chance(0.97 if name in {"cpu", "memory", "pods"} else 0.3)]
    allocatable = {name: draw_quantity(rng, profile, usual[name]) for name in present}
    if "pods" in allocatable:
        allocatable["pods"] = draw_pods(rng, profile, usual["pods"])
    if allocatable or rng.chance(profile.tiny):
        summary["allocatable"] = allocatable
    for part, share in (("allocated", 0.6), ("allocating", 0.25)):
        if rng.chance(share):
            summary[part] = {
                name: (draw_pods if name == "pods" else draw_quantity)(
                    rng, profile, _draw_used(rng, name, capacity)
                )
                for name in usual
                if rng.chance(share)
            }
    if models and rng.chance(0.9):
        grades = [model["grade"] for model in models]
        counts = [
            {"grade": grade, "count": -1 if rng.chance(0.005) else rng.pick((0, 0, 1, 1, 2, 3))}
            for grade in grades
            if rng.chance(0.8)
        ]
        if rng.chance(0.1):
            counts.append({"grade": rng.upto(9), "count": rng.upto(3)})
        summary["allocatableModelings"] = counts
    return summary


def _draw_used(rng: Random, name: str, capacity: int) -> Sequence[str]:
    used = rng.upto(capacity)
    if name == "cpu":
        return (str(used), f"{used * 333}m")
    if name == "memory":
        return (f"{used * 700}Mi", f"{used}G", f"{used * 715827882}")
    return (str(used), str(used // 2))
