"""Plans of the profile ``rounds``: the same steps and faults again and again, with new names each time.

Each round leaves the live objects as they were. After each block of rounds everything comes to rest, and the sizes of all
containers are compared (``flat``).
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any, Final

from tools.simulation.estimators import ESTIMATOR_FAULTS
from tools.simulation.extenders import BODIES, EXTENDER_FAULTS
from tools.simulation.generate import STRATEGIES
from tools.simulation.plan import Fault, Plan, Step
from tools.simulation.plugin_kit import PLUGIN_FAULTS

PROFILES: Final = ("rounds",)

BLOCKS: Final = 3
"""Blocks of rounds. The first one fills caches."""

_ROUNDS: Final = 5
_ROUND_SECONDS: Final = 20.0
_REST_SECONDS: Final = 130.0
"""Rest after each block: more than the longest backoff, watch timeout and circuit breaker."""

_START: Final = 20.0
_REQUEST_FAULTS: Final = (
    "lost_before", "lost_after", "slow", "conflict", "throttled", "unavailable", "internal_error", "forbidden",
    "torn", "not_found",
)  # fmt: skip
_WATCH_FAULTS: Final = ("watch_cut", "watch_repeated", "watch_expired", "watch_late", "watch_garbage")
_SURROUNDINGS: Final = ("nothing", "gates", "plugins", "extenders", "estimators")


def plan_for(seed: str, profile: str) -> Plan:
    """Return the plan of a seed."""
    return _Generator(seed, profile).plan()


class _Generator:
    def __init__(self, seed: str, profile: str) -> None:
        self._draw = Random(f"{seed}:{profile}:plan")
        self._plan = Plan(seed=seed, profile=profile, processes=self._draw.choice((1, 2)))
        self._setup: dict[str, Any] = {"longest_backoff": 20.0}
        self._first: list[Step] = []
        self._steps: list[Step] = []
        self._faults: list[Fault] = []

    def plan(self) -> Plan:
        self._live()
        self._surround()
        self._round()
        block = _ROUNDS * _ROUND_SECONDS + _REST_SECONDS
        starts = [
            _START + block * number + _ROUND_SECONDS * each
            for number in range(BLOCKS)
            for each in range(_ROUNDS)
        ]
        steps = [_moved(step, start, index) for index, start in enumerate(starts) for step in self._steps]
        faults = [
            replace(fault, start=start + fault.start, end=start + fault.end)
            for start in starts
            for fault in self._faults
        ]
        self._setup["measured"] = [_START + block * number - 0.5 for number in range(1, BLOCKS + 1)]
        end = starts[-1] + _ROUND_SECONDS
        return replace(
            self._plan,
            setup=self._setup,
            options={"resync_seconds": self._draw.choice((20.0, 120.0)), "assumption_ttl": 30.0},
            steps=tuple(sorted((*self._first, *steps), key=lambda each: each.at)),
            faults=tuple(faults),
            faults_end=end,
            settle=_START + block * BLOCKS - end,
        )

    def _live(self) -> None:
        for number in range(4):
            self._first.append(_step(0.0, "put_cluster", name=f"m{number}", region="north", cpu=40))
        for number in range(4):
            strategy = STRATEGIES[number]
            self._first.append(_step(1.0, "create_binding", name=f"b{number}", replicas=2, strategy=strategy))

    def _surround(self) -> None:
        draw = self._draw
        kind = draw.choice(_SURROUNDINGS)
        if kind == "gates":
            gates = ("SchedulingOvercommitProtection", "PriorityBasedScheduling")
            self._setup["gates"] = {name: draw.random() < 0.7 for name in gates}
        elif kind == "plugins":
            self._setup["plugins"] = ["books", "reading", "region_filter", "reserver", "turnstile"]
            for each in draw.sample(PLUGIN_FAULTS, 3):
                self._fault(each, "plugin .*", value=1.5, share=0.3)
        elif kind == "extenders":
            entry = {"urlPrefix": "http://extender", "filterVerb": "filter", "httpTimeout": "1s"}
            self._setup["extenders"] = [{**entry, "nodeCacheCapable": draw.random() < 0.5}]
            for each in draw.sample(EXTENDER_FAULTS, 2):
                value = {"extender_status": 500, "extender_body": draw.choice(list(BODIES))}.get(each, 2.0)
                self._fault(each, "extender", value=value)
        elif kind == "estimators":
            self._setup["estimators"] = draw.choice(("partial", "upstream"))
            for each in draw.sample(ESTIMATOR_FAULTS, 2):
                self._fault(each, "estimator", value=-1 if each == "estimator_number" else 2.0)

    def _round(self) -> None:
        draw = self._draw
        for each in draw.sample(_REQUEST_FAULTS, 3):
            value = 1 if each == "throttled" else 0.5
            self._fault(each, draw.choice(("bindings", "PATCH", "events")), value=value, share=0.4)
        for each in draw.sample(_WATCH_FAULTS, 2):
            self._fault(each, draw.choice(("bindings", "clusters")), value=1.0, share=0.3)
        self._steps += [
            _step(0.5, "put_cluster", name="c{round}", region="south", cpu=20),
            _step(5.0, "delete_cluster", name="c{round}"),
            _step(1.0, "put_policy", name="p{round}", strategy="duplicated"),
            _step(9.0, "delete_policy", name="p{round}"),
        ]
        for number, region in enumerate(("", "south", "nowhere", "")):
            name = f"{draw.choice(('', '/', 'shop/'))}r{{round}}x{number}"
            at = round(draw.uniform(1.5, 4.0), 2)
            self._steps += [
                _step(
                    at, "create_binding", name=name, replicas=draw.randrange(1, 5),
                    strategy=draw.choice(STRATEGIES), region=region, policy="p{round}",
                ),
                _step(at + draw.uniform(0.01, 3), "scale", name=name, replicas=draw.randrange(6)),
                _step(at + draw.uniform(0.01, 6), "delete_binding", name=name),
                _step(14.0, "delete_binding", name=name),
            ]  # fmt: skip
        self._steps += [
            _step(2.0, "taint_cluster", name="m0", tainted=True),
            _step(8.0, "taint_cluster", name="m0", tainted=False),
            _step(draw.uniform(1, 6), "scale", name="b1", replicas=5),
            _step(12.0, "scale", name="b1", replicas=2),
            _step(draw.uniform(1, 6), "change_placement", name="b0", strategy="dynamic", region="north"),
            _step(12.5, "change_placement", name="b0", strategy="duplicated"),
            _step(13.0, "report_status", name="b2"),
        ]

    def _fault(self, kind: str, requests: str, *, value: Any = None, share: float = 1.0) -> None:
        start = round(self._draw.uniform(0.5, 6), 2)
        end = round(start + self._draw.uniform(1, 4), 2)
        self._faults.append(
            Fault(kind=kind, start=start, end=end, share=share, requests=requests, value=value)
        )


def _step(at: float, action: str, **arguments: Any) -> Step:
    return Step(at=round(at, 3), action=action, arguments=arguments)


def _moved(step: Step, start: float, index: int) -> Step:
    """Return a step of a round, with the names of that round."""
    arguments = {
        name: value.replace("{round}", str(index)) if isinstance(value, str) else value
        for name, value in step.arguments.items()
    }
    return replace(step, at=round(start + step.at, 3), arguments=arguments)
