"""Resource quantities and requests."""

from __future__ import annotations

from collections.abc import Sequence

from tools.oracle.generator.rng import Random, ScenarioProfile
from tools.oracle.generator.values import COUNT, CPU, EXTREME, MEMORY, NOTATIONS, RESOURCES, Manifest


def draw_quantity(rng: Random, profile: ScenarioProfile, usual: Sequence[str]) -> str:
    luck = rng.random()
    if luck < profile.extreme:
        return rng.pick(EXTREME)
    if luck < profile.extreme + profile.odd:
        return rng.pick(NOTATIONS)
    return rng.pick(usual)


def draw_pods(rng: Random, profile: ScenarioProfile, usual: Sequence[str]) -> str:
    """Draw a number of pods, below 2**31 unless the scenario is vast."""
    text = draw_quantity(rng, profile, usual)
    if profile.vast or (text not in EXTREME and text != "5.0Gi"):
        return text
    return rng.pick(("-1", "-500m", "-0.5", "0"))


def usual_values(resource: str) -> Sequence[str]:
    if resource == "cpu":
        return CPU
    if resource in {"memory", "ephemeral-storage", "hugepages-2Mi"}:
        return MEMORY
    return COUNT


def draw_request(rng: Random, profile: ScenarioProfile) -> Manifest:
    shape = rng.random()
    if shape < 0.5:
        resources: Sequence[str] = ("cpu", "memory")[: 1 + rng.upto(1)]
    elif shape < 0.55:
        resources = ()
    else:
        resources = list(dict.fromkeys(rng.pick(RESOURCES) for _ in range(1 + rng.upto(2))))
    return {name: draw_quantity(rng, profile, usual_values(name)[:8]) for name in resources}
