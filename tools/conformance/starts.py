"""Events that may have happened to a binding before the scheduler reads it for the first time.

The state of a binding determines whether it is scheduled at all. So it starts as one that was scheduled some time ago and
is stable, and then an event happens: an edit of the placement, new replicas, a requested reschedule, a deleted cluster.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tools.oracle.generator.placements import draw_placement
from tools.oracle.generator.rng import Random, ScenarioProfile

Manifest = dict[str, Any]

APPLIED_PLACEMENT: Final = "policy.karmada.io/applied-placement"
BEFORE, LAST, AFTER = "2024-01-01T00:00:00Z", "2024-01-01T00:00:01Z", "2024-02-01T12:30:00Z"
UNREADABLE: Final = (
    "not json",
    "[]",
    '"x"',
    "5",
    '{"clusterAffinity":5}',
    '{"spreadConstraints":{}}',
    '{"replicaScheduling":[]}',
)

# Everyday notation, because what is decided is the subject of the fuzzer, which compares a million cases.
_CALM: Final = ScenarioProfile(
    odd=0.0, extreme=0.0, strict=0.2, capacity=40, models=0.0, vast=False, tiny=0.0
)


@dataclass(slots=True)
class Start:
    """A binding that was scheduled some time ago and is stable; the methods in `EVENTS` change it."""

    rng: Random
    clusters: Sequence[str]
    leaving: Sequence[str]
    manifest: Manifest

    @property
    def spec(self) -> Manifest:
        spec: Manifest = self.manifest["spec"]
        return spec

    @property
    def placement(self) -> Manifest:
        placement: Manifest = self.spec["placement"]
        return placement

    @property
    def status(self) -> Manifest:
        status: Manifest = self.manifest["status"]
        return status

    @property
    def divides(self) -> bool:
        """Whether its replicas are divided; otherwise every target has all of them."""
        return is_divided(self.placement)

    def annotate(self, text: str | None) -> None:
        """Set or remove the applied placement."""
        annotations = self.manifest["metadata"].setdefault("annotations", {})
        annotations.pop(APPLIED_PLACEMENT, None)
        if text is not None:
            annotations[APPLIED_PLACEMENT] = text

    def settle(self, names: Sequence[str]) -> None:
        """Set its clusters, with its replicas."""
        replicas = self.spec.get("replicas", 0)
        targets: list[Manifest] = [{"name": name} for name in names]
        for index, target in enumerate(targets):
            count = replicas
            if self.divides:
                count = replicas // len(names) + (index < replicas % len(names))
            if count:
                target["replicas"] = count
        self.spec["clusters"] = targets

    # What may happen to it:

    def nothing(self) -> None:
        """Change nothing."""

    def is_new(self) -> None:
        """It was never scheduled."""
        self.annotate(None)
        del self.spec["clusters"]
        self.status.clear()

    def lost_its_annotation(self) -> None:
        """The annotation was removed or emptied."""
        self.annotate(self.rng.pick((None, "")))

    def is_written_otherwise(self) -> None:
        """The annotation has the same placement in another notation."""
        text = json.dumps(self.placement, indent=self.rng.pick((None, 1)), sort_keys=True)
        if self.rng.chance(0.4):
            text = json.dumps({**self.placement, "unknownField": [1]})
        self.annotate(text)

    def is_unreadable(self) -> None:
        """The annotation does not contain a placement."""
        self.annotate(self.rng.pick(UNREADABLE))

    def was_nothing(self) -> None:
        """The annotation contains an empty placement."""
        self.annotate(self.rng.pick(("null", "{}")))

    def lost_a_field(self) -> None:
        """A field was added to the placement, or removed from it."""
        before = copy.deepcopy(self.placement)
        if not before or self.rng.chance(0.3):
            before["clusterTolerations"] = [{"key": "old", "operator": "Exists"}]
        else:
            del before[self.rng.pick(sorted(before))]
        self.annotate(as_json(before))

    def changed_a_field(self) -> None:
        """A field of the placement was changed."""
        other = any_placement(self.rng, self.clusters, self.spec)
        field = self.rng.pick(sorted({*self.placement, *other}) or ["clusterTolerations"])
        before = {key: value for key, value in self.placement.items() if key != field}
        if field in other:
            before[field] = other[field]
        self.annotate(as_json(before))

    def edited_a_term(self) -> None:
        """Affinity terms were changed or reordered."""
        before = copy.deepcopy(self.placement)
        terms = before.get("clusterAffinities")
        if not terms:
            self.changed_a_field()
            return
        term = self.rng.pick(terms)
        match self.rng.upto(4):
            case 0:
                term["clusterNames"] = self.rng.some(self.clusters, 3, 1)
            case 1:
                terms.reverse()
            case 2:
                terms.remove(term)
            case 3:
                terms.append({"affinityName": "former", "clusterNames": [self.clusters[0]]})
            case _:
                term["affinityName"] = "renamed"
        self.annotate(as_json(before))

    def observes_another_term(self) -> None:
        """The affinity term in use is none of its terms, or empty."""
        self.status["schedulerObservingAffinityName"] = self.rng.pick(("elsewhere", "term0", "term1"))
        if self.rng.chance(0.3):
            self.status.pop("schedulerObservingAffinityName")
        self.edited_a_term()

    def was_scaled(self) -> None:
        """It was scaled."""
        self.spec["replicas"] = max(0, self.spec.get("replicas", 0) + self.rng.pick((-3, -1, 1, 1, 4)))

    def was_triggered(self) -> None:
        """A reschedule was requested: before, in the same second as, or after the last scheduling."""
        self.spec["rescheduleTriggeredAt"] = self.rng.pick((BEFORE, LAST, AFTER, AFTER, AFTER))
        if self.rng.chance(0.1):
            self.status.pop("lastScheduledTime", None)

    def loses_a_cluster(self) -> None:
        """One of its clusters is being deleted."""
        if self.leaving:
            names = [target["name"] for target in self.spec.get("clusters", [])] or [self.clusters[0]]
            self.settle(list(dict.fromkeys((self.rng.pick(self.leaving), *names))))

    def is_evicted(self) -> None:
        """It is being evicted from a cluster."""
        self.spec["gracefulEvictionTasks"] = [
            {"fromCluster": self.rng.pick(self.clusters), "reason": "TaintUntolerated", "producer": "Test"}
        ]
        if self.rng.chance(0.5):
            self.spec["clusters"] = self.spec.get("clusters", [])[1:]

    def failed_before(self) -> None:
        """The last attempt failed."""
        reason = self.rng.pick(("NoClusterFit", "Unschedulable", "SchedulerError"))
        self.status["conditions"] = [scheduled_condition("False", reason, "it did not fit")]

    def is_suspended(self) -> None:
        """Its scheduling is suspended."""
        self.was_scaled()
        self.spec["suspension"] = {"scheduling": True}

    def is_suspended_otherwise(self) -> None:
        """Something other than its scheduling is suspended."""
        self.was_scaled()
        self.spec["suspension"] = {"dispatching": True}

    def belongs_to_another(self) -> None:
        """It belongs to another scheduler."""
        self.was_scaled()
        self.spec["schedulerName"] = "another-scheduler"

    def is_unclaimed(self) -> None:
        """No policy claims it."""
        self.was_scaled()
        self.manifest["metadata"]["labels"] = self.rng.pick(
            ({"app": "web"}, {"propagationpolicy.karmada.io/permanent-id": ""})
        )

    def is_claimed_by_a_controller(self) -> None:
        """A controller manages it instead of a policy."""
        self.was_scaled()
        self.manifest["metadata"]["labels"] = {"binding.karmada.io/managed-by": "application-failover"}


_WEIGHTS: Final[Mapping[Callable[[Start], None], int]] = {
    Start.nothing: 10,
    Start.is_new: 6,
    Start.lost_its_annotation: 4,
    Start.is_written_otherwise: 8,
    Start.is_unreadable: 12,
    Start.was_nothing: 4,
    Start.lost_a_field: 8,
    Start.changed_a_field: 8,
    Start.edited_a_term: 14,
    Start.observes_another_term: 10,
    Start.was_scaled: 8,
    Start.was_triggered: 14,
    Start.loses_a_cluster: 14,
    Start.is_evicted: 6,
    Start.failed_before: 5,
    Start.is_suspended: 4,
    Start.is_suspended_otherwise: 3,
    Start.belongs_to_another: 3,
    Start.is_unclaimed: 3,
    Start.is_claimed_by_a_controller: 3,
}
EVENTS: Final = [event for event, weight in _WEIGHTS.items() for _ in range(weight)]


def any_placement(rng: Random, clusters: Sequence[str], spec: Manifest) -> Manifest:
    """Draw a placement; most divide their replicas."""
    while True:
        placement = draw_placement(rng, _CALM, clusters, spec)
        # The webhook drops empty lists, and an annotation that has them differs for upstream and not for us, on
        # purpose. Two ways to name clusters are one too many.
        if "[]" in as_json(placement) or {"clusterAffinity", "clusterAffinities"} <= set(placement):
            continue
        # What is not divided is scheduled whatever happened to it, so it covers little.
        if is_divided(placement) or rng.chance(0.4):
            return placement


def is_divided(placement: Manifest) -> bool:
    """Return whether replicas are divided over the targets."""
    strategy: Manifest = placement.get("replicaScheduling", {})
    return bool(strategy.get("replicaSchedulingType") == "Divided")


def scheduled_condition(status: str, reason: str, message: str) -> Manifest:
    """Make a condition."""
    return {
        "type": "Scheduled",
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": BEFORE,
    }


def as_json(placement: Mapping[str, Any]) -> str:
    """Write a placement as the annotation does."""
    return json.dumps(placement, separators=(",", ":"))
