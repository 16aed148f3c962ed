"""What is known about one binding: its state, and the decisions that explain it, with their traces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from karmada_advisor.explain import trace_model
from karmada_advisor.explain.amounts import quota_refusal
from karmada_advisor.explain.inputs import ExplainInputs, rebalanced
from karmada_advisor.explain.model import NextState
from karmada_advisor.explain.trace_candidates import Refusals, trace_score, trace_trigger
from karmada_advisor.explain.trace_divide import trace_capacity, trace_divide
from karmada_advisor.explain.trace_select import trace_select
from karmada_advisor.state.model import BindingState, HeldBy
from karmada_advisor.state.quota import Excess, Ledger, usage
from karmada_advisor.state.reading import NOT_CHANGED, state_of
from karmada_scheduler.api.binding import Binding, BindingSpec, TargetCluster
from karmada_scheduler.core.classify import Classification, ScheduleType
from karmada_scheduler.core.decision import Decision, TermAttempt, deciding_attempts
from karmada_scheduler.core.requeue_rules import is_claimed
from karmada_scheduler.dryrun.forecast import as_new
from karmada_scheduler.framework.cycle import Cycle, KeptSteps
from karmada_scheduler.framework.diagnosis import FitError, KeptError, OverBudgetError, PluginError
from karmada_scheduler.framework.result import Result
from karmada_scheduler.framework.snapshot import Snapshot
from karmada_scheduler.structs import Struct, replace

_UNDECIDED = ("being deleted", "no placement", "not claimed", "other scheduler", "suspended", "gated")
_NOTHING_TO_DECIDE = frozenset(map(NextState, _UNDECIDED))


class Basis(Struct, frozen=True, dict=True):
    """A decision with the inputs that it read, and the traces of one attempt, each made when it is first needed.

    A step that was not reached has no trace, or an empty one.

    Attributes:
        inputs: What it read.
        decision: The decision.
    """

    inputs: ExplainInputs
    decision: Decision

    @cached_property
    def attempt(self) -> TermAttempt:
        """The attempt that is traced; an empty one if none began."""
        return attempt_of(self.decision) or TermAttempt()

    @property
    def cycle(self) -> Cycle:
        """The context of the attempt, which has begun."""
        assert self.attempt.cycle is not None
        return self.attempt.cycle

    @property
    def _kept(self) -> KeptSteps:
        assert self.cycle.kept is not None  # ``ExplainInputs.decide`` asks for it
        return self.cycle.kept

    @property
    def _ended_early(self) -> bool:
        """Whether no step has a result."""
        is_ended = isinstance(self.attempt.error, PluginError | OverBudgetError)
        return is_ended or self.attempt.cycle is None

    @property
    def _has_candidates(self) -> bool:
        return not self._ended_early and not isinstance(self.attempt.error, FitError)

    @cached_property
    def placement(self) -> dict[str, int] | None:
        """Replicas by cluster; None if the decision keeps what there is."""
        return None if self.decision.targets is None else by_name(self.decision.targets)

    @cached_property
    def filter(self) -> Refusals:
        """The answers of the filters about all clusters."""
        return Refusals(self.attempt, self.inputs, () if self._ended_early else self.cycle.snapshot)

    @cached_property
    def score(self) -> Mapping[str, tuple[trace_model.ScoreCell, ...]]:
        """The scores by cluster."""
        return trace_score(self.attempt, self._kept, self.inputs) if self._has_candidates else {}

    @cached_property
    def capacity(self) -> Mapping[str, trace_model.CapacityCell]:
        """The capacities by cluster."""
        if not self._has_candidates:
            return {}
        return trace_capacity(self.cycle, self.attempt, self._kept, self.inputs)

    def limit_of(self, cluster: str) -> dict[str, str]:
        """Return as evidence what limits the replicas on a cluster; empty if its capacity was not counted."""
        cell = self.capacity.get(cluster)
        if cell is None:
            return {}
        found = {"limitedBy": cell.limited_by, "free": cell.free, "requested": cell.requested}
        return found | {"boundedBy": cell.bounded_by}

    @cached_property
    def select(self) -> trace_model.SelectTrace | None:
        """The selection of clusters."""
        return trace_select(self.cycle, self.attempt, self._kept) if self._has_candidates else None

    @cached_property
    def divide(self) -> trace_model.DivideTrace | None:
        """The division of replicas."""
        if self.select is None or self.select.error:
            return None
        return trace_divide(self.cycle, self.attempt, self._kept)


def by_name(targets: Sequence[TargetCluster]) -> dict[str, int]:
    """Return replicas by cluster, in the order of names."""
    return {target.name: target.replicas for target in sorted(targets)}


class Situation(Struct, frozen=True, dict=True):
    """One binding with everything that an explanation needs; the decisions are made when they are first needed."""

    inputs: ExplainInputs
    given: Decision | None = None

    @property
    def binding(self) -> Binding:
        """The binding as it is now."""
        return self.inputs.binding

    @property
    def spec(self) -> BindingSpec:
        """What the binding asks for, and where it is."""
        return self.inputs.binding.spec

    @property
    def snapshot(self) -> Snapshot:
        """All clusters."""
        return self.inputs.snapshot

    @cached_property
    def now(self) -> Basis:
        """The decision on the binding as it is, whether or not anything asks for it."""
        return Basis(self.inputs, self.given or self.inputs.decide())

    @cached_property
    def first(self) -> Basis:
        """The decision as if the binding had never been scheduled."""
        return self._decided(as_new(self.binding), admits=False)

    @cached_property
    def rebalanced(self) -> Basis:
        """The decision after a WorkloadRebalancer."""
        return self._decided(rebalanced(self.binding))

    def _decided(self, binding: Binding, *, admits: bool = True) -> Basis:
        inputs = replace(self.inputs, binding=binding)
        return Basis(inputs, inputs.decide(admits=admits))

    @cached_property
    def shown(self) -> Basis:
        """The decision that explains the placement.

        For a binding that nothing asks to schedule, it is the first decision if that gives the placement which the
        binding has: it shows why the binding is there. Otherwise it is the decision on the binding as it is.
        """
        return self.first if self.is_shown_as_new else self.now

    @cached_property
    def is_shown_as_new(self) -> bool:
        """Whether ``shown`` is the first decision."""
        return not self.asks and bool(self.present) and self.first.placement == self.present

    @cached_property
    def returned_by(self) -> str:
        """The Reconsider plugin that proposes another decision about the binding, "" if none does."""
        try:
            proposed = self.inputs.framework.reconsider.propose(self.binding)
        except PluginError:
            return ""
        return "" if proposed is None else proposed.plugin.name

    @cached_property
    def stored(self) -> BindingState:
        """What is stored about the binding, and who decides."""
        view, facts = self.inputs.process, self.inputs.facts
        if view is not None and view.queue_state == "gated":
            gate = "" if self.gate.is_success else f"{self.gate.plugin}: {self.gate.message}"
            facts = replace(facts, gate=gate or f"a plugin of {view.process}")
        for event in self.inputs.events:
            message = str(event.get("message") or NOT_CHANGED)
            # The detector creates a binding a second time if its cache lacks it; then it finds the one that is here.
            if event.get("reason") == NOT_CHANGED and not message.endswith("already exists"):
                facts = replace(facts, detector=message)
        return state_of(self.binding, self.inputs.binding_manifest or {}, facts)

    @cached_property
    def present(self) -> dict[str, int]:
        """What the binding has, by cluster."""
        return by_name(self.spec.clusters)

    def is_on(self, placement: Mapping[str, int] | None, cluster: str) -> bool:
        """Return whether a cluster gets replicas by a placement; of a workload without any, whether it is there."""
        found = placement or {}
        return cluster in found and bool(found[cluster] or not self.spec.replicas)

    @cached_property
    def classification(self) -> Classification:
        """Whether anything asks for a decision; only with a placement."""
        return self.inputs.classify()

    @property
    def asks(self) -> bool:
        """Whether anything asks for a decision."""
        return self.classification.type is not ScheduleType.AVOID

    @cached_property
    def trigger(self) -> trace_model.TriggerTrace:
        """The rules that ask for a decision; only with a placement."""
        return trace_trigger(self.inputs)

    @property
    def placement_changed(self) -> bool:
        """Whether the placement differs from the applied one."""
        return self.trigger.rules[0].holds

    @property
    def is_decided(self) -> bool:
        """Whether the binding is scheduled by this scheduler at all."""
        return self.state not in _NOTHING_TO_DECIDE

    @property
    def is_foreseen(self) -> bool:
        """Whether it is known what the next decision writes: by which rules, and that no quota refuses it."""
        may_be_refused = self.inputs.quotas is None and self.stored.held_by is HeldBy.QUOTA
        return self.inputs.is_judged and not may_be_refused and self.over_quota is None

    @cached_property
    def over_quota(self) -> tuple[Excess, str] | None:
        """What a quota refuses of the next decision, also as a sentence; None if none does, or they were not read."""
        if not self.inputs.quotas or not (self.is_decided and self.asks):
            return None
        ledger, targets = Ledger(self.inputs.quotas), self.now.decision.targets
        namespace, spec = self.binding.key.namespace, self.spec
        found = None if targets is None else ledger.charge(namespace, usage(spec), usage(spec, targets))
        return None if found is None else (found, quota_refusal(found, ledger, namespace, spec))

    @cached_property
    def placement(self) -> dict[str, int]:
        """What the binding has after the next moment in which the scheduler can act."""
        if not self.is_decided or not self.asks or self.now.placement is None:
            return self.present
        return self.now.placement

    @cached_property
    def state(self) -> NextState:
        """What the next decision makes of the binding, or why there is none."""
        names = self.inputs.scheduler_names
        if self.binding.deleting:
            return NextState.BEING_DELETED
        if self.spec.placement is None:
            return NextState.NO_PLACEMENT
        if not is_claimed(self.binding):
            return NextState.NOT_CLAIMED
        if names is not None and self.spec.responsible_scheduler not in names:
            return NextState.OTHER_SCHEDULER
        if self.spec.scheduling_suspended:
            return NextState.SUSPENDED
        if self.asks and not self.gate.is_success:
            return NextState.GATED
        return self._decided_state()

    @cached_property
    def gate(self) -> Result:
        """The answer of the PreEnqueue plugins; an error of one is a result as well."""
        try:
            return self.inputs.framework.binding.run_pre_enqueue(self.binding, self.inputs.workload)
        except PluginError as problem:
            return Result.error(str(problem))

    def _decided_state(self) -> NextState:
        if self.asks and (error := self.now.decision.error) is not None:
            is_kept = isinstance(error, KeptError) or not isinstance(error, FitError)
            return NextState.STUCK if self.present and is_kept else NextState.NOT_PLACED
        kept = not self.asks or self.now.placement is None
        if self.present if kept else self.now.placement:
            return NextState.PLACED
        has_none = self.spec.is_workload and not self.spec.replicas
        return NextState.NO_REPLICAS if has_none else NextState.NOT_PLACED


def attempt_of(decision: Decision) -> TermAttempt | None:
    """Return the attempt that explains a decision, None if no attempt began: the one with its error, or its result."""
    error = decision.error.of if isinstance(decision.error, KeptError) else decision.error
    failed = [each for each in decision.attempts if each.error is not None and each.error is error]
    attempts, _ = deciding_attempts(decision)
    return next(iter((*failed, *reversed(attempts))), None)
