"""Sequences of events in which Karmada's controllers act on one binding of two or three clusters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Final, Protocol

CLUSTERS: Final = ("a", "b", "c")
TIMEOUT_SECONDS: Final = 20
"""Of eviction tasks without a period of their own."""
LONG_SECONDS: Final = 300


class BindingEvents(Protocol):
    """A control plane with one binding whose policy names all clusters, and no scheduler."""

    def place(self, targets: Mapping[str, int], leaving: Mapping[str, int], /) -> None:
        """Write targets and eviction tasks as a scheduler does: cluster to replicas, cluster to seconds of grace."""

    def observe(self) -> None:
        """Write that the scheduler has seen the binding as it is."""

    def report(self, cluster: str, health: str, /) -> None:
        """Let copies on a cluster be ``Healthy``, ``Unhealthy``, or silent (an empty text)."""

    def taint(self, cluster: str, effect: str, /) -> None:
        """Give a cluster one taint of this effect, or none for an empty text."""

    def edit(self, *clusters: str) -> None:
        """Change the clusters that the policy names."""

    def scale(self, replicas: int, /) -> None:
        """Change the replicas of the workload."""

    def rest(self, seconds: int, /) -> None:
        """Let time pass."""


@dataclass(frozen=True, slots=True)
class Step:
    """One call of a function of ``BindingEvents``."""

    name: str
    arguments: tuple[object, ...] = ()

    def __str__(self) -> str:
        return f"{self.name}({', '.join(repr(each) for each in self.arguments)})"


Sequence = tuple[Step, ...]

_START: Final = (
    Step("report", ("a", "Healthy")),
    Step("place", ({"a": 2}, {})),
    Step("observe"),
)


def _moved(health: str, grace: int = LONG_SECONDS) -> Sequence:
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


def drawn(random: Random, length: int = 10) -> Sequence:
    """Return a random sequence."""
    steps = list(_START)
    for _ in range(length):
        steps.append(_step(random))
        if steps[-1].name in {"place", "edit", "scale"} and random.random() < 0.7:
            steps.append(Step("observe"))
    return tuple(steps)


def _step(random: Random) -> Step:
    match random.choices(("place", "observe", "report", "taint", "edit", "scale"), (4, 2, 4, 3, 1, 1))[0]:
        case "place":
            targets = {name: random.randint(1, 3) for name in random.sample(CLUSTERS, random.randint(1, 2))}
            others = [name for name in CLUSTERS if name not in targets]
            leaving = {random.choice(others): LONG_SECONDS} if random.random() < 0.6 else {}
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
        case _:
            return Step("observe")


def task(cluster: str, seconds: int) -> dict[str, object]:
    """Return an eviction task as a scheduler writes it, with so many seconds of grace."""
    return {
        "fromCluster": cluster,
        "purgeMode": "Gracefully",
        "reason": "Rescheduled",
        "producer": "my-scheduler",
        "gracePeriodSeconds": seconds,
    }
