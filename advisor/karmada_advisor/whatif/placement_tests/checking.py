"""What can be wrong with a file although its form is right: names that do not exist, policies that Karmada would refuse."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from karmada_advisor.claims.binding_spec import replicas_of
from karmada_advisor.claims.policy import read_policy, refusal
from karmada_advisor.claims.template import read_template
from karmada_advisor.fleet.files import check_types
from karmada_advisor.state.stored import part
from karmada_advisor.whatif.placement_tests import model
from karmada_advisor.whatif.placement_tests.included_manifests import IncludedManifests
from karmada_advisor.whatif.placement_tests.outcomes import NO_POLICY, NOT_CLAIMED
from karmada_advisor.whatif.placement_tests.scenario import make_change, names_of_policies, objects_of
from karmada_advisor.whatif.placement_tests.schema import OF_STEPS
from karmada_advisor.whatif.plan.change import Draft
from karmada_advisor.whatif.plan.objects import (
    ChangeError,
    Manifest,
    PlanObjects,
    UnversionedTemplateKey,
    named,
    unversioned,
)
from karmada_scheduler.api.manifest import ManifestError
from karmada_scheduler.api.names import nearest_hint
from karmada_scheduler.api.policy import PolicyKey

_NEEDS_NO_SIZE: Final = frozenset({"policy"})


def problems_of(file: model.PlacementTestFile, included: IncludedManifests) -> list[model.FileProblem]:
    """Return what is wrong with a file, in its order; nothing is decided."""
    found = list(_of_policies(file, included))
    if found:
        return found
    found += _of_workloads(file, included)
    if found:
        return found
    objects = objects_of(file)
    for case in file.cases:
        found += _Case(file, objects).problems(case)
    return found


def _of_policies(file: model.PlacementTestFile, included: IncludedManifests) -> Iterator[model.FileProblem]:
    for policy in file.policies:
        if (text := refused(policy, None)) is not None:
            field = text.partition(": ")[0].partition(" ")[0]
            shown = f"{' '.join(named(policy))}: Karmada would refuse it: {text}"
            yield included.problem_of(policy, field if field.startswith("spec") else "", shown)


def _of_workloads(file: model.PlacementTestFile, included: IncludedManifests) -> Iterator[model.FileProblem]:
    for template in file.workloads:
        try:
            replicas_of(read_template(template))
        except ManifestError as problem:
            yield included.problem_of(template, problem.path, f"{' '.join(named(template))}: {problem}")


def refused(policy: Manifest, before: Manifest | None) -> str | None:
    """Return why Karmada refuses a policy, None if it accepts it; ``before`` is its version until now."""
    try:
        check_types(policy)
        return refusal(read_policy(policy), None if before is None else read_policy(before)) or None
    except ManifestError as problem:
        return str(problem)


class _Case:
    """Makes the changes of one case without any decision, and looks at what it names."""

    def __init__(self, file: model.PlacementTestFile, objects: PlanObjects) -> None:
        self._file = file
        self._draft = Draft(objects)
        self._clusters = set(objects.clusters)
        self._workloads: dict[str, dict[UnversionedTemplateKey, Any]] = {}

    def _problem(self, place: model.FilePlace, text: str) -> model.FileProblem:
        return model.FileProblem(self._file.path, *place, text)

    def problems(self, case: model.PlacementCase) -> Iterator[model.FileProblem]:
        """Yield what is wrong with a case."""
        for change in case.given:
            if change.word == "rebalance":
                yield self._problem(change.place, "rebalance needs something that is placed; use it in then")
                continue
            yield from self._made(change, None)
        for expectation in case.expect:
            yield from self._of_expectation(expectation, in_step=False)
        for step in case.then:
            before = dict(self._draft.after.policies or {})
            for change in step.changes:
                yield from self._made(change, before)
            for expectation in step.expect:
                yield from self._of_expectation(expectation, in_step=True)

    def _made(
        self, change: model.ScenarioChange, before: Mapping[PolicyKey, Manifest] | None
    ) -> Iterator[model.FileProblem]:
        policies = dict(self._draft.after.policies or {})
        try:
            make_change(self._draft, change)
        except (ChangeError, ManifestError) as problem:
            yield self._problem(change.place, str(problem))
            return
        self._clusters.update(self._draft.after.clusters)
        for key, policy in (self._draft.after.policies or {}).items():
            if policy is not policies.get(key):
                text = refused(policy, None if before is None else before.get(key))
                if text is not None:
                    shown = f"{' '.join(named(policy))}: Karmada would refuse it: {text}"
                    yield self._problem(change.place, shown)

    def _of_expectation(
        self, expectation: model.Expectation, *, in_step: bool
    ) -> Iterator[model.FileProblem]:
        name = expectation.workload
        found = self._draft.workloads(name)
        if not found:
            found = self._workloads.get(name, {})  # it was deleted
        if not found:
            text = f"{name}: no workload has this name" + nearest_hint(name, self._draft.workload_names())
            yield self._problem(expectation.place, text)
            return
        if len(found) > 1:
            names = ", ".join(sorted(map(str, found)))
            yield self._problem(expectation.place, f"{name} is ambiguous: {names}; write NS/KIND/NAME")
            return
        self._workloads[name] = found
        key = next(iter(found))
        if not _NEEDS_NO_SIZE.issuperset(expectation.keys) and self._needs_size(key, expectation):
            yield self._problem(
                expectation.place,
                f"Karmada reads the replicas of {key} with an interpreter, which is not here; add to this file: "
                f"sizes: {{{name}: {{replicas: N, cpu: 500m}}}}",
            )
        for word, wanted in expectation.keys.items():
            if word in OF_STEPS and not in_step:
                text = f"{word} compares with a {OF_STEPS[word]} before; use it in then"
            elif word == "clusters":
                text = self._unknown_cluster(key, wanted.value)
            elif word == "policy":
                text = self._unknown_policy(wanted.value)
            else:
                text = ""
            if text:
                yield self._problem(wanted.place, text)

    def _needs_size(self, key: UnversionedTemplateKey, expectation: model.Expectation) -> bool:
        """Return whether the replicas of a workload are not known."""
        is_unclaimed = expectation.keys.get("notPlaced")
        if is_unclaimed is not None and is_unclaimed.value == NOT_CLAIMED:
            return False
        template = self._draft.after.templates.get(key)
        if template is None or any(unversioned(size) == key for size in self._file.sizes):
            return False
        read = replicas_of(read_template(template))
        return not read.known or (not read.replicas and _has_replicas(template) and not _is_native(template))

    # --- values ---

    def _unknown_cluster(self, key: UnversionedTemplateKey, wanted: Any) -> str:
        """Return which cluster does not exist, or that the workload has no replicas; "" if all is well."""
        for name in wanted:
            if name not in self._clusters:
                return f"clusters: the fleet has no cluster {name}" + nearest_hint(name, self._clusters)
        if isinstance(wanted, Mapping) and not self._may_have_replicas(key):
            return f"{_short(key)} has no replicas; write clusters: [{', '.join(wanted)}]"
        return ""

    def _may_have_replicas(self, key: UnversionedTemplateKey) -> bool:
        if any(unversioned(size) == key for size in self._file.sizes):
            return True
        template = self._draft.after.templates.get(key)
        return template is None or _is_native(template) or _has_replicas(template)

    def _unknown_policy(self, wanted: str) -> str:
        """Return that a policy does not exist; "" if it does."""
        known = names_of_policies(self._draft.after)
        if wanted == NO_POLICY or wanted in known:
            return ""
        return f"policy: there is no {wanted}" + nearest_hint(wanted, known)


def _is_native(template: Manifest) -> bool:
    """Return whether Karmada reads the replicas of a kind itself."""
    empty = {**template, "spec": {}}
    read = replicas_of(read_template(empty))
    return read.known and read.replicas > 0


def _has_replicas(template: Manifest) -> bool:
    return "replicas" in part(template, "spec")


def _short(key: UnversionedTemplateKey) -> str:
    return f"{key.namespace}/{key.name}" if key.namespace else key.name
