"""What is known of requests that clusters do not start, for StartedCapacity."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final, NamedTuple

from karmada_scheduler.api.binding import BindingSpec, ReplicaRequirements
from karmada_scheduler.api.cluster import Cluster, ResourceSummary
from karmada_scheduler.api.quantity import MAX_INT32, ZERO, Quantity
from karmada_scheduler.framework import Snapshot

MOST_SHAPES: Final = 16
"""Pieces of evidence about one cluster; the oldest goes first."""
_FRESH_SECONDS: Final = 10.0
"""What waits is noted every five seconds."""
LONGEST_PAUSE: Final = 3600.0
"""The longest pause before a trial, in seconds."""
_ONE: Final = Quantity(1)


class _Evidence(NamedTuple):
    """That replicas of a request waited on a cluster.

    Attributes:
        at: When they waited there last, or were tried, in seconds since 1970.
        free: What Pods with a node left of the cluster then.
        nodes: How many of its nodes were ready then.
        pause: Seconds until a trial is due.
    """

    shape: ReplicaRequirements
    at: float
    free: Mapping[str, Quantity]
    nodes: int
    pause: float

    def pauses(self, now: float) -> float:
        """Return how many pauses have passed; infinity if the clock was set back."""
        return (now - self.at) / self.pause if now >= self.at else math.inf

    def available(self, shape: ReplicaRequirements, cluster: Cluster, now: float) -> int:
        """Return how many replicas more may go there: one if a trial is due, and what Pods that ended have left.

        Evidence that nobody has tried for two pauses limits nothing. It is kept, so that the next pause is longer.
        It is not known which resource was missing. The one of which enough for the most replicas has become free counts,
        unless nodes were lost since, which Pods have left as well.
        """
        if self.pauses(now) >= 2:
            return MAX_INT32
        free = self.free if (cluster.ready_nodes or 0) < self.nodes else _free(cluster)
        gained = [
            (free.get(name, ZERO) - self.free.get(name, ZERO)).milli_value // amount.milli_value
            for name, amount in _amounts(shape).items()
        ]
        return max(int(self.pauses(now) >= 1), *gained)


class StartEvidence:
    """The requests that clusters do not start: those of replicas that waited there, and larger ones.

    Attributes:
        known: The evidence by cluster.
    """

    def __init__(self, trial_seconds: float) -> None:
        """Start with none; ``trial_seconds`` is the pause before the first trial, doubled after each."""
        self._first = trial_seconds
        self.known: dict[str, list[_Evidence]] = {}

    def learn(self, cluster: Cluster, shape: ReplicaRequirements, now: float) -> None:
        """Note that replicas of a request wait on a cluster, unless smaller ones do."""
        known = self.known.get(cluster.name, [])
        larger = [evidence for evidence in known if is_at_least(evidence.shape, shape)]
        others = [evidence for evidence in known if evidence not in larger]
        smaller = [evidence for evidence in others if is_at_least(shape, evidence.shape)]
        if all(each.available(shape, cluster, now) or now - each.at > _FRESH_SECONDS for each in smaller):
            pause = max(
                (min((1 + (each.pauses(now) >= 2)) * each.pause, LONGEST_PAUSE) for each in larger),
                default=self._first,
            )
            self._keep(
                cluster.name,
                [*others, _Evidence(shape, now, _free(cluster), cluster.ready_nodes or 0, pause)],
            )

    def started(self, name: str, shape: ReplicaRequirements) -> bool:
        """Forget what is known about requests that are not larger than one that a cluster has started; say if it was any."""
        known = self.known.get(name, ())
        larger = [evidence for evidence in known if not is_at_least(shape, evidence.shape)]
        self._keep(name, larger)
        return len(larger) < len(known)

    def has_freed(self, cluster: Cluster) -> bool:
        """Return whether Pods that ended have left a cluster enough for a replica that waited there."""
        known = self.known.get(cluster.name, ())
        return any(evidence.available(evidence.shape, cluster, evidence.at) for evidence in known)

    def tried(self, name: str, shape: ReplicaRequirements, now: float) -> bool:
        """Note that a cluster gets a replica, and return whether a trial was due; the next pause is then twice as long."""
        is_trial = False
        for index, evidence in enumerate(known := self.known.get(name, [])):
            if evidence.pauses(now) >= 1 and is_at_least(shape, evidence.shape):
                longer = max(evidence.pause, min(2 * evidence.pause, LONGEST_PAUSE))
                known[index], is_trial = evidence._replace(at=now, pause=longer), True
        return is_trial

    def ages(self, shape: ReplicaRequirements, now: float) -> dict[str, float]:
        """Return how many seconds ago such replicas or smaller ones waited for a node on clusters, the latest first."""
        found = {
            name: min(now - evidence.at for evidence in known if is_at_least(shape, evidence.shape))
            for name, known in self.known.items()
            if any(is_at_least(shape, evidence.shape) for evidence in known)
        }
        return dict(sorted(found.items(), key=lambda each: each[1]))

    def limits(
        self, shape: ReplicaRequirements, snapshot: Snapshot, now: float, *, careful: bool = False
    ) -> dict[str, int]:
        """Return how many replicas more of a request the clusters may take that do not start it, by name.

        With ``careful``, up to the first trial, also those that do not start requests up to four times as large.
        """
        limits: dict[str, int] = {}
        for name in list(self.known):
            self._keep(name, [each for each in self.known[name] if 0 <= now - each.at < 3 * LONGEST_PAUSE])
        for cluster in filter(None, map(snapshot.get, self.known)):
            known = [
                evidence
                for evidence in self.known[cluster.name]
                if is_at_least(shape, evidence.shape, 4 if careful and evidence.pauses(now) < 1 else 1)
            ]
            if known:
                found = [evidence.available(shape, cluster, now) for evidence in known]
                limits[cluster.name] = min(MAX_INT32, *found)
        return limits

    def _keep(self, name: str, evidence: list[_Evidence]) -> None:
        self.known.pop(name, None)
        if evidence:
            self.known[name] = evidence[-MOST_SHAPES:]


def shape_of(spec: BindingSpec) -> ReplicaRequirements:
    """Return what a replica requests."""
    return spec.replica_requirements or ReplicaRequirements()


def _free(cluster: Cluster) -> Mapping[str, Quantity]:
    """Return what Pods with a node leave of a cluster."""
    summary = cluster.resource_summary or ResourceSummary()
    return {name: all_ - summary.allocated.get(name, ZERO) for name, all_ in summary.allocatable.items()}


def is_at_least(shape: ReplicaRequirements, other: ReplicaRequirements, times: int = 1) -> bool:
    """Return whether so many of a request are as large as another one of the same node claim and priority class, or larger."""
    is_same = shape.priority_class_name == other.priority_class_name and shape.node_claim == other.node_claim
    has = shape.resource_request
    pairs = [(has.get(name, ZERO), least) for name, least in other.resource_request.items()]
    return is_same and all(amount.milli_value * times >= least.milli_value for amount, least in pairs)


def _amounts(shape: ReplicaRequirements) -> Mapping[str, Quantity]:
    """Return what a replica requests of what is counted: of its resources, or else its place among the Pods."""
    requested = {name: amount for name, amount in shape.resource_request.items() if amount.milli_value > 0}
    return requested or {"pods": _ONE}


def without_node(cluster: Cluster, shape: ReplicaRequirements) -> int:
    """Return how many Pods of a request may wait for a node, by what the cluster reports as ``allocating``.

    A Pod with a node that does not become ready is not among them: its image or its probe keeps it, not the cluster.
    """
    allocating = (cluster.resource_summary or ResourceSummary()).allocating
    request = {"pods": _ONE, **_amounts(shape)}
    counts = [allocating.get(name, ZERO).milli_value // each.milli_value for name, each in request.items()]
    return max(0, min(counts))
