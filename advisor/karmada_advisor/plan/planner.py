"""Makes a plan: bindings are decided before and after a change, as the scheduler would, and compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Final

from karmada_advisor.claims.quota import Quota
from karmada_advisor.explain.inputs import rebalanced
from karmada_advisor.plan import deletions, failures, holds, triggers
from karmada_advisor.plan.capacity_model import Capacity
from karmada_advisor.plan.decide import PlannedDecision, PlanSide
from karmada_advisor.plan.derive import derive
from karmada_advisor.plan.effects import Comparison, same
from karmada_advisor.plan.inputs import PlanInputs, parse
from karmada_advisor.plan.load import loads_after
from karmada_advisor.plan.model import Effect, Plan
from karmada_advisor.plan.notes import Compared
from karmada_advisor.plan.result import result
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.core.classify import ScheduleType
from karmada_scheduler.core.decision import Decision
from karmada_scheduler.dryrun.dry_run import DryRun
from karmada_scheduler.framework.snapshot import ChangeLog, Snapshot

BURST: Final = "burst"
ACCOUNTED: Final = "accounted"
MOST_IN_ORDER: Final = 2_000_000
"""Decisions times clusters up to which the other capacity mode is computed: its decisions share no cached order."""

_PLACING: Final = (Effect.MOVED, Effect.PLACED, Effect.UNPLACED)


def make_plan(inputs: PlanInputs) -> Plan:
    """Return what a change does.

    Raises:
        ChangeError: An object cannot be read after the change.
    """
    return Planner(inputs).plan()


class Planner:
    """One plan in the making.

    Attributes:
        derived: What follows from the change of policies and templates.
        parsed: The objects on both sides.
        comparisons: The bindings on both sides.
    """

    def __init__(
        self,
        inputs: PlanInputs,
        made: dict[BindingKey, Decision] | None = None,
        every: list[Decision] | None = None,
    ) -> None:
        """Derive the bindings after the change.

        Args:
            inputs: What the plan reads.
            made: Receives the decisions that the change causes.
            every: Receives these and the decisions that are only compared.

        Raises:
            ChangeError: An object cannot be read after the change, or Karmada would refuse it.
        """
        self._inputs = inputs
        self._made = made
        self._every = every
        after = inputs.draft.after
        self.derived = derive(inputs.before, after, inputs.detector)
        self.parsed = parse(inputs.before, after, inputs.known)
        self._changed = self.parsed.changed_clusters
        self._gaining = {
            name for name, (_, new) in self._changed.items() if new is not None and not new.deleting
        }
        self._restarts = inputs.rules is not inputs.rules_after
        self._log = ChangeLog()
        self._types: dict[BindingKey, ScheduleType] = {}
        self.comparisons = dict(self._comparisons())

    def decide(self) -> Mapping[Quota, bool]:
        """Decide on both sides into ``comparisons``; return the quotas that Karmada enforces, and whether that is sure."""
        inputs, parsed = self._inputs, self.parsed
        after = PlanSide(
            inputs.rules_after,
            self._snapshot(parsed.clusters_after),
            parsed.bindings_after.values(),
            self._made,
            self._every,
        )
        self._decide_after(after)
        before = PlanSide(
            inputs.rules,
            self._snapshot(parsed.clusters_before),
            parsed.bindings_before.values(),
            every=self._every,
        )
        self._decide_before(before)
        quotas = holds.enforced(inputs.quotas or (), parsed.bindings_before.values())
        if quotas:
            holds.charge(self.comparisons.values(), [*quotas])
        return quotas

    def plan(self) -> Plan:
        """Decide on both sides, and compare."""
        quotas = self.decide()
        inputs, parsed = self._inputs, self.parsed
        # The filter results of both sides are in the caches; a third snapshot costs little.
        after = PlanSide(
            inputs.rules_after, self._snapshot(parsed.clusters_after), parsed.bindings_after.values()
        )
        groups = (
            *failures.grouped(self._failing(), after, self.derived.policy_of),
            *failures.held(self.comparisons),
        )
        capacity = tuple(self._capacity(after.snapshot))
        compared = Compared(
            self.comparisons,
            parsed,
            self.derived,
            groups,
            capacity,
            loads_after(self.comparisons, after.snapshot, self._latent()),
            tuple(deletions.blocked(self.comparisons, self._changed, after)),
            restarts=self._restarts,
            unsure_quotas=tuple(each for each, is_sure in quotas.items() if not is_sure),
        )
        return result(inputs, compared)

    def _snapshot(self, clusters: Mapping[str, Cluster]) -> Snapshot:
        """Return a snapshot; all share a log of changes, so that caches filter only changed clusters again."""
        for name in self._changed:
            self._log.append(name)
        return Snapshot.of(clusters.values(), log=self._log)

    def _comparisons(self) -> Iterator[tuple[BindingKey, Comparison]]:
        before, after = self.parsed.bindings_before, self.parsed.bindings_after
        taints = deletions.new_taints(self._changed) if self._inputs.evicts else {}
        rules = self._inputs.rules_after
        hold_of = holds.stored_holds(
            self._inputs.schedulers,
            knows_quotas=self._inputs.quotas is not None,
            has_guards=rules.frameworks.has_guards,
            has_own_plugins=rules.frameworks.has_own_plugins and not rules.frameworks.missing,
        )
        for key in {**before, **after}:
            old, new = before.get(key), after.get(key)
            found = Comparison(old, new, is_spec_changed=old is not new)
            found.hold_before = None if old is None else hold_of(old)
            found.hold = None if new is None else found.hold_before if old is new else hold_of(new)
            if new is not None and taints:
                found.new = deletions.evicted(new, taints)
                found.when = triggers.AFTER_EVICTION if found.new is not new else ""
            yield key, found

    def _progress(self, phase: str) -> Callable[[int, int], None]:
        return partial(self._inputs.progress, phase)

    # --- after the change ---

    def _decide_after(self, side: PlanSide) -> None:
        """Make the decisions that the change causes, and those of a rebalance that it may concern."""
        watched = triggers.Triggers(
            clusters=self._changed,
            policy_bindings=self.derived.concerned,
            restarts=self._restarts,
            knows_claims=self._inputs.before.policies is not None,
        )
        assigned: list[Binding] = []
        for key, each in self.comparisons.items():
            if each.new is None or not side.may_decide(each.new):
                continue
            each.when = each.when or watched.when(each.old, each.new)
            self._types[key] = side.type_of(each.new) if each.when else ScheduleType.AVOID
            if each.hold is None:
                assigned.append(each.new)
            else:  # what it would get; no other decision sees it
                each.decided = side.make_if_asked(each.new, self._types[key])
        for binding, outcome in side.outcomes(assigned, self._types, self._progress("after the change")):
            comparison = self.comparisons[binding.key]
            comparison.decided = outcome
            self._rebalance_after(side, binding, comparison)

    def _rebalance_after(self, side: PlanSide, binding: Binding, each: Comparison) -> None:
        """Decide about a rebalance of a binding that stays as it is although the change may concern it."""
        if not self._may_be_latent(each, binding, side):
            return
        later = side.rebalanced(binding)
        if (
            each.is_spec_changed
            or self._restarts
            or later.error
            or any(target.name in self._gaining for target in (*later.targets, *each.before))
        ):
            each.later = later

    def _may_be_latent(self, each: Comparison, new: Binding, side: PlanSide) -> bool:
        if not each.before or each.old is None or each.differs or new.key in self.derived.deferred:
            return False
        if each.is_spec_changed or self._restarts:
            return True
        if not self._gaining:
            return False
        return any(target.name in self._gaining for target in each.before) or side.passes(new, self._gaining)

    # --- before the change ---

    def _decide_before(self, side: PlanSide) -> None:
        """Make the decisions that would follow without the change: of the next event, and of the next rebalance."""
        bindings: list[Binding] = []
        rebalanced_too: set[BindingKey] = set()
        for key, each in self.comparisons.items():
            if each.old is None or not side.may_decide(each.old):
                continue
            asks = self._inputs.with_drift or each.differs
            self._types[key] = side.type_of(each.old) if asks else ScheduleType.AVOID
            if each.later is not None and (each.later.error or not same(each.later.targets, each.before)):
                rebalanced_too.add(key)
            if each.hold_before is not None:
                each.unchanged_side = side.make_if_asked(each.old, self._types[key])
            elif key in rebalanced_too or self._types[key] is not ScheduleType.AVOID:
                bindings.append(each.old)
        for binding, outcome in side.outcomes(bindings, self._types, self._progress("without the change")):
            comparison = self.comparisons[binding.key]
            comparison.unchanged_side = outcome
            if binding.key in rebalanced_too:
                comparison.later_unchanged = side.rebalanced(binding)

    # --- sums ---

    def _failing(self) -> Iterator[failures.Failing]:
        for key, each in self.comparisons.items():
            effect = each.effect
            if each.new is None:
                continue
            if effect in {Effect.STUCK, Effect.UNPLACED} and each.decided is not None and each.decided.error:
                yield key, effect, each.new, each.decided
            elif effect is Effect.LATENT and each.later is not None and each.later.error:
                yield key, effect, rebalanced(each.new), each.later

    def _latent(self) -> dict[BindingKey, PlannedDecision]:
        return {
            key: each.later
            for key, each in self.comparisons.items()
            if each.effect is Effect.LATENT and each.later is not None and not each.later.error
        }

    def _capacity(self, snapshot: Snapshot) -> Iterator[Capacity]:
        """Yield what the plan asks of clusters in the configured mode, and in the other one where that is known."""
        moving = {key: each for key, each in self.comparisons.items() if each.effect in _PLACING}
        if not moving:
            return
        rules = self._inputs.rules_after
        decided = {key: each.decided for key, each in moving.items() if each.decided is not None}
        configured = self._mode(rules, snapshot, decided, is_configured=True)
        if not configured.clusters:
            return
        yield configured
        is_wanted = rules.accounts or bool(configured.overcommitted)
        if self._inputs.other_mode is None or not is_wanted:
            return
        if len(decided) * len(snapshot) > MOST_IN_ORDER and not rules.accounts:
            return
        other = self._inputs.other_mode()
        side = PlanSide(other, snapshot, self.parsed.bindings_after.values())
        bindings = [each.new for key, each in moving.items() if each.new is not None and key in decided]
        types = {key: outcome.type for key, outcome in decided.items()}
        again = {
            binding.key: outcome
            for binding, outcome in side.outcomes(
                bindings, types, self._progress("in the other capacity mode")
            )
            if outcome is not None
        }
        yield self._mode(other, snapshot, again, is_configured=False)

    def _mode(
        self,
        rules: DryRun,
        snapshot: Snapshot,
        decided: Mapping[BindingKey, PlannedDecision],
        *,
        is_configured: bool,
    ) -> Capacity:
        clusters = loads_after(self.comparisons, snapshot, decided)
        return Capacity(
            ACCOUNTED if rules.accounts else BURST,
            is_configured,
            clusters,
            tuple(each.name for each in clusters if each.over),
            sum(not each.error for each in decided.values()),
            sum(bool(each.error) for each in decided.values()),
        )
