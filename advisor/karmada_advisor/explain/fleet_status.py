"""The schedulers that bindings name: whether they decide, by which code and rules, and what they have placed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from karmada_advisor.fleet.plane_access import PlaneAccess
from karmada_advisor.fleet.process_answers import ProcessState
from karmada_advisor.state.model import (
    WORST_FIRST,
    BindingState,
    ReplicaCounts,
    SchedulerShown,
    SchedulerStatus,
    StateName,
)
from karmada_advisor.state.schedulers import Schedulers, decides_by_default, version_on
from karmada_scheduler.api.binding import KINDS
from karmada_scheduler.structs import Struct, field


class SchedulerSetup(Struct, frozen=True):
    """By which code and rules a scheduler decides, as far as something says so.

    Attributes:
        version: "" if it is not known.
        version_source: Who says so.
        rules: Plugins and feature gates, for people; "" if they are not known.
        plugins: As ``--plugins`` has them, or by name; empty if they are not known.
        feature_gates: Those that are named.
        rules_source: Who says so.
    """

    version: str = ""
    version_source: str = ""
    rules: str = ""
    plugins: tuple[str, ...] = ()
    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    rules_source: str = ""


class SchedulerUse(Struct, frozen=True):
    """One scheduler.

    Attributes:
        scheduler: What is known about it.
        bindings: Those that name it, by state, the worst first.
        replicas: What these want, have and run.
        setup: By which code and rules it decides.
    """

    scheduler: SchedulerShown
    bindings: Mapping[str, int]
    replicas: ReplicaCounts
    setup: SchedulerSetup = SchedulerSetup()


class FleetStatus(Struct, frozen=True):
    """All schedulers.

    Attributes:
        source: Where the objects were read.
        at: When, in the format of the API.
        clusters: How many clusters there are; None if they were not read.
        not_ready: The clusters that are not ready.
        schedulers: Those that bindings name, and those with a Lease; by name.
        not_read: What could not be read, and why, by kind.
        access: What the connection tells of the control plane and of its reader; None of files.
        process: The running scheduler that was asked; None without one.
    """

    source: str
    at: str
    clusters: int | None
    not_ready: tuple[str, ...]
    schedulers: tuple[SchedulerUse, ...]
    not_read: Mapping[str, str]
    access: PlaneAccess | None = None
    process: ProcessState | None = None

    @property
    def has_all_bindings(self) -> bool:
        """Whether all bindings were read; otherwise there may be more than are counted."""
        return not set(KINDS) & self.not_read.keys()

    @property
    def is_good(self) -> bool:
        """Whether all bindings were read, there is a scheduler, and each that a binding names is known to decide."""
        named = [use.scheduler.status for use in self.schedulers if use.bindings]
        is_whole = self.has_all_bindings and bool(self.schedulers)
        return is_whole and all(status is SchedulerStatus.RUNNING for status in named)


def uses_of(
    states: Iterable[tuple[str, BindingState]],
    schedulers: Schedulers,
    setups: Mapping[str, SchedulerSetup] | None = None,
) -> tuple[SchedulerUse, ...]:
    """Return the schedulers, by name.

    Args:
        states: The name of the responsible scheduler, and the state, of each binding.
        schedulers: What is known about schedulers.
        setups: What others than their Leases say about their code and rules.
    """
    setups = setups or {}
    counts: dict[str, Counter[StateName]] = {name: Counter() for name in (*schedulers.by_name, *setups)}
    replicas: dict[str, ReplicaCounts] = {}
    for name, state in states:
        counts.setdefault(name, Counter())[state.name] += 1
        replicas[name] = replicas.get(name, ReplicaCounts()) + state.replicas
    return tuple(
        SchedulerUse(
            schedulers.of(name),
            {status.value: found[status] for status in sorted(found, key=WORST_FIRST.__getitem__)},
            replicas.get(name, ReplicaCounts()),
            setups.get(name) or _setup_on_lease(name, schedulers),
        )
        for name, found in sorted(counts.items())
    )


def _setup_on_lease(name: str, schedulers: Schedulers) -> SchedulerSetup:
    """Return what a Lease says about its holder; one without a version may have the annotations of a predecessor."""
    lease, said = schedulers.lease_of.get(name, {}), "its Lease"
    if not (version := version_on(lease)):
        return SchedulerSetup()
    if not decides_by_default(name, lease):
        return SchedulerSetup(version, said)
    return SchedulerSetup(version, said, "default plugins and gates", rules_source=said)
