"""Decides about bindings before and after a change, as the scheduler would."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Final, NamedTuple

from karmada_advisor.state.propagation import Suspended
from karmada_advisor.state.quota import Quota, enforced
from karmada_advisor.state.stored import condition_of, preserves
from karmada_advisor.whatif.plan import deletions, holds
from karmada_advisor.whatif.plan.decide import PlanSide
from karmada_advisor.whatif.plan.derive import derive
from karmada_advisor.whatif.plan.effects import Comparison, same
from karmada_advisor.whatif.plan.objects import Manifest, PlanObjects, resource_key
from karmada_advisor.whatif.plan.question import Known, PlanInputs, changed_clusters, known_after, known_of
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.policy import PolicyKey
from karmada_scheduler.core import requeue_rules
from karmada_scheduler.core.classify import ScheduleType
from karmada_scheduler.core.cluster_changes import ClusterChanges
from karmada_scheduler.core.condition import NO_CLUSTER_FIT
from karmada_scheduler.core.decision import Decision
from karmada_scheduler.dryrun.dry_run import DryRun
from karmada_scheduler.dryrun.result import as_written, manifest_as_written
from karmada_scheduler.framework.snapshot import ChangeLog, Snapshot
from karmada_scheduler.structs import replace

AT_ONCE: Final = "at once"
AT_RETRY: Final = "at the next retry"
AFTER_EVICTION: Final = "after eviction"
AT_RESTART: Final = "when the scheduler restarts"

_OF_BEFORE: Final = 0.4
"""Share of the time that is left for the decisions without the change."""


class WrittenChange(NamedTuple):
    """The objects after a change, once its decisions are written.

    Attributes:
        objects: With what the scheduler writes.
        known: The same as values.
        decisions: All that were made, also those that are only compared.
    """

    objects: PlanObjects
    known: Known
    decisions: Sequence[Decision]


class WhatIf:
    """What a change does: the objects before it and after it, and the decisions about bindings on both sides.

    Attributes:
        inputs: What the plan reads.
        derived: What follows from the change of policies and templates.
        before: The objects before the change as values.
        after: The same after it.
        changed_clusters: The clusters that differ, by name.
        restarts: Whether the configuration changes.
        comparisons: The bindings on both sides.
        sides: After the change, and before it; empty until ``decide``.
        rebalances_not_judged: How many bindings stay as they are, and may move at a rebalance; there was no time to decide.
    """

    def __init__(self, inputs: PlanInputs, *, remembers: bool = False) -> None:
        """Derive the bindings after the change.

        Args:
            inputs: What the plan reads.
            remembers: Whether the sides keep their decisions, as ``step`` needs it.

        Raises:
            ChangeError: An object cannot be read after the change, or Karmada would refuse it.
        """
        self.inputs = inputs
        self._remembers = remembers
        self.sides: tuple[PlanSide, ...] = ()
        self.rebalances_not_judged = 0
        after = inputs.draft.after
        self.derived = derive(inputs.before, after, inputs.detector)
        for key, manifest in after.bindings.items() if inputs.draft.autoscaled else ():
            self.derived.unjudged |= {key} if resource_key(manifest) in inputs.draft.autoscaled else set()
        self.before = inputs.known or known_of(inputs.before)
        self.after = known_after(self.before, inputs.before, after)
        self.changed_clusters = changed_clusters(self.before, self.after)
        self._gaining = {
            name for name, (_, new) in self.changed_clusters.items() if new is not None and not new.deleting
        }
        self.restarts = inputs.rules is not inputs.rules_after
        self._log = ChangeLog()
        self._types: dict[BindingKey, ScheduleType] = {}
        self._entering: dict[Hashable, bool] = {}
        self.comparisons = dict(self._comparisons())

    def decide(self) -> Mapping[Quota, bool]:
        """Decide on both sides into ``comparisons``; return the quotas that Karmada enforces, and whether that is sure."""
        after = self.side_after()
        self._decide_after(after)
        before = self._side(self.inputs.rules, self.before)
        self._decide_before(before)
        self.sides = after, before
        quotas = enforced(self.inputs.quotas or (), self.before.bindings.values())
        if quotas:
            holds.charge(self.comparisons.values(), [*quotas])
        return quotas

    def manifest_of(self, key: BindingKey) -> Manifest:
        """Return a binding as it is after the change; as before it, if it is gone."""
        after = self.inputs.draft.after.bindings
        return after[key] if key in after else self.inputs.before.bindings[key]

    def side_after(self) -> PlanSide:
        """Return the bindings after the change, as plugins then see them."""
        return self._side(self.inputs.rules_after, self.after)

    def _side(self, rules: DryRun, objects: Known) -> PlanSide:
        """Return one side; their snapshots share a log of changes, so that caches filter only changed clusters again."""
        for name in self.changed_clusters:
            self._log.append(name)
        snapshot = Snapshot.of(objects.clusters.values(), log=self._log)
        return PlanSide(rules, snapshot, objects.bindings.values(), remembers=self._remembers)

    def step(self, at: datetime) -> WrittenChange:
        """Decide what the change causes, and write it.

        A cluster that the change deletes is gone once no binding is on it.

        Args:
            at: The time of the decisions.
        """
        self.decide()
        written, after = self.sides[0].written, self.inputs.draft.after.copy()
        bindings = dict(self.after.bindings)
        for key, each in self.comparisons.items():
            decision = written.get(key) if each.hold is None else None  # what is held does not take effect
            if each.new is None:
                continue
            stored = each.new if decision is None else as_written(each.new, decision, at)
            if stored is not bindings[key]:
                bindings[key] = stored
                after.bindings[key] = manifest_as_written(after.bindings[key], stored)
        clusters = dict(self.after.clusters)
        used = {target.name for binding in bindings.values() for target in binding.spec.clusters}
        for name, cluster in self.after.clusters.items():
            if cluster.deleting and name not in used:
                del clusters[name], after.clusters[name]
        decisions = [decision for side in self.sides for decision in side.decisions]
        return WrittenChange(after, Known(clusters, bindings), decisions)

    def _comparisons(self) -> Iterator[tuple[BindingKey, Comparison]]:
        before, after = self.before.bindings, self.after.bindings
        taints = self._evicting(self.after)
        hold_of = holds.stored_holds(
            self.inputs.schedulers,
            self.inputs.rules_after.frameworks,
            knows_quotas=self.inputs.quotas is not None,
            knows_rules=self.inputs.rules_after.knows,
        )
        for key in {**before, **after}:
            old, new = before.get(key), after.get(key)
            manifest = self.manifest_of(key)
            found = Comparison(old, new, is_spec_changed=old is not new, preserves=preserves(manifest))
            found.suspended = Suspended.of(manifest)
            found.is_known = new is None or self.inputs.rules_after.knows(new)
            found.hold_before = None if old is None else hold_of(old)
            found.hold = None if new is None else found.hold_before if old is new else hold_of(new)
            if found.hold is None and old is not None and new is not None and is_from_detector(old, new):
                found.hold = holds.template_hold(self.inputs.before, old, self.inputs.detector)
                if found.hold is None and (missing := self._missing_class(new)):
                    found.hold, found.when, found.is_known = holds.class_missing(missing), AT_ONCE, False
            if found.hold is None and key in self.derived.unjudged:
                found.hold, found.when, found.is_known = holds.REPLICAS_NOT_KNOWN, AT_ONCE, False
            if new is not None and taints:
                found.new = deletions.evicted(new, taints)
                found.when = AFTER_EVICTION if found.new is not new else ""
            yield key, found

    def _missing_class(self, new: Binding) -> str:
        """Return the missing PriorityClass for which Karmada's detector does not write a binding; "" without one."""
        policy = self.derived.policies.get(new.key)
        if policy is None or not new.key.namespace:
            return ""
        key = PolicyKey(policy.kind, policy.namespace, policy.name)
        found = (self.inputs.draft.after.policies or {}).get(key)
        return "" if found is None else self.inputs.detector.missing_class(found)

    def _evicting(self, objects: Known) -> deletions.Taints:
        """Return the NoExecute taints from which Karmada evicts."""
        clusters = objects.clusters if self.inputs.evicts else {}
        return deletions.new_taints({name: (None, cluster) for name, cluster in clusters.items()})

    # --- after the change ---

    def _decide_after(self, side: PlanSide) -> None:
        """Make the decisions that the change causes, and those of a rebalance that it may concern."""
        changes = ClusterChanges()
        for old, new in self.changed_clusters.values():
            changes.add(old, new)
        assigned: list[Binding] = []
        for key, pair in self.comparisons.items():
            if pair.new is None or pair.new.deleting or pair.new.spec.placement is None:
                continue
            pair.when = pair.when or self._when(pair.old, pair.new, changes)
            if not pair.is_known:
                continue
            self._types[key] = side.type_of(pair.new) if pair.when else ScheduleType.AVOID
            if pair.hold is None:
                assigned.append(pair.new)
            else:  # what it would get; no other decision sees it
                pair.decided = side.make_if_asked(pair.new, self._types[key])
        progress = partial(self.inputs.progress, "after the change")
        for binding, outcome in side.outcomes(assigned, self._types, progress):
            comparison = self.comparisons[binding.key]
            comparison.decided = outcome
            self._rebalance_after(side, binding, comparison)

    def _when(self, old: Binding | None, new: Binding, changes: ClusterChanges) -> str:
        """Return when the scheduler looks at a binding, "" if it does not: the rules of its informer.

        Args:
            old: The binding before the change, None if there was none.
            new: The binding after the change; this scheduler is responsible for it.
            changes: The changed clusters.
        """
        if changes and changes.concerns(new):
            return AT_ONCE
        if not requeue_rules.is_claimed(new):
            return ""
        if old is None or old.generation != new.generation or old.labels != new.labels:
            return AT_ONCE
        if new.key in self.derived.concerned:
            return AT_ONCE
        if self.restarts:
            return AT_RESTART
        return AT_RETRY if _is_retried(new) else ""

    def _rebalance_after(self, side: PlanSide, binding: Binding, each: Comparison) -> None:
        """Decide about a rebalance of a binding that stays as it is although the change may concern it, if there is time."""
        if not self._may_be_latent(each, binding, side):
            return
        if self.inputs.time_left() < _OF_BEFORE:
            self.rebalances_not_judged += 1
            return
        later = side.rebalanced(binding)
        if (
            each.is_spec_changed
            or self.restarts
            or later.error
            or any(target.name in self._gaining for target in (*later.targets, *each.before))
        ):
            each.later = later

    def _may_be_latent(self, each: Comparison, new: Binding, side: PlanSide) -> bool:
        if not each.before or each.old is None or each.differs or new.key in self.derived.deferred:
            return False
        if each.is_spec_changed or self.restarts:
            return True
        if not self._gaining:
            return False
        return any(target.name in self._gaining for target in each.before) or self._may_enter(new, side)

    def _may_enter(self, new: Binding, side: PlanSide) -> bool:
        """Return whether a cluster that may take more passes the filters; plugins of Karmada's own read placement and kind only."""
        spec, rules = new.spec, side.rules.of(new)
        if rules is None or rules.is_coupled:
            return side.passes(new, self._gaining)
        resource, groups = spec.resource, spec.workload_affinity_groups
        asked = spec.scheduler_name, spec.placement, resource.api_version, resource.kind, groups
        if asked not in self._entering:
            self._entering[asked] = side.passes(new, self._gaining)
        return self._entering[asked]

    # --- before the change ---

    def _decide_before(self, side: PlanSide) -> None:
        """Make the decisions that would follow without the change: of the next event, and of the next rebalance."""
        bindings: list[Binding] = []
        rebalanced_too: set[BindingKey] = set()
        taints = self._evicting(self.before)
        for key, pair in self.comparisons.items():
            if pair.old is None or not side.rules.may_decide(pair.old):
                continue
            standing = deletions.evicted(pair.old, taints)
            asks = requeue_rules.is_claimed(pair.old) and (self.inputs.with_drift or pair.differs)
            self._types[key] = side.type_of(standing) if asks else ScheduleType.AVOID
            if pair.later is not None and (pair.later.error or not same(pair.later.targets, pair.before)):
                rebalanced_too.add(key)
            if pair.hold_before is not None:
                pair.unchanged_side = side.make_if_asked(standing, self._types[key])
            elif key in rebalanced_too or self._types[key] is not ScheduleType.AVOID:
                bindings.append(standing)
        progress = partial(self.inputs.progress, "without the change")
        for binding, outcome in side.outcomes(bindings, self._types, progress):
            comparison = self.comparisons[binding.key]
            comparison.unchanged_side = outcome
            if binding.key in rebalanced_too and self.inputs.time_left() > 0:
                comparison.later_unchanged = side.rebalanced(binding)
            elif binding.key in rebalanced_too:
                comparison.later = None
                self.rebalances_not_judged += 1


def is_from_detector(old: Binding, new: Binding) -> bool:
    """Return whether Karmada's detector writes what differs; a reschedule is requested by the WorkloadRebalancer."""
    return old is not new and (
        replace(new.spec, reschedule_triggered_at=old.spec.reschedule_triggered_at) != old.spec
    )


def _is_retried(binding: Binding) -> bool:
    """Return whether the scheduler tries again without an event: its last attempt failed, and not by the filters."""
    condition = condition_of(binding)
    return condition.status == "False" and condition.reason != NO_CLUSTER_FIT
