"""The bindings after a change of policies and templates: what Karmada's detector makes of them.

Of a binding, a policy determines placement, schedulerName and suspension. The claim is written as a label of the
binding, as the detector does.

Source: karmada v1.18.2 pkg/detector policy.go, detector.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from karmada_scheduler.api.binding import DEFAULT_SCHEDULER_NAME, BindingKey
from karmada_scheduler.api.manifest import ManifestError
from karmada_scheduler.api.placement import Placement
from karmada_scheduler.api.policy import ID_LABELS, PolicyKey
from karmada_scheduler.explain.model import PolicyRef
from karmada_scheduler.explain.policies import Match, Template, match_of, matching
from karmada_scheduler.plan.change import next_generation
from karmada_scheduler.plan.model import Claim
from karmada_scheduler.plan.objects import (
    Manifest,
    Objects,
    TemplateKey,
    part,
    policy_key,
    resource_key,
    text_of,
)

_COPIED: Final = ("placement", "schedulerName", "suspension")


@dataclass
class Derived:
    """What follows from a change of policies and templates.

    Attributes:
        claims: By binding, whether its policy changes; bindings that keep theirs are left out.
        deferred: The bindings that follow a Lazy policy, and change with their template only.
        policies: The policy of each binding afterwards, as far as it is known.
        concerned: The bindings that a changed policy or template claims.
        notes: For people.
        annotated: The policy that the annotations of a binding name, where policies were not read.
    """

    claims: dict[BindingKey, Claim] = field(default_factory=dict)
    deferred: set[BindingKey] = field(default_factory=set)
    policies: dict[BindingKey, PolicyKey] = field(default_factory=dict)
    concerned: set[BindingKey] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)
    annotated: dict[BindingKey, PolicyRef] = field(default_factory=dict)

    def policy_of(self, key: BindingKey) -> PolicyRef | None:
        """Return the policy of a binding after the change, None if it has none or that is not known."""
        found = self.policies.get(key)
        return PolicyRef(*found) if found is not None else self.annotated.get(key)


def derive(before: Objects, after: Objects) -> Derived:
    """Change the bindings in ``after`` as its policies and templates require.

    Bindings of policies that do not change stay as they are, even if they differ from the policy.
    """
    derived = Derived()
    if after.policies is None:
        derived.annotated = {
            key: found for key, each in after.bindings.items() if (found := _annotated(each)) is not None
        }
        return derived
    changed = _changed(before.policies or {}, after.policies)
    by_id = _by_id([*(before.policies or {}).values(), *after.policies.values()])
    for key, manifest in list(after.bindings.items()):
        current = _current(manifest, by_id, before, after)
        if current is not None:
            derived.policies[key] = current
        if changed:
            _derive_one(key, manifest, current, changed, after, derived)
    return derived


def _current(
    binding: Manifest, by_id: Mapping[tuple[str, Any], PolicyKey], before: Objects, after: Objects
) -> PolicyKey | None:
    """Return the policy that claims a binding; without its id, the one that the annotations of the binding name."""
    labels = part(binding, "metadata", "labels")
    for label in ID_LABELS.values():
        if (label, labels.get(label)) in by_id:
            return by_id[label, labels[label]]
    named = _annotated(binding)
    if named is None:
        return None
    key = PolicyKey(named.kind, named.namespace, named.name)
    return key if key in (before.policies or {}) or key in (after.policies or {}) else None


def _annotated(binding: Manifest) -> PolicyRef | None:
    annotations = part(binding, "metadata", "annotations")
    for kind in ID_LABELS:
        prefix = f"{kind.lower()}.karmada.io"
        if name := annotations.get(f"{prefix}/name"):
            return PolicyRef(kind, str(annotations.get(f"{prefix}/namespace") or ""), str(name))
    return None


def _changed(before: Mapping[PolicyKey, Manifest], after: Mapping[PolicyKey, Manifest]) -> set[PolicyKey]:
    return {key for key in {*before, *after} if before.get(key) is not after.get(key)}


def _by_id(policies: Iterable[Manifest]) -> dict[tuple[str, Any], PolicyKey]:
    found = {}
    for policy in policies:
        key = policy_key(policy)
        label = ID_LABELS[key.kind]
        value = part(policy, "metadata", "labels").get(label)
        if value:
            found[label, value] = key
    return found


def _derive_one(
    key: BindingKey,
    manifest: Manifest,
    current: PolicyKey | None,
    changed: set[PolicyKey],
    after: Objects,
    derived: Derived,
) -> None:
    policies = after.policies or {}
    template = _template(resource_key(manifest), manifest, after)
    kept = policies.get(current) if current is not None else None
    if current is not None and current not in changed:
        return
    if kept is not None and ((template.labels is None and _needs_labels(kept)) or _matches(kept, template)):
        derived.concerned.add(key)
        _follow(key, manifest, kept, after, derived)
        return
    candidates = matching(
        policies.values()
        if current is not None
        else [policies[each] for each in changed if each in policies],
        template,
    )
    if current is not None:
        derived.concerned.add(key)
    if candidates:
        chosen = candidates[0].policy
        derived.concerned.add(key)
        derived.claims[key] = Claim.ADOPTED
        derived.policies[key] = policy_key(chosen)
        _follow(key, _claimed(manifest, chosen), chosen, after, derived)
    elif current is not None:
        derived.claims[key] = Claim.RELEASED
        derived.policies.pop(key, None)
        after.bindings[key] = _released(manifest)


def _template(key: TemplateKey, binding: Manifest, after: Objects) -> Template:
    found = after.templates.get(key)
    resource = part(binding, "spec", "resource")
    labels = None if found is None else part(found, "metadata", "labels")
    return Template(str(resource.get("apiVersion") or ""), key.kind, key.namespace, key.name, labels)


def _matches(policy: Manifest, template: Template) -> bool:
    return match_of(policy, template) is not Match.NONE


def _needs_labels(policy: Manifest) -> bool:
    selectors = part(policy, "spec").get("resourceSelectors")
    return any(
        isinstance(each, Mapping) and not each.get("name") and each.get("labelSelector") is not None
        for each in (selectors if isinstance(selectors, list) else ())
    )


def _follow(key: BindingKey, manifest: Manifest, policy: Manifest, after: Objects, derived: Derived) -> None:
    """Copy what a policy determines into a binding, unless the policy is Lazy."""
    if text_of(policy, "spec", "activationPreference") == "Lazy":
        if _copied(manifest, policy) is not manifest:
            derived.deferred.add(key)
        return
    after.bindings[key] = _copied(manifest, policy)


def _copied(manifest: Manifest, policy: Manifest) -> Manifest:
    spec, wanted = dict(part(manifest, "spec")), part(policy, "spec")
    if _is_same_placement(spec.get("placement"), wanted.get("placement")) and all(
        _written(spec, name) == _written(wanted, name) for name in _COPIED[1:]
    ):
        return manifest
    for name in _COPIED:
        if name in wanted:
            spec[name] = wanted[name]
        else:
            spec.pop(name, None)
    spec.setdefault("placement", {})
    return next_generation({**manifest, "spec": spec})


def _written(spec: Mapping[str, Any], name: str) -> Any:
    if name == "schedulerName":
        return spec.get(name) or DEFAULT_SCHEDULER_NAME
    found = spec.get(name)
    return {field: value for field, value in found.items() if value} if isinstance(found, Mapping) else {}


def _is_same_placement(one: Any, other: Any) -> bool:
    try:
        return one is not None and Placement.from_manifest(one) == Placement.from_manifest(other or {})
    except (ManifestError, TypeError, AttributeError):
        return bool(one == other)


def _claimed(manifest: Manifest, policy: Manifest) -> Manifest:
    key = policy_key(policy)
    label = ID_LABELS[key.kind]
    identifier = part(policy, "metadata", "labels").get(label) or f"plan-{key}".replace("/", "-")
    metadata = part(_released(manifest), "metadata")
    return {**manifest, "metadata": {**metadata, "labels": {**part(metadata, "labels"), label: identifier}}}


def _released(manifest: Manifest) -> Manifest:
    metadata = part(manifest, "metadata")
    labels = {
        name: value for name, value in part(metadata, "labels").items() if name not in ID_LABELS.values()
    }
    return {**manifest, "metadata": {**metadata, "labels": labels}}
