"""Sequences of events in which Karmada's controllers act on one binding of two or three clusters."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, Final, cast

CLUSTERS: Final = ("a", "b", "c")
TIMEOUT_SECONDS: Final = 20
"""Of eviction tasks without a period of their own."""
LONG_SECONDS: Final = 300
Grace = int | str
"""The seconds of grace of an eviction task, or a purge mode; ``Never`` suppresses the deletion."""


@dataclass(frozen=True, slots=True)
class Step:
    """One event of a binding whose policy names all clusters, without a scheduler: a call of a function of ``ModelBinding``
    and of ``RealBinding``.

    - ``place``: write targets and eviction tasks as a scheduler does: cluster to replicas, and to what ends its copy.
    - ``observe``: write that the scheduler has seen the binding as it is.
    - ``report``: let copies on a cluster be ``Healthy``, ``Unhealthy``, or silent (an empty text).
    - ``taint``: give a cluster one taint of this effect, or none for an empty text.
    - ``edit``: change the clusters that the policy names.
    - ``scale``: change the replicas of the workload.
    - ``tolerate``: let the policy tolerate taints for so many seconds: 0 not at all, infinity for ever.
    - ``fail_over``: give the policy a purge mode for failed clusters, or none for an empty text.
    - ``confirm``: allow the deletions that eviction tasks suppress, as a person does.
    - ``rest``: let time pass.
    """

    name: str
    arguments: tuple[object, ...] = ()

    @property
    def targets(self) -> Mapping[str, int]:
        """Where a step ``place`` places the workload."""
        return cast("Mapping[str, int]", self.arguments[0])

    def __str__(self) -> str:
        return f"{self.name}({', '.join(repr(each) for each in self.arguments)})"


Sequence = tuple[Step, ...]

_START: Final = (
    Step("report", ("a", "Healthy")),
    Step("place", ({"a": 2}, {})),
    Step("observe"),
)


def _moved(health: str, grace: Grace = LONG_SECONDS) -> Sequence:
    """Return a graceful move from a to b."""
    return (*_START, Step("report", ("b", health)), Step("place", ({"b": 2}, {"a": grace})))


TELLING: Final[Mapping[str, Sequence]] = {
    "a move waits for the observed generation": (*_moved("Healthy"), Step("observe")),
    "a move waits for health": (
        *_moved("Unhealthy"),
        Step("observe"),
        Step("report", ("b", "Healthy")),
    ),
    "a move to a silent cluster": (*_moved(""), Step("observe"), Step("report", ("b", "Healthy"))),
    "a move ends by time": (
        *_moved("Unhealthy", TIMEOUT_SECONDS),
        Step("observe"),
        Step("rest", (TIMEOUT_SECONDS,)),
    ),
    "a move to nowhere": (
        *_START,
        Step("place", ({}, {"a": TIMEOUT_SECONDS})),
        Step("observe"),
        Step("rest", (TIMEOUT_SECONDS,)),
    ),
    "an eviction and a recovery": (
        *_START,
        Step("taint", ("a", "NoExecute")),
        Step("taint", ("a", "")),
        Step("rest", (TIMEOUT_SECONDS,)),
    ),
    "an eviction of one of two": (
        Step("report", ("a", "Healthy")),
        Step("report", ("b", "Healthy")),
        Step("place", ({"a": 2, "b": 1}, {})),
        Step("observe"),
        Step("taint", ("a", "NoExecute")),
        Step("observe"),
    ),
    "a taint that only keeps new workloads away": (
        *_START,
        Step("taint", ("a", "NoSchedule")),
        Step("taint", ("a", "")),
    ),
    "a placement on a cluster with a taint": (
        *_START,
        Step("taint", ("b", "NoExecute")),
        Step("taint", ("c", "NoExecute")),
        Step("place", ({"b": 2, "c": 1}, {})),
        Step("observe"),
    ),
    "a taint is tolerated for ever": (
        Step("tolerate", (math.inf,)),
        *_START,
        Step("taint", ("a", "NoExecute")),
        Step("tolerate", (0,)),
        Step("place", ({"a": 3}, {})),
    ),
    "a taint is tolerated for a while": (
        Step("tolerate", (TIMEOUT_SECONDS,)),
        *_START,
        Step("taint", ("a", "NoExecute")),
        Step("rest", (TIMEOUT_SECONDS,)),
        Step("place", ({"a": 2}, {})),
    ),
    "a tolerated taint goes": (
        Step("tolerate", (TIMEOUT_SECONDS,)),
        *_START,
        Step("taint", ("a", "NoExecute")),
        Step("taint", ("a", "")),
        Step("rest", (TIMEOUT_SECONDS,)),
    ),
    "a failed cluster is purged directly": (
        Step("fail_over", ("Directly",)),
        *_START,
        Step("taint", ("a", "NoExecute")),
        Step("place", ({"b": 2}, {"a": "Directly"})),
        Step("observe"),
    ),
    "a move with the old word for directly": (*_moved("Unhealthy", "Immediately"), Step("observe")),
    "a move with the old word for gracefully": (*_moved("Healthy", "Graciously"), Step("observe")),
    "a suppressed deletion waits for a person": (
        *_moved("Healthy", "Never"),
        Step("observe"),
        Step("rest", (TIMEOUT_SECONDS,)),
        Step("confirm"),
    ),
    "a copy becomes unhealthy": (
        *_START,
        Step("report", ("a", "Unhealthy")),
        Step("report", ("a", "Healthy")),
    ),
    "a policy is edited": (
        *_START,
        Step("edit", ("b", "c")),
        Step("report", ("b", "Healthy")),
        Step("place", ({"b": 2}, {})),
        Step("observe"),
    ),
    "a policy is edited during a move": (*_moved("Healthy"), Step("edit", ("b",)), Step("observe")),
    "a workload is scaled during a move": (*_moved("Healthy"), Step("scale", (5,)), Step("observe")),
}


_GRACES: Final[tuple[Grace, ...]] = (*[LONG_SECONDS] * 4, "Directly", "Immediately", "Graciously", "Never")


def drawn(random: Random, length: int = 10) -> Sequence:
    """Return a random sequence."""
    steps = list(_START)
    for _ in range(length):
        steps.append(_step(random))
        if steps[-1].name in {"place", "edit", "scale"} and random.random() < 0.7:
            steps.append(Step("observe"))
    return tuple(steps)


def _step(random: Random) -> Step:
    names = ("place", "observe", "report", "taint", "edit", "scale", "tolerate", "fail_over", "confirm")
    match random.choices(names, (8, 4, 8, 6, 2, 2, 2, 1, 1))[0]:
        case "place":
            targets = {name: random.randint(1, 3) for name in random.sample(CLUSTERS, random.randint(1, 2))}
            others = [name for name in CLUSTERS if name not in targets]
            leaving = {random.choice(others): random.choice(_GRACES)} if random.random() < 0.6 else {}
            return Step("place", (targets, leaving))
        case "report":
            return Step(
                "report", (random.choice(CLUSTERS), random.choice(("Healthy", "Healthy", "Unhealthy")))
            )
        case "taint":
            return Step("taint", (random.choice(CLUSTERS), random.choice(("NoExecute", "NoSchedule", ""))))
        case "edit":
            return Step("edit", tuple(sorted(random.sample(CLUSTERS, 2))))
        case "scale":
            return Step("scale", (random.randint(1, 6),))
        case "tolerate":
            return Step("tolerate", (random.choice((0, TIMEOUT_SECONDS, math.inf)),))
        case "fail_over":
            return Step("fail_over", (random.choice(("Directly", "Gracefully", "")),))
        case name:
            return Step(name)


def task(cluster: str, grace: Grace) -> dict[str, object]:
    """Return an eviction task as a scheduler or a controller writes it."""
    end: dict[str, object] = {"purgeMode": grace, "gracePeriodSeconds": LONG_SECONDS}
    if grace == "Never":
        end = {"purgeMode": grace, "suppressDeletion": True}
    elif isinstance(grace, int):
        end = {"purgeMode": "Gracefully", "gracePeriodSeconds": grace}
    return {"fromCluster": cluster, "reason": "Rescheduled", "producer": "my-scheduler", **end}


def confirmed(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the patch of a person who allows the deletions that eviction tasks suppress."""
    tasks = spec.get("gracefulEvictionTasks") or ()
    return {
        "spec": {
            "gracefulEvictionTasks": [
                each | ({"suppressDeletion": False} if "suppressDeletion" in each else {}) for each in tasks
            ]
        }
    }
