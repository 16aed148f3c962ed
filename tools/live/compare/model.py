"""The state from which steps are drawn: the bindings when last at rest, the clusters, and earlier changes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tools.controlplane import Object, SimulatedMember
from tools.oracle.generator.rng import Random
from tools.placements import tolerates

from . import fleet
from .fleet import Key
from .plane import Bindings, Plane
from .state import State, state_of


@dataclass(frozen=True, slots=True)
class Step:
    """One change, the same on both planes.

    Attributes:
        kind: For the statistics.
        target: The binding, cluster or workload.
        detail: Its input, for people.
        act: Makes the change on one plane.
        taken: Whether Karmada's controllers have done their part of the step.
        through_clusters: Whether it reaches schedulers through clusters.
        patient: Whether controllers may have more to do than `taken` shows.
        then: What has to be the next step.
    """

    kind: str
    target: str
    detail: object
    act: Callable[[Plane], object]
    taken: Callable[[Bindings], bool] = lambda _: True
    through_clusters: bool = False
    patient: bool = False
    then: Callable[[], Step] | None = None

    def __str__(self) -> str:
        return f"{self.kind} {self.target}"


Draw = Callable[["Model"], Step | None]
"""Draws a step; None if there is nothing to be changed so."""


@dataclass
class Cluster:
    """One cluster of the run.

    Attributes:
        member: As it was last made.
        labels: Its labels now.
        taints: The taints that the run gave it.
        phase: ``there``, ``deleting`` or ``gone``.
        ready: The status of its Ready condition.
    """

    member: SimulatedMember
    labels: dict[str, str]
    taints: list[Object] = field(default_factory=list)
    phase: str = "there"
    ready: bool = True


@dataclass
class Model:
    """The state of both planes, which are equal at rest.

    Attributes:
        choices: The source of all randomness.
        clusters: By name.
        groups: Whether new bindings may be members of workload groups.
        bindings: Upstream's, as they were last at rest.
        states: The states of those.
        times: The latest lastScheduledTime of each binding on either plane.
        failed: Bindings that an attempt ever failed for. A retry of theirs may be pending for minutes, in both
            schedulers, even if they have succeeded since, or were deleted and created again.
        claimed: Which workloads' policies exist.
        deployed: Which workloads' Deployments exist.
    """

    choices: Random
    clusters: dict[str, Cluster]
    groups: bool = False
    bindings: Mapping[Key, Object] = field(default_factory=dict)
    states: Mapping[Key, State] = field(default_factory=dict)
    times: dict[Key, str] = field(default_factory=dict)
    failed: set[Key] = field(default_factory=set)
    claimed: set[str] = field(default_factory=lambda: set(fleet.WORKLOADS))
    deployed: set[str] = field(default_factory=lambda: set(fleet.WORKLOADS))

    def saw(self, upstream: Bindings, ours: Bindings) -> None:
        """Take note of what both planes hold at rest."""
        self.bindings = upstream
        self.states = {key: state_of(item) for key, item in upstream.items()}
        self.times = {}
        for plane in (upstream, ours):
            for key, item in plane.items():
                time = item.get("status", {}).get("lastScheduledTime")
                if time is not None:
                    self.times[key] = max(time, self.times.get(key, ""))
                if state_of(item).is_retried:
                    self.failed.add(key)

    @property
    def to_be_tried(self) -> set[Key]:
        """The bindings that one of the schedulers may try again when clusters change, at a time of its own.

        Besides those that failed, the claimed ones that fitted nowhere when they were last at rest: ours enqueues them
        for a cluster that is added, serves another API, or is in a later affinity, where upstream waits for an event
        (docs/differences-from-upstream.md, "Bindings that fit nowhere").
        """
        unfit = {
            key
            for key, state in self.states.items()
            if state.is_claimed and state.condition is not None and state.condition[1] == "NoClusterFit"
        }
        return self.failed | unfit

    def names(self, phase: str = "there") -> list[str]:
        """Return the clusters in a phase."""
        return [name for name, cluster in self.clusters.items() if cluster.phase == phase]

    def made(self, fits: Callable[[Key, Object], object] = lambda *_: True) -> list[Key]:
        """Return the bindings without a template that exist, are not being deleted, and fit."""
        return [
            key
            for key in fleet.MADE
            if (item := self.bindings.get(key)) is not None and not is_deleting(item) and fits(key, item)
        ]

    def any_cluster(self) -> str:
        """Draw a cluster that is there."""
        return self.choices.pick(self.names())


def is_deleting(item: Object) -> bool:
    """Return whether an object is being deleted."""
    return "deletionTimestamp" in item["metadata"]


def is_suspended(item: Object) -> bool:
    """Return whether a binding's scheduling is suspended."""
    return bool(item["spec"].get("suspension", {}).get("scheduling"))


def is_grouped(item: Object) -> bool:
    """Return whether a binding is a member of a workload group; see group_steps."""
    return "workloadAffinityGroups" in item["spec"]


def applied_placement(item: Object) -> Object | None:
    """Return the placement that was last applied."""
    text = item["metadata"].get("annotations", {}).get(fleet.APPLIED)
    return json.loads(text) if text else None


def evictions_are_done(bindings: Bindings) -> bool:
    """Return whether the eviction controllers have nothing left to do.

    They stamp every new task, and end one that is allowed to end, or whose binding is scheduled to clusters
    that are all healthy, which none at all are.
    """
    return all(_is_done(item) for item in bindings.values() if not is_deleting(item))


def _is_done(item: Object) -> bool:
    spec, status = item["spec"], item.get("status", {})
    tasks: Sequence[Mapping[str, Any]] = spec.get("gracefulEvictionTasks") or ()
    if not tasks:
        return True
    if not all(task.get("creationTimestamp") for task in tasks):
        return False
    if any(task.get("suppressDeletion") is False for task in tasks):
        return False
    health = {entry["clusterName"]: entry.get("health") for entry in status.get("aggregatedStatus") or ()}
    settled = status.get("schedulerObservedGeneration") == item["metadata"]["generation"]
    healthy = all(health.get(target["name"]) == "Healthy" for target in spec.get("clusters") or ())
    kept = [task for task in tasks if task.get("suppressDeletion")]
    return not (settled and healthy and len(kept) < len(tasks))


def is_off(cluster: str, taints: Sequence[Object]) -> Callable[[Bindings], bool]:
    """Return a test that no binding is left on a cluster whose NoExecute taints it does not tolerate."""

    def off(bindings: Bindings) -> bool:
        return not any(
            cluster in [target["name"] for target in item["spec"].get("clusters") or ()]
            and (applied := applied_placement(item)) is not None
            and not all(tolerates(applied, taint) for taint in taints)
            for item in bindings.values()
            if not is_deleting(item)
        )

    return off
