"""Plans with mishaps of machines and objects, in addition to what the profiles ``calm``, ``storm`` and ``churn`` have.

A seed switches each kind on with probability 1/2:

- Machines are suspended: their monotonic clocks stand still, and the Lease expires meanwhile.
- Processes stop while another one holds the Lease.
- Clusters are deleted, and gone soon, while a result that names them is on its way.
- Bindings of every scheduler get clusters whose names no Cluster can have, or that do not exist.
- Priorities change while bindings are processed, and keys wait in the queue.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any, Final

from tools.simulation.generate import REGIONS, _Generator
from tools.simulation.plan import Fault, Plan, Step

PROFILES: Final = ("mishaps",)

ODD_NAMES: Final = (
    "", " ", ".", "..", "a/b", "../m0", "m0/status", "a?b", "a#b", "a%2Fb", "a b", "M0", "-a", "a_b", "ä", "a" * 254,
    "m0\n", "gone",
)  # fmt: skip
"""Names of clusters that people write into bindings; a Cluster may have the last one only, and none has."""

_PRIORITIES: Final = (-5, 0, 1, 7, 2**31 - 1)
_LEASE_SECONDS: Final = 15.0


def plan_for(seed: str, profile: str) -> Plan:
    """Return the plan of a seed."""
    draw = Random(f"{seed}:{profile}:base")
    base = _Generator(seed, draw.choice(("calm", "storm", "churn"))).plan()
    return _Mishaps(replace(base, seed=seed, profile=profile)).plan()


class _Mishaps:
    """Adds to a plan of another profile."""

    def __init__(self, base: Plan) -> None:
        self._base = base
        self._draw = Random(f"{base.seed}:{base.profile}:mishaps")
        self._processes, self._end = base.processes, base.faults_end
        self._steps: list[Step] = []
        self._faults: list[Fault] = []
        self._options: dict[str, Any] = {}
        self._gates: dict[str, bool] = {}
        self._names = sorted({
            str(each.arguments["name"]) for each in base.steps if each.action == "create_binding"
        })  # fmt: skip

    def plan(self) -> Plan:
        kinds: tuple[Callable[[float], None], ...] = (
            self._suspension, self._stop, self._unjoin, self._odd_name, self._new_priority,
        )  # fmt: skip
        for kind in kinds:
            if self._draw.random() < 0.5:
                for _ in range(self._draw.choice((1, 2, 4))):
                    kind(self._draw.uniform(5.0, self._end * 0.9))
        # An unschedulable key of the priority queue waits for up to 330 s.
        return replace(
            self._base,
            processes=self._processes,
            settle=self._base.settle + 130.0 * bool(self._gates),
            options={**self._base.options, **self._options},
            setup={"longest_backoff": 60.0, "gates": self._gates},
            steps=tuple(sorted((*self._base.steps, *self._steps), key=lambda each: each.at)),
            faults=(*self._base.faults, *self._faults),
        )

    def _step(self, at: float, action: str, **arguments: Any) -> None:
        self._steps.append(Step(at=round(min(at, self._end), 3), action=action, arguments=arguments))

    def _aim(self, at: float, moment: str, then: str, *, delay: float = 0.0, **arguments: Any) -> None:
        more = {"moment": moment, "then": then, "within": 10.0, "delay": round(delay, 4)}
        self._step(at, "aim", **more, **arguments)

    def _slow_results(self, at: float, seconds: float, *, length: float) -> None:
        """Let the results that are sent within some seconds arrive late."""
        end = min(self._end, at + length)
        self._faults.append(
            Fault(kind="slow", start=at, end=end, requests="PATCH .*bindings$", value=round(seconds, 2))
        )

    def _disturb(self, at: float, most: int) -> None:
        """Let the leader get something to decide."""
        for name in self._draw.sample(self._names, min(most, len(self._names))):
            self._step(at, "scale", name=name, replicas=self._draw.randrange(1, 12))

    def _suspended(self, at: float) -> float:
        """Suspend a machine, mostly that of the leader while it has work, and return for how long."""
        draw = self._draw
        seconds = round(draw.choice((draw.uniform(1, 12), draw.uniform(16, 60))), 2)
        more: dict[str, Any] = {"seconds": seconds, "cuts": draw.random() < 0.5}
        match draw.choice(("any", "leader", "in flight", "sent", "placed")):
            case "any":
                process = draw.randrange(self._processes)
                self._step(at, "suspend_machine", process=process, **more)
            case "leader":
                self._step(at, "suspend_leader", **more)
            case moment:
                self._aim(at - 0.1, moment, "suspend_leader", delay=draw.choice((0.0, 0.002)), **more)
        return seconds

    def _suspension(self, at: float) -> None:
        self._processes = max(2, self._processes)
        seconds = self._suspended(at)
        for _ in range(4):
            self._disturb(at + self._draw.uniform(0, seconds + 1.0), 4)

    def _stop(self, at: float) -> None:
        draw = self._draw
        self._processes = max(2, self._processes)
        if draw.random() < 0.5:
            self._step(at, "take_lease", seconds=draw.choice((5, 15)))
            stops = at + draw.uniform(0.0, 2.0)
        else:
            stops = at + self._suspended(at)
        for process in range(self._processes):
            self._step(stops, "terminate", process=process)

    def _unjoin(self, at: float) -> None:
        draw = self._draw
        at = draw.choice((at, self._end * 0.95))  # later changes would repair what it leaves
        slow = draw.choice((0.0, draw.uniform(2, 8)))
        self._slow_results(at, slow, length=3.0)
        if draw.random() < 0.5:  # no other binding is on it, so it is gone at once
            self._step(at - 0.5, "put_cluster", name=f"n{int(at)}", region=draw.choice(REGIONS), cpu=1000)
        self._aim(at, "sent", "delete_cluster", seconds=round(draw.uniform(0.1, 1.0 + slow / 2), 2))
        # A Duplicated binding leaves such a cluster with each decision.
        for name in draw.sample(self._names, min(4, len(self._names))):
            strategy, region = draw.choice(("dynamic", "aggregated", "static")), draw.choice(("", *REGIONS))
            self._step(at + 0.01, "change_placement", name=name, strategy=strategy, region=region)

    def _odd_name(self, at: float) -> None:
        draw, odd = self._draw, self._draw.choice(ODD_NAMES)
        name = draw.choice(self._names)
        if draw.random() < 0.5:
            name = f"other-{int(at)}"
            more: dict[str, Any] = draw.choice(({"scheduler": "another"}, {"is_claimed": False}))
            self._step(at - 1.0, "create_binding", name=name, replicas=1, strategy="dynamic", **more)
        self._step(at, draw.choice(("name_target", "place_binding")), name=name, cluster=odd)
        if draw.random() < 0.5:
            self._step(at + draw.uniform(0, 5), "kill", process=draw.randrange(self._processes))

    def _new_priority(self, at: float) -> None:
        draw = self._draw
        self._gates = {"PriorityBasedScheduling": True}
        self._options = {"max_in_flight": draw.choice((1, 2))}
        self._slow_results(at, draw.uniform(0.2, 1.0), length=4.0)
        for _ in range(3):
            self._aim(
                at, "in flight", "set_priority",
                delay=draw.uniform(0.0, 0.3), priority=draw.choice(_PRIORITIES),
            )  # fmt: skip
        self._disturb(at + 0.01, 8)
        for name in draw.sample(self._names, min(4, len(self._names))):
            self._step(at + draw.uniform(0, 3), "set_priority", name=name, priority=draw.choice(_PRIORITIES))
