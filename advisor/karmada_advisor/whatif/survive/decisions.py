"""Decides about one binding after losses, each distinct question once; or in order, where decisions depend on each other.

That is so with the gate SchedulingOvercommitProtection, workload groups, Guard plugins, and plugins of the user's own, which may
read the taints of clusters or the tasks of bindings. It is slower: each domain has a snapshot of its own, in which the lost
clusters are tainted or being deleted.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from karmada_advisor.state.stored import PURGED
from karmada_advisor.whatif.plan.decide import (
    PlanSide,
    chooses_regions,
    question,
    settled,
    without_clusters,
)
from karmada_advisor.whatif.plan.deletions import is_evictable
from karmada_advisor.whatif.plan.effects import same
from karmada_advisor.whatif.plan.model import PlanHeldBy
from karmada_advisor.whatif.survive import loss_decision
from karmada_advisor.whatif.survive.classify import NO_EXCEPTIONS, Evicted, Targets
from karmada_advisor.whatif.survive.loss import (
    NO_POLICIES,
    LeftBehind,
    Loss,
    LossInputs,
    LossTaints,
    admits,
    masked,
)
from karmada_scheduler.api.binding import HEALTHY, Binding
from karmada_scheduler.api.matching import Taint
from karmada_scheduler.core.classify import ScheduleType
from karmada_scheduler.core.decision import Decision
from karmada_scheduler.framework.snapshot import ChangeLog, Snapshot
from karmada_scheduler.structs import Struct, field


class LossDecisions(Struct, dict=True):
    """Decides about one binding after losses.

    Attributes:
        side: The clusters as they are.
        stored: The binding as it is.
        inputs: What the forecast reads.
        shared: What is known about equal questions, of all bindings.
        hold: What keeps decisions about it from taking effect; None if they do.
        present: What is known to run of it.
    """

    side: PlanSide
    stored: Binding
    inputs: LossInputs
    shared: loss_decision.SharedDecisions

    @property
    def is_judged(self) -> bool:
        """Whether the rules of its scheduler are known."""
        return self.hold is None or self.hold.by is not PlanHeldBy.RULES

    def __post_init__(self) -> None:
        self.hold = self.inputs.hold_of(self.stored)
        self.present = self.inputs.present.get(self.stored.key, NO_EXCEPTIONS)
        self.is_decided = self.side.is_assigned(self.stored) and (
            self.hold is None or self.hold.by is not PlanHeldBy.SCHEDULER
        )
        self._evictable: dict[tuple[Taint, ...], bool] = {}

    @cached_property
    def binding(self) -> Binding:
        """The binding after the decision that is due without any loss; as it is stored if none is, or it fails."""
        stored = self.stored
        if not self.may_be_asked or self.side.type_of(stored) is ScheduleType.AVOID:
            return stored
        found = self._standing[0]
        if found is None or found.targets is None or (found.error is not None and found.targets):
            return stored
        if same(found.targets, stored.spec.clusters):
            return stored
        return settled(stored, found)

    def forget(self) -> None:
        """Drop what only further decisions need."""
        self.shared = loss_decision.SharedDecisions()
        for name in ("sweeps", "_standing", "_passing", "_question"):
            self.__dict__.pop(name, None)

    @property
    def drifts(self) -> bool:
        """Whether a decision is due that changes the binding without any loss."""
        return self.binding is not self.stored

    @cached_property
    def _standing(self) -> tuple[Decision | None, loss_decision.Sweeps | None]:
        """The decision without any loss, None if a PreEnqueue plugin keeps the binding out of the queue; and its sweeps."""
        asked = question(self.stored)
        known = self.shared.standing.get(asked)
        if known is None:
            decision = self.side.decision(self.stored)
            known = decision, loss_decision.sweeps_of(self.stored, decision)
            self.shared.standing[asked] = known
        return known

    @property
    def may_be_asked(self) -> bool:
        """Whether decisions about it are made, and take effect."""
        return self.is_decided and self.hold is None

    def left(self, lost: Collection[str], loss: Loss) -> LeftBehind:
        """Return the binding after the loss of some clusters and before a decision."""
        present = self.binding.spec.target_names.intersection(lost)
        leaving = (
            present
            if loss is Loss.DELETED
            else frozenset(
                name for name in present if self._is_evictable(self.inputs.taints.evicting(name, loss))
            )
        )
        if not leaving:
            return LeftBehind(self.binding, present, is_evicted=False, decides=False)
        evicted = without_clusters(self.binding, leaving)
        asks = self.may_be_asked and (
            loss is Loss.DELETED or self.side.type_of(evicted) is not ScheduleType.AVOID
        )
        return LeftBehind(evicted, leaving, is_evicted=True, decides=asks)

    def undecided(self, left: LeftBehind) -> Evicted:
        """Return what becomes of the binding if no decision follows."""
        is_held = left.is_evicted and self.is_decided and self.hold is not None
        return Evicted(
            self.binding.spec.clusters,
            left.binding.spec.clusters,
            message="" if self.is_judged or self.hold is None else self.hold.text,
            is_held=is_held,
            is_evicted=left.is_evicted,
            is_judged=self.is_judged,
            present=self.present,
        )

    def made(self, left: LeftBehind, found: Evicted, loss: Loss) -> Evicted:
        """Return what becomes of the binding by a decision, of which ``found`` has the outcome."""
        return found._replace(
            before=self.binding.spec.clusters,
            is_evicted=left.is_evicted,
            is_purged_directly=left.is_evicted
            and loss is not Loss.DELETED
            and self.inputs.purge_modes.get(self.stored.key, self.inputs.purge_mode) in PURGED
            and not self._is_healthy_on(found.after),
            present=self.present,
        )

    def _is_healthy_on(self, targets: Targets) -> bool:
        """Return whether each of some clusters reports it as healthy, so that its eviction ends at once.

        Source: karmada v1.18.2 pkg/controllers/gracefuleviction/evictiontask.go allScheduledResourceInHealthyState.
        """
        healthy = {
            report.cluster_name for report in self.stored.status.aggregated_status if report.health == HEALTHY
        }
        return all(target.name in healthy for target in targets)

    def after(self, lost: Collection[str], loss: Loss) -> Evicted:
        """Return what becomes of the binding when some clusters are lost."""
        left = self.left(lost, loss)
        if left.decides:
            return self.made(left, self._decide(left, self._masks(lost, left, loss)), loss)
        # Of what leaves no cluster, only another choice of regions moves it.
        if not left.is_evicted and self.sweeps is not None and len(lost) > len(left.present):
            masks = self._masks(lost, left, loss)
            if masks and self.sweeps.may_change(masks):
                return self.made(left, self._decide(left, masks), loss)
        return self.undecided(left)

    def swept_by_one(self, loss: Loss) -> Iterator[tuple[Sequence[str], Evicted]]:
        """Yield clusters that the binding is not on and of which each alone, lost, changes something, and what."""
        if self.sweeps is None:
            return
        present = self.binding.spec.target_names
        stays = LeftBehind(self.binding, frozenset(), is_evicted=False, decides=False)
        for case in self.sweeps.cases:
            names = self._refused([name for name in case if name not in present], loss)
            if not names:
                continue
            # Of clusters that count the same, the loss of the last in order stands for those that it does not select.
            found = self._decide(stays, frozenset({names[-1]}))
            selected = {target.name for target in found.after}
            yield [name for name in names if name not in selected], self.made(stays, found, loss)
            for name in names:
                if name in selected:
                    yield [name], self.made(stays, self._decide(stays, frozenset({name})), loss)

    @cached_property
    def sweeps(self) -> loss_decision.Sweeps | None:
        """Which losses of other clusters may move it; None if none can."""
        if not self.may_be_asked or not chooses_regions(self.binding):
            return None
        if not self.drifts:
            return self._standing[1]
        return loss_decision.sweeps_of(self.binding, self.side.decision(self.binding))

    def _masks(self, lost: Collection[str], left: LeftBehind, loss: Loss) -> frozenset[str]:
        """Return the lost clusters that would take the binding, and must not; it may stay where it is not evicted from."""
        if len(lost) == len(left.present):
            return frozenset()
        known = left.present | left.binding.spec.target_names
        passing = self._passing
        others = [
            name
            for name in lost
            if name not in known and (passing is None or any(name in names for names in passing))
        ]
        return frozenset(self._refused(others, loss))

    def _refused(self, names: list[str], loss: Loss) -> list[str]:
        """Return the clusters whose taints after a loss the binding does not tolerate."""
        placement, get = self.binding.spec.placement, self.side.snapshot.get
        if placement is None or not placement.cluster_tolerations:
            return names
        return [
            name
            for name in names
            if (cluster := get(name)) is not None
            and not admits(self.binding, self.inputs.taints.of(cluster, loss), loss)
        ]

    @cached_property
    def _passing(self) -> tuple[Container[str], ...] | None:
        return self.side.passing(self.binding)

    def _is_evictable(self, taints: tuple[Taint, ...]) -> bool:
        found = self._evictable.get(taints)
        if found is None:
            found = self._evictable[taints] = bool(taints) and is_evictable(self.binding, taints)
        return found

    def _decide(self, left: LeftBehind, masks: frozenset[str]) -> Evicted:
        known = self.shared.decided
        key = (self._question, left.present if left.is_evicted else frozenset(), masks)
        found = known.get(key)
        if found is None:
            asked = masked(left.binding, masks) if masks else left.binding
            found = known[key] = loss_decision.decided(self.side.decision(asked), left.binding.spec.clusters)
        return found

    @cached_property
    def _question(self) -> int:
        """What a decision depends on, as a number."""
        numbers = self.shared.questions
        return numbers.setdefault(question(self.binding), len(numbers))


class CoupledLosses(Struct, dict=True):
    """Decides after losses as the scheduler would, one binding after the other.

    Attributes:
        side: The clusters as they are.
        bindings: All bindings.
        taints: Of lost clusters.
    """

    side: PlanSide
    bindings: Iterable[Binding]
    taints: LossTaints = NO_POLICIES
    _log: ChangeLog = field(default_factory=ChangeLog)
    _changed: Collection[str] = ()

    def after(
        self, asked: Mapping[int, LossDecisions], lost: Collection[str], loss: Loss
    ) -> Iterator[tuple[int, Evicted]]:
        """Yield what becomes of the bindings that a loss concerns, by their position.

        Args:
            asked: All bindings with a class, in the order of the queue.
            lost: The names of the lost clusters.
            loss: The world.
        """
        side = PlanSide(self.side.rules, self._snapshot(lost, loss), self.bindings)
        waiting: list[tuple[Binding, ScheduleType]] = []
        places: dict[int, int] = {}
        for place, decisions in asked.items():
            found = decisions.left(lost, loss)
            if found.decides or (
                not found.is_evicted and decisions.may_be_asked and chooses_regions(decisions.binding)
            ):
                places[id(found.binding)] = place
                waiting.append((found.binding, side.type_of(found.binding)))
            elif found.present:
                yield place, decisions.undecided(found)
        for binding, _, decision in side.decisions_in_order(waiting):
            place = places[id(binding)]
            made = loss_decision.decided(decision, binding.spec.clusters)
            yield place, asked[place].made(asked[place].left(lost, loss), made, loss)

    def _snapshot(self, lost: Collection[str], loss: Loss) -> Snapshot:
        for name in (*self._changed, *lost):
            self._log.append(name)
        self._changed = lost
        clusters = (
            self.taints.lost(each, loss) if each.name in lost else each for each in self.side.snapshot
        )
        return Snapshot.of(clusters, log=self._log)
