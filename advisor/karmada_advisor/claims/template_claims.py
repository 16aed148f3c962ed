"""Both sides of a change as what has become of each template."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from karmada_advisor.claims.binding_spec import MissingPriorityClassError
from karmada_advisor.claims.detector import Detector
from karmada_advisor.claims.model import DetectorOutcome, TemplateClaim, Waits
from karmada_advisor.claims.policy import ClaimingPolicy
from karmada_advisor.claims.selectors import Match
from karmada_advisor.claims.state import DetectedBinding, DetectorState
from karmada_advisor.claims.template import CLAIM_ANNOTATIONS, CLAIM_LABELS, UNCLAIMED, Template, TemplateKey
from karmada_scheduler.api.binding import API_VERSION
from karmada_scheduler.api.binding_spec import BindingKey
from karmada_scheduler.api.manifest import Manifest, read_mapping
from karmada_scheduler.api.policy import PolicyKey
from karmada_scheduler.structs import Struct

_FROM_POLICY: Final = (
    "placement",
    "propagateDeps",
    "schedulerName",
    "failover",
    "conflictResolution",
    "preserveResourcesOnDeletion",
    "suspension",
    "schedulePriority",
    "workloadAffinityGroups",
)
"""Fields of a binding's spec that come from its policy."""


class SidesOfChange(Struct, frozen=True):
    """Both sides of a change, and the results of its other orders."""

    before: DetectorState
    after: Detector
    others: Sequence[DetectorState]
    originals: Mapping[BindingKey, Manifest]

    def unconcerned(self, key: TemplateKey) -> TemplateClaim:
        """Return a template that the change does not concern."""
        template = self.before.templates[key]
        policy, binding = template.claim.policy, self.originals.get(key.binding)
        return TemplateClaim(
            template=key,
            binding=key.binding,
            policy_before=policy,
            policy_after=policy,
            claim_after=template.claim,
            binding_before=binding,
            binding_after=binding,
            is_kept=policy is not None,
        )

    def concerned(self, key: TemplateKey) -> TemplateClaim:
        """Return a template that the change may concern."""
        before, detector = self.before, self.after
        after = detector.state
        old, new = before.templates.get(key), after.templates.get(key)
        policy_before, policy_after = _claimed_by(before, key), _claimed_by(after, key)
        name = key.binding
        binding, original = after.bindings.get(name), self.originals.get(name)
        policy = after.policy_of(policy_after)
        outcome, others = _outcome(after, key), [_outcome(each, key) for each in self.others]
        return TemplateClaim(
            template=key,
            binding=name,
            policy_before=policy_before,
            policy_after=policy_after,
            claim_after=UNCLAIMED if new is None else new.claim,
            binding_before=original,
            binding_after=None
            if binding is None
            else _manifest(binding, original, before.bindings.get(name)),
            is_kept=policy_after is not None and policy_after == policy_before and _id(old) == _id(new),
            waits=_waiting_for(new, detector),
            replicas_known=new is None or detector.replicas.of(new).known,
            labels_assumed=new is not None
            and new.labels is None
            and policy is not None
            and policy.has_label_selectors,
            alternatives=tuple(_different(outcome, others)),
        )


def _claimed_by(state: DetectorState, key: TemplateKey) -> PolicyKey | None:
    template = state.templates.get(key)
    return None if template is None else template.claim.policy


def _outcome(state: DetectorState, key: TemplateKey) -> DetectorOutcome:
    binding = state.bindings.get(key.binding)
    return DetectorOutcome(_claimed_by(state, key), None if binding is None else binding.spec)


def _different(outcome: DetectorOutcome, others: Iterable[DetectorOutcome]) -> list[DetectorOutcome]:
    found: list[DetectorOutcome] = []
    for other in others:
        if other != outcome and other not in found:
            found.append(other)
    return found


def _id(template: Template | None) -> str:
    policy = None if template is None else template.claim.policy
    return "" if template is None or policy is None else template.claim.id_of(policy.kind)


def _waiting_for(template: Template | None, detector: Detector) -> Waits:
    """Return what the binding of a template waits for."""
    if template is None:
        return Waits.NOTHING
    if template.is_claimed_by_controller:
        return Waits.CONTROLLER
    policy = detector.state.policy_of(template.claim.policy)
    if policy is None:
        return Waits.NOTHING
    binding = detector.state.bindings.get(template.key.binding)
    if template.has_long_name or (binding is not None and not binding.is_of(template)):
        return Waits.NAME
    if policy.match(template) is Match.NONE:
        return Waits.MATCH
    try:
        spec = detector.spec_of(policy, template, None if binding is None else binding.spec)
    except MissingPriorityClassError:
        return Waits.PRIORITY_CLASS
    is_applied = binding is not None and _is_applied(policy, binding, spec)
    return Waits.NOTHING if is_applied else Waits.TEMPLATE_CHANGE


def _is_applied(policy: ClaimingPolicy, binding: DetectedBinding, spec: Mapping[str, Any]) -> bool:
    return binding.claim.id_of(policy.key.kind) == policy.permanent_id and all(
        binding.spec.get(name) == spec.get(name) for name in _FROM_POLICY
    )


def _manifest(
    binding: DetectedBinding, original: Manifest | None, before: DetectedBinding | None
) -> Manifest:
    """Return a binding as the API server will have it; the original itself if it is unchanged."""
    if original is not None and before == binding:
        return original
    old = {} if original is None else read_mapping(original, "metadata", "")
    is_same_spec = before is not None and before.spec == binding.spec
    metadata: dict[str, Any] = {**old, "name": binding.key.name}
    if binding.key.namespace:
        metadata["namespace"] = binding.key.namespace
    metadata["generation"] = int(old.get("generation") or 0) + (not is_same_spec)
    for field, names, claimed in (
        ("labels", CLAIM_LABELS, binding.claim.labels()),
        ("annotations", CLAIM_ANNOTATIONS, binding.claim.annotations()),
    ):
        kept = {name: value for name, value in (old.get(field) or {}).items() if name not in names}
        metadata[field] = {**kept, **claimed}
    rest = {} if original is None else {name: value for name, value in original.items() if name == "status"}
    return {
        "apiVersion": API_VERSION,
        "kind": binding.key.kind,
        "metadata": metadata,
        "spec": binding.spec,
        **rest,
    }
