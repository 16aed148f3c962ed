"""Plans of the profile ``started``: StartedCapacity, and members of whose nodes some take no Pods.

Members lose nodes and get others, cordons are lifted, workloads are scaled, and leaders end. The faults are those of the profile ``calm``.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any, Final

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
    members: dict[str, dict[str, Any]] = {
        f"m{number}": {
            "nodes": [draw.choice((2, 4, 8)) for _ in range(draw.randint(1, 3))],
            "closed": draw.choice((20, 60)),
        }
        for number in range(draw.randint(2, 4))
    }
    steps, wanted = (
        list[Step](),
        draw.choice((0.7, 1.3)) * sum(sum(each["nodes"]) for each in members.values()),
    )
    while wanted > 0:
        name, replicas, cpu = f"b{len(steps)}", draw.randint(1, 8), draw.choice((1, 2, 4))
        strategy = draw.choice(("dynamic", "aggregated"))
        arguments = {"name": name, "replicas": replicas, "strategy": strategy, "cpu": str(cpu)}
        steps.append(Step(at=1.0, action="create_binding", arguments=arguments))
        wanted -= replicas * cpu
    for name in [step.arguments["name"] for step in steps]:
        if draw.random() < 0.2:
            arguments = {"name": name, "replicas": draw.randint(0, 8)}
            steps.append(Step(at=draw.uniform(60.0, _END), action="scale", arguments=arguments))
    if draw.random() < 0.5:
        arguments = {"name": draw.choice(list(members))}
        steps.append(Step(at=draw.uniform(60.0, _END), action="lift_cordon", arguments=arguments))
    for _ in range(draw.randint(0, 1)):
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
