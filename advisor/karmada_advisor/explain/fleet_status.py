"""The schedulers that bindings name: whether they decide, and what they have placed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from karmada_advisor.state.model import (
    WORST_FIRST,
    BindingState,
    ReplicaCounts,
    SchedulerShown,
    SchedulerStatus,
    StateName,
)
from karmada_advisor.state.schedulers import Schedulers
from karmada_scheduler.structs import Struct


class SchedulerUse(Struct, frozen=True):
    """One scheduler.

    Attributes:
        scheduler: What is known about it.
        bindings: Those that name it, by state, the worst first.
        replicas: What these want, have and run.
    """

    scheduler: SchedulerShown
    bindings: Mapping[str, int]
    replicas: ReplicaCounts


class FleetStatus(Struct, frozen=True):
    """All schedulers.

    Attributes:
        source: Where the objects were read.
        at: When, in the format of the API.
        clusters: How many clusters there are.
        not_ready: The clusters that are not ready.
        schedulers: Those that bindings name, and those with a Lease; by name.
        not_read: What could not be read, and why, by kind.
    """

    source: str
    at: str
    clusters: int
    not_ready: tuple[str, ...]
    schedulers: tuple[SchedulerUse, ...]
    not_read: Mapping[str, str]

    @property
    def is_good(self) -> bool:
        """Whether each scheduler that a binding names is known to decide."""
        return all(use.scheduler.status is SchedulerStatus.RUNNING for use in self.schedulers if use.bindings)


def uses_of(states: Iterable[tuple[str, BindingState]], schedulers: Schedulers) -> tuple[SchedulerUse, ...]:
    """Return the schedulers, by name.

    Args:
        states: The name of the responsible scheduler, and the state, of each binding.
        schedulers: What is known about schedulers.
    """
    counts: dict[str, Counter[StateName]] = {name: Counter() for name in schedulers.by_name}
    replicas: dict[str, ReplicaCounts] = {}
    for name, state in states:
        counts.setdefault(name, Counter())[state.name] += 1
        replicas[name] = replicas.get(name, ReplicaCounts()) + state.replicas
    return tuple(
        SchedulerUse(
            schedulers.of(name),
            {each.value: found[each] for each in sorted(found, key=WORST_FIRST.__getitem__)},
            replicas.get(name, ReplicaCounts()),
        )
        for name, found in sorted(counts.items())
    )
