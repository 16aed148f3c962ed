"""Plans of the profile ``started``: StartedCapacity, and members of whose nodes some take no Pods.

Members lose nodes and get them back, workloads are scaled, and leaders end. The faults are those of the profile ``calm``.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Final

from tools.simulation import generate
from tools.simulation.plan import Plan, Step

PROFILES: Final = ("started",)

ARGS: Final = {"startSeconds": 20, "moveAfterSeconds": 20, "coolDownSeconds": 40, "trialSeconds": 120}
_END: Final = 200.0
_SETTLE: Final = 1502.5  # it ends between two reports
_WRONG_LISTS: Final = frozenset(("empty_list", "partial_list"))


def plan_for(seed: str, profile: str) -> Plan:
    """Return the plan of a seed."""
    base, draw = generate.plan_for(f"{seed}:{profile}", "calm"), Random(f"{seed}:{profile}:members")
    members = {
        f"m{number}": {
            "nodes": [draw.choice((2, 4, 8)) for _ in range(draw.randint(1, 4))],
            "closed": draw.choice((0, 20, 60)),
        }
        for number in range(draw.randint(2, 4))
    }
    steps = []
    for number in range(draw.randint(2, 6)):
        name = f"b{number}"
        arguments = {
            "name": name,
            "replicas": draw.randint(1, 12),
            "strategy": draw.choice(("dynamic", "aggregated")),
            "cpu": str(draw.choice((1, 2, 4))),
        }
        steps.append(Step(at=1.0, action="create_binding", arguments=arguments))
        if draw.random() < 0.3:
            arguments = {"name": name, "replicas": draw.randint(0, 12)}
            steps.append(Step(at=draw.uniform(60.0, _END), action="scale", arguments=arguments))
    for _ in range(draw.randint(0, 2)):
        arguments = {
            "name": draw.choice(list(members)),
            "nodes": [draw.choice((2, 4, 8)) for _ in range(draw.randint(1, 5))],
        }
        steps.append(Step(at=draw.uniform(60.0, _END), action="set_nodes", arguments=arguments))
    if draw.random() < 0.3:
        steps.append(Step(at=draw.uniform(30.0, _END), action="kill_leader"))
    has_faults = draw.random() < 0.5
    return replace(
        base,
        seed=seed,
        profile=profile,
        setup={"works": True, "members": members, "started": ARGS, "longest_backoff": 30.0},
        faults_end=_END,
        settle=_SETTLE,
        steps=tuple(sorted(steps, key=lambda each: each.at)),
        faults=tuple(each for each in base.faults if has_faults and each.kind not in _WRONG_LISTS),
    )
