"""The objects of a question: the objects as they were read, and what a binding has after edits of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final, Protocol

from karmada_scheduler.api.binding import Binding, BindingKey, TargetCluster
from karmada_scheduler.api.cluster import KIND as CLUSTER
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.manifest import Manifest, ManifestError
from karmada_scheduler.api.well_known import APPLIED_PLACEMENT_ANNOTATION
from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.core.classify import ScheduleType
from karmada_scheduler.core.decision import Decision
from karmada_scheduler.framework.snapshot import Snapshot
from karmada_scheduler.whynot.edits import Edit, ObjectRef, Patched, patched

Edits = frozenset[Edit]

NO_EDITS: Final[Edits] = frozenset()


@dataclass(frozen=True)
class Scheduled:
    """What the scheduler would do with a binding.

    Attributes:
        type: The kind of scheduling; AVOID if nothing asks for it.
        targets: The clusters of the binding afterwards.
        decision: None if it was not scheduled.
        problem: Why it was not scheduled although something asks for it, or did not take effect: the error of the
            decision, or the plugins that hold it; "" otherwise.
        code: The reason of the condition ``Scheduled``, ``OtherScheduler``, ``Gated`` or ``Waiting``; "" without one.
    """

    type: ScheduleType
    targets: tuple[TargetCluster, ...]
    decision: Decision | None
    problem: str = ""
    code: str = ""


class Scheduler(Protocol):
    """Schedules bindings of changed objects, as ``karmada-pyscheduler simulate`` does."""

    def parse_cluster(self, manifest: Manifest) -> Cluster:
        """Return a Cluster; ManifestError if it cannot be read."""
        ...

    def parse_binding(self, manifest: Manifest) -> Binding:
        """Return a binding; ManifestError if it cannot be read."""
        ...

    def schedule(self, snapshot: Snapshot, bindings: Sequence[Binding], key: BindingKey) -> Scheduled:
        """Return what a binding has after the bindings were scheduled in their order."""
        ...


@dataclass(frozen=True)
class Outcome:
    """A binding after edits.

    Attributes:
        edits: The edits.
        patched: The changed objects.
        binding: The binding with the edits, before it was scheduled.
        snapshot: The clusters with the edits.
        scheduled: What the scheduler does.
        forced: Whether the binding was scheduled although nothing asks for it.
    """

    edits: Edits
    patched: Patched
    binding: Binding
    snapshot: Snapshot
    scheduled: Scheduled
    forced: bool = False

    @property
    def replicas(self) -> Mapping[str, int]:
        """Replicas by the name of the cluster; 0 for a workload without replicas."""
        return {target.name: target.replicas for target in self.scheduled.targets}

    def cluster(self, name: str) -> Cluster | None:
        """Return a cluster with the edits, None if there is none."""
        return self.snapshot.get(name)


@dataclass
class ObjectSet:
    """All objects of a question.

    Attributes:
        key: The binding in question.
        gates: Feature gates.
        scheduler: Schedules the changed objects.
        clusters: Every Cluster as read, and parsed, in the order of the files.
        bindings: Every binding as read, and parsed, in the order of the files.
        as_new: Whether placements, statuses and evictions are forgotten before anything is scheduled.
        now: The time at which a reschedule would be requested.
        decisions: How many outcomes were computed.
    """

    key: BindingKey
    gates: FeatureGates
    scheduler: Scheduler
    clusters: Mapping[ObjectRef, tuple[Manifest, Cluster]]
    bindings: Mapping[ObjectRef, tuple[Manifest, Binding]]
    as_new: bool = False
    now: datetime = field(default_factory=lambda: datetime.now(UTC))
    decisions: int = 0

    def __post_init__(self) -> None:
        """Make the snapshot without edits."""
        self.manifests: Mapping[ObjectRef, Manifest] = _Manifests(self.clusters, self.bindings)
        self.snapshot = Snapshot.of(cluster for _, cluster in self.clusters.values())
        self._without_edits: dict[BindingKey, Scheduled] = {}
        self._outcomes: dict[Edits, Outcome | None] = {}

    @property
    def ref(self) -> ObjectRef:
        """The binding in question."""
        return ObjectRef(*self.key)

    def outcome(self, edits: Iterable[Edit]) -> Outcome | None:
        """Return the binding after edits; None if they cannot be applied, or an object cannot be read afterwards."""
        chosen = frozenset(edits)
        if chosen not in self._outcomes:
            self._outcomes[chosen] = self._outcome(chosen)
        return self._outcomes[chosen]

    def knows(self, edits: Iterable[Edit]) -> bool:
        """Return whether the outcome was computed before."""
        return frozenset(edits) in self._outcomes

    def forced(self, edits: Iterable[Edit]) -> Outcome | None:
        """Return the binding after edits as if its placement had changed, so that it is scheduled in any case."""
        chosen = frozenset(edits)
        found = patched(chosen, self.manifests)
        if found is None:
            return None
        manifest = found.manifests.get(self.ref, self.manifests[self.ref])
        metadata = manifest["metadata"]
        annotations = {**(metadata.get("annotations") or {}), APPLIED_PLACEMENT_ANNOTATION: ""}
        manifest = {**manifest, "metadata": {**metadata, "annotations": annotations}}
        changed = Patched({**found.manifests, self.ref: manifest}, found.operations)
        outcome = self._scheduled(chosen, changed)
        return None if outcome is None else replace(outcome, forced=True)

    def differs(self, key: BindingKey, edits: Iterable[Edit]) -> bool:
        """Return whether edits change the placement that another binding gets."""
        found = patched(edits, self.manifests)
        if found is None:
            return False
        before = self.scheduler.schedule(self.snapshot, [each for _, each in self.bindings.values()], key)
        changed = self._scheduled(NO_EDITS, found, key)
        return changed is not None and changed.scheduled.targets != before.targets

    def _outcome(self, edits: Edits) -> Outcome | None:
        found = patched(edits, self.manifests)
        return None if found is None else self._scheduled(edits, found)

    def _scheduled(self, edits: Edits, found: Patched, key: BindingKey | None = None) -> Outcome | None:
        self.decisions += 1
        try:
            changed = {
                ref: self.scheduler.parse_cluster(manifest)
                if ref.kind == CLUSTER
                else self.scheduler.parse_binding(manifest)
                for ref, manifest in found.manifests.items()
            }
        except ManifestError:
            return None
        clusters = [each for each in changed.values() if isinstance(each, Cluster)]
        snapshot = self.snapshot.with_reported(clusters, generation=0) if clusters else self.snapshot
        bindings = [changed.get(ref, parsed) for ref, (_, parsed) in self.bindings.items()]
        mine = [each for each in bindings if isinstance(each, Binding)]
        binding = changed.get(self.ref, self.bindings[self.ref][1])
        assert isinstance(binding, Binding)
        scheduled = self.scheduler.schedule(snapshot, mine, key or self.key)
        return Outcome(edits, found, binding, snapshot, scheduled)


class _Manifests(Mapping[ObjectRef, Manifest]):
    """The manifests of clusters and bindings in one mapping."""

    def __init__(
        self,
        clusters: Mapping[ObjectRef, tuple[Manifest, Cluster]],
        bindings: Mapping[ObjectRef, tuple[Manifest, Binding]],
    ) -> None:
        self._clusters, self._bindings = clusters, bindings

    def __getitem__(self, ref: ObjectRef) -> Manifest:
        found = self._clusters[ref] if ref.kind == CLUSTER else self._bindings[ref]
        return found[0]

    def __iter__(self) -> Any:
        yield from self._clusters
        yield from self._bindings

    def __len__(self) -> int:
        return len(self._clusters) + len(self._bindings)
