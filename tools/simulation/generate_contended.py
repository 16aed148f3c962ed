"""Plans of the profiles ``contended`` and ``fair``: more bindings than fit, and StrictPriority (``hold_laws``) or FairShare (``fair_law``).

Workloads come and end, so that capacity comes back all the time. Each seed aims at one thing: many that need one cluster, holds
that come to an end, low priorities only, leaders that end, or a bit of all. Faults are those of the profile ``calm`` but for
watches that are late: who does not know of capacity holds none. Restores and wrong clocks are left out, as for ``guard``.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil
from random import Random
from typing import Any, Final

from tools.simulation import generate
from tools.simulation.generate import REGIONS
from tools.simulation.plan import Fault, Plan, Step

PROFILES: Final = ("contended", "fair")

BEST_EFFORT: Final = "best"
"""The namespace whose bindings hold nothing."""
_AIMS: Final = ("mixed", "one cluster", "leaders", "mixed", "ends of holds", "low only")
_FAIR: Final = {
    "fair_share": {
        "resources": ["cpu"],
        "globalPriorityFrom": 100,
        "tenants": [
            {"name": "shop", "namespaces": ["shop"], "weight": 2, "nominalQuota": {"cpu": 4}},
            {"name": "best", "namespaces": [BEST_EFFORT], "borrowingLimit": {"cpu": 12}},
        ],
    }
}
_BURST_SECONDS: Final = 30.0
_END: Final = 160.0
_SETTLE: Final = 700.0
_BINDINGS: Final = 45
_DISRUPTIONS: Final = frozenset((
    "kill", "terminate", "freeze", "freeze_leader", "stall", "outage", "cut_watches", "compact",
))  # fmt: skip
_HIDDEN: Final = frozenset(("empty_list", "partial_list", "watch_late", "watch_stalled", "silent"))


def plan_for(seed: str, profile: str) -> Plan:
    """Return the plan of a seed."""
    base, draw = generate.plan_for(f"{seed}:{profile}", "calm"), Random(f"{seed}:{profile}:jobs")
    aim = _AIMS[int(seed) % len(_AIMS)]
    steps = [*_clusters(draw), *_bindings(draw, aim)]
    if profile == "fair":  # many come at once, so that there is a queue
        steps = [_at_once(each, draw) for each in steps]
    processes, ratio = base.processes, _END / base.faults_end
    if aim == "leaders":
        processes = max(2, processes)
        steps += [_step(draw.uniform(30, _END), "kill_leader") for _ in range(3)]
    elif draw.random() < 0.4:
        kept = [each for each in base.steps if each.action in _DISRUPTIONS]
        chosen = draw.sample(kept, min(len(kept), 2))
        steps += [replace(each, at=round(each.at * ratio, 3)) for each in chosen]
    faults: tuple[Fault, ...] = ()
    if draw.random() < 0.4:
        faults = tuple(
            replace(each, start=each.start * ratio, end=min(_END, each.start * ratio + 40.0))
            for each in base.faults
            if each.kind not in _HIDDEN
        )
    return Plan(
        seed=seed,
        profile=profile,
        processes=processes,
        options={"resync_seconds": 120.0},
        setup={
            "reports": True,
            "longest_backoff": 30.0,
            "gates": {
                "PriorityBasedScheduling": True,
                "SchedulingOvercommitProtection": profile == "fair" or draw.random() < 0.3,
            },
            **(_FAIR if profile == "fair" else _strict(draw, aim)),
        },
        faults_end=_END,
        settle=_SETTLE,
        steps=tuple(sorted(steps, key=lambda each: each.at)),
        faults=faults,
    )


def _strict(draw: Random, aim: str) -> dict[str, Any]:
    args = {
        "holdSeconds": 40 if aim == "ends of holds" else 0,
        "maxHeldPercent": draw.choice((0, 5, 20)),
        "bestEffortNamespaces": [BEST_EFFORT],
    }
    return {"strict_priority": args}


def _at_once(step: Step, draw: Random) -> Step:
    if step.action != "create_binding":
        return step
    return replace(step, at=min(ceil(step.at / _BURST_SECONDS) * _BURST_SECONDS + draw.random() / 100, _END))


def _step(at: float, action: str, **arguments: Any) -> Step:
    return Step(at=round(min(at, _END), 3), action=action, arguments=arguments)


def _clusters(draw: Random) -> list[Step]:
    steps = []
    for index in range(draw.choice((2, 3, 4))):
        steps.append(
            _step(
                0.0, "put_cluster", name=f"m{index}", region=REGIONS[index % 2], cpu=draw.choice((10, 16, 22))
            )
        )
    if draw.random() < 0.2:
        steps.append(_step(draw.uniform(40, _END), "delete_cluster", name="m1"))
    return steps


def _bindings(draw: Random, aim: str) -> list[Step]:
    steps = []
    for index in range(_BINDINGS):
        name, at = (
            f"{draw.choice(('', '', '', 'shop/', f'{BEST_EFFORT}/'))}b{index}",
            draw.uniform(1, _END * 0.8),
        )
        is_big = draw.random() < 0.25
        is_single = draw.random() < (0.7 if aim == "one cluster" else 0.3)
        steps.append(
            _step(
                at,
                "create_binding",
                name=name,
                replicas=draw.randint(5, 8) if is_big else draw.randint(1, 4),
                strategy=draw.choice(("dynamic", "aggregated")),
                region=draw.choice(("", "", "", *REGIONS)),
                groups=1 if is_single else 0,
                cpu=draw.choice(("1", "1", "2", "3", "1500m")),
                priority=0
                if aim == "low only"
                else draw.choice((100, 10, 1))
                if is_big
                else draw.choice((0, 0, 0, 1, 10)),
                lasts=round(draw.uniform(10, 50), 1) if draw.random() < 0.93 else 0.0,
            )
        )
        if draw.random() < 0.1:
            steps.append(_step(at + draw.uniform(1, 30), "scale", name=name, replicas=draw.randint(1, 8)))
        if draw.random() < 0.05 and aim != "low only":
            steps.append(
                _step(at + draw.uniform(1, 30), "set_priority", name=name, priority=draw.choice((0, 1, 100)))
            )
    return steps
