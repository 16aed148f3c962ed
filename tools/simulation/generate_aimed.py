"""Plans whose steps are taken where they hurt: on bindings that are in flight, between two patches, at a new leader.

Each seed has one aim, so that what it disturbs is not repaired by what another aim does:

- ``newer spec``: a binding changes while PreBind of its decision takes time.
- ``two patches``: between the result and the status, the leader ends or stops, or the binding changes.
- ``just decided``: a binding, or a cluster, changes as soon as a status is stored.
- ``new leader``: bindings change, and requests fail, when another process begins to lead.
- ``watches``: connections break, requests to watch are not answered, and then something changes.
- ``new cluster``: a binding is placed on a cluster of which the watch does not know yet.
- ``stop``: processes get a signal, at rest and while decisions are in flight.
- ``terms``: the leader ends when it has placed a binding in its second affinity term, and then the first one is free again.
- ``failed``: it ends when it has stored that a binding fits nowhere, or has placed it later.
- ``late``: a failure is reported by a former leader, after a binding was decided.
- ``unjoin``: a cluster is deleted by force while a result is written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Final

from tools.simulation.generate import REGIONS
from tools.simulation.plan import Fault, Plan, Step

PROFILES: Final = ("aimed",)

_STRATEGIES: Final = ("duplicated", "dynamic", "aggregated")
_CLUSTERS: Final = ("m0", "m1", "m2", "m3")
_FAILURES: Final = ("SchedulerError", "NoClusterFit", "Unschedulable")
_BEGIN: Final = 20.0
"""Seconds until one process leads and the bindings are placed."""
_END: Final = 120.0
_STOPS_WITHIN: Final = 10.0


def plan_for(seed: str, profile: str) -> Plan:
    """Return the plan of a seed."""
    return _Aimed(seed, profile).plan()


class AimedPlan:
    """The steps and faults of a seed with one aim, as far as they are drawn."""

    def __init__(self, seed: str, profile: str, *, end: float, processes: Sequence[int]) -> None:
        """Start without steps.

        Args:
            seed: Of the draws, and of the aim.
            profile: The profile.
            end: When faults end, in seconds; no step is later.
            processes: The numbers of processes, of which one is drawn.
        """
        self._seed, self._profile, self._faults_end = seed, profile, end
        self._draw = Random(f"{seed}:{profile}")
        self._steps: list[Step] = []
        self._faults: list[Fault] = []
        self._setup: dict[str, Any] = {"longest_backoff": 30.0}
        self._processes = self._draw.choice(processes)

    def _step(self, at: float, action: str, **arguments: Any) -> None:
        self._steps.append(Step(at=round(min(at, self._faults_end), 3), action=action, arguments=arguments))

    def _made(self) -> Plan:
        return Plan(
            seed=self._seed,
            profile=self._profile,
            processes=self._processes,
            setup=self._setup,
            # Nothing is repaired by a comparison with a list.
            options={"resync_seconds": 1e6},
            faults_end=self._faults_end,
            steps=tuple(sorted(self._steps, key=lambda each: each.at)),
            faults=tuple(self._faults),
        )


class _Aimed(AimedPlan):
    def __init__(self, seed: str, profile: str) -> None:
        super().__init__(seed, profile, end=_END, processes=(1, 2, 3))
        self._names = [f"{self._draw.choice(('', '', 'shop/', '/'))}b{index}" for index in range(8)]

    def plan(self) -> Plan:
        draw = self._draw
        for index, name in enumerate(_CLUSTERS):
            self._step(0.0, "put_cluster", name=name, region=REGIONS[index % 2], cpu=200)
        for name in self._names:
            strategy, region = draw.choice(_STRATEGIES), draw.choice(("", *REGIONS))
            replicas = draw.randrange(1, 9)
            self._step(
                draw.uniform(1, 10), "create_binding",
                name=name, replicas=replicas, strategy=strategy, region=region,
            )  # fmt: skip
        aims: tuple[Callable[[float], None], ...] = (
            self._newer_spec, self._two_patches, self._just_decided, self._new_leader, self._watches,
            self._new_cluster, self._stop, self._terms, self._unjoin, self._failed,
            self._late,
        )  # fmt: skip
        aim, at = aims[int(self._seed) % len(aims)], _BEGIN
        while at < _END - 15:
            aim(at)
            at += draw.uniform(6, 16)
        return self._made()

    def _aim(self, at: float, moment: str, then: str, *, delay: float = 0.0, **arguments: Any) -> None:
        more = {"moment": moment, "then": then, "within": 10.0, "delay": round(delay, 4)}
        self._step(at, "aim", **more, **arguments)

    def _change(self) -> tuple[str, dict[str, Any]]:
        """Return a change of a binding, without its name."""
        if self._draw.random() < 0.6:
            return "scale", {"replicas": self._draw.randrange(1, 12)}
        strategy, region = self._draw.choice(_STRATEGIES), self._draw.choice(("", *REGIONS))
        return "change_placement", {"strategy": strategy, "region": region}

    def _disturb(self, at: float, count: int = 1) -> None:
        """Let the leader get something to decide."""
        for name in self._draw.sample(self._names, count):
            action, arguments = self._change()
            self._step(at, action, name=name, **arguments)

    def _newer_spec(self, at: float) -> None:
        self._setup["plugins"] = ("bind_steps",)
        hangs = self._draw.choice((0.2, 1.0))
        self._faults.append(
            Fault(kind="plugin_hangs", start=at, end=at + 2, requests=r"BindSteps\.pre_bind", value=hangs)
        )
        action, arguments = self._change()
        self._aim(at, "in flight", action, delay=self._draw.uniform(0.001, hangs), **arguments)
        self._disturb(at + 0.01, 2)

    def _two_patches(self, at: float) -> None:
        draw = self._draw
        if draw.random() < 0.5:
            action, arguments = self._change()
        else:
            self._processes = max(2, self._processes)
            action = draw.choice(("kill_leader", "freeze_leader", "inject", "inject"))
            more: dict[str, dict[str, Any]] = {
                "freeze_leader": {"seconds": round(draw.uniform(1, 30), 2)},
                "inject": {
                    "kind": draw.choice(("lost_after", "lost_before", "conflict", "torn", "unavailable")),
                    "seconds": round(draw.uniform(0.5, 4), 2),
                    "requests": "PATCH .*bindings/status",
                },
            }
            arguments = more.get(action, {})
        self._aim(at, "placed", action, delay=draw.choice((0.0, draw.uniform(0, 0.01))), **arguments)
        self._disturb(at + 0.01, 2)

    def _just_decided(self, at: float) -> None:
        for _ in range(3):
            action, arguments = self._change()
            self._aim(at, "reported", action, delay=self._draw.choice((0.0, 0.002, 0.05)), **arguments)
        if self._draw.random() < 0.4:
            cluster = f"m{self._draw.randrange(4)}"
            self._aim(at, "reported", "taint_cluster", name=cluster, tainted=True)
            self._step(at + 4, "taint_cluster", name=cluster, tainted=False)
        self._disturb(at + 0.01, 3)

    def _new_leader(self, at: float) -> None:
        draw = self._draw
        self._processes = max(2, self._processes)
        for name in draw.sample(self._names, 3):
            action, arguments = self._change()
            self._aim(at, "elected", action, delay=draw.uniform(0, 0.3), name=name, **arguments)
        if draw.random() < 0.5:
            kind = draw.choice(("lost_after", "unavailable", "slow", "conflict"))
            requests = draw.choice(("PATCH", "LIST", "GET"))
            self._aim(
                at, "elected", "inject", kind=kind, seconds=round(draw.uniform(0.5, 3), 2),
                requests=f"{requests} .*bindings", value=1.0,
            )  # fmt: skip
        self._step(at, "kill_leader")

    def _watches(self, at: float) -> None:
        draw = self._draw
        kind = draw.choice(("resourcebindings", "clusters", ""))
        self._step(
            at, "inject", kind="silent", seconds=round(draw.uniform(1, 6), 2), requests=f"WATCH .*{kind}"
        )
        self._step(at + 0.01, "cut_watches")
        self._disturb(at + draw.uniform(0.5, 5), 2)
        if draw.random() < 0.5:
            name, tainted = f"m{draw.randrange(4)}", draw.random() < 0.5
            self._step(at + draw.uniform(0.5, 5), "taint_cluster", name=name, tainted=tainted)

    def _new_cluster(self, at: float) -> None:
        name = f"n{int(at)}"
        late = Fault(kind="watch_late", start=at, end=at + 8, requests="clusters", value=8.0)
        self._faults.append(late)
        self._step(at + 0.1, "put_cluster", name=name, region=self._draw.choice(REGIONS), cpu=200)
        self._step(at + 0.2, "place_binding", name=self._draw.choice(self._names), cluster=name)
        self._disturb(at + 0.3, 2)

    def _taint(self, at: float, clusters: Sequence[str], *, tainted: bool) -> None:
        for cluster in clusters:
            self._step(at, "taint_cluster", name=cluster, tainted=tainted)

    def _create(self, at: float, strategies: Sequence[str], *, least: int = 1, **more: Any) -> None:
        strategy, replicas = self._draw.choice(strategies), self._draw.randrange(least, 6)
        self._step(at, "create_binding", name=f"n{int(at)}", replicas=replicas, strategy=strategy, **more)

    def _terms(self, at: float) -> None:
        first = _CLUSTERS[::2]
        self._taint(at, first, tainted=True)
        self._aim(at + 0.4, "placed", "kill_leader")
        self._create(at + 0.5, _STRATEGIES, terms=list(REGIONS))
        self._taint(at + 1.5, first, tainted=False)

    def _failed(self, at: float) -> None:
        self._taint(at, _CLUSTERS, tainted=True)
        self._aim(at + self._draw.choice((0.4, 1.5)), "placed", "kill_leader")
        self._create(at + 0.5, _STRATEGIES[1:], least=0, cpu="1")
        self._taint(at + 1.6, _CLUSTERS, tainted=False)

    def _late(self, at: float) -> None:
        self._disturb(at, 2)
        reason, delay = self._draw.choice(_FAILURES), self._draw.choice((0.0, 0.05, 1.0))
        self._aim(at, "reported", "report_late", delay=delay, reason=reason)

    def _unjoin(self, at: float) -> None:
        cluster = self._draw.choice(_CLUSTERS[1:])
        self._faults.append(Fault(kind="slow", start=at, end=at + 3, requests="PATCH .*bindings", value=1.0))
        self._aim(at, "in flight", "unjoin_by_force", delay=self._draw.uniform(0.001, 0.8), cluster=cluster)
        self._create(at + 0.1, _STRATEGIES[1:])
        if self._draw.random() < 0.5:
            self._step(at + 5, "put_cluster", name=cluster, region=REGIONS[int(cluster[1:]) % 2], cpu=200)

    def _stop(self, at: float) -> None:
        self._setup["stops_within"] = _STOPS_WITHIN
        self._disturb(at, 3)
        for process in range(self._processes):
            self._step(at + self._draw.choice((0.004, 3.0)), "terminate", process=process)
