"""The objects of a question: the objects as they were read, and what a binding has after edits of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import Final

from karmada_advisor.explain.policies import brings_another, lazy_policies
from karmada_advisor.state.quota import Excess, Ledger, Usage, read_quota, usage
from karmada_advisor.state.schedulers import Schedulers
from karmada_advisor.whynot.json_patch import Patched, patched
from karmada_scheduler.api.binding import Binding, BindingKey, TargetCluster
from karmada_scheduler.api.cluster import KIND as CLUSTER
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.manifest import Manifest, ManifestError
from karmada_scheduler.api.names import FleetValues
from karmada_scheduler.api.well_known import APPLIED_PLACEMENT_ANNOTATION, MANAGED_BY_LABEL
from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.core.classify import ScheduleType
from karmada_scheduler.core.condition import QUOTA_EXCEEDED, SUCCESS, condition_for
from karmada_scheduler.core.decision import Decision, are_same_targets
from karmada_scheduler.core.requeue_rules import is_claimed
from karmada_scheduler.dryrun.dry_run import DryRun
from karmada_scheduler.dryrun.forecast import Simulation, as_new
from karmada_scheduler.dryrun.result import Outcome, SimulationResult
from karmada_scheduler.framework.edits import Edit, ObjectRef, Side
from karmada_scheduler.framework.extension_points import Point
from karmada_scheduler.framework.snapshot import ChangeLog, Snapshot
from karmada_scheduler.structs import Struct, field, replace

Edits = frozenset[Edit]

NO_EDITS: Final[Edits] = frozenset()
NOBODY_DECIDES: Final = "NobodyDecides"
_BY_DETECTOR: Final = frozenset({Side.POLICY, Side.WORKLOAD})
"""Sides of edits that reach the binding by a change of its template, if its policy is Lazy."""


class Scheduled(Struct, frozen=True):
    """What the scheduler would do with a binding.

    Attributes:
        type: The kind of scheduling; AVOID if nothing asks for it.
        targets: The clusters of the binding afterwards.
        decision: None if it was not scheduled.
        problem: Why it was not scheduled although something asks for it, or did not take effect: the error of the
            decision, or the plugins that hold it; "" otherwise.
        code: The reason of the condition ``Scheduled``, ``OtherScheduler``, ``Gated``, ``Waiting`` or ``NobodyDecides``; ""
            without one.
        refused: The limit of a quota that refuses the placement, None if none does.
    """

    type: ScheduleType
    targets: tuple[TargetCluster, ...]
    decision: Decision | None
    problem: str = ""
    code: str = ""
    refused: Excess | None = None


def scheduled_of(result: SimulationResult) -> Scheduled:
    """Return what a simulation has made of a binding."""
    code, problem = "", ""
    if result.outcome is Outcome.OTHER_SCHEDULER:
        code, problem = "OtherScheduler", result.binding.spec.responsible_scheduler
    elif result.held is not None:
        code = "Gated" if result.held.point is Point.PRE_ENQUEUE else "Waiting"
        problem = str(result.held)
    elif result.decision is not None:
        condition = condition_for(result.decision.error)
        code = condition.reason
        problem = "" if result.decision.error is None else condition.message
    return Scheduled(result.type, result.targets, result.decision, problem, code)


class ScheduledObjects(Struct, frozen=True):
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


class ObjectSet(Struct, dict=True):
    """All objects of a question.

    Attributes:
        key: The binding in question.
        rules: Schedule the changed objects.
        clusters: Every Cluster as read, and parsed, in the order of the files.
        bindings: Every binding as read, and parsed, in the order of the files.
        quotas: The FederatedResourceQuotas of its namespace that count.
        policies: All policies; empty if they are not known.
        template_labels: The labels of the template of the binding; None if they are not known.
        schedulers: Which schedulers exist. A binding of one that is missing or down is not scheduled.
        has_all_bindings: Whether ``bindings`` has all; without the permission to list them there is only the one.
        as_new: Whether placements, statuses and evictions are forgotten before anything is scheduled.
        now: The time at which a reschedule would be requested.
        decisions: How many outcomes were computed.
    """

    key: BindingKey
    rules: DryRun
    clusters: Mapping[ObjectRef, tuple[Manifest, Cluster]]
    bindings: Mapping[ObjectRef, tuple[Manifest, Binding]]
    quotas: Mapping[ObjectRef, Manifest] = field(default_factory=dict)
    policies: Mapping[ObjectRef, Manifest] = field(default_factory=dict)
    template_labels: Mapping[str, str] | None = None
    schedulers: Schedulers = field(default_factory=Schedulers)
    has_all_bindings: bool = True
    as_new: bool = False
    now: datetime = field(default_factory=lambda: datetime.now(UTC))
    decisions: int = 0

    def __post_init__(self) -> None:
        """Make the snapshot without edits."""
        parsed = (*self.clusters.items(), *self.bindings.items())
        read = {ref: manifest for ref, (manifest, _) in parsed}
        self.manifests: Mapping[ObjectRef, Manifest] = {**read, **self.quotas, **self.policies}
        self._log = ChangeLog()
        self._unedited = Snapshot.of((cluster for _, cluster in self.clusters.values()), log=self._log)
        self._latest, self._replaced = self._unedited, dict[str, Cluster]()
        self._last_parsed: dict[ObjectRef, tuple[Manifest, Cluster]] = {}
        self._without_edits: dict[BindingKey, Scheduled] = {}
        self._outcomes: dict[Edits, ScheduledObjects | None] = {}

    @property
    def gates(self) -> FeatureGates:
        """The feature gates of the scheduler."""
        return self.rules.gates

    @cached_property
    def values(self) -> FleetValues:
        """What the clusters have as they were read."""
        return FleetValues(cluster for _, cluster in self.clusters.values())

    @cached_property
    def others(self) -> Sequence[Binding]:
        """The other bindings as they were read."""
        return [binding for _, binding in self.bindings.values() if binding.key != self.key]

    @property
    def snapshot(self) -> Snapshot:
        """All clusters without edits, for the next decision; decisions about earlier snapshots would use stale caches."""
        return self._snapshot_with(())

    @property
    def ref(self) -> ObjectRef:
        """The binding in question."""
        return ObjectRef(*self.key)

    def outcome(self, edits: Iterable[Edit]) -> ScheduledObjects | None:
        """Return the binding after edits; None if they cannot be applied, or an object cannot be read afterwards."""
        chosen = frozenset(edits)
        if chosen not in self._outcomes:
            found = patched(chosen, self.manifests)
            self._outcomes[chosen] = None if found is None else self._scheduled(chosen, found)
        return self._outcomes[chosen]

    def forced(self, edits: Iterable[Edit]) -> ScheduledObjects | None:
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
        before = self._without_edits.get(key)
        if before is None:
            bindings = [binding for _, binding in self.bindings.values()]
            before = self._schedule(self.snapshot, bindings, key)
            self._without_edits[key] = before
        changed = self._scheduled(NO_EDITS, found, key)
        return changed is not None and not are_same_targets(changed.scheduled.targets, before.targets)

    def _scheduled(
        self, edits: Edits, found: Patched, key: BindingKey | None = None
    ) -> ScheduledObjects | None:
        if self.is_awaited and any(each.side in _BY_DETECTOR and not each.target.is_policy for each in edits):
            return None  # the placement of the policy comes with it
        self.decisions += 1
        manifests = self._with_policies(found.manifests)
        if manifests is None:
            return None
        try:
            clusters = [self._parsed(ref, each) for ref, each in manifests.items() if ref.kind == CLUSTER]
            written = {ref: manifest for ref, manifest in manifests.items() if ref in self.bindings}
            changed = {ref: Binding.from_manifest(manifest) for ref, manifest in written.items()}
        except ManifestError:
            return None
        snapshot = self._snapshot_with(clusters)
        bindings = [changed.get(ref, parsed) for ref, (_, parsed) in self.bindings.items()]
        binding = changed.get(self.ref, self.bindings[self.ref][1])
        placement = binding.spec.placement
        if edits and placement is not None and placement.cluster_affinity and placement.cluster_affinities:
            return None  # Karmada's webhook refuses a policy with both
        responsible = self.schedulers.of(binding.spec.responsible_scheduler)
        if key is None and not (responsible.decides and is_claimed(binding)):
            text = "no policy claims the template" if responsible.decides else str(responsible)
            scheduled = Scheduled(ScheduleType.AVOID, binding.spec.clusters, None, text, NOBODY_DECIDES)
        else:
            # The causes are those of the decision without edits.
            keeps, wanted = not edits and key is None, key or self.key
            scheduled = self._schedule(snapshot, bindings, wanted, keep_steps=keeps)
        if key is None:
            scheduled = self._admitted(binding, scheduled, found.manifests)
        return ScheduledObjects(edits, found, binding, snapshot, scheduled)

    def _schedule(
        self, snapshot: Snapshot, bindings: Sequence[Binding], key: BindingKey, *, keep_steps: bool = False
    ) -> Scheduled:
        """Return what a binding has after the bindings were scheduled in their order.

        With ``keep_steps``, decisions keep what their steps worked with.
        The others are scheduled only where their decisions can change this one.
        """
        is_coupled = self.rules.is_coupled
        wanted = bindings if is_coupled else [next(binding for binding in bindings if binding.key == key)]
        chosen = [as_new(binding) for binding in wanted] if self.as_new else wanted
        if is_coupled:
            self.rules.objects.show(snapshot, chosen)
        else:
            self.rules.objects.snapshot = snapshot
        results = Simulation(self.rules, snapshot, keep_steps=keep_steps).run(chosen)
        return scheduled_of(next(result for result in results if result.binding.key == key))

    def _with_policies(self, manifests: Mapping[ObjectRef, Manifest]) -> Mapping[ObjectRef, Manifest] | None:
        """Return changed objects with what the binding receives from changed policies; None for edits of both."""
        written = [manifest for ref, manifest in manifests.items() if ref.is_policy]
        if not written:
            return manifests
        if self.ref in manifests:
            return None  # its own edits are against the object as it was read
        from karmada_advisor.claims.claim import received  # its rules take as long to load as an answer

        mine = received(self.manifests[self.ref], self.policies.values(), written, self.template_labels)
        return manifests if mine is None else {**manifests, self.ref: mine}

    @cached_property
    def lazy_policies(self) -> Sequence[Manifest]:
        """The policies of the binding whose edits reach it only when its template changes."""
        return lazy_policies(self.policies.values(), self.bindings[self.ref][1])

    @cached_property
    def is_awaited(self) -> bool:
        """Whether the next change of the template brings another placement."""
        placement = self.bindings[self.ref][1].spec.placement
        return any(brings_another(each, placement) for each in self.lazy_policies)

    @property
    def is_managed(self) -> bool:
        """Whether a controller such as that of MultiClusterServices writes the placement of the binding, and no policy does."""
        return bool(self.bindings[self.ref][1].labels.get(MANAGED_BY_LABEL))

    def ledger(self, manifests: Mapping[ObjectRef, Manifest]) -> Ledger:
        """Return the quotas, some of them changed.

        Raises:
            ManifestError: A field of a quota has the wrong type.
        """
        return Ledger(read_quota(manifests.get(ref, quota)) for ref, quota in self.quotas.items())

    @cached_property
    def usage(self) -> Usage:
        """What the binding uses of quotas as it is stored."""
        return usage(self.bindings[self.ref][1].spec)

    def _admitted(
        self, binding: Binding, scheduled: Scheduled, manifests: Mapping[ObjectRef, Manifest]
    ) -> Scheduled:
        """Return what was scheduled, refused if a quota refuses it."""
        if not self.quotas or self.as_new or scheduled.code != SUCCESS:
            return scheduled
        wanted = usage(binding.spec, scheduled.targets)
        try:
            refused = self.ledger(manifests).charge(self.key.namespace, self.usage, wanted)
        except ManifestError:
            return scheduled  # the API server cannot have stored such a quota
        if refused is None:
            return scheduled
        kept = replace(scheduled, targets=binding.spec.clusters, problem=str(refused))
        return replace(kept, code=QUOTA_EXCEEDED, refused=refused)

    def _parsed(self, ref: ObjectRef, manifest: Manifest) -> Cluster:
        """Return a changed Cluster; the same one as last time if it was changed in the same way."""
        last = self._last_parsed.get(ref)
        if last is None or last[0] != manifest:
            last = self._last_parsed[ref] = manifest, Cluster.from_manifest(manifest)
        return last[1]

    def _snapshot_with(self, clusters: Sequence[Cluster]) -> Snapshot:
        """Return all clusters, some of them replaced.

        The core's caches follow a log of changes, so the snapshots of this object are one sequence: the clusters that
        were replaced in the snapshot before this one change back.
        """
        replaced = {cluster.name: cluster for cluster in clusters}
        if replaced == self._replaced:
            return self._latest
        for name in sorted(self._replaced.keys() | replaced.keys()):
            if self._replaced.get(name) is not replaced.get(name):
                self._log.append(name)
        self._replaced = replaced
        self._latest = self._unedited.with_reported(clusters, generation=0)
        return self._latest
