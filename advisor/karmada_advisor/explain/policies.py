"""Which policy claims a template, and why others do not: the rules of Karmada's detector.

Source: karmada v1.18.2 pkg/detector policy.go, compare.go, claim.go, preemption.go; pkg/util/selector.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any, Final

from karmada_advisor.claims.selectors import Match
from karmada_advisor.claims.template import is_skipped_namespace
from karmada_advisor.explain.inputs import Manifest
from karmada_advisor.state.stored import mapping, mappings, value_at
from karmada_scheduler.api.binding import ObjectReference
from karmada_scheduler.api.manifest import ManifestError
from karmada_scheduler.api.object_fields import read_object
from karmada_scheduler.api.placement import ClusterAffinity
from karmada_scheduler.api.policy import PROPAGATION_POLICY, claims, policy_name
from karmada_scheduler.api.workload import Workload
from karmada_scheduler.structs import Struct, field

_FIELDS: Final = ("apiVersion", "kind", "namespace", "name", "label")


class TemplateHead(Struct, frozen=True):
    """A resource template.

    Attributes:
        labels: None if they are not known; then no label selector matches.
    """

    api_version: str
    kind: str
    namespace: str
    name: str
    labels: Mapping[str, str] | None = None

    @classmethod
    def named_by(cls, found: Workload | ObjectReference, labels: Mapping[str, str] | None) -> TemplateHead:
        """Return the template that a binding names, with its labels; None if they are not known."""
        return cls(found.api_version, found.kind, found.namespace, found.name, labels)

    @classmethod
    def of(cls, template: Manifest) -> TemplateHead:
        """Return what policies select by of a resource template."""
        version, kind = (str(template.get(name) or "") for name in ("apiVersion", "kind"))
        metadata = mapping(template.get("metadata"))
        namespace, name = (str(metadata.get(each) or "") for each in ("namespace", "name"))
        return cls(version, kind, namespace, name, mapping(metadata.get("labels")))

    @property
    def fields(self) -> Mapping[str, str]:
        """What selectors ask for besides labels, by the name of the field."""
        values = self.api_version, self.kind, self.namespace, self.name
        return dict(zip(_FIELDS, values, strict=False))

    @property
    def is_reserved(self) -> bool:
        """Whether its namespace is never propagated."""
        return is_skipped_namespace(self.namespace)


class Matching(Struct, frozen=True):
    """A policy that matches a template.

    Attributes:
        policy: As it was read.
        match: By what it matches.
    """

    policy: Manifest
    match: Match
    order: tuple[bool, int, int, str] = field(default=(False, 0, 0, ""))

    @property
    def name(self) -> str:
        """Kind, namespace and name."""
        return policy_name(self.policy)


def matching(policies: Iterable[Manifest], template: TemplateHead) -> list[Matching]:
    """Return the policies that match a template, the one that claims it first if nothing holds it.

    Namespaced policies come before cluster-wide ones, then the higher ``spec.priority``, then a match by name before one
    by labels before one of all, then the smaller name.
    """
    pairs = ((policy, match_of(policy, template)) for policy in policies if not _is_deleting(policy))
    matches = (pair for pair in pairs if pair[1] is not Match.NONE)
    found = [Matching(policy, match, _order(policy, match)) for policy, match in matches]
    return sorted(found, key=lambda each: each.order)


def _order(policy: Manifest, match: Match) -> tuple[bool, int, int, str]:
    spec, metadata = policy.get("spec") or {}, policy.get("metadata") or {}
    is_namespaced = policy.get("kind") == PROPAGATION_POLICY
    return not is_namespaced, -int(spec.get("priority") or 0), -match, str(metadata.get("name"))


def _is_deleting(policy: Manifest) -> bool:
    return (policy.get("metadata") or {}).get("deletionTimestamp") is not None


def match_of(policy: Manifest, template: TemplateHead) -> Match:
    """Return how a policy matches: the best of its selectors."""
    if not _is_in_scope(policy, template):
        return Match.NONE
    return max((_selector_match(each, template) for each in _selectors(policy)), default=Match.NONE)


def _is_in_scope(policy: Manifest, template: TemplateHead) -> bool:
    namespace = (policy.get("metadata") or {}).get("namespace")
    return policy.get("kind") != PROPAGATION_POLICY or namespace == template.namespace


def _selectors(policy: Manifest) -> Sequence[Mapping[str, Any]]:
    return mappings(value_at(policy, "spec", "resourceSelectors"))


def _selector_match(selector: Mapping[str, Any], template: TemplateHead) -> Match:
    if miss_of(selector, template):
        return Match.NONE
    if selector.get("name"):
        return Match.NAME
    return Match.ALL if selector.get("labelSelector") is None else Match.LABELS


def miss_of(selector: Mapping[str, Any], template: TemplateHead) -> str:
    """Return the first field in which a selector differs from a template; "" if it matches."""
    for name, value in template.fields.items():
        asked = selector.get(name)
        if name in {"namespace", "name"} and not asked:
            continue
        if asked != value:
            return f"{name} is {asked}"
    if selector.get("name") or selector.get("labelSelector") is None:
        return ""
    if template.labels is None:
        return "labels are not known"
    given = {"labelSelector": selector["labelSelector"]}
    try:
        labels = read_object(ClusterAffinity, given, "resourceSelectors").label_selector
    except ManifestError as problem:
        return str(problem)
    if labels is not None and labels.matches(template.labels):
        return ""
    key = differing_label(selector, template.labels)
    if not key:
        return "labelSelector does not match"
    wanted = _match_labels(selector)[key]
    return f"labelSelector wants {key}={wanted}, and it has {key}={template.labels[key]}"


def holder_of(policies: Iterable[Manifest], labels: Mapping[str, str] | None) -> Manifest | None:
    """Return the policy that claims a template or binding by its labels, None if none does or they are not known."""
    return next((policy for policy in policies if claims(policy, labels or {})), None)


def held_claim(
    policies: Iterable[Manifest], labels: Mapping[str, str], template: TemplateHead
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


def priority_class_of(policies: Sequence[Manifest], template: TemplateHead) -> tuple[str, str] | None:
    """Return the policy that claims a template, and the PriorityClass that it names; None if there is no such name.

    Source: karmada v1.18.2 pkg/detector/detector.go BuildResourceBinding. BuildClusterResourceBinding, for templates without
    a namespace, looks up no PriorityClass.
    """
    held = held_claim(policies, template.labels or {}, template)
    first = next(iter(matching(policies, template)), None)
    if not template.namespace or first is None:
        return None
    policy = first.policy if held is None else held[0]
    name = value_at(policy, "spec", "schedulePriority", "priorityClassName")
    return (policy_name(policy), str(name)) if name else None


def names_priority_class(policies: Sequence[Manifest], template: Manifest) -> bool:
    """Return whether the policy that claims a template names a PriorityClass."""
    return priority_class_of(policies, TemplateHead.of(template)) is not None


class Miss(Struct, frozen=True):
    """The selector of a policy that comes nearest to a template, and does not match it.

    Attributes:
        policy: As it was read.
        index: The place of the selector in ``spec.resourceSelectors``; -1 if the policy is of another namespace.
        reason: The first field in which it differs, in words.
        closeness: Larger for a nearer one: fields that match, and the likeness of the one that does not.
    """

    policy: Manifest
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


def misses(policies: Iterable[Manifest], template: TemplateHead) -> list[Miss]:
    """Return why policies do not match a template, the nearest first."""
    tried = (_miss(policy, template) for policy in policies if not _is_deleting(policy))
    found = [miss for miss in tried if miss is not None]
    return sorted(found, key=lambda each: (*(-part for part in each.closeness), each.name))


def _miss(policy: Manifest, template: TemplateHead) -> Miss | None:
    best: Miss | None = None
    for index, selector in enumerate(_selectors(policy)):
        reason = miss_of(selector, template)
        if not reason:
            continue
        miss = Miss(policy, index, reason, _closeness(selector, reason, template))
        if best is None or miss.closeness > best.closeness:
            best = miss
    if best is not None and not _is_in_scope(policy, template):
        if template.namespace:
            return Miss(policy, -1, "is in another namespace", (-1, 0.0))
        text = "selects objects of its namespace only: a cluster-scoped one needs a ClusterPropagationPolicy"
        return Miss(policy, -1, text, (-1, 0.0))
    return best


def _closeness(selector: Mapping[str, Any], reason: str, template: TemplateHead) -> tuple[int, float]:
    matched = next((index for index, name in enumerate(_FIELDS) if reason.startswith(name)), -1)
    wanted = template.fields
    name = reason.partition(" ")[0]
    if name in wanted:
        return matched, SequenceMatcher(None, str(selector.get(name) or ""), wanted[name]).ratio()
    asked, labels = _match_labels(selector), template.labels or {}
    pairs = [(str(value), labels[key]) for key, value in asked.items() if key in labels]
    alike = sum(SequenceMatcher(None, *pair).ratio() for pair in pairs)
    return matched, alike / len(asked) if asked else 0.0


def _match_labels(selector: Mapping[str, Any]) -> Mapping[str, Any]:
    return mapping(value_at(selector, "labelSelector", "matchLabels"))


def differing_label(selector: Mapping[str, Any], labels: Mapping[str, str] | None) -> str:
    """Return the key of the label whose value differs, if a selector asks for other labels in nothing else; "" otherwise."""
    differing = [key for key, value in _match_labels(selector).items() if (labels or {}).get(key) != value]
    return differing[0] if len(differing) == 1 and differing[0] in (labels or {}) else ""
