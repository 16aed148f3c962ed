"""The class of a binding, from the decisions on both sides of a change."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from karmada_advisor.state.model import Target
from karmada_advisor.state.propagation import Suspended
from karmada_advisor.whatif.plan.decide import PlannedDecision
from karmada_advisor.whatif.plan.model import Effect, PlanHeldBy
from karmada_scheduler.api.binding import Binding, TargetCluster
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.well_known import CORDON_TAINT, KARMADA_TAINTS
from karmada_scheduler.core.classify import ScheduleType
from karmada_scheduler.framework.snapshot import Snapshot
from karmada_scheduler.structs import Struct

NOT_READY: Final = "not ready"


class Shift(NamedTuple):
    """Replicas that stop and start.

    Attributes:
        stops: Replicas that stop on a cluster.
        starts: Replicas that start on a cluster.
        entirely: Whether no cluster stays.
    """

    stops: int
    starts: int
    entirely: bool


class Hold(Struct, frozen=True):
    """Why a decision does not take effect.

    Attributes:
        by: What holds the binding.
        reason: A code, as the condition has it.
        text: One sentence without a full stop.
    """

    by: PlanHeldBy
    reason: str
    text: str

    @property
    def effect(self) -> Effect:
        """The class of a binding that would change otherwise."""
        return _EFFECTS.get(self.by, Effect.HELD)


_EFFECTS: Final = {
    PlanHeldBy.SCHEDULER: Effect.UNDECIDED,
    PlanHeldBy.RULES: Effect.NOT_JUDGED,
    PlanHeldBy.REPLICAS: Effect.NOT_JUDGED,
}


class Comparison(Struct):
    """One binding on both sides of the change; filled in by ``WhatIf``.

    Attributes:
        old: The binding before; None if it is new.
        new: The binding after the change and before the scheduler acts; None if it is gone.
        when: When the scheduler looks at it; "" if it does not.
        decided: The decision that the change causes; None without one.
        unchanged_side: The decision that the next event would cause without the change; None if nothing asks for one.
        later: The decision at the next rebalance after the change; None if it was not made.
        later_unchanged: The decision at the next rebalance without the change; None if it was not made.
        is_spec_changed: Whether the change concerns the binding itself.
        hold: Why a decision after the change does not take effect; None if it does.
        hold_before: The same without the change.
        keeps_spec: Whether Karmada does not even write the change of the binding.
        preserves: Whether the copies that it leaves go on running (preserveResourcesOnDeletion).
        is_known: Whether the rules, and its replicas, are known by which decisions after the change are made.
        suspended: The suspension of its dispatching after the change.
    """

    old: Binding | None
    new: Binding | None
    when: str = ""
    decided: PlannedDecision | None = None
    unchanged_side: PlannedDecision | None = None
    later: PlannedDecision | None = None
    later_unchanged: PlannedDecision | None = None
    is_spec_changed: bool = False
    hold: Hold | None = None
    hold_before: Hold | None = None
    keeps_spec: bool = False
    preserves: bool = False
    is_known: bool = True
    suspended: Suspended = Suspended()

    @property
    def before(self) -> Sequence[TargetCluster]:
        """The stored clusters."""
        return self.old.spec.clusters if self.old is not None else ()

    @property
    def after(self) -> Sequence[TargetCluster]:
        """The clusters after the decision that the change causes; those that it has, if that does not take effect."""
        if self.new is None:
            return ()
        is_kept = self.decided is None or self.hold is not None
        return self.new.spec.clusters if is_kept else self.wanted

    def shift_to(self, after: Sequence[TargetCluster]) -> Shift:
        """Return the replicas that stop and start between the stored placement and another one."""
        moved = shift(self.before, after)
        staying = replicas(left(self.before, after)) if self.preserves else 0
        return moved._replace(stops=moved.stops - staying - self.undispatched(after))

    def undispatched(self, after: Sequence[TargetCluster]) -> int:
        """Return the replicas that go on running because their clusters do not get another placement."""
        if not (self.suspended.everywhere or self.suspended.listed):
            return 0
        kept = {target.name for target in after if self.suspended.concerns(target.name)}
        changes = differences(self.before, after)
        return sum(max(0, -changes.get(name, 0)) for name in kept)

    @property
    def wanted(self) -> Sequence[TargetCluster]:
        """The clusters of the decision, whether or not it takes effect."""
        if self.decided is not None:
            return self.decided.targets
        return self.unchanged_side.targets if self.unchanged_side is not None else self.before

    @property
    def differs(self) -> bool:
        """Whether the decision fails, or gives other clusters than are stored."""
        return self.decided is not None and (
            bool(self.decided.error) or not same(self.decided.targets, self.before)
        )

    @property
    def has_drift(self) -> bool:
        """Whether the binding would change, or newly fail, without the change."""
        return self.hold_before is None and self.would_drift

    @property
    def would_drift(self) -> bool:
        """The same if nothing held it."""
        found = self.unchanged_side
        if found is None or found.type is ScheduleType.AVOID:
            return False
        return not same(found.targets, self.before) or (bool(found.error) and bool(self.before))

    @property
    def effect(self) -> Effect:
        """The class, without those that follow from policies alone."""
        found = self._of_change
        if self.hold is None:
            return found
        if not self.is_known:
            return self.hold.effect if self.when else found
        if self.old is not None and self.new is not None and not same(self.after, self.before):
            return Effect.MOVED if self.after else Effect.UNPLACED  # Karmada has evicted it
        drifts = found is Effect.UNCHANGED and self.would_drift and not self._is_held_anyway
        is_changed = self.keeps_spec or found in _CHANGES or drifts
        return self.hold.effect if is_changed else found

    @property
    def held_anyway(self) -> str:
        """What keeps the binding from changing, with and without the change alike; "" if nothing does."""
        if self.hold is None or not self._is_held_anyway:
            return ""
        return self.hold.text if self.effect is Effect.UNCHANGED and self.would_drift else ""

    @property
    def _is_held_anyway(self) -> bool:
        is_held = self.hold is not None and self.hold.effect is Effect.HELD
        return is_held and self.hold == self.hold_before and not self.is_spec_changed

    @property
    def _of_change(self) -> Effect:
        """The class if every decision takes effect."""
        if self.new is None:
            return Effect.DELETED
        if self.decided is None or self.decided.type is ScheduleType.AVOID:
            return Effect.LATENT if self.is_latent else Effect.UNCHANGED
        if self._is_expected():
            return Effect.UNCHANGED
        return self._of_decision(self.decided)

    def _is_expected(self) -> bool:
        """Whether the same would happen without the change."""
        is_let = self.hold_before is None or self._is_held_anyway
        return is_let and _is_same_outcome(self.unchanged_side, self.decided)

    def _of_decision(self, decided: PlannedDecision) -> Effect:
        is_kept = same(decided.targets, self.before)
        if decided.held is not None and is_kept:
            return Effect.HELD
        if decided.error and not decided.targets:
            return Effect.UNPLACED if self.before or self.old is None else Effect.UNCHANGED
        if is_kept and self.old is not None:
            if decided.error:
                return Effect.STUCK
            return Effect.LATENT if self.is_latent else Effect.UNCHANGED
        return Effect.MOVED if self.before else Effect.PLACED

    @property
    def is_latent(self) -> bool:
        """Whether a rebalance gives another result than it would without the change."""
        later = self.later
        if later is None or (same(later.targets, self.before) and not later.error):
            return False
        return not _is_same_outcome(later, self.later_unchanged)


_CHANGES: Final = frozenset({Effect.MOVED, Effect.PLACED, Effect.UNPLACED, Effect.STUCK, Effect.HELD})


def same(one: Sequence[TargetCluster], other: Sequence[TargetCluster]) -> bool:
    """Return whether two placements are equal; their order does not count."""
    return one == other or sorted(one) == sorted(other)


def _is_same_outcome(one: PlannedDecision | None, other: PlannedDecision | None) -> bool:
    """Return whether two decisions give the same clusters, and fail alike; False if one of them was not made."""
    if one is None or other is None:
        return False
    return same(one.targets, other.targets) and bool(one.error) == bool(other.error)


def shift(before: Sequence[TargetCluster], after: Sequence[TargetCluster]) -> Shift:
    """Return the replicas that stop and start between two placements."""
    changes = differences(before, after).values()
    return Shift(
        -sum(count for count in changes if count < 0),
        sum(count for count in changes if count > 0),
        bool(before) and not {target.name for target in before} & {target.name for target in after},
    )


def cannot_start(each: Comparison, snapshot: Snapshot) -> tuple[Target, ...]:
    """Return the replicas, or copies (0), that the change assigns to clusters where nothing starts."""
    had = {target.name: target.replicas for target in each.before}
    return tuple(
        Target(target.name, target.replicas - had.get(target.name, 0))
        for target in sorted(each.after)
        if target.replicas > had.get(target.name, -1)
        and (each.suspended.concerns(target.name) or out_of_service(snapshot.get(target.name)))
    )


def out_of_service(cluster: Cluster | None) -> str:
    """Return ``not ready`` or ``cordoned``; "" for a cluster that is neither, as far as it says."""
    if cluster is None:
        return ""
    ready, taints = cluster.condition("Ready"), {taint.key for taint in cluster.taints}
    if (ready is not None and ready.status != "True") or taints & KARMADA_TAINTS:
        return NOT_READY
    return "cordoned" if CORDON_TAINT in taints else ""


def differences(
    before: Iterable[TargetCluster | Target], after: Iterable[TargetCluster | Target]
) -> dict[str, int]:
    """Return by how many replicas each cluster changes; clusters that do not change are left out."""
    found: dict[str, int] = {}
    for target in after:
        found[target.name] = found.get(target.name, 0) + target.replicas
    for target in before:
        found[target.name] = found.get(target.name, 0) - target.replicas
    return {name: count for name, count in found.items() if count}


def left(before: Iterable[TargetCluster], after: Iterable[TargetCluster]) -> list[TargetCluster]:
    """Return the clusters of a placement that another one lacks."""
    kept = {target.name for target in after}
    return [target for target in before if target.name not in kept]


def replicas(targets: Iterable[TargetCluster]) -> int:
    """Return the replicas on all clusters of a placement."""
    return sum(target.replicas for target in targets)


def targets(found: Iterable[TargetCluster]) -> tuple[Target, ...]:
    """Return a placement as data, in the order of the names of its clusters."""
    return tuple(Target(target.name, target.replicas) for target in sorted(found))
