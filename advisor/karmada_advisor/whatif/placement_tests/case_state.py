"""The objects of a case after each step, decided by the rules of one scheduler.

The words of ``given`` and ``then`` are edits of ``plan.change.Draft``, as the flags of ``plan`` are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from karmada_advisor.claims.model import Replicas
from karmada_advisor.claims.template import TemplateKey
from karmada_advisor.state.stored import part
from karmada_advisor.whatif.placement_tests.model import ScenarioChange
from karmada_advisor.whatif.placement_tests.scenario import START, OddTemplates, Scenario, with_uids
from karmada_advisor.whatif.plan.change import Draft
from karmada_advisor.whatif.plan.inputs import Known, PlanInputs, known_after
from karmada_advisor.whatif.plan.objects import (
    ChangeError,
    Manifest,
    PlanObjects,
    object_name,
    resource_key,
    unversioned,
    with_id,
)
from karmada_advisor.whatif.plan.what_if import WhatIf, WrittenChange
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.structs import Struct, field, replace


class CaseState(Struct):
    """The objects of one case after each step.

    Attributes:
        scenario: What cases share.
        objects: As they are now.
        known: The same as values.
        sizes: Of workloads that only an interpreter can read; a scaled one has the new number.
        odd: The templates without a uid that have an odd one here.
        last: What the last step has written; None before the first decision.
        what_if: What the last step does.
        before: The bindings before it.
        bindings_before: The same as manifests.
    """

    scenario: Scenario
    objects: PlanObjects
    known: Known
    sizes: dict[TemplateKey, Replicas]
    odd: OddTemplates
    last: WrittenChange | None = None
    what_if: WhatIf | None = None
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
        bound = dict.fromkeys(map(resource_key, base.bindings.values()))
        stored = {key: base.templates[key] for key in bound if key in base.templates}
        start.templates = {key: each for key, each in stored.items() if after.templates.get(key) is each}
        sizes = dict(scenario.detector.sizes)
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
        self.what_if = WhatIf(
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
            remembers=True,
        )
        self.last = self.what_if.step(scenario.clock.at)
        self.objects, self.known = self.last.objects, self.last.known


def make_change(draft: Draft, change: ScenarioChange) -> None:
    """Make one change.

    Raises:
        ChangeError: It cannot be made.
    """
    word, subject, value = change.word, change.subject, change.value
    try:
        match word:
            case "at":  # it sets the clock of the state
                return
            case "apply":
                draft.put(value)
            case "edit":
                draft.edit(*object_name(subject, word), value)
            case "delete":
                draft.delete(*object_name(subject, word))
            case "ready":
                draft.ready(subject, is_ready=value)
            case "without" | "cordon" | "uncordon" | "rebalance":
                getattr(draft, word)(subject)
            case _:  # what has a value besides the name of its object
                getattr(draft, word)(subject, value)
    except ChangeError as problem:
        raise ChangeError(str(problem).removeprefix("--").replace(" (--", " (")) from problem


def make_changes(draft: Draft, changes: Iterable[ScenarioChange]) -> None:
    """Make changes in their order.

    Raises:
        ChangeError: One cannot be made.
    """
    for each in changes:
        make_change(draft, each)
