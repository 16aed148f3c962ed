"""What became of a workload in the last step."""

from __future__ import annotations

from functools import cached_property
from typing import Final

from karmada_advisor.claims.template import read_template
from karmada_advisor.explain.explain import explain
from karmada_advisor.explain.inputs import ExplainInputs
from karmada_advisor.explain.model import Explanation
from karmada_advisor.explain.unclaimed import explain_unclaimed
from karmada_advisor.state.reading import Facts
from karmada_advisor.state.stored import condition_of, part
from karmada_advisor.whatif.placement_tests.scenario import CaseState
from karmada_advisor.whatif.plan.effects import Comparison
from karmada_advisor.whatif.plan.model import BindingPlan, Effect, PlanHeldBy
from karmada_advisor.whatif.plan.objects import Manifest, UnversionedTemplateKey, resource_key
from karmada_advisor.whatif.plan.result import binding_plan
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.core.classify import ScheduleType
from karmada_scheduler.framework.snapshot import Snapshot
from karmada_scheduler.structs import Struct, replace

NOT_CLAIMED: Final = "NotClaimed"


OTHER_SCHEDULER: Final = "OtherScheduler"


NO_POLICY: Final = "none"


class PlacedWorkload(Struct, frozen=True, dict=True):
    """One workload after a step.

    Attributes:
        state: Its state.
        key: Its template.
        binding_key: Its binding; None if no policy claims it.
    """

    state: CaseState
    key: UnversionedTemplateKey
    binding_key: BindingKey | None

    @classmethod
    def of(cls, state: CaseState, key: UnversionedTemplateKey) -> PlacedWorkload:
        """Return a workload as it is now."""
        names = (
            name
            for bindings in (state.objects.bindings, state.bindings_before)
            for name, binding in bindings.items()
            if resource_key(binding) == key
        )
        return cls(state, key, next(names, None))

    @property
    def binding(self) -> Binding | None:
        """The binding as it is stored now."""
        return None if self.binding_key is None else self.state.known.bindings.get(self.binding_key)

    @property
    def before(self) -> Binding | None:
        """The binding before the step."""
        return None if self.binding_key is None else self.state.before.get(self.binding_key)

    @property
    def template(self) -> Manifest:
        """The template; only its metadata if it was not read."""
        state, metadata = self.state, {"namespace": self.key.namespace, "name": self.key.name}
        found = state.objects.templates.get(self.key) or state.scenario.objects.templates.get(self.key)
        return found or {"kind": self.key.kind, "metadata": metadata}

    @property
    def comparison(self) -> Comparison | None:
        """The binding on both sides of the step."""
        assert self.state.what_if is not None
        return None if self.binding_key is None else self.state.what_if.comparisons.get(self.binding_key)

    @cached_property
    def plan(self) -> BindingPlan | None:
        """What the step did to it."""
        if self.comparison is None or self.binding_key is None or self.state.what_if is None:
            return None
        return binding_plan(self.binding_key, self.comparison, self.state.what_if.derived)

    @cached_property
    def explanation(self) -> Explanation:
        """How it was decided in the last step; how it is now, if nothing asked for a decision."""
        state, comparison = self.state, self.comparison
        source = "the files of the test"
        if comparison is None or comparison.new is None or self.binding_key is None:
            return explain_unclaimed(read_template(self.template), _policies(state), source=source)
        asked = comparison.new if comparison.decided is not None else self.binding or comparison.new
        rules = state.scenario.rules
        snapshot = Snapshot.of(state.known.clusters.values())
        rules.objects.show(snapshot, [*state.known.bindings.values(), asked])
        schedulers, now = state.scenario.schedulers, state.scenario.clock.at
        inputs = replace(
            ExplainInputs.of(rules, asked, snapshot),
            binding_manifest=state.objects.bindings.get(self.binding_key),
            facts=Facts(schedulers, state.objects.clusters.get, _policies(state), now=now),
            template_labels=dict(part(self.template, "metadata", "labels")),
        )
        return explain(inputs, source=source)

    @property
    def placed(self) -> bool:
        """Whether it has clusters."""
        return self.binding is not None and bool(self.binding.spec.clusters)

    @property
    def clusters(self) -> dict[str, int]:
        """Its replicas by cluster, in the order of names."""
        targets = self.binding.spec.clusters if self.binding is not None else ()
        return {target.name: target.replicas for target in sorted(targets)}

    @property
    def replicas(self) -> int:
        """The sum of its replicas."""
        return sum(self.clusters.values())

    @property
    def not_placed(self) -> str | bool:
        """False if it is placed; why it is not, True if nothing says so."""
        return False if self.placed else self.reason or True

    @property
    def reason(self) -> str:
        """Why it is not placed; "" if nothing says so."""
        binding, comparison = self.binding, self.comparison
        if binding is None or comparison is None:
            return NOT_CLAIMED
        if comparison.hold is not None:
            return OTHER_SCHEDULER if comparison.hold.by is PlanHeldBy.SCHEDULER else comparison.hold.reason
        if not self.state.scenario.rules.may_decide(binding):
            return OTHER_SCHEDULER
        if comparison.decided is not None and comparison.decided.error:
            return comparison.decided.reason
        condition = condition_of(binding)
        return condition.reason if condition.status == "False" else ""

    @property
    def why_not_placed(self) -> str:
        """The reason and the message for people."""
        reason, comparison = self.reason, self.comparison
        if reason == NOT_CLAIMED:
            return f"{reason}: {self.explanation.causes[0].text}"
        if comparison is not None and comparison.hold is not None:
            return f"{reason}: {comparison.hold.text}"
        if not reason:
            return "nothing asks for clusters"
        if comparison is not None and comparison.decided is not None and comparison.decided.error:
            return f"{reason}: {comparison.decided.error}"
        return f"{reason}: {condition_of(self.binding).message}" if self.binding is not None else reason

    @property
    def policy(self) -> str:
        """The policy that claims it, as ``KIND/[NS/]NAME``, or ``none``."""
        policy = self.plan.policy if self.plan is not None and self.binding is not None else None
        if policy is None:
            return NO_POLICY
        return "/".join(filter(None, (policy.kind, policy.namespace, policy.name)))

    @property
    def warnings(self) -> list[str]:
        """What ``explain`` warns of, and what ``plan`` would about the policy that claims it."""
        return [*self.explanation.warnings, *self.state.scenario.lints.get(self.policy, ())]

    @property
    def type(self) -> str:
        """Why it was decided about in the last step."""
        decided = self.comparison.decided if self.comparison is not None else None
        return ScheduleType.AVOID.value if decided is None else decided.type.value

    @property
    def effect(self) -> str:
        """What the last step did to it."""
        return Effect.UNCHANGED.value if self.plan is None else self.plan.effect.value

    @property
    def stops(self) -> int:
        """How many replicas stopped on a cluster in the last step."""
        return 0 if self.plan is None else self.plan.stops

    @property
    def causes(self) -> list[str]:
        """The codes of the causes that ``explain`` gives."""
        return [cause.code for cause in self.explanation.causes]


def _policies(state: CaseState) -> list[Manifest]:
    return list((state.objects.policies or {}).values())
