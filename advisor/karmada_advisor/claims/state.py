"""Templates, policies and bindings as the detector changes them; a policy takes templates from policies of a lower priority.

Source of preemption: karmada v1.18.2 pkg/detector/preemption.go.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from karmada_advisor.claims.policy import ClaimingPolicy, highest
from karmada_advisor.claims.template import Claim, Template, TemplateKey, template_of
from karmada_scheduler.api.binding_spec import BindingKey
from karmada_scheduler.api.manifest import Manifest, read_mapping, read_mappings, read_text
from karmada_scheduler.api.policy import CLUSTER_PROPAGATION_POLICY, PROPAGATION_POLICY, PolicyKey
from karmada_scheduler.structs import Struct, replace

_Claim = Callable[[Template, ClaimingPolicy], Template]


class DetectedBinding(Struct, frozen=True):
    """A binding.

    Attributes:
        key: Its name.
        claim: The policy in its metadata, which may differ from that of its template.
        spec: Its spec.
        template: The template that it names.
        owner: The uid of the template that it was made for; empty if it is not known.
    """

    key: BindingKey
    claim: Claim
    spec: Mapping[str, Any]
    template: TemplateKey
    owner: str = ""

    def is_of(self, template: Template) -> bool:
        """Return whether it was made for a template. Others of the same kind and name, in another group, need its name, too."""
        key, own = template.key, self.template
        if (key.group, key.kind, key.name) != (own.group, own.kind, own.name):
            return False
        return not self.owner or not template.uid or self.owner == template.uid


def read_binding(manifest: Manifest) -> DetectedBinding:
    """Read what the detector needs of a binding.

    Raises:
        ManifestError: A field is missing or of the wrong type.
    """
    metadata, template = read_mapping(manifest, "metadata", ""), template_of(manifest)
    owners = read_mappings(metadata, "ownerReferences", "metadata")
    return DetectedBinding(
        key=BindingKey(
            read_text(manifest, "kind", ""),
            read_text(metadata, "namespace", "metadata"),
            read_text(metadata, "name", "metadata"),
        ),
        claim=template.claim,
        spec=read_mapping(manifest, "spec", ""),
        template=template.key,
        owner=next((str(owner.get("uid") or "") for owner in owners if owner.get("controller")), ""),
    )


class DetectorState:
    """All objects that the detector reads, with the lists by which it finds them.

    Attributes:
        policies: By name.
        templates: By type and name.
        bindings: By name.
        version: Grows with every change.
    """

    def __init__(
        self,
        templates: Iterable[Template],
        policies: Iterable[ClaimingPolicy],
        bindings: Iterable[DetectedBinding],
    ) -> None:
        self.policies = {policy.key: policy for policy in policies}
        self.templates = {template.key: template for template in templates}
        self.bindings = {binding.key: binding for binding in bindings}
        self.version = 0
        self._created = 0
        self._by_namespace: dict[tuple[str, str], list[ClaimingPolicy]] | None = None
        self._candidates: dict[tuple[str, str, str, str], list[ClaimingPolicy]] = {}

    def copy(self) -> DetectorState:
        """Return an independent copy."""
        return DetectorState(self.templates.values(), self.policies.values(), self.bindings.values())

    def policies_of(self, kind: str, namespace: str) -> Sequence[ClaimingPolicy]:
        """Return the policies of a kind in a namespace, in the order of their names; cluster-wide ones are in none."""
        if self._by_namespace is None:
            self._by_namespace = defaultdict(list)
            for key in sorted(self.policies):
                self._by_namespace[key.kind, key.namespace].append(self.policies[key])
        return self._by_namespace.get((kind, namespace), ())

    def candidates(self, kind: str, template: Template) -> Sequence[ClaimingPolicy]:
        """Return the policies of a kind with a selector for a template's type, by priority, the highest first."""
        namespace = template.key.namespace if kind == PROPAGATION_POLICY else ""
        place = (kind, namespace, template.key.api_version, template.key.kind)
        found = self._candidates.get(place)
        if found is None:
            matching = [
                policy
                for policy in self.policies_of(kind, namespace)
                if (template.key.api_version, template.key.kind) in policy.by_type
            ]
            found = self._candidates[place] = sorted(matching, key=lambda each: -each.priority)
        return found

    def best_policy(self, template: Template) -> ClaimingPolicy | None:
        """Return the policy that would claim a template if nothing claimed it; None if none matches."""
        for kind in (PROPAGATION_POLICY, CLUSTER_PROPAGATION_POLICY):
            if (found := highest(self.candidates(kind, template), template)) is not None:
                return found
        return None

    def store_policy(self, policy: ClaimingPolicy) -> ClaimingPolicy | None:
        """Create or edit a policy, as the API server does; return it as it was before."""
        self._created += 1
        if not policy.permanent_id:
            policy = replace(policy, permanent_id=f"{policy.key}#{self._created}")
        before = self.policies.get(policy.key)
        if before is not None and not before.deleting:
            policy = replace(policy, permanent_id=before.permanent_id)
        else:
            before = None
        self._write_policy(policy)
        return before

    def mark_deleted(self, key: PolicyKey) -> None:
        """Let a policy be deleted, if there is one; it stays for its handlers."""
        if (policy := self.policies.get(key)) is not None:
            self._write_policy(replace(policy, deleting=True))

    def _write_policy(self, policy: ClaimingPolicy) -> None:
        self.policies[policy.key] = policy
        self._by_namespace = None
        self._candidates.clear()

    def delete_policy(self, key: PolicyKey) -> None:
        """Delete a policy; the claims in its name stay."""
        del self.policies[key]
        self._by_namespace = None
        self._candidates.clear()

    def bindings_of(self, policy: ClaimingPolicy) -> list[DetectedBinding]:
        """Return the bindings whose labels have the id of a policy; of a PropagationPolicy in its namespace only."""
        return [
            binding
            for key, binding in self.bindings.items()
            if policy.has_claimed(binding.claim)
            and (not policy.is_namespaced or key.namespace == policy.key.namespace)
        ]

    def templates_of(self, policy: ClaimingPolicy) -> list[Template]:
        """Return the templates whose labels have the id of a policy."""
        return [template for template in self.templates.values() if policy.has_claimed(template.claim)]

    def claim_template(self, template: Template, claim: Claim) -> Template:
        """Write the claim of a template; return the template as it is now."""
        if claim == template.claim:
            return template
        changed = template.with_claim(claim)
        self.templates[template.key] = changed
        self.version += 1
        return changed

    def write_template(self, template: Template) -> Template | None:
        """Create or replace a template; an existing one, which is returned, keeps its claim."""
        before = self.templates.get(template.key)
        self.templates[template.key] = template if before is None else template.with_claim(before.claim)
        self.version += 1
        return before

    def write_binding(self, binding: DetectedBinding) -> None:
        """Create or replace a binding."""
        before = self.bindings.get(binding.key)
        if before is None or (before.claim, before.spec) != (binding.claim, binding.spec):
            self.bindings[binding.key] = binding
            self.version += 1

    def release_binding(self, key: BindingKey, kind: str) -> None:
        """Remove the metadata of policies of a kind from a binding."""
        binding = self.bindings.get(key)
        if binding is not None:
            self.write_binding(replace(binding, claim=binding.claim.without(kind)))

    def policy_of(self, key: PolicyKey | None) -> ClaimingPolicy | None:
        """Return a policy, None if there is none."""
        return None if key is None else self.policies.get(key)


def preempting_between(state: DetectorState, policy: ClaimingPolicy, priority: int) -> list[ClaimingPolicy]:
    """Return the policies that may take templates from one whose priority has been lowered, highest first.

    Args:
        state: All objects.
        policy: With the lower priority.
        priority: The one before.
    """
    found = [
        other
        for other in state.policies_of(policy.key.kind, policy.key.namespace)
        if other.preempts and policy.priority < other.priority < priority
    ]
    return sorted(found, key=lambda each: -each.priority)


def preempt(policy: ClaimingPolicy, state: DetectorState, claim: _Claim) -> bool:
    """Let a policy take the templates that it names; return False after an error, which makes the detector try again.

    Args:
        policy: That preempts.
        state: All objects.
        claim: Writes a claim into a template.
    """
    is_done = True
    for each in policy.selectors:
        template = state.templates.get(TemplateKey(each.api_version, each.kind, each.namespace, each.name))
        if template is None or template.deleting:
            continue
        held = template.claim
        if policy.is_namespaced and held.namespace and held.name:
            other = PolicyKey(PROPAGATION_POLICY, held.namespace, held.name)
            if not _preempt_from(other, template, policy, state, claim):
                is_done = False
                continue
            template = state.templates[template.key]
        if name := template.claim.cluster_name:
            if policy.is_namespaced:
                claim(template, policy)
            else:
                other = PolicyKey(CLUSTER_PROPAGATION_POLICY, "", name)
                is_done = _preempt_from(other, template, policy, state, claim) and is_done
    return is_done


def _preempt_from(
    other: PolicyKey, template: Template, policy: ClaimingPolicy, state: DetectorState, claim: _Claim
) -> bool:
    """Take a template from a policy of the same kind with a lower priority; return False if there is no such policy."""
    if other == policy.key:
        return True
    claiming = state.policies.get(other)
    if claiming is not None and policy.priority > claiming.priority:
        claim(template, policy)
    return claiming is not None
