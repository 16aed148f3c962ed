"""All profiles of plans.

``ROUNDS`` is not among ``PROFILES``, because a run of it costs several times as much.
"""

from __future__ import annotations

from typing import Final

from tools.simulation import (
    generate,
    generate_aimed,
    generate_answers,
    generate_breadth,
    generate_guard,
    generate_rounds,
)
from tools.simulation.plan import Plan

PROFILES: Final = (
    *generate.PROFILES,
    *generate_breadth.PROFILES,
    *generate_guard.PROFILES,
    *generate_aimed.PROFILES,
    *generate_answers.PROFILES,
)
ROUNDS: Final = "rounds"


def plan_for(seed: str, profile: str) -> Plan:
    """Return the plan of a seed."""
    if profile in generate_breadth.PROFILES:
        return generate_breadth.plan_for(seed, profile)
    if profile in generate_guard.PROFILES:
        return generate_guard.plan_for(seed, profile)
    if profile in generate_aimed.PROFILES:
        return generate_aimed.plan_for(seed, profile)
    if profile in generate_answers.PROFILES:
        return generate_answers.plan_for(seed, profile)
    if profile == ROUNDS:
        return generate_rounds.plan_for(seed, profile)
    return generate.plan_for(seed, profile)
