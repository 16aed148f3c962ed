"""Selectors of policies that match no template, and policies that claim nothing although they match."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from karmada_advisor.claims.policy import ClaimingPolicy, read_policy
from karmada_advisor.claims.shapes import Match, Selector
from karmada_advisor.claims.template import Template, TemplateKey, read_template, template_of
from karmada_advisor.explain.model import PolicyRef
from karmada_advisor.state.stored import is_namespaced
from karmada_advisor.whatif.plan.derive import Derived
from karmada_advisor.whatif.plan.lint_placement import did_you_mean
from karmada_advisor.whatif.plan.model import PlanWarning
from karmada_advisor.whatif.plan.objects import Manifest, PlanObjects
from karmada_scheduler.api.binding import BindingKey
from karmada_scheduler.api.names import nearest
from karmada_scheduler.structs import Struct

_ALIKE: Final = 0.8
"""How similar a name has to be to count as a mistyped one where not all templates are known."""


class TemplatesKnown(Struct, frozen=True):
    """Of which kinds all templates were read.

    Attributes:
        all: Whether those of every kind were.
        kinds: apiVersion and kind of the others of which they were.
        not_served: apiVersion and kind of those that the API server does not serve.
    """

    all: bool = False
    kinds: Collection[tuple[str, str]] = ()
    not_served: Collection[tuple[str, str]] = ()

    def has(self, selector: Selector) -> bool:
        """Return whether every template that a selector may match is known."""
        kind = (selector.api_version, selector.kind)
        return self.all or kind in self.kinds or kind in self.not_served


class Templates:
    """The templates after a change, by apiVersion and kind."""

    def __init__(self, after: PlanObjects, known: TemplatesKnown) -> None:
        self._known = known
        self._by_kind: dict[tuple[str, str], list[Template]] = {}
        read: set[BindingKey] = set()
        for key, manifest in after.templates.items():
            found = read_template(manifest, metadata_only=key in after.metadata_only)
            read.add(found.key.binding)
            self._add(found)
        for name, manifest in after.bindings.items():
            if name not in read:
                self._add(template_of(manifest))

    def _add(self, template: Template) -> None:
        kind = (template.key.api_version, template.key.kind)
        self._by_kind.setdefault(kind, []).append(template)

    def lint(
        self, name: str, policy: ClaimingPolicy, derived: Derived, old: Manifest | None
    ) -> Iterator[PlanWarning]:
        """Yield the selectors of a policy that match nothing, or that it claims nothing although they match."""
        before = [] if old is None else list(read_policy(old).selectors)
        missing = list(self.lint_selectors(name, policy, before))
        yield from missing
        ref = PolicyRef(*policy.key)
        if len(missing) < len(policy.selectors) and ref not in derived.claiming and not policy.deleting:
            holders = self._holders(policy, derived)
            if holders:
                text = f"it claims nothing: what it selects stays with {', '.join(holders)}"
                yield PlanWarning("ClaimsNothing", name, "spec.resourceSelectors", text)

    def lint_selectors(
        self, name: str, policy: ClaimingPolicy, before: list[Selector]
    ) -> Iterator[PlanWarning]:
        """Yield the selectors of a policy that match nothing; ``before`` are those of its version until now."""
        missing = [
            (index, selector)
            for index, selector in enumerate(policy.selectors)
            if not self._matches(selector, policy) and self._is_known(selector, policy, before)
        ]
        for index, selector in missing:
            near, text, meant = self._nearest(selector, policy)
            if len(missing) == len(policy.selectors):
                text += ", so the policy selects nothing"
            path = f"spec.resourceSelectors[{index}]"
            yield PlanWarning("SelectorMatchesNothing", name, path, did_you_mean(text, meant), near)

    def selected(self, policy: ClaimingPolicy) -> set[TemplateKey]:
        """Return the templates that the selectors of a policy match."""
        return {
            template.key
            for selector in policy.selectors
            for template in self._of(selector, policy)
            if selector.match(template) is not Match.NONE
        }

    def _of(self, selector: Selector, policy: ClaimingPolicy) -> list[Template]:
        """Return the templates of the kind that a selector names, in the namespace of the policy."""
        found = self._by_kind.get((selector.api_version, selector.kind), [])
        if not policy.is_namespaced:
            return found
        return [template for template in found if template.key.namespace == policy.key.namespace]

    def _matches(self, selector: Selector, policy: ClaimingPolicy) -> bool:
        return any(
            selector.match(each, assumed=each.labels is None and policy.claims(each)) is not Match.NONE
            for each in self._of(selector, policy)
        )

    def _is_known(self, selector: Selector, policy: ClaimingPolicy, before: list[Selector]) -> bool:
        """Return whether a selector that matches no template that was read is known to match none.

        If not all templates were read, a name counts as known if it is much like an existing one, or has replaced one that
        matched.
        """
        if (
            self._known.has(selector)
            or selector.invalid
            or (policy.is_namespaced and self._is_cluster_scoped(selector))
        ):
            return True
        if not selector.name:
            return False
        if nearest(selector.name, self._names(selector, policy), cutoff=_ALIKE):
            return True
        return any(
            other not in policy.selectors and other.name and self._matches(other, policy) for other in before
        )

    def _names(self, selector: Selector, policy: ClaimingPolicy) -> list[str]:
        return sorted(
            {
                template.key.name
                for template in self._of(selector, policy)
                if not selector.namespace or template.key.namespace == selector.namespace
            }
        )

    def _nearest(self, selector: Selector, policy: ClaimingPolicy) -> tuple[str, str, str]:
        """Return the nearest value to what matches nothing, a sentence, and what was meant."""
        kind = f"{selector.kind} ({selector.api_version})"
        if selector.invalid:
            return "", f"its labelSelector matches nothing: {selector.invalid} is no valid expression", ""
        if not self._of(selector, policy):
            return self._nearest_kind(selector, policy, kind)
        if selector.namespace and not policy.is_namespaced:
            spaces = {template.key.namespace for template in self._of(selector, policy)}
            if selector.namespace not in spaces:
                near = nearest(selector.namespace, spaces)
                return near, f"no {kind} is in namespace {selector.namespace}", near
        inside = f" in namespace {selector.namespace}" if selector.namespace else ""
        if selector.name:
            near = nearest(selector.name, self._names(selector, policy))
            return near, f"no {kind}{inside} is named {selector.name}", near
        return self._nearest_label(selector, policy, f"{kind}{inside}")

    def _is_cluster_scoped(self, selector: Selector) -> bool:
        """Return whether objects of a kind are in no namespace: by those that were read, or as Kubernetes has them."""
        found = self._by_kind.get((selector.api_version, selector.kind))
        if found:
            return not found[0].key.namespace
        is_of_kubernetes = selector.api_version == "v1" or ".k8s.io/" in selector.api_version
        return is_of_kubernetes and not is_namespaced(selector.kind)

    def _nearest_kind(self, selector: Selector, policy: ClaimingPolicy, kind: str) -> tuple[str, str, str]:
        if (selector.api_version, selector.kind) in self._known.not_served:
            start = f"the API server serves no {kind}"
        elif policy.is_namespaced and self._is_cluster_scoped(selector):
            start = f"{kind} is cluster-scoped, and a PropagationPolicy selects objects of its namespace"
            return "ClusterPropagationPolicy", start, "a ClusterPropagationPolicy"
        else:
            start = f"there is no {kind}"
        versions = sorted(version for version, name in self._by_kind if name == selector.kind)
        if versions:
            return versions[0], start, f"apiVersion {versions[0]}"
        near = nearest(selector.kind, {name for _, name in self._by_kind})
        return near, start, near

    def _nearest_label(self, selector: Selector, policy: ClaimingPolicy, kind: str) -> tuple[str, str, str]:
        labels: dict[str, set[str]] = {}
        for template in self._of(selector, policy):
            for key, value in (template.labels or {}).items():
                labels.setdefault(key, set()).add(value)
        start = f"no {kind} matches its labelSelector"
        if selector.labels is None:
            return "", start, ""
        for key, value in selector.labels.match_labels:
            if key not in labels:
                near = nearest(key, labels)
                return near, f"{start}: none has the label {key}", near
            if value not in labels[key]:
                near = nearest(value, labels[key])
                return near, f"{start}: none has {key}={value}", f"{key}={near}" if near else ""
        return "", start, ""

    def _holders(self, policy: ClaimingPolicy, derived: Derived) -> list[str]:
        """Return the policies that claim what a policy selects."""
        holders = {derived.policies.get(key.binding) for key in self.selected(policy)} - {None}
        return sorted(map(str, holders))
