"""Plans with PlacementGuard or FailBack, whose laws are in ``guard_laws``.

- ``guard``: policies change, so that many bindings want to move at once; budgets of all scopes and limits.
- ``fail_back``: clusters of the first affinity term fail and recover.

Each seed aims at one thing, because everything at once hides what is rare: answers that are lost while watches are
late, moves that follow each other within a window, a leader that ends between two moves, and so on. With ``guard``, clusters
go or are not Ready for seconds in the middle of moves, bindings have histories, and deletions hang. Faults are those of
the profile ``calm``, after the bindings have settled. Restores, wrong clocks and a Lease that is taken by force are left
out: with them two schedulers may spend a budget, or moves are forgotten.
"""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random
from typing import Any, Final

from tools.simulation import generate
from tools.simulation.generate import POLICIES, REGIONS
from tools.simulation.plan import Fault, Plan, Step
from tools.simulation.taint_manager import tolerations

PROFILES: Final = ("guard", "fail_back")

_BEGIN: Final = 40.0
"""Seconds until the bindings have settled."""
_DISRUPTIONS: Final = frozenset((
    "kill", "terminate", "freeze", "freeze_leader", "stall", "outage", "cut_watches", "compact",
))  # fmt: skip
_MOST_DISRUPTIONS: Final = 2
_WITHOUT_LISTS: Final = frozenset(("empty_list", "partial_list"))
_SLOW_TO_SEE: Final = frozenset(("watch_late", "watch_stalled", "silent"))
_FIRST: Final = ("m0", "m2")
"""The clusters of the first region."""
_PURGE_MODES: Final = ("", "", "", "Gracefully", "Directly")
_TOLERATED: Final = (0, 0, 0, 15, math.inf)
"""For how many seconds a binding tolerates taints."""
_HISTORIES: Final = ("", "", "", "old", "old", "old", "future", "unreadable")
_AIMS: Final = ("bursts", "lost answers", "quick bursts", "leaders", "nowhere", "last copies", "tasks")


def plan_for(seed: str, profile: str) -> Plan:
    """Return the plan of a seed."""
    base = generate.plan_for(f"{seed}:{profile}", "calm")
    return _Guarded(replace(base, seed=seed, profile=profile)).plan()


class _Guarded:
    def __init__(self, base: Plan) -> None:
        self._base = base
        self._draw = Random(f"{base.seed}:{base.profile}:guard")
        self._draw_kinds = Random(f"{base.seed}:{base.profile}:kinds")
        self._draw_faults = Random(f"{base.seed}:{base.profile}:faults")
        self._bursts: list[tuple[float, str]] = []
        """When policies begin to select a region."""
        self._steps: list[Step] = []
        self._faults: list[Fault] = []
        self._processes = base.processes
        self._is_guard = base.profile == "guard"
        self._end = 160.0 if self._is_guard else 340.0

    def plan(self) -> Plan:
        for index in range(4):
            self._step(0.0, "put_cluster", name=f"m{index}", region=REGIONS[index % 2], cpu=200)
        setup = self._guard() if self._is_guard else self._fail_back()
        if self._draw.random() < 0.4:
            kept = [each for each in self._base.steps if each.action in _DISRUPTIONS]
            for each in self._draw.sample(kept, min(len(kept), self._draw.randint(1, _MOST_DISRUPTIONS))):
                self._steps.append(replace(each, at=self._moved(each.at)))
        hidden = _WITHOUT_LISTS | (set() if self._is_guard else _SLOW_TO_SEE)
        if self._draw.random() < 0.5:
            self._faults += [self._later(each) for each in self._base.faults if each.kind not in hidden]
        return replace(
            self._base,
            processes=self._processes,
            setup={"longest_backoff": 30.0, **setup},
            options={"resync_seconds": 120.0},
            faults_end=self._end,
            settle=560.0,
            steps=tuple(sorted(self._steps, key=lambda each: each.at)),
            faults=tuple(self._faults),
        )

    def _moved(self, at: float) -> float:
        return round(_BEGIN + at * (self._end - _BEGIN) / self._base.faults_end, 3)

    def _later(self, fault: Fault) -> Fault:
        start, end = self._moved(fault.start), self._moved(fault.end)
        return replace(fault, start=start, end=min(end, start + 60.0, self._end))

    def _step(self, at: float, action: str, **arguments: Any) -> None:
        self._steps.append(Step(at=round(min(at, self._end), 3), action=action, arguments=arguments))

    def _bindings(self, count: int) -> list[str]:
        return [f"{self._draw.choice(('', '', 'shop/', '/'))}b{index}" for index in range(count)]

    def _create(self, name: str, policy: str, **more: Any) -> None:
        draw, kinds = self._draw, self._draw_kinds
        more |= {
            "purge_mode": kinds.choice(_PURGE_MODES),
            "tolerations": tolerations(kinds.choice(_TOLERATED)),
            "history": self._draw_faults.choice(_HISTORIES),
        }
        self._step(
            draw.uniform(1, 5),
            "create_binding",
            name=name,
            replicas=draw.choice((1, 2, 4, 5)),
            strategy=draw.choice(("duplicated", "dynamic", "aggregated")),
            policy=policy,
            **more,
        )

    def _guard(self) -> dict[str, Any]:
        draw, aim = self._draw, _AIMS[int(self._base.seed) % len(_AIMS)]
        names = self._bindings(8)
        for policy in POLICIES:
            self._step(0.0, "put_policy", name=policy, strategy="dynamic", region="north")
        for name in names:
            self._create(name, draw.choice(POLICIES), region="north")
        at, turn = _BEGIN, 0
        while at < self._end - 40:
            turn += 1
            region = REGIONS[turn % 2]
            if aim == "nowhere" and turn == 1:
                region = "nowhere"
            self._burst(at, region)
            self._aim(aim, at)
            for name in draw.sample(names, 2):
                self._step(at + draw.uniform(0, 30), "scale", name=name, replicas=draw.randrange(1, 7))
            at += draw.uniform(13, 17) if aim == "quick bursts" and turn % 4 else draw.uniform(34, 60)
        self._burst(self._end - 35, draw.choice(REGIONS))
        if draw.random() < 0.15:
            self._step(draw.uniform(_BEGIN, self._end), "delete_cluster", name=draw.choice(("m0", "m1")))
        if draw.random() < 0.3:
            at, name = draw.uniform(20, self._end - 40), f"m{draw.randrange(4)}"
            self._step(at, "make_sick", name=name, sick=True)
            self._step(at + draw.uniform(10, 30), "make_sick", name=name, sick=False)
        args = self._args(aim)
        self._add_faults(is_graceful=args["graceful"]["enabled"])
        return {"guard": args}

    def _add_faults(self, *, is_graceful: bool) -> None:
        """Let clusters go and be not Ready in the middle of moves, and deletions hang before."""
        draw = self._draw_faults
        if draw.random() < 0.4:
            at, region = draw.choice(self._bursts)
            left = [index for index in range(4) if REGIONS[index % 2] != region]
            self._step(at + draw.uniform(-2, 6), "delete_cluster", name=f"m{draw.choice(left)}")
        if draw.random() < 0.4:
            at, _ = draw.choice(self._bursts)
            begin, end = at + draw.uniform(-1, 2), at + draw.uniform(2, 6)
            for index in range(4):
                self._step(begin, "set_ready", name=f"m{index}", ready=False)
                self._step(end, "set_ready", name=f"m{index}", ready=True)
        if is_graceful and draw.random() < 0.5:
            at, _ = draw.choice(self._bursts[:2])
            for name in ("d0", "d1"):
                self._create(name, "", region="north")
                # After the stamps of this burst, and for longer than a minute before another one.
                self._step(at + draw.uniform(4, 12), "hang_deletion", name=name)

    def _burst(self, at: float, region: str) -> None:
        self._bursts.append((at, region))
        for policy in POLICIES:
            strategy = self._draw.choice(("duplicated", "dynamic", "aggregated"))
            begin = at + self._draw.uniform(0, 3)
            self._step(begin, "put_policy", name=policy, strategy=strategy, region=region)

    def _aim(self, aim: str, at: float) -> None:
        """Let what a seed aims at happen during a burst."""
        if aim == "lost answers":
            for kind, requests, share, value in (
                ("lost_after", "PATCH (cluster)?resourcebindings$", 0.7, None),
                ("unavailable", "(GET|LIST) (cluster)?resourcebindings", 1.0, None),
                ("watch_late", "resourcebindings", 1.0, 6.0),
            ):
                self._faults.append(
                    Fault(kind=kind, start=at, end=at + 12, share=share, requests=requests, value=value)
                )
        elif aim == "leaders":
            self._processes = max(2, self._processes)
            for process in range(self._processes - 1):
                self._step(at + self._draw.uniform(0.5, 5), "kill", process=process)

    def _args(self, aim: str) -> dict[str, Any]:
        draw = self._draw
        is_graceful = aim == "tasks" or (aim != "last copies" and draw.random() < 0.4)
        # A binding moves twice within a window only where few others use the budget.
        is_quick = aim == "quick bursts"
        scopes = draw.sample(
            ("namespace", "policy") if is_quick else ("profile", "namespace", "policy"),
            draw.choice((1, 1, 2)),
        )
        windows = {"quick bursts": (60, 80), "leaders": (40, 60)}.get(aim, (10, 20, 30))
        return {
            "lastHealthyCopy": {
                "enabled": aim == "last copies" or draw.random() < 0.2,
                "maxWaitSeconds": 20,
            },
            "graceful": {"enabled": is_graceful, "gracePeriodSeconds": draw.choice((10, 25))},
            "budgets": [
                {
                    "scope": scope,
                    "window": f"{draw.choice(windows)}s",
                    **({"bindings": 3} if is_quick else self._limits(is_graceful=is_graceful)),
                }
                for scope in scopes
            ],
        }

    def _limits(self, *, is_graceful: bool) -> dict[str, Any]:
        draw = self._draw
        limits = {"bindings": (2, 3), "replicas": (4, 6, 9), "percent": (20, 40)}
        chosen = draw.sample(list(limits), draw.choice((0, 0, 1) if is_graceful else (1, 1, 2)))
        found: dict[str, Any] = {name: draw.choice(limits[name]) for name in chosen}
        if is_graceful and (not found or draw.random() < 0.5):
            found["atOnce"] = draw.choice((1, 2))
        return found

    def _fail_back(self) -> dict[str, Any]:
        draw = self._draw
        for name in self._bindings(4):
            self._create(name, "p0", terms=list(REGIONS))
        at = _BEGIN - 15
        while at < self._end - 80:
            self._fail(at, down=True)
            at += draw.uniform(25, 40)
            self._fail(at, down=False)
            # A second failure during the wait, longer than an interval of checks.
            if draw.random() < 0.5:
                at += draw.uniform(12, 24)
                self._fail(at, down=True)
                at += draw.uniform(19, 26)
                self._fail(at, down=False)
            at += draw.uniform(36, 60)
        self._fail(self._end, down=False)
        return {
            "guard": {"graceful": {"enabled": True, "gracePeriodSeconds": 15}},
            "fail_back": {
                "stabilizationSeconds": 30,
                "checkSeconds": 10,
                "maxSeconds": draw.choice((60, 120)),
                "atOnce": draw.choice((1, 2)),
            },
        }

    def _fail(self, at: float, *, down: bool) -> None:
        for name in _FIRST:
            self._step(at + self._draw.uniform(0, 0.5), "fail_cluster", name=name, down=down)
