"""Random worlds for the recorder: clusters, and bindings in the middle of their lives.

What a binding already is when the scheduler first sees it decides whether it is scheduled at all, so most
bindings here start with a placement that was applied, targets and a status, and then something happened to
them: an edit of the placement, a new replica count, a reschedule that was asked for, a cluster that leaves.
The placements are those of tests/oracle/generator.py, in everyday notation: what is decided is the
fuzzer's subject, which compares a million cases and not a hundred.

Equal seeds give equal worlds. `metadata.deletionTimestamp` of a cluster, `status` of both and
`metadata.generation` of a binding say how it is to be once it is created.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tests.controlplane import SimulatedMember
from tests.oracle import generator
from tests.oracle.generator import Dice, Temper

Manifest = dict[str, Any]

NAMESPACE: Final = "recorded"
APPLIED_PLACEMENT: Final = "policy.karmada.io/applied-placement"
BEFORE, LAST, AFTER = "2024-01-01T00:00:00Z", "2024-01-01T00:00:01Z", "2024-02-01T12:30:00Z"

_CALM: Final = Temper(odd=0.0, extreme=0.0, strict=0.2, room=40, models=0.0, vast=False, tiny=0.0)
_UNREADABLE: Final = (
    "not json",
    "[]",
    '"x"',
    "5",
    '{"clusterAffinity":5}',
    '{"spreadConstraints":{}}',
    '{"replicaScheduling":[]}',
)


@dataclass(frozen=True, slots=True)
class World:
    """What to create, in the order in which it is created."""

    clusters: list[Manifest]
    bindings: list[Manifest]


def world(seed: int, *, clusters: int, bindings: int) -> World:
    """Make a world; equal arguments give the same one on every machine."""
    dice = Dice(f"recorder/{seed}")
    names = [f"m{number:04}" for number in range(clusters)]
    leaving = {name for name in names[1:] if dice.chance(0.12)}
    if clusters > 2 and not leaving:
        leaving = {names[-1]}
    fleet = [_cluster(dice, name, leaving=name in leaving) for name in names]
    return World(
        fleet, [_binding(dice, names, sorted(leaving), number).manifest for number in range(bindings)]
    )


def _cluster(dice: Dice, name: str, *, leaving: bool) -> Manifest:
    taints = (generator._taint(dice),) if dice.chance(0.15) else ()
    member = SimulatedMember(
        name,
        provider=dice.pick(generator.PROVIDERS),
        region=dice.pick(generator.REGIONS),
        zone=dice.pick((*generator.ZONES, "")),
        labels={key: dice.pick(values) for key, values in generator.LABELS.items() if dice.chance(0.6)},
        taints=tuple({"effect": "NoSchedule", **taint} for taint in taints),
        cpu=dice.pick(("4", "8", "16", "64")),
        memory=dice.pick(("16Gi", "64Gi", "100G")),
        pods=dice.pick(("20", "110", "220")),
        allocated={"cpu": dice.pick(("0", "1", "2500m")), "memory": "3Gi", "pods": dice.pick(("3", "12"))},
    )
    made = member.manifest() | {"status": member.status()}
    for condition in made["status"]["conditions"]:
        condition["lastTransitionTime"] = BEFORE
    if leaving:
        made["metadata"]["deletionTimestamp"] = AFTER
    return made


# -- bindings ----------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Start:
    """A binding that was scheduled some time ago and is at rest; the methods of `_EVENTS` disturb it."""

    dice: Dice
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
        """Whether its replicas are shared out; otherwise every target has all of them."""
        return _divides(self.placement)

    def annotate(self, text: str | None) -> None:
        """Set or remove the applied placement."""
        annotations = self.manifest["metadata"].setdefault("annotations", {})
        annotations.pop(APPLIED_PLACEMENT, None)
        if text is not None:
            annotations[APPLIED_PLACEMENT] = text

    def settle(self, names: Sequence[str]) -> None:
        """Put it on these clusters, with the replicas that it asks for."""
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
        """Leave it at rest."""

    def is_new(self) -> None:
        """Nobody has scheduled it yet."""
        self.annotate(None)
        del self.spec["clusters"]
        self.status.clear()

    def lost_its_annotation(self) -> None:
        """Somebody removed the annotation, or emptied it."""
        self.annotate(self.dice.pick((None, "")))

    def is_written_otherwise(self) -> None:
        """The annotation says the same in other words."""
        text = json.dumps(self.placement, indent=self.dice.pick((None, 1)), sort_keys=True)
        if self.dice.chance(0.4):
            text = json.dumps({**self.placement, "unknownField": [1]})
        self.annotate(text)

    def is_unreadable(self) -> None:
        """The annotation holds no placement."""
        self.annotate(self.dice.pick(_UNREADABLE))

    def was_nothing(self) -> None:
        """The annotation holds an empty placement."""
        self.annotate(self.dice.pick(("null", "{}")))

    def lost_a_field(self) -> None:
        """A field of the placement is new, or one was dropped from it."""
        before = copy.deepcopy(self.placement)
        if not before or self.dice.chance(0.3):
            before["clusterTolerations"] = [{"key": "old", "operator": "Exists"}]
        else:
            del before[self.dice.pick(sorted(before))]
        self.annotate(_text(before))

    def changed_a_field(self) -> None:
        """A field of the placement was another one."""
        other = _placement(self.dice, self.clusters, self.spec)
        field = self.dice.pick(sorted({*self.placement, *other}) or ["clusterTolerations"])
        before = {key: value for key, value in self.placement.items() if key != field}
        if field in other:
            before[field] = other[field]
        self.annotate(_text(before))

    def edited_a_term(self) -> None:
        """One of the affinity terms was another one, or they were others, or in another order."""
        before = copy.deepcopy(self.placement)
        terms = before.get("clusterAffinities")
        if not terms:
            self.changed_a_field()
            return
        term = self.dice.pick(terms)
        match self.dice.upto(4):
            case 0:
                term["clusterNames"] = self.dice.some(self.clusters, 3, 1)
            case 1:
                terms.reverse()
            case 2:
                terms.remove(term)
            case 3:
                terms.append({"affinityName": "former", "clusterNames": [self.clusters[0]]})
            case _:
                term["affinityName"] = "renamed"
        self.annotate(_text(before))

    def observes_another_term(self) -> None:
        """The term in force is none of its terms, or not known."""
        self.status["schedulerObservingAffinityName"] = self.dice.pick(("elsewhere", "term0", "term1"))
        if self.dice.chance(0.3):
            self.status.pop("schedulerObservingAffinityName")
        self.edited_a_term()

    def was_scaled(self) -> None:
        """It asks for more or fewer replicas than it has."""
        self.spec["replicas"] = max(0, self.spec.get("replicas", 0) + self.dice.pick((-3, -1, 1, 1, 4)))

    def was_triggered(self) -> None:
        """A reschedule was asked for: before, in the same second as or after the last schedule."""
        self.spec["rescheduleTriggeredAt"] = self.dice.pick((BEFORE, LAST, AFTER, AFTER, AFTER))
        if self.dice.chance(0.1):
            self.status.pop("lastScheduledTime", None)

    def loses_a_cluster(self) -> None:
        """A cluster that it is on is being deleted."""
        if self.leaving:
            names = [target["name"] for target in self.spec.get("clusters", [])] or [self.clusters[0]]
            self.settle(list(dict.fromkeys((self.dice.pick(self.leaving), *names))))

    def is_evicted(self) -> None:
        """A cluster that it was on is being emptied."""
        self.spec["gracefulEvictionTasks"] = [
            {"fromCluster": self.dice.pick(self.clusters), "reason": "TaintUntolerated", "producer": "Test"}
        ]
        if self.dice.chance(0.5):
            self.spec["clusters"] = self.spec.get("clusters", [])[1:]

    def failed_before(self) -> None:
        """The last attempt failed."""
        reason = self.dice.pick(("NoClusterFit", "Unschedulable", "SchedulerError"))
        self.status["conditions"] = [_condition("False", reason, "it did not fit")]

    def is_suspended(self) -> None:
        """Its scheduling is suspended, whatever else there is to do."""
        self.was_scaled()
        self.spec["suspension"] = {"scheduling": True}

    def is_suspended_otherwise(self) -> None:
        """Something else of it is suspended, which is no business of the scheduler's."""
        self.was_scaled()
        self.spec["suspension"] = {"dispatching": True}

    def belongs_to_another(self) -> None:
        """Another scheduler is to place it."""
        self.was_scaled()
        self.spec["schedulerName"] = "another-scheduler"

    def belongs_to_nobody(self) -> None:
        """No policy claims it."""
        self.was_scaled()
        self.manifest["metadata"]["labels"] = self.dice.pick(
            ({"app": "web"}, {"propagationpolicy.karmada.io/permanent-id": ""})
        )

    def is_claimed_by_a_controller(self) -> None:
        """Not a policy but a controller claims it."""
        self.was_scaled()
        self.manifest["metadata"]["labels"] = {"binding.karmada.io/managed-by": "application-failover"}


_WEIGHTS: Final[Mapping[Callable[[_Start], None], int]] = {
    _Start.nothing: 10,
    _Start.is_new: 6,
    _Start.lost_its_annotation: 4,
    _Start.is_written_otherwise: 8,
    _Start.is_unreadable: 12,
    _Start.was_nothing: 4,
    _Start.lost_a_field: 8,
    _Start.changed_a_field: 8,
    _Start.edited_a_term: 14,
    _Start.observes_another_term: 10,
    _Start.was_scaled: 8,
    _Start.was_triggered: 14,
    _Start.loses_a_cluster: 14,
    _Start.is_evicted: 6,
    _Start.failed_before: 5,
    _Start.is_suspended: 4,
    _Start.is_suspended_otherwise: 3,
    _Start.belongs_to_another: 3,
    _Start.belongs_to_nobody: 3,
    _Start.is_claimed_by_a_controller: 3,
}
_EVENTS: Final = [event for event, weight in _WEIGHTS.items() for _ in range(weight)]


def _binding(dice: Dice, clusters: Sequence[str], leaving: Sequence[str], number: int) -> _Start:
    start = _at_rest(dice, clusters, leaving, number)
    dice.pick(_EVENTS)(start)
    if dice.chance(0.15):
        event = dice.pick(_EVENTS)
        if event is not _Start.is_new:
            event(start)
    return start


def _at_rest(dice: Dice, clusters: Sequence[str], leaving: Sequence[str], number: int) -> _Start:
    cluster_scoped = dice.chance(0.1)
    workload = not cluster_scoped and dice.chance(0.9)
    version, kind = "rbac.authorization.k8s.io/v1", "ClusterRole"
    if not cluster_scoped:
        version, kind = ("apps/v1", "Deployment") if workload else ("v1", "ConfigMap")
    resource = {
        "apiVersion": version,
        "kind": kind,
        "name": f"w{number}",
        "resourceVersion": "1",
        "uid": f"{dice.getrandbits(32):08x}-0000-4000-8000-{number:012x}",
    }
    label = "propagationpolicy.karmada.io/permanent-id"
    metadata: Manifest = {"name": f"b{number:05}", "generation": 1}
    if cluster_scoped:
        label = "clusterpropagationpolicy.karmada.io/permanent-id"
    else:
        resource["namespace"] = metadata["namespace"] = NAMESPACE
    metadata["labels"] = {label: "11111111-0000-0000-0000-000000000000"}
    spec: Manifest = {"resource": resource}
    if workload or (cluster_scoped and dice.chance(0.5)):
        spec["replicas"] = 1 + dice.upto(8)
        spec["replicaRequirements"] = {"resourceRequest": {"cpu": dice.pick(("100m", "500m"))}}
    spec["placement"] = _placement(dice, clusters, spec)
    kind = "ClusterResourceBinding" if cluster_scoped else "ResourceBinding"
    status: Manifest = {
        "lastScheduledTime": LAST,
        "schedulerObservedGeneration": 1,
        "conditions": [_condition("True", "Success", "Binding has been scheduled successfully.")],
    }
    if terms := spec["placement"].get("clusterAffinities"):
        status["schedulerObservingAffinityName"] = dice.pick(terms)["affinityName"]
    manifest = {"apiVersion": "work.karmada.io/v1alpha2", "kind": kind, "metadata": metadata}
    start = _Start(dice, clusters, leaving, {**manifest, "spec": spec, "status": status})
    staying = [name for name in clusters if name not in leaving]
    start.settle(dice.some(staying, 3, 1))
    start.annotate(_text(spec["placement"]))
    if dice.chance(0.4):
        metadata["generation"] = 2
    return start


def _placement(dice: Dice, clusters: Sequence[str], spec: Manifest) -> Manifest:
    while True:
        placement = generator.placement(dice, _CALM, clusters, spec)
        # An empty list of terms ends upstream's process; two ways to name clusters are one too many.
        terms = placement.get("clusterAffinities")
        if terms == [] or (terms and "clusterAffinity" in placement):
            continue
        # What is not divided is scheduled whatever happened to it, which tells little.
        if _divides(placement) or dice.chance(0.4):
            return placement


def _divides(placement: Manifest) -> bool:
    strategy: Manifest = placement.get("replicaScheduling", {})
    return bool(strategy.get("replicaSchedulingType") == "Divided")


def _condition(status: str, reason: str, message: str) -> Manifest:
    return {
        "type": "Scheduled",
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": BEFORE,
    }


def _text(placement: Mapping[str, Any]) -> str:
    return json.dumps(placement, separators=(",", ":"))
