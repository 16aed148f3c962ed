"""Expands a seed to a plan.

A seed switches each kind of fault on with probability 1/2, so that kinds do not hide each other (Groce et al., Swarm
Testing, ISSTA 2012). The profiles differ in what else happens:

- ``calm``: few changes, which end long before the faults do. Nothing repairs a lost key by accident.
- ``storm``: a backlog, with freezes, kills and a Lease that moves in the middle of it.
- ``churn``: objects are deleted, created again under the same name, moved to another scheduler and back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any, Final

from tools.simulation.faults import FOREIGN, REQUEST_FAULTS, WATCH_FAULTS
from tools.simulation.plan import Fault, Plan, Step

PROFILES: Final = ("calm", "storm", "churn")

_LONG_OUTAGE: Final = 20.0
"""Seconds after which each watch starts with a list: the ten of the product, and the longest pause before a request."""

_LONGEST_FREEZE: Final = 60.0

REGIONS: Final = ("north", "south")
POLICIES: Final = ("p0", "shop/p1", "/p2")
STRATEGIES: Final = ("duplicated", "dynamic", "static", "aggregated")
_KINDS: Final = ("resourcebindings", "clusters", "leases", "")
_RETRY_AFTER: Final = (0, 1, 30, 1_000_000, "soon", None)


def plan_for(seed: str, profile: str) -> Plan:
    """Return the plan of a seed."""
    return _Generator(seed, profile).plan()


class _Generator:
    def __init__(self, seed: str, profile: str) -> None:
        self._seed = seed
        self._profile = profile
        self._draw = Random(f"{seed}:{profile}:plan")
        self._steps: list[Step] = []
        self._more_faults: list[Fault] = []
        self._end = self._draw.choice((40.0, 80.0, 120.0))
        self._processes = self._draw.choice((1, 2, 2, 3))
        self._clusters = [f"m{index}" for index in range(self._draw.choice((1, 3, 5, 8)))]
        self._bindings = [f"b{index}" for index in range(self._bindings_count())]

    def _bindings_count(self) -> int:
        return {"calm": 12, "storm": 40, "churn": 10}[self._profile]

    def plan(self) -> Plan:
        self._initial_clusters()
        self._create_bindings()
        changes = {"calm": 6, "storm": 30, "churn": 60}[self._profile]
        for _ in range(self._draw.randrange(changes)):
            self._change_binding()
        for _ in range(self._draw.randrange(8)):
            self._change_cluster()
        self._disrupt()
        faults = [*self._faults(), *self._more_faults]
        # In half of the runs nothing is repaired by a comparison with a list, unless lists are what is wrong, or the
        # versions after a restore may overtake those before it unnoticed (docs/decisions/0019).
        lists_are_wrong = any(each.kind in ("empty_list", "partial_list") for each in faults)
        must_compare = lists_are_wrong or self._has_unnoticed_restore()
        period = self._draw.choice((20.0, 120.0) if must_compare else (20.0, 120.0, 1e6, 1e6))
        return Plan(
            seed=self._seed,
            profile=self._profile,
            processes=self._processes,
            options={"resync_seconds": period},
            faults_end=self._end,
            steps=tuple(
                sorted((each for each in self._steps if each.at <= self._end), key=lambda each: each.at)
            ),
            faults=tuple(replace(each, end=min(each.end, self._end)) for each in faults),
        )

    def _step(self, at: float, action: str, **arguments: Any) -> None:
        self._steps.append(Step(at=round(at, 3), action=action, arguments=arguments))

    def _moment(self) -> float:
        # Changes end early in a calm run: a later one would requeue a key that was lost.
        share = 0.3 if self._profile == "calm" else 1.0
        return self._draw.uniform(1.0, self._end * share)

    def _initial_clusters(self) -> None:
        for name in self._clusters:
            self._put_cluster(0.0, name)

    def _put_cluster(self, at: float, name: str) -> None:
        self._step(
            at, "put_cluster", name=name, region=self._draw.choice(REGIONS), cpu=self._draw.randrange(2, 30)
        )

    def _strategy(self) -> str:
        return self._draw.choice(STRATEGIES)

    def _create_bindings(self) -> None:
        for name in self._bindings:
            at = 0.0 if self._draw.random() < 0.5 else self._moment()
            self._step(
                at,
                "create_binding",
                name=name,
                replicas=self._draw.choice((0, 1, 2, 5, 9)),
                strategy=self._strategy(),
                region=self._draw.choice(("", "", *REGIONS)),
                groups=self._draw.choice((0, 0, 2)),
            )

    def _change_binding(self) -> None:
        name, at, draw = self._draw.choice(self._bindings), self._moment(), self._draw
        changes: dict[str, Callable[[], None]] = {
            "scale": lambda: self._step(at, "scale", name=name, replicas=draw.randrange(12)),
            "placement": lambda: self._step(
                at,
                "change_placement",
                name=name,
                strategy=self._strategy(),
                region=draw.choice(("", *REGIONS)),
            ),
            "report": lambda: self._step(at, "report_status", name=name),
        }
        if self._profile != "calm":
            changes |= {
                "suspend": lambda: self._suspend(at, name),
                "evict": lambda: self._evict(at, name),
            }
        if self._profile == "churn":
            changes |= {
                "delete": lambda: self._step(at, "delete_binding", name=name),
                "recreate": lambda: self._step(
                    at, "recreate_binding", name=name, replicas=draw.randrange(9), strategy=self._strategy()
                ),
                "create": lambda: self._step(
                    at, "create_binding", name=name, replicas=draw.randrange(9), strategy=self._strategy()
                ),
                "assign": lambda: self._assign(at, name),
            }
        changes[draw.choice(sorted(changes))]()

    def _suspend(self, at: float, name: str) -> None:
        self._step(at, "suspend", name=name, suspended=True)
        self._step(min(self._end, at + self._draw.uniform(0.01, 10)), "suspend", name=name, suspended=False)

    def _evict(self, at: float, name: str) -> None:
        self._step(at, "evict", name=name)
        self._step(min(self._end, at + self._draw.uniform(0.1, 20)), "finish_eviction", name=name)

    def _assign(self, at: float, name: str) -> None:
        self._step(at, "assign_scheduler", name=name, scheduler="another")
        back = min(self._end, at + self._draw.uniform(0.01, 10))
        self._step(back, "assign_scheduler", name=name, scheduler="my-scheduler")

    def _change_cluster(self) -> None:
        name, at, draw = self._draw.choice(self._clusters), self._moment(), self._draw
        match draw.choice(("report", "taint", "delete", "flap", "break")):
            case "report":
                self._step(at, "report_cluster", name=name, cpu=draw.randrange(1, 40))
            case "taint":
                self._step(at, "taint_cluster", name=name, tainted=True)
                self._step(
                    min(self._end, at + draw.uniform(0.1, 30)), "taint_cluster", name=name, tainted=False
                )
            case "delete":
                self._step(at, "delete_cluster", name=name)
                if draw.random() < 0.7:
                    self._put_cluster(min(self._end, at + draw.uniform(0.01, 20)), name)
            case "flap":
                for turn in range(6):
                    self._step(
                        min(self._end, at + turn * 0.4), "taint_cluster", name=name, tainted=turn % 2 == 0
                    )
            case "break":
                self._step(at, "break_cluster", name=name, broken=True)
                self._step(min(self._end, at + draw.uniform(1, 30)), "break_cluster", name=name, broken=False)

    def _disrupt(self) -> None:
        """Draw what befalls processes and the API server."""
        draw, end = self._draw, self._end

        def at() -> float:
            return draw.uniform(0.5, end * 0.9)

        def process() -> int:
            return draw.randrange(self._processes)

        drawn: dict[str, Callable[[], None]] = {
            "kill": lambda: self._step(at(), "kill", process=process()),
            "terminate": lambda: self._step(at(), "terminate", process=process()),
            "freeze": lambda: self._step(
                at(), "freeze", process=process(), seconds=round(draw.uniform(1, 60), 2)
            ),
            "freeze_leader": lambda: self._freeze_leader(at()),
            "stall": lambda: self._step(
                at(), "stall", process=process(), seconds=round(draw.uniform(1, 20), 2)
            ),
            "clock": lambda: self._step(
                at(), "set_clock", process=process(), offset=draw.choice((-3600, 3600, 30))
            ),
            "outage": lambda: self._step(at(), "outage", seconds=round(draw.uniform(0.1, 20), 2)),
            "cut": lambda: self._step(at(), "cut_watches"),
            "compact": lambda: self._compact(at()),
            "take_lease": lambda: self._step(at(), "take_lease", seconds=draw.choice((1, 5, 15))),
            "clear_lease": lambda: self._step(at(), "clear_lease"),
            "lease_trouble": lambda: self._lease_trouble(at()),
            "slow_writes": lambda: self._slow_writes(at()),
            "conflicts": lambda: self._conflicts(at()),
            "delete_lease": lambda: self._step(at(), "delete_lease"),
        }
        for name in sorted(drawn):
            if draw.random() < 0.5:
                for _ in range(draw.choice((1, 1, 2, 4))):
                    drawn[name]()
        if draw.random() < 0.2:
            back, seconds = draw.uniform(5, 40), draw.uniform(0, 30)
            self._step(
                draw.uniform(end / 2, end * 0.7), "restore", back=round(back, 2), seconds=round(seconds, 2)
            )

    def _has_unnoticed_restore(self) -> bool:
        """Return whether the outage of a restore is short, or may be short for a process that does not run meanwhile."""
        freezes = [each.at for each in self._steps if each.action in ("freeze", "freeze_leader", "stall")]
        for each in self._steps:
            if each.action == "restore":
                seconds = each.arguments["seconds"]
                if seconds < _LONG_OUTAGE:
                    return True
                if any(-_LONGEST_FREEZE < at - each.at < seconds for at in freezes):
                    return True
        return False

    def _freeze_leader(self, at: float) -> None:
        """Freeze the leader for longer than its Lease lasts, right after it got something to write."""
        for name in self._draw.sample(self._bindings, min(8, len(self._bindings))):
            self._step(at, "scale", name=name, replicas=self._draw.randrange(1, 12))
        self._step(
            at + self._draw.uniform(0.001, 0.1), "freeze_leader", seconds=round(self._draw.uniform(16, 40), 2)
        )

    def _lease_trouble(self, at: float) -> None:
        """Make the Lease slow and then out of reach, while the leader gets one thing after another to write."""
        slow = round(self._draw.uniform(1, 4.5), 2)
        self._more_faults += [
            Fault(kind="slow", start=at, end=at + 2.5, requests="PUT leases", value=slow),
            Fault(kind="lost_before", start=at + 2.5, end=at + 30.0, requests="leases"),
        ]
        for turn in range(40):
            self._step(
                at + 5.0 + turn * 0.4,
                "scale",
                name=self._draw.choice(self._bindings),
                replicas=self._draw.randrange(1, 12),
            )

    def _slow_writes(self, at: float) -> None:
        """Let the leader wait with writes, and freeze it meanwhile for longer than its Lease lasts."""
        self._more_faults.append(
            Fault(kind="slow", start=at, end=at + 3.0, requests="PATCH resourcebindings", value=1.0)
        )
        for name in self._bindings:
            self._step(at, "scale", name=name, replicas=self._draw.randrange(1, 12))
        seconds = round(self._draw.uniform(12, 30), 2)
        self._step(at + self._draw.uniform(0.3, 1.5), "freeze_leader", seconds=seconds)

    def _conflicts(self, at: float) -> None:
        """Refuse every write of a binding for some seconds."""
        self._more_faults.append(
            Fault(kind="conflict", start=at, end=at + 5.0, requests="PATCH resourcebindings$")
        )
        self._step(at + 0.1, "scale", name=self._bindings[0], replicas=self._draw.randrange(1, 12))

    def _compact(self, at: float) -> None:
        self._step(at, "compact")
        self._step(min(self._end, at + self._draw.uniform(0, 2)), "cut_watches")

    def _faults(self) -> list[Fault]:
        """Draw the faults of requests and watches."""
        draw, found = self._draw, []
        for kind, share in (REQUEST_FAULTS | WATCH_FAULTS).items():
            if draw.random() < 0.5:
                continue
            for _ in range(draw.choice((1, 1, 2))):
                start = draw.uniform(0, self._end * 0.9)
                length = draw.choice((self._end, draw.uniform(2, 15)))
                found.append(
                    Fault(
                        kind=kind,
                        start=round(start, 2),
                        end=round(min(self._end, start + length), 2),
                        share=share if length == self._end else draw.choice((share, 0.5, 1.0)),
                        requests=draw.choice(_KINDS),
                        process=draw.choice((None, None, draw.randrange(self._processes))),
                        value=self._value(kind),
                    )
                )
        return found

    def _value(self, kind: str) -> Any:
        match kind:
            case "slow":
                return self._draw.choice((0.05, 0.3, 2.0, 6.0))
            case "throttled":
                return self._draw.choice(_RETRY_AFTER)
            case "foreign":
                return self._draw.choice(FOREIGN)
            case "watch_late":
                return self._draw.choice((0.5, 5.0, 30.0))
        return None
