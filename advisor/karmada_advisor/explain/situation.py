"""What is known about one binding: its state, the decision that explains it, and the decisions it is compared with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from karmada_advisor.explain.inputs import ExplainInputs, rebalanced
from karmada_advisor.explain.model import NextState
from karmada_advisor.explain.trace_trigger import Triggered, trace_trigger
from karmada_advisor.explain.traces import Traces, attempt_of
from karmada_advisor.state.model import BindingState
from karmada_advisor.state.reading import state_of
from karmada_scheduler.api.binding import TargetCluster
from karmada_scheduler.core.classify import Classification, ScheduleType
from karmada_scheduler.core.decision import Decision
from karmada_scheduler.core.requeue_rules import is_claimed
from karmada_scheduler.dryrun.forecast import as_new
from karmada_scheduler.framework.diagnosis import FitError, KeptError, PluginError
from karmada_scheduler.framework.result import Result

_NOTHING_TO_DECIDE = (
    NextState.BEING_DELETED,
    NextState.NO_PLACEMENT,
    NextState.NOT_CLAIMED,
    NextState.OTHER_SCHEDULER,
    NextState.SUSPENDED,
    NextState.GATED,
)


@dataclass(frozen=True)
class Basis:
    """A decision, with the inputs that it read."""

    inputs: ExplainInputs
    decision: Decision

    @cached_property
    def traces(self) -> Traces | None:
        """The traces of the attempt that explains it; None if no attempt began."""
        attempt = attempt_of(self.decision)
        return None if attempt is None else Traces(attempt, self.decision, self.inputs)

    @cached_property
    def placement(self) -> dict[str, int] | None:
        """Replicas by cluster; None if the decision keeps what there is."""
        return None if self.decision.targets is None else by_name(self.decision.targets)


def by_name(targets: Sequence[TargetCluster]) -> dict[str, int]:
    """Return replicas by cluster, in the order of names."""
    return {target.name: target.replicas for target in sorted(targets)}


@dataclass(frozen=True)
class Situation:
    """One binding with everything that an explanation needs; the decisions are made when they are first needed."""

    inputs: ExplainInputs
    given: Decision | None = None

    @cached_property
    def now(self) -> Basis:
        """The decision on the binding as it is, whether or not anything asks for it."""
        return Basis(self.inputs, self.given or self.inputs.decide())

    @cached_property
    def first(self) -> Basis:
        """The decision as if the binding had never been scheduled."""
        inputs = self.inputs.with_binding(as_new(self.inputs.binding))
        return Basis(inputs, inputs.decide())

    @cached_property
    def rebalanced(self) -> Basis:
        """The decision after a WorkloadRebalancer."""
        inputs = self.inputs.with_binding(rebalanced(self.inputs.binding))
        return Basis(inputs, inputs.decide())

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
            proposed = self.inputs.framework.reconsider.propose(self.inputs.binding)
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
        return state_of(self.inputs.binding, self.inputs.binding_manifest or {}, facts)

    @cached_property
    def present(self) -> dict[str, int]:
        """What the binding has, by cluster."""
        return by_name(self.inputs.binding.spec.clusters)

    @cached_property
    def classification(self) -> Classification:
        """Whether anything asks for a decision; only with a placement."""
        return self.inputs.classify()

    @property
    def asks(self) -> bool:
        """Whether anything asks for a decision."""
        return self.classification.type is not ScheduleType.AVOID

    @cached_property
    def trigger(self) -> Triggered:
        """The rules that ask for a decision; only with a placement."""
        return trace_trigger(self.inputs)

    @property
    def is_decided(self) -> bool:
        """Whether the binding is scheduled by this scheduler at all."""
        return self.state not in _NOTHING_TO_DECIDE

    @cached_property
    def placement(self) -> dict[str, int]:
        """What the binding has after the next moment in which the scheduler can act."""
        if not self.is_decided or not self.asks or self.now.placement is None:
            return self.present
        return self.now.placement

    @cached_property
    def state(self) -> NextState:
        """What the next decision makes of the binding, or why there is none."""
        binding = self.inputs.binding
        names = self.inputs.scheduler_names
        if binding.deleting:
            return NextState.BEING_DELETED
        if binding.spec.placement is None:
            return NextState.NO_PLACEMENT
        if self.inputs.policies is not None and not is_claimed(binding):
            return NextState.NOT_CLAIMED
        if names is not None and binding.spec.responsible_scheduler not in names:
            return NextState.OTHER_SCHEDULER
        if binding.spec.scheduling_suspended:
            return NextState.SUSPENDED
        if self.asks and not self.gate.is_success:
            return NextState.GATED
        return self._decided_state()

    @cached_property
    def gate(self) -> Result:
        """The answer of the PreEnqueue plugins; an error of one is a result as well."""
        try:
            return self.inputs.framework.binding.run_pre_enqueue(self.inputs.binding, self.inputs.workload)
        except PluginError as problem:
            return Result.error(str(problem))

    def _decided_state(self) -> NextState:
        spec = self.inputs.binding.spec
        if self.asks and (error := self.now.decision.error) is not None:
            is_kept = isinstance(error, KeptError) or not isinstance(error, FitError)
            return NextState.STUCK if self.present and is_kept else NextState.NOT_PLACED
        placement = self.now.placement if self.asks else self.present
        if placement:
            return NextState.PLACED
        return NextState.NO_REPLICAS if spec.is_workload and not spec.replicas else NextState.NOT_PLACED
