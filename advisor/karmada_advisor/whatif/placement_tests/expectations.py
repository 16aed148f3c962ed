"""Whether expectations hold, and what expressions read about a placed workload."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

from karmada_advisor.claims.template import read_template
from karmada_advisor.explain.explain import explain
from karmada_advisor.explain.inputs import ExplainInputs
from karmada_advisor.explain.model import Explanation
from karmada_advisor.explain.unclaimed import explain_unclaimed
from karmada_advisor.state.reading import Facts
from karmada_advisor.state.stored import condition_of, mappings, part, value_at
from karmada_advisor.whatif.placement_tests import model
from karmada_advisor.whatif.placement_tests.cel import expressions
from karmada_advisor.whatif.placement_tests.scenario import CaseState
from karmada_advisor.whatif.plan.decide import PlanSide
from karmada_advisor.whatif.plan.effects import Comparison, out_of_service
from karmada_advisor.whatif.plan.model import BindingPlan, Effect, PlanHeldBy
from karmada_advisor.whatif.plan.objects import Manifest, UnversionedTemplateKey, resource_key
from karmada_advisor.whatif.plan.result import binding_plan
from karmada_advisor.whatif.survive.classify import classified, present_on
from karmada_advisor.whatif.survive.decisions import LossDecisions
from karmada_advisor.whatif.survive.domains import KINDS, LABEL, failure_domains
from karmada_advisor.whatif.survive.loss import Loss, LossInputs
from karmada_advisor.whatif.survive.loss_decision import SharedDecisions
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
            for name, each in bindings.items()
            if resource_key(each) == key
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
        return {each.name: each.replicas for each in sorted(targets)}

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
        return [each.code for each in self.explanation.causes]


def _policies(state: CaseState) -> list[Manifest]:
    return list((state.objects.policies or {}).values())


PLACED_ONLY: Final = frozenset({"clusters", "replicas", "stops", "that"})
"""Expectations that say nothing about a workload without clusters, so that they do not hold for one."""


def _holds(key: str, expected: Any, got: Any) -> bool:
    match key:
        case "clusters":
            return got == expected if isinstance(expected, Mapping) else [*got] == sorted(expected)
        case "notPlaced":
            return got is not False if expected is True else bool(got == expected)
        case "causes":
            return {*expected} <= {*got}
        case "warnings":
            if expected == NO_POLICY:
                return not got
            return all(any(text in each for each in got) for text in expected)
        case _:
            return bool(got == expected)


def failures(
    expectation: model.Expectation,
    found: Sequence[PlacedWorkload],
    step: model.CaseStep | None,
    why_different: str,
) -> list[model.ExpectationFailure]:
    """Return what does not hold.

    Args:
        expectation: About one workload.
        found: The workload, in each state if the result depends on uids.
        step: After which it is expected; None for the first decisions.
        why_different: Why there are several results.
    """
    made = list(_Check(expectation, found, "" if step is None else str(step), why_different).failures())
    return [replace(made[0], explanation=found[0].explanation), *made[1:]] if made else []


class _Check(Struct, frozen=True):
    expectation: model.Expectation
    found: Sequence[PlacedWorkload]
    step: str
    why_different: str

    def failures(self) -> Iterator[model.ExpectationFailure]:
        """Yield what does not hold."""
        missing = next((each for each in self.found if not each.placed), None)
        reported = False
        for key, wanted in self.expectation.keys.items():
            if missing is not None and key in PLACED_ONLY:
                if not reported:
                    texts = [each.value for each in wanted.value] if key == "that" else wanted.value
                    text = f"it is not placed: {missing.why_not_placed}"
                    yield self._failure(key, wanted._replace(value=texts), None, text)
                reported = True
                continue
            if key == "that":
                yield from self._expressions(wanted)
                continue
            got = [getattr(each, "not_placed" if key == "notPlaced" else key) for each in self.found]
            if not all(_holds(key, wanted.value, each) for each in got):
                yield self._difference(key, wanted, got)

    def _expressions(self, wanted: model.ExpectedValue) -> Iterator[model.ExpectationFailure]:
        evaluator = expressions()
        data = [WorkloadData(each) for each in self.found]
        for index, each in enumerate(wanted.value):
            results = [evaluator.evaluate(each.value, every) for every in data]
            failing = next((result for result in results if not result.holds), None)
            if failing is None:
                continue
            differ = any(result.holds for result in results)
            text = "; ".join([self.why_different if differ else failing.text or "false", *failing.parts])
            key = "that" if wanted.place == each.place else f"that[{index}]"
            yield self._failure(key, each, None, text)

    def _difference(
        self, key: str, wanted: model.ExpectedValue, got: Sequence[Any]
    ) -> model.ExpectationFailure:
        differ = any(each != got[0] for each in got)
        text = self.why_different if differ else ""
        if key == "notPlaced" and not text and got[0] is not False and got[0] is not True:
            text = self.found[0].why_not_placed
        if key == "placed" and wanted.value and not text:
            text = next(each for each in self.found if not each.placed).why_not_placed
        failure = self._failure(key, wanted, list(got) if differ else got[0], text)
        if key != "clusters":
            return failure
        different = [each for index, each in enumerate(got) if each not in got[:index]]
        return replace(failure, table=tuple(_rows(wanted.value, different)))

    def _failure(
        self, key: str, wanted: model.ExpectedValue, got: Any, text: str
    ) -> model.ExpectationFailure:
        workload = self.expectation.workload
        return model.ExpectationFailure(workload, self.step, key, *wanted.place, wanted.value, got, text)


def _rows(
    expected: Mapping[str, int] | Sequence[str], got: Sequence[Mapping[str, int]]
) -> Iterator[model.ClusterDifference]:
    wanted = expected if isinstance(expected, Mapping) else dict.fromkeys(expected, 0)
    for name in sorted({*wanted, *(name for each in got for name in each)}):
        yield model.ClusterDifference(name, wanted.get(name), tuple(each.get(name) for each in got))


FIELDS: Final = ("region", "provider", "zone", "cluster")
"""By what ``share`` counts."""


class WorkloadData:
    """What expressions read about one workload after a step; a method is called if an expression names it."""

    def __init__(self, found: PlacedWorkload) -> None:
        """Read about this workload."""
        self._found = found

    @property
    def workload(self) -> Manifest:
        """The template."""
        return self._found.template

    @cached_property
    def placed(self) -> list[dict[str, Any]]:
        """Its clusters."""
        return self._clusters_of(self._found.binding)

    @cached_property
    def before(self) -> list[dict[str, Any]]:
        """Its clusters before the step."""
        return self._clusters_of(self._found.before)

    @cached_property
    def clusters(self) -> list[dict[str, Any]]:
        """All clusters."""
        replicas, every = self._found.clusters, self._found.state.objects.clusters
        return [_row(name, each, replicas.get(name, 0)) for name, each in sorted(every.items())]

    def _clusters_of(self, binding: Binding | None) -> list[dict[str, Any]]:
        targets = () if binding is None else binding.spec.clusters
        clusters = {**self._found.state.scenario.objects.clusters, **self._found.state.objects.clusters}
        return [_row(each.name, clusters.get(each.name, {}), each.replicas) for each in sorted(targets)]

    @property
    def result(self) -> Mapping[str, Any]:
        """What the step did."""
        found = self._found
        return {
            "isPlaced": found.placed,
            "reason": "" if found.placed else found.reason,
            "message": "" if found.placed else found.why_not_placed,
            "type": found.type,
            "effect": found.effect,
            "policy": found.policy,
            "wanted": 0 if found.binding is None else found.binding.spec.replicas,
            "stops": found.stops,
            "starts": 0 if found.plan is None else found.plan.starts,
            "causes": found.causes,
        }

    def replicas(self, cluster: str) -> int:
        """Return the replicas on a cluster; ValueError if there is no such cluster."""
        found, state = self._found.clusters, self._found.state
        if cluster not in {*found, *state.objects.clusters, *state.scenario.objects.clusters}:
            raise ValueError(f"the fleet has no cluster {cluster}")
        return found.get(cluster, 0)

    def values(self, field: str) -> list[str]:
        """Return the different values of a field where it is placed, in order."""
        return sorted({value for row in self.placed for value in _values(row, field)})

    def share(self, field: str, value: str) -> float:
        """Return the share of the replicas on clusters with this value; ValueError for another field."""
        if field not in FIELDS:
            raise ValueError(f"share is by one of {', '.join(FIELDS)}, got {field}")
        rows = self.placed
        total = sum(row["replicas"] for row in rows)
        return sum(row["replicas"] for row in rows if value in _values(row, field)) / total if total else 0.0

    def survives(self, what: str) -> bool:
        """Return whether some of it runs after the loss of any one cluster, zone, region, provider, or value of a label.

        What is assigned to a cluster that is not ready does not run, and on a cordoned one nothing starts.
        """
        state, binding = self._found.state, self._found.binding
        rules = state.scenario.rules
        if rules.is_coupled:
            raise ValueError(f"survives('{what}') is not known where decisions depend on other bindings")
        if what not in KINDS and not (what.startswith(LABEL) and what != LABEL):
            raise ValueError(f"survives is of one of {', '.join(KINDS)} or {LABEL}KEY, got {what}")
        domains = failure_domains(state.known.clusters.values(), [what]).domains
        if not domains:
            raise ValueError(f"survives('{what}'): no cluster has one")
        if binding is None:
            return False
        clusters, bindings = [*state.known.clusters.values()], [*state.known.bindings.values()]
        side = PlanSide(rules, Snapshot.of(clusters), bindings)
        closed = {each.name: found for each in clusters if (found := out_of_service(each))}
        had = self._found.before or replace(binding, spec=replace(binding.spec, clusters=()))
        present = present_on(had, state.objects.bindings[binding.key], state.objects.clusters, closed)
        inputs = LossInputs(clusters, bindings, rules, domains, present={binding.key: present})
        decisions = LossDecisions(side, binding, inputs, SharedDecisions())
        return not any(
            classified(decisions.binding.spec, lost, decisions.after(lost, Loss.GONE)).dark
            for lost in (frozenset(each.clusters) for each in domains)
        )


def _values(row: Mapping[str, Any], field: str) -> list[str]:
    if field == "zone":
        return list(row["zones"])
    value = row["name" if field == "cluster" else field]
    return [value] if value else []


def _row(name: str, cluster: Manifest, replicas: int) -> dict[str, Any]:
    spec = part(cluster, "spec")
    zones = spec.get("zones") or ([spec["zone"]] if spec.get("zone") else [])
    conditions = mappings(value_at(cluster, "status", "conditions"))
    no_taint = {"key": "", "value": "", "effect": ""}
    return {
        "name": name,
        "region": spec.get("region") or "",
        "provider": spec.get("provider") or "",
        "zones": list(zones),
        "labels": dict(part(cluster, "metadata", "labels")),
        "taints": [{**no_taint, **each} for each in mappings(value_at(cluster, "spec", "taints"))],
        "ready": any((each.get("type"), each.get("status")) == ("Ready", "True") for each in conditions),
        "replicas": replicas,
    }
