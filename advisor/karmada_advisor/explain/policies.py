"""Which policy claims a template, and why others do not: the rules of Karmada's detector.

Source: karmada v1.18.2 pkg/detector policy.go, compare.go, claim.go, preemption.go; pkg/util/selector.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Final

from karmada_advisor.claims.policy import LAZY
from karmada_advisor.claims.shapes import Match, Selector
from karmada_advisor.claims.template import Template, TemplateKey, read_template
from karmada_advisor.explain.inputs import Manifest
from karmada_advisor.state.stored import value_at
from karmada_scheduler.api.binding import Binding, ObjectReference
from karmada_scheduler.api.manifest import ManifestError, read_mapping
from karmada_scheduler.api.object_fields import read_objects
from karmada_scheduler.api.placement import Placement
from karmada_scheduler.api.policy import PROPAGATION_POLICY, claims, policy_name
from karmada_scheduler.api.workload import Workload
from karmada_scheduler.structs import Struct

_FIELDS: Final = ("apiVersion", "kind", "namespace", "name", "label")


def template_named(found: Workload | ObjectReference, labels: Mapping[str, str] | None) -> Template:
    """Return the template that a binding names, with its labels; None if they are not known."""
    return Template(TemplateKey(found.api_version, found.kind, found.namespace, found.name), labels)


class Matching(Struct, frozen=True):
    """A policy that matches a template.

    Attributes:
        policy: As it was read.
        match: By what it matches.
    """

    policy: Manifest
    match: Match

    @property
    def order(self) -> tuple[bool, int, int, str]:
        """Whether it is cluster-wide, its priority, its match and its name: the smallest comes first."""
        spec, metadata = self.policy.get("spec") or {}, self.policy.get("metadata") or {}
        is_namespaced = self.policy.get("kind") == PROPAGATION_POLICY
        return not is_namespaced, -int(spec.get("priority") or 0), -self.match, str(metadata.get("name"))

    @property
    def name(self) -> str:
        """Kind, namespace and name."""
        return policy_name(self.policy)


def lazy_policies(policies: Iterable[Manifest], binding: Binding) -> list[Manifest]:
    """Return the policies of a binding whose edits reach it only when its template changes."""
    mine = (each for each in policies if claims(each, binding.labels))
    return [each for each in mine if value_at(each, "spec", "activationPreference") == LAZY]


def brings_another(policy: Manifest, placement: Placement | None) -> bool:
    """Return whether the next change of the template brings the binding of a Lazy policy another placement."""
    try:
        return Placement.from_manifest(value_at(policy, "spec", "placement") or {}) != placement
    except ManifestError:
        return False


def lazy_edit(policy: Manifest) -> str:
    """Return what a Lazy policy does with an edit."""
    return f"{policy_name(policy)} is Lazy: its edit waits for the next change of the template"


def matching(policies: Iterable[Manifest], template: Template) -> list[Matching]:
    """Return the policies that match a template, the one that claims it first if nothing holds it.

    Namespaced policies come before cluster-wide ones, then the higher ``spec.priority``, then a match by name before one
    by labels before one of all, then the smaller name.
    """
    tried = (Matching(policy, match_of(policy, template)) for policy in policies if not _is_deleting(policy))
    found = (policy for policy in tried if policy.match is not Match.NONE)
    return sorted(found, key=lambda policy: policy.order)


def _is_deleting(policy: Manifest) -> bool:
    return (policy.get("metadata") or {}).get("deletionTimestamp") is not None


def match_of(policy: Manifest, template: Template) -> Match:
    """Return how a policy matches: the best of its selectors."""
    if not _is_in_scope(policy, template):
        return Match.NONE
    return max((selector.match(template) for selector in selectors_of(policy)), default=Match.NONE)


def _is_in_scope(policy: Manifest, template: Template) -> bool:
    namespace = (policy.get("metadata") or {}).get("namespace")
    return policy.get("kind") != PROPAGATION_POLICY or namespace == template.key.namespace


def selectors_of(policy: Manifest) -> Sequence[Selector]:
    """Return the selectors of a policy; none of one that the API server would refuse."""
    try:
        return read_objects(Selector, read_mapping(policy, "spec", ""), "resourceSelectors", "spec")
    except ManifestError:
        return ()


def miss_of(selector: Selector, template: Template) -> str:
    """Return the first field in which a selector differs from a template; "" if it matches."""
    if selector.match(template) is not Match.NONE:
        return ""
    for name, asked, value in zip(_FIELDS, selector, template.key, strict=False):
        if asked != value and (asked or name in {"apiVersion", "kind"}):
            return f"{name} is {asked}"
    if template.labels is None:
        return "labels are not known"
    key = differing_label(selector, template)
    if not key:
        return "labelSelector does not match"
    return (
        f"labelSelector wants {key}={_match_labels(selector)[key]}, and it has {key}={template.labels[key]}"
    )


def holder_of(policies: Iterable[Manifest], labels: Mapping[str, str] | None) -> Manifest | None:
    """Return the policy that claims a template or binding by its labels, None if none does or they are not known."""
    return next((policy for policy in policies if claims(policy, labels or {})), None)


def held_claim(
    policies: Iterable[Manifest], labels: Mapping[str, str], template: Template
) -> tuple[Manifest, Matching] | None:
    """Return the policy that holds a template, and the one that comes first; None if these are not two policies.

    Args:
        policies: All policies.
        labels: Of the binding, or of the template.
        template: The template.
    """
    listed = list(policies)
    holder = holder_of(listed, labels)
    if holder is None or match_of(holder, template) is Match.NONE:
        return None  # its selectors no longer match, or need labels that are not known
    first = next(iter(matching(listed, template)), None)
    return None if first is None or first.name == policy_name(holder) else (holder, first)


def priority_class_of(policies: Sequence[Manifest], template: Template) -> tuple[str, str] | None:
    """Return the policy that claims a template, and the PriorityClass that it names; None if there is no such name.

    Source: karmada v1.18.2 pkg/detector/detector.go BuildResourceBinding. BuildClusterResourceBinding, for templates without
    a namespace, looks up no PriorityClass.
    """
    held = held_claim(policies, template.labels or {}, template)
    first = next(iter(matching(policies, template)), None)
    if not template.key.namespace or first is None:
        return None
    policy = first.policy if held is None else held[0]
    name = value_at(policy, "spec", "schedulePriority", "priorityClassName")
    return (policy_name(policy), str(name)) if name else None


def names_priority_class(policies: Sequence[Manifest], template: Manifest) -> bool:
    """Return whether the policy that claims a template names a PriorityClass."""
    return priority_class_of(policies, read_template(template)) is not None


class Miss(Struct, frozen=True):
    """The selector of a policy that comes nearest to a template, and does not match it.

    Attributes:
        policy: As it was read.
        selector: The selector; None if the policy is of another namespace.
        index: The place of the selector in ``spec.resourceSelectors``; -1 if the policy is of another namespace.
        reason: The first field in which it differs, in words.
        closeness: Larger for a nearer one: fields that match, and the likeness of the one that does not.
    """

    policy: Manifest
    selector: Selector | None
    index: int
    reason: str
    closeness: tuple[int, float] = (0, 0.0)

    @property
    def name(self) -> str:
        """Kind, namespace and name of the policy."""
        return policy_name(self.policy)

    @property
    def field(self) -> str:
        """The field of the selector that differs: ``apiVersion``, ``kind``, ``namespace``, ``name`` or ``labelSelector``."""
        return self.reason.partition(" ")[0] if self.index >= 0 else ""


def misses(policies: Iterable[Manifest], template: Template) -> list[Miss]:
    """Return why policies do not match a template, the nearest first."""
    tried = (_miss(policy, template) for policy in policies if not _is_deleting(policy))
    found = [miss for miss in tried if miss is not None]
    return sorted(found, key=lambda each: (*(-part for part in each.closeness), each.name))


def _miss(policy: Manifest, template: Template) -> Miss | None:
    best: Miss | None = None
    for index, selector in enumerate(selectors_of(policy)):
        reason = miss_of(selector, template)
        if not reason:
            continue
        miss = Miss(policy, selector, index, reason, _closeness(selector, reason, template))
        if best is None or miss.closeness > best.closeness:
            best = miss
    if best is None or _is_in_scope(policy, template):
        return best
    text = "is in another namespace"
    if not template.key.namespace:
        text = "selects objects of its namespace only: a cluster-scoped one needs a ClusterPropagationPolicy"
    return Miss(policy, None, -1, text, (-1, 0.0))


def _closeness(selector: Selector, reason: str, template: Template) -> tuple[int, float]:
    matched = next((index for index, name in enumerate(_FIELDS) if reason.startswith(name)), -1)
    if reason.partition(" ")[0] in _FIELDS:
        return matched, SequenceMatcher(None, str(selector[matched]), template.key[matched]).ratio()
    asked, labels = _match_labels(selector), template.labels or {}
    pairs = [(value, labels[key]) for key, value in asked.items() if key in labels]
    alike = sum(SequenceMatcher(None, *pair).ratio() for pair in pairs)
    return matched, alike / len(asked) if asked else 0.0


def _match_labels(selector: Selector) -> Mapping[str, str]:
    return {} if selector.labels is None else dict(selector.labels.match_labels)


def differing_label(selector: Selector, template: Template) -> str:
    """Return the key of the label whose value differs, if a selector asks for other labels in nothing else; "" otherwise."""
    labels = template.labels or {}
    differing = [key for key, value in _match_labels(selector).items() if labels.get(key) != value]
    return differing[0] if len(differing) == 1 and differing[0] in labels else ""
