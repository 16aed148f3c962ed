"""The objects of a case after each step, decided by the rules of one scheduler."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property

from karmada_advisor.claims.template import TemplateKey
from karmada_advisor.explain.explain import explain
from karmada_advisor.explain.inputs import ExplainInputs
from karmada_advisor.explain.model import Explanation
from karmada_advisor.explain.policies import TemplateHead
from karmada_advisor.explain.unclaimed import explain_unclaimed
from karmada_advisor.placement_tests.changes import make_changes
from karmada_advisor.placement_tests.model import ScenarioChange, WorkloadSize
from karmada_advisor.placement_tests.scenario import START, Scenario
from karmada_advisor.placement_tests.uids import OddTemplates, with_uids
from karmada_advisor.plan.change import Draft
from karmada_advisor.plan.effects import Comparison
from karmada_advisor.plan.inputs import Known, PlanInputs, known_after
from karmada_advisor.plan.model import BindingPlan
from karmada_advisor.plan.objects import (
    Manifest,
    PlanObjects,
    UnversionedTemplateKey,
    part,
    resource_key,
    unversioned,
)
from karmada_advisor.plan.steps import PlannedStep, take_step
from karmada_advisor.plan.stored import with_id
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.framework.snapshot import Snapshot
from karmada_scheduler.structs import Struct, field, replace


class CaseState(Struct):
    """The objects of one case after each step.

    Attributes:
        scenario: What cases share.
        objects: As they are now.
        known: The same as values.
        sizes: Of workloads that only an interpreter can read; a scaled one has the new number.
        odd: The templates without a uid that have an odd one here.
        last: The last step; None before the first decision.
        before: The bindings before it.
        bindings_before: The same as manifests.
    """

    scenario: Scenario
    objects: PlanObjects
    known: Known
    sizes: dict[TemplateKey, WorkloadSize]
    odd: OddTemplates
    last: PlannedStep | None = None
    before: Mapping[BindingKey, Binding] = field(default_factory=dict)
    bindings_before: Mapping[BindingKey, Manifest] = field(default_factory=dict)

    @classmethod
    def begin(
        cls,
        scenario: Scenario,
        odd: OddTemplates,
        given: Sequence[ScenarioChange],
        names: Collection[str] | None,
    ) -> CaseState:
        """Return a state in which the first decisions are made.

        Args:
            scenario: What cases share.
            odd: The templates without a uid that get an odd one.
            given: Changes before the first decision.
            names: How the case names the workloads that it is about; None for all. Others may be left out.

        Raises:
            ChangeError: A change cannot be made.
        """
        base = scenario.with_uids(odd)
        scenario.clock.at = START
        draft = Draft(base)
        make_changes(draft, given)
        for each in given:
            if each.word == "at":
                scenario.clock.at = each.value
        after = with_uids(draft.after, odd)
        after.clusters = {
            name: each
            for name, each in after.clusters.items()
            if "deletionTimestamp" not in part(each, "metadata") or each is base.clusters.get(name)
        }
        after.policies = {key: with_id(each) for key, each in (after.policies or {}).items()}
        if names is not None and not scenario.rules.is_coupled:
            wanted = {key for name in names for key in draft.workloads(name)}
            after.templates = {key: each for key, each in after.templates.items() if key in wanted}
        start = PlanObjects(after.clusters, dict(base.bindings), after.policies)
        start.templates = {
            resource_key(each): base.templates[resource_key(each)]
            for each in base.bindings.values()
            if base.templates.get(resource_key(each)) is after.templates.get(resource_key(each))
            and resource_key(each) in base.templates
        }
        sizes = {key: WorkloadSize(*size) for key, size in scenario.detector.sizes.items()}
        known = known_after(scenario.known, scenario.objects, start)
        state = cls(scenario, start, known, sizes, odd)
        state._scaled(given)
        state._take(after)
        return state

    def step(self, changes: Sequence[ScenarioChange]) -> None:
        """Make changes, let Karmada and the scheduler act, and write what they decide.

        Raises:
            ChangeError: A change cannot be made, or Karmada would refuse it.
        """
        draft = Draft(self.objects)
        make_changes(draft, changes)
        self.scenario.clock.step(changes)
        self._scaled(changes)
        after = with_uids(draft.after, self.odd)
        after.policies = {key: with_id(each) for key, each in (after.policies or {}).items()}
        self._take(after)

    def _scaled(self, changes: Iterable[ScenarioChange]) -> None:
        """Let scaled workloads have their new size."""
        draft = Draft(PlanObjects(templates={**self.objects.templates, **self.scenario.objects.templates}))
        for each in changes:
            if each.word != "scale":
                continue
            for key in draft.workloads(each.subject):
                for sized, size in self.sizes.items():
                    if unversioned(sized) == key:
                        self.sizes[sized] = size._replace(replicas=each.value)

    def _take(self, after: PlanObjects) -> None:
        scenario = self.scenario
        draft = Draft(self.objects)
        draft.after = after
        scenario.show_workloads(after.templates.values())
        self.before, self.bindings_before = self.known.bindings, self.objects.bindings
        self.last = take_step(
            PlanInputs(
                self.objects,
                draft,
                scenario.rules,
                scenario.rules,
                evicts=scenario.evicts,
                with_drift=False,
                schedulers=scenario.schedulers,
                detector=replace(scenario.detector, sizes=dict(self.sizes)),
                known=self.known,
            ),
            scenario.clock.at,
        )
        self.objects, self.known = self.last.objects, self.last.known

    def of(self, key: UnversionedTemplateKey) -> PlacedWorkload:
        """Return a workload as it is now."""
        assert self.last is not None
        found = next(
            (
                name
                for bindings in (self.objects.bindings, self.bindings_before)
                for name, each in bindings.items()
                if resource_key(each) == key
            ),
            None,
        )
        return PlacedWorkload(self, key, found)


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
        found = self.state.objects.templates.get(self.key) or self.state.scenario.objects.templates.get(
            self.key
        )
        return found or {
            "kind": self.key.kind,
            "metadata": {"namespace": self.key.namespace, "name": self.key.name},
        }

    @property
    def comparison(self) -> Comparison | None:
        """The binding on both sides of the step."""
        assert self.state.last is not None
        return None if self.binding_key is None else self.state.last.comparisons.get(self.binding_key)

    @property
    def plan(self) -> BindingPlan | None:
        """What the step did to it."""
        assert self.state.last is not None
        return None if self.binding_key is None else self.state.last.plans.get(self.binding_key)

    @cached_property
    def explanation(self) -> Explanation:
        """How it was decided in the last step; how it is now, if nothing asked for a decision."""
        state, comparison = self.state, self.comparison
        source = "the files of the test"
        if comparison is None or comparison.new is None or self.binding_key is None:
            return explain_unclaimed(TemplateHead.of(self.template), _policies(state), source=source)
        asked = comparison.new if comparison.decided is not None else self.binding or comparison.new
        rules = state.scenario.rules
        snapshot = Snapshot.of(state.known.clusters.values())
        rules.objects.show(snapshot, [*state.known.bindings.values(), asked])
        inputs = replace(
            ExplainInputs.of(rules, asked, snapshot),
            binding_manifest=state.objects.bindings.get(self.binding_key),
            cluster_manifest=state.objects.clusters.get,
            policies=_policies(state),
            template_labels=dict(part(self.template, "metadata", "labels")),
            now=state.scenario.clock.at,
            schedulers=state.scenario.schedulers,
        )
        return explain(inputs, source=source)


def _policies(state: CaseState) -> list[Manifest]:
    return list((state.objects.policies or {}).values())
