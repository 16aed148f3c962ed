"""Plans of the profile ``works``: another program takes replicas, and Karmada's binding controller has an old cache.

The steps and faults are those of the profile ``calm``. Restores are left out: the Works would have to be restored, too.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Final

from tools.simulation import generate
from tools.simulation.plan import Plan, Step

PROFILES: Final = ("works",)

_LEFT_OUT: Final = frozenset(("restore", "backup", "break_binding", "name_target"))
_TAKES: Final = 40
_TAKE_SECONDS: Final = 15.0
"""How long replicas are taken when all else has ended: any other change of a binding lets its Works be written."""
_SETTLE_SECONDS: Final = 420.0
"""More than the first three pauses of a resync."""


def plan_for(seed: str, profile: str) -> Plan:
    """Return the plan of a seed."""
    base, draw = generate.plan_for(f"{seed}:{profile}", "calm"), Random(f"{seed}:{profile}:takes")
    steps = [step for step in base.steps if step.action not in _LEFT_OUT]
    names = sorted({step.arguments["name"] for step in steps if step.action == "create_binding"})
    takes = [
        Step(
            at=round(draw.uniform(0.7 * base.faults_end, base.faults_end + _TAKE_SECONDS), 3),
            action="take_replicas",
            arguments={"name": draw.choice(names), "all": draw.random() < 0.3},
        )
        for _ in range(_TAKES if names else 0)
    ]
    return replace(
        base,
        seed=seed,
        profile=profile,
        setup={**base.setup, "works": True, "longest_backoff": 30.0},
        faults_end=base.faults_end + _TAKE_SECONDS,
        settle=_SETTLE_SECONDS,
        steps=tuple(sorted((*steps, *takes), key=lambda each: each.at)),
    )
