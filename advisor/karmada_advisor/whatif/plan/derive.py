"""The bindings after a change of policies and templates: what Karmada's detector makes of them (``claims``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from karmada_advisor.claims.claim import claim
from karmada_advisor.claims.model import (
    DEFAULTS,
    Claims,
    DetectorOptions,
    Event,
    PolicyDeleted,
    PolicyWritten,
    TemplateClaim,
    TemplateWritten,
    Waits,
)
from karmada_advisor.claims.template import UNCLAIMED, Template, read_template, template_of
from karmada_advisor.explain.amounts import counted
from karmada_advisor.explain.explain import policy_of
from karmada_advisor.explain.model import PolicyRef
from karmada_advisor.state.stored import mappings, part, policy_key, text_of, value_at
from karmada_advisor.whatif.plan.model import ClaimChange
from karmada_advisor.whatif.plan.objects import ChangeError, Manifest, PlanObjects, resource_key
from karmada_scheduler.api.binding import DEFAULT_SCHEDULER_NAME, BindingKey
from karmada_scheduler.api.manifest import ManifestError
from karmada_scheduler.api.policy import ID_LABELS, PolicyKey
from karmada_scheduler.structs import Struct, field, replace

_MOST_ORDERED: Final = 1_000
"""Templates up to which the plan is checked for results that depend on the order of the changes."""

_SHOWN: Final = 3


class Derived(Struct):
    """What follows from a change of policies and templates.

    Attributes:
        claims: By binding, whether its policy changes; bindings that keep theirs are left out.
        deferred: The bindings that change with their template only.
        policies: The policy of each binding afterwards, if it has one and that is known.
        policies_before: The same before the change.
        concerned: The bindings whose policy or template changes.
        claiming: The policies that claim something afterwards.
        unjudged: The bindings whose replicas afterwards are not known.
        notes: For people.
    """

    claims: dict[BindingKey, ClaimChange] = field(default_factory=dict)
    deferred: set[BindingKey] = field(default_factory=set)
    policies: dict[BindingKey, PolicyRef] = field(default_factory=dict)
    policies_before: dict[BindingKey, PolicyRef] = field(default_factory=dict)
    concerned: set[BindingKey] = field(default_factory=set)
    claiming: set[PolicyRef] = field(default_factory=set)
    unjudged: set[BindingKey] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)


def derive(before: PlanObjects, after: PlanObjects, options: DetectorOptions = DEFAULTS) -> Derived:
    """Change the bindings in ``after`` as its policies and templates require.

    Bindings of policies that do not change stay as they are, even if they differ from the policy.

    Raises:
        ChangeError: Karmada would refuse a policy, or an object cannot be read.
    """
    derived = Derived()
    for key, manifest in after.bindings.items():
        if (named := _annotated(manifest)) is not None:
            derived.policies[key] = named
        old = before.bindings.get(key)
        if old is not None and old is not manifest and _is_resized(old, manifest, options):
            derived.unjudged.add(key)
    derived.policies_before.update(derived.policies)
    events = list(_events(before, after))
    if events:
        try:
            _apply(before, after, events, options, derived)
        except ManifestError as problem:
            raise ChangeError(str(problem)) from problem
    derived.claiming.update(derived.policies.values())
    return derived


def _is_resized(old: Manifest, new: Manifest, options: DetectorOptions) -> bool:
    """Return whether a change sets replicas that only a customized interpreter knows."""
    resource = part(new, "spec", "resource")
    is_customized = (resource.get("apiVersion"), resource.get("kind")) in options.customized
    return is_customized and part(old, "spec").get("replicas") != part(new, "spec").get("replicas")


def _events(before: PlanObjects, after: PlanObjects) -> Iterator[Event]:
    """Yield the changes of policies and templates, deletions of policies last.

    Policies with another scheduler are deleted, all of them, and then created: Karmada refuses to change their name.
    """
    old, new = before.policies or {}, after.policies or {}
    yield from (PolicyDeleted(policy) for policy in _with_other_scheduler(old, new))
    for key, manifest in after.templates.items():
        if before.templates.get(key) is not manifest:
            yield TemplateWritten(read_template(manifest))
    for policy, manifest in new.items():
        if old.get(policy) is not manifest:
            yield PolicyWritten(manifest)
    yield from (PolicyDeleted(policy) for policy in old if policy not in new)


def _with_other_scheduler(
    old: Mapping[PolicyKey, Manifest], new: Mapping[PolicyKey, Manifest]
) -> list[PolicyKey]:
    def scheduler(policy: Manifest) -> str:
        return text_of(policy, "spec", "schedulerName") or DEFAULT_SCHEDULER_NAME

    return [key for key in old.keys() & new.keys() if scheduler(old[key]) != scheduler(new[key])]


def _apply(
    before: PlanObjects, after: PlanObjects, events: list[Event], options: DetectorOptions, derived: Derived
) -> None:
    templates = list(_templates(before, after, events))
    names = {template.key.binding for template in templates}
    found = claim(
        templates,
        [*(before.policies or {}).values(), *_unread_policies(before, after)],
        [manifest for key, manifest in after.bindings.items() if key in names],
        events=events,
        options=options,
        other_orders=len(templates) <= _MOST_ORDERED,
    )
    for refusal in found.refusals:
        raise ChangeError(f"{refusal.policy.kind} {refusal.policy}: Karmada would refuse it: {refusal.text}")
    changed = changed_policies(before, after)
    derived.claiming |= {
        PolicyRef(*outcome.policy_after)
        for outcome in found.templates.values()
        if outcome.policy_after is not None
    }
    written = {event.template.key for event in events if isinstance(event, TemplateWritten)}
    for key, outcome in found.by_binding.items():
        _take(key, outcome, after, changed, derived)
        if not outcome.replicas_known and (outcome.binding_before is None or outcome.template in written):
            derived.unjudged.add(key)
    _notes(found, events, derived)
    if moved := _with_other_scheduler(before.policies or {}, after.policies or {}):
        derived.notes.append(
            f"{counted(len(moved), 'policy gets', 'policies get')} another scheduler by being deleted and created, as Karmada "
            "refuses the edit; another policy that selects one of their workloads claims it meanwhile, and keeps it"
        )
    if before.policies is None and any(isinstance(event, TemplateWritten) for event in events):
        derived.notes.append(
            "no policies were read: they are taken to be as their bindings have them (--policies)"
        )


def changed_policies(before: PlanObjects, after: PlanObjects) -> set[PolicyKey]:
    """Return the policies that a change creates, edits or deletes."""
    old, new = before.policies or {}, after.policies or {}
    return {key for key in old.keys() | new.keys() if old.get(key) is not new.get(key)}


def _take(
    key: BindingKey, each: TemplateClaim, after: PlanObjects, changed: set[PolicyKey], derived: Derived
) -> None:
    """Use what the detector makes of one template."""
    binding = each.binding_after
    if binding is None or each.waits is Waits.CONTROLLER:
        return
    if binding is not after.bindings.get(key):
        after.bindings[key] = binding
        derived.concerned.add(key)
    if each.policy_after is not None:
        derived.policies[key] = PolicyRef(*each.policy_after)
    else:
        derived.policies.pop(key, None)
    if each.policy_before in changed or each.policy_after in changed:
        derived.concerned.add(key)
    if each.policy_after is None and each.policy_before is not None:
        derived.claims[key] = ClaimChange.RELEASED
    elif each.policy_after not in (None, each.policy_before) and each.binding_before is not None:
        derived.claims[key] = ClaimChange.ADOPTED
    if each.waits is Waits.TEMPLATE_CHANGE and each.policy_after in changed:
        derived.deferred.add(key)


def _notes(found: Claims, events: list[Event], derived: Derived) -> None:
    written = {policy_key(event.manifest) for event in events if isinstance(event, PolicyWritten)}
    claims = found.templates.values()
    assumed = sum(1 for outcome in claims if outcome.labels_assumed and outcome.policy_after in written)
    if assumed:
        derived.notes.append(
            f"the labels of {counted(assumed, 'template')} were not read: their policies are taken to select them still "
            "(--workloads)"
        )
    for chosen, text in (
        (
            [outcome for outcome in claims if outcome.alternatives],
            "for which the order matters in which Karmada sees the changes",
        ),
        (
            [each for each in claims if each.waits is Waits.CONTROLLER and each.policy_after in written],
            "propagated by another controller, such as that of MultiClusterServices: policies change nothing",
        ),
        (
            [outcome for outcome in claims if outcome.waits is Waits.NAME],
            "without a binding, for ever: its name is too long, or already that of another template's binding",
        ),
        (
            [each for each in claims if each.waits is Waits.MATCH and each.policy_after in written],
            "keeping a policy that does not match",
        ),
    ):
        if chosen:
            names = [str(outcome.template) for outcome in chosen[:_SHOWN]]
            more = f" and {len(chosen) - _SHOWN} more" if len(chosen) > _SHOWN else ""
            derived.notes.append(f"{counted(len(chosen), 'template')} {text}: {', '.join(names)}{more}")


def selected_kinds(before: PlanObjects, after: PlanObjects) -> list[tuple[str, str]]:
    """Return apiVersion and kind of the templates that changed policies select."""
    found = {
        (str(selector.get("apiVersion") or ""), str(selector.get("kind") or ""))
        for key in changed_policies(before, after)
        for policies in (before.policies or {}, after.policies or {})
        for selector in mappings(value_at(policies.get(key), "spec", "resourceSelectors"))
    }
    return sorted(kind for kind in found if all(kind))


def changed_kinds(before: PlanObjects, after: PlanObjects) -> set[tuple[str, str]]:
    """Return apiVersion and kind of the templates and of the replicas that a change sets, or that it gives a policy."""
    found = {
        (text_of(manifest, "apiVersion"), text_of(manifest, "kind"))
        for key, manifest in after.templates.items()
        if before.templates.get(key) is not manifest
    }
    found |= {
        (text_of(manifest, "spec", "resource", "apiVersion"), text_of(manifest, "spec", "resource", "kind"))
        for key, manifest in after.bindings.items()
        if before.bindings.get(key) is not manifest
    }
    return found | set(selected_kinds(before, after))


def _templates(before: PlanObjects, after: PlanObjects, events: Iterable[Event]) -> Iterator[Template]:
    """Yield the templates that the change may concern, as they are before it.

    A template that was not read is as its binding names it; its labels are not known then.
    """
    policies = [event.manifest for event in events if isinstance(event, PolicyWritten)]
    touched = {policy_key(manifest) for manifest in policies}
    touched |= {event.key for event in events if isinstance(event, PolicyDeleted)}
    preempting = any(part(manifest, "spec").get("preemption") == "Always" for manifest in policies)
    read = {}
    for key, manifest in before.templates.items():
        read[key] = read_template(manifest, metadata_only=key in before.metadata_only)
    written = {event.template.key.binding for event in events if isinstance(event, TemplateWritten)}
    for name, manifest in after.bindings.items():
        named = template_of(manifest)
        found = read.pop(resource_key(manifest), None)
        template = named if found is None else _claimed_as(found, named)
        policy = template.claim.policy
        if (
            preempting
            or name in written
            or policy in touched
            # bindings of dependencies have no placement, and no policy claims them
            or (policy is None and policies and part(manifest, "spec").get("placement") is not None)
        ):
            yield template
    yield from read.values()


def _claimed_as(template: Template, named: Template) -> Template:
    """Return a template that was read; a file may leave out the claim and the uid that its binding shows."""
    if template.claim == UNCLAIMED and named.claim != UNCLAIMED:
        template = template.with_claim(named.claim)
    return replace(template, uid=template.uid or named.uid)


def _unread_policies(before: PlanObjects, after: PlanObjects) -> Iterator[dict[str, Any]]:
    """Yield policies as their bindings have them, where at most their new version was read."""
    if before.policies is not None:
        return
    known = after.policies or {}
    found: dict[PolicyKey, dict[str, Any]] = {}
    for manifest in after.bindings.values():
        named, spec = _annotated(manifest), part(manifest, "spec")
        if named is None or named.kind not in ID_LABELS:
            continue
        key = PolicyKey(named.kind, named.namespace, named.name)
        if key not in found:
            label = ID_LABELS[key.kind]
            identifier = part(manifest, "metadata", "labels").get(label, "")
            metadata = {"namespace": key.namespace, "name": key.name, "labels": {label: identifier}}
            written = known.get(key, {"kind": key.kind, "spec": {**spec, "resourceSelectors": []}})
            placement = spec.get("placement") or {}
            changed = {**part(written, "spec"), "placement": placement}
            found[key] = {**written, "metadata": {**part(written, "metadata"), **metadata}, "spec": changed}
        if key not in known:
            found[key]["spec"]["resourceSelectors"].append(spec["resource"])
    yield from found.values()


def _annotated(binding: Manifest) -> PolicyRef | None:
    """Return the policy that the annotations of a binding name."""
    return policy_of(part(binding, "metadata", "annotations"))
