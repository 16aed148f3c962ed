"""Plans that aim at what decisions follow from besides what is stored: answers of plugins, estimators and the API server.

Each seed has one aim, as in ``generate_aimed``:

- ``refusals``: a plugin refuses, and asks for the time of the next attempt.
- ``late estimates``: some estimators respond after the deadline of a decision, others before.
- ``failed writes``: with overcommit protection, writes fail while several bindings want what is left of the clusters.
- ``older generations``: etcd is restored from a backup whose revision is bumped, and a binding changes before schedulers
  see that its generation went back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tools.simulation.generate import REGIONS
from tools.simulation.generate_aimed import AimedPlan
from tools.simulation.plan import Fault, Plan
from tools.simulation.plugin_kit import REFUSES

PROFILES: Final = ("answers",)

_DIVIDED: Final = ("dynamic", "aggregated")
_REFUSING: Final = ("pre_enqueue", "filter", "select", "guard", "reserve", "permit")
_BEGIN: Final = 20.0
_END: Final = 150.0
_CPU: Final = 12
"""Of a cluster that can be full."""
_AHEAD: Final = 100_000
"""Revisions by which a restored API server is ahead of the lost one, as ``etcdutl snapshot restore --bump-revision``."""


def plan_for(seed: str, profile: str) -> Plan:
    """Return the plan of a seed."""
    return _Answers(seed, profile).plan()


class _Answers(AimedPlan):
    def __init__(self, seed: str, profile: str) -> None:
        super().__init__(seed, profile, end=_END, processes=(1, 2))
        self._names = [f"b{index}" for index in range(6)]
        self._refusing = self._draw.sample(_REFUSING, len(_REFUSING))

    def plan(self) -> Plan:
        aims: tuple[Callable[[], Callable[[float], float]], ...] = (
            self._refusals, self._late_estimates, self._failed_writes, self._older_generations,
        )  # fmt: skip
        aim, at = aims[int(self._seed) % len(aims)](), _BEGIN
        while at < _END - 30:
            at += aim(at) + self._draw.uniform(1, 4)
        return self._made()

    def _fault(self, kind: str, start: float, seconds: float, requests: str, value: Any) -> None:
        end = min(_END, start + seconds)
        self._faults.append(Fault(kind=kind, start=start, end=end, requests=requests, value=value))

    def _clusters(self, cpu: int, count: int = 4) -> None:
        for index in range(count):
            self._step(0.0, "put_cluster", name=f"m{index}", region=REGIONS[index % 2], cpu=cpu)

    def _create(self, at: float, name: str, **more: Any) -> None:
        given = {"replicas": self._draw.randrange(1, 4), "strategy": self._draw.choice(_DIVIDED), **more}
        self._step(at, "create_binding", name=name, cpu="1", **given)

    def _refusals(self) -> Callable[[float], float]:
        self._setup["plugins"] = ("refuser",)
        self._clusters(200)
        for name in self._names:
            self._create(self._draw.uniform(1, 10), name)
        return self._refuse

    def _refuse(self, at: float) -> float:
        """Let a plugin refuse bindings, three times each."""
        draw, point = self._draw, self._refusing.pop()
        self._refusing.insert(0, point)
        seconds = draw.choice((2.0, 4.0, 6.0))
        length = 2.5 * seconds
        if point == "filter":
            # Only a new binding: what no cluster fits loses its clusters. The shortest time of all clusters counts.
            for index in range(4):
                self._fault(REFUSES, at, length, f"Refuser.filter m{index}", seconds * (1 + index % 2))
            self._create(at + 0.1, f"b{int(at)}")
        else:
            self._fault(REFUSES, at, length, f"Refuser.{point}", seconds)
            for name in draw.sample(self._names, 2):
                self._step(at + 0.1, "scale", name=name, replicas=draw.randrange(4, 12))
        return length + seconds

    def _late_estimates(self) -> Callable[[float], float]:
        self._setup["estimators"] = self._draw.choice(("partial", "partial", "upstream"))
        self._processes = 1
        self._clusters(20)
        for name in self._names[:4]:
            self._create(self._draw.uniform(1, 10), name)
        return self._be_late

    def _be_late(self, at: float) -> float:
        """Let estimators be late: their requests end together with the decision while the process is blocked, or after it."""
        draw = self._draw
        silent = draw.sample(range(4), draw.choice((1, 2)))
        requests = f"estimator m[{''.join(map(str, silent))}]"
        if draw.random() < 0.5:
            self._fault("estimator_silent", at, 8.0, requests, None)
            self._step(at + draw.uniform(0.5, 2.5), "stall", process=0, seconds=4.0)
            for name in draw.sample(self._names[:4], 2):
                self._step(at + 0.1, "scale", name=name, replicas=draw.randrange(4, 14))
        else:
            # The deadline of a decision begins with its first term, which takes most of it and fits nowhere.
            self._fault("estimator_slow", at, 8.0, "estimator m[02]", 2.0)
            self._fault("estimator_number", at, 8.0, "estimator m[02]", 1)
            self._fault("estimator_slow", at, 8.0, "estimator m1", 2.0)
            self._create(at + 0.1, f"t{int(at)}", terms=list(REGIONS), replicas=draw.randrange(4, 9))
        return 12.0

    def _failed_writes(self) -> Callable[[float], float]:
        self._setup["gates"] = {"SchedulingOvercommitProtection": True}
        self._clusters(_CPU, count=2)
        for name in self._names:
            self._create(self._draw.uniform(1, 10), name, replicas=1)
        return self._fail_writes

    def _fail_writes(self, at: float) -> float:
        """Let one binding grow, and grow again while no result can be written; then another one wants more than is left."""
        draw, (grown, other) = self._draw, self._draw.sample(self._names, 2)
        replicas, length = draw.randrange(4, 7), draw.uniform(0.5, 2.0)
        left = 2 * _CPU - replicas - (len(self._names) - 2)
        kind = draw.choice(("unavailable", "lost_before", "conflict", "internal_error"))
        self._step(at, "scale", name=grown, replicas=replicas)
        self._fault(kind, at + 2, length, "PATCH resourcebindings$", None)
        self._step(at + 2, "scale", name=grown, replicas=replicas + draw.randrange(1, 4))
        more = left + draw.randrange(-1, 4)
        self._step(at + 2 + length * draw.uniform(0.7, 1.3), "scale", name=other, replicas=more)
        for name in (grown, other):
            self._step(at + 10, "scale", name=name, replicas=1)
        return 12.0

    def _older_generations(self) -> Callable[[float], float]:
        self._clusters(200)
        for name in self._names:
            self._create(
                self._draw.uniform(1, 10), name, strategy=self._draw.choice((*_DIVIDED, "duplicated"))
            )
        return self._restore

    def _restore(self, at: float) -> float:
        """Let a binding change, and change otherwise after a restore that undid it, before schedulers connect again."""
        draw, seconds = self._draw, round(self._draw.uniform(0.5, 3.0), 2)
        for name in draw.sample(self._names, draw.choice((1, 2))):
            for turn in range(draw.choice((1, 2))):
                self._step(at + turn, "scale", name=name, replicas=draw.randrange(1, 12))
            changed = at + 4 + seconds * draw.uniform(0.55, 0.95)
            self._step(changed, "scale", name=name, replicas=draw.randrange(12, 20))
        self._step(at + 4, "restore", back=4.5, seconds=seconds, ahead=_AHEAD)
        return 14.0
