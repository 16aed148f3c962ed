"""The jobs that a fleet of 10 clusters with 64 CPUs each gets: more than fits, and now and then an important one."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Final

CLUSTERS: Final = 10
CPUS: Final = 64
"""Of each cluster. A replica needs one."""
LOAD: Final = 1.15
"""What jobs of low priority ask for, as a share of all CPUs."""
FIRST_HIGH: Final = 600.0
HIGH_EVERY: Final = 300.0
HIGH_SECONDS: Final = 300.0
"""How long a job of high priority runs."""
LAST_HIGH: Final = 1800.0
"""So long before the end the last one is created."""
HIGH: Final = 1000
_SMALL: Final = (4, 8, 8, 12, 16)
_BIG: Final = (40, 80)
_BIG_LOAD: Final = 0.5
"""What big jobs ask for, as a share of the load of low priority."""
_LOW_SECONDS: Final = 300.0
"""The mean."""


@dataclass(frozen=True, slots=True)
class Job:
    """A workload that ends.

    Attributes:
        created: In seconds of virtual time.
        replicas: Of one CPU each.
        one_cluster: Whether all replicas must be on one cluster.
        seconds: How long it runs, from its placement on.
    """

    name: str
    created: float
    priority: int
    replicas: int
    one_cluster: bool
    seconds: float

    @property
    def rank(self) -> tuple[int, float, str]:
        """The place among those that wait: the smallest first."""
        return -self.priority, self.created, self.name


def jobs(seed: int, seconds: float) -> list[Job]:
    """Return the jobs of a run of so many seconds, in the order of their creation.

    Jobs of low priority come at random times. Of those of high priority, every second one needs 40 replicas on one
    cluster, the others 120 anywhere.
    """
    draw = Random(f"contention:{seed}")
    small, big = sum(_SMALL) / len(_SMALL), sum(_BIG) / len(_BIG)
    weights = (1 - _BIG_LOAD) / small, _BIG_LOAD / big
    rate = LOAD * CLUSTERS * CPUS / _LOW_SECONDS * sum(weights)
    found, at, number = [], draw.expovariate(rate), 0
    while at < seconds:
        number += 1
        replicas = draw.choice(draw.choices((_SMALL, _BIG), weights)[0])
        one_cluster = replicas == _BIG[0] or (replicas < CPUS and draw.random() < 0.5)
        lasts = draw.uniform(0.2, 1.8) * _LOW_SECONDS
        found.append(Job(f"low-{number}", at, 0, replicas, one_cluster, lasts))
        at += draw.expovariate(rate)
    for index in range(int((seconds - LAST_HIGH - FIRST_HIGH) / HIGH_EVERY) + 1):
        created, one_cluster = FIRST_HIGH + index * HIGH_EVERY, index % 2 == 0
        name, replicas = f"high-{index + 1}", 40 if one_cluster else 120
        found.append(Job(name, created, HIGH, replicas, one_cluster, HIGH_SECONDS))
    return sorted(found, key=lambda job: job.created)
