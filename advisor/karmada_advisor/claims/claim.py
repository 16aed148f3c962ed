"""From a change of policies to claims and bindings, with both sides of each template: the public function of the package."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from karmada_advisor.claims.binding_spec import FROM_POLICY, binding_spec, replicas_of
from karmada_advisor.claims.detector import Detector
from karmada_advisor.claims.model import (
    DEFAULTS,
    ClaimRefusal,
    Claims,
    DetectorOptions,
    DetectorOutcome,
    Event,
    PolicyDeleted,
    PolicyWritten,
    TemplateClaim,
    TemplateWritten,
    Waits,
)
from karmada_advisor.claims.policy import ClaimingPolicy, read_policy, refusal
from karmada_advisor.claims.shapes import Match
from karmada_advisor.claims.state import DetectedBinding, DetectorState, read_binding
from karmada_advisor.claims.template import (
    CLAIM_ANNOTATIONS,
    CLAIM_LABELS,
    UNCLAIMED,
    Template,
    TemplateKey,
    template_of,
)
from karmada_scheduler.api.binding import API_VERSION
from karmada_scheduler.api.manifest import Manifest, ManifestError, read_mapping
from karmada_scheduler.api.policy import PolicyKey
from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.structs import replace


def claim(
    templates: Iterable[Template],
    policies: Iterable[Manifest],
    bindings: Iterable[Manifest],
    *,
    events: Sequence[Event] = (),
    options: DetectorOptions = DEFAULTS,
    other_orders: bool = True,
) -> Claims:
    """Return which policy claims which template after a change, and what the bindings receive.

    The events are applied one after the other, and the detector settles after each. Where the result depends on that, the
    others are in ``alternatives``: of the reverse order, of all at once, and of policies before templates.

    Args:
        templates: All templates, as they are before the change.
        policies: PropagationPolicies and ClusterPropagationPolicies before the change.
        bindings: ResourceBindings and ClusterResourceBindings before the change.
        events: The change, in order.
        options: How the detector runs.
        other_orders: Whether to look for alternatives; it takes up to five times as long.

    Raises:
        ManifestError: A policy, a binding, or a pod template that is read for a new binding has a field of the wrong type.
    """
    manifests = {each.key: (each, manifest) for manifest in bindings for each in (read_binding(manifest),)}
    before = DetectorState(templates, map(read_policy, policies), (state for state, _ in manifests.values()))
    accepted, refusals = _accepted(before, events)
    after = _settled(before, options, _in_turn(accepted))
    others = [*_in_other_orders(before, options, accepted)] if other_orders else []
    concerned = _concerned(before, after.state, accepted)
    for detector in (after, *others):
        concerned.update(detector.concerned)
    found = {}
    for key in dict.fromkeys([*before.templates, *after.state.templates]):
        _, original = manifests.get(key.binding, (None, None))
        if key in concerned:
            found[key] = _changed(key, original, before, after, others)
        else:
            found[key] = _unchanged(before.templates[key], original)
    return Claims(found, tuple(refusals))


def _concerned(before: DetectorState, after: DetectorState, events: Sequence[Event]) -> set[TemplateKey]:
    """Return the templates that an event names, or that a written policy matches before or after it."""
    found: set[TemplateKey] = set()
    for event in events:
        if isinstance(event, TemplateWritten):
            found.add(event.key)
            continue
        old, new = before.policies.get(event.key), after.policies.get(event.key)
        if new is not None and old is not None and new.selectors == old.selectors:
            new = None
        for policy, state in ((old, before), (new, after)):
            if policy is not None:
                found.update(
                    key
                    for key, template in state.templates.items()
                    if policy.match(template) is not Match.NONE
                )
    return found


def _accepted(before: DetectorState, events: Sequence[Event]) -> tuple[list[Event], list[ClaimRefusal]]:
    """Drop the events that the webhook refuses."""
    policies = dict(before.policies)
    accepted: list[Event] = []
    refusals: list[ClaimRefusal] = []
    for event in events:
        if isinstance(event, PolicyDeleted):
            policies.pop(event.key, None)
        elif isinstance(event, PolicyWritten):
            if problem := refusal(event.policy, policies.get(event.key)):
                refusals.append(ClaimRefusal(event.key, problem))
                continue
            policies[event.key] = event.policy
        accepted.append(event)
    return accepted, refusals


def _settled(
    before: DetectorState, options: DetectorOptions, events: Iterable[Sequence[Event]], *, last: bool = False
) -> Detector:
    """Return the detector after events; those of one sequence come at once, and with ``last`` policies before templates."""
    detector = Detector(before.copy(), options, templates_last=last)
    for event in events:
        detector.react(*event)
    return detector


def _in_other_orders(
    before: DetectorState, options: DetectorOptions, events: Sequence[Event]
) -> Iterator[Detector]:
    """Yield the detectors after the same events in other orders."""
    if options.preemption and any(isinstance(event, PolicyWritten) for event in events):
        yield _settled(before, options, _in_turn(events), last=True)
    touched = [event.key for event in events]
    if len(touched) > 1 and len(set(touched)) == len(touched):  # events of one object have a fixed order
        for other in (_in_turn(events[::-1]), [events], [events[::-1]]):
            yield _settled(before, options, other)


def _in_turn(events: Sequence[Event]) -> list[Sequence[Event]]:
    return [[event] for event in events]


def _unchanged(template: Template, original: Manifest | None) -> TemplateClaim:
    """Return a template that the change does not concern."""
    key, policy = template.key, template.claim.policy
    return TemplateClaim(key, key.binding, policy, policy, template.claim, original, original)


def _changed(
    key: TemplateKey,
    original: Manifest | None,
    before: DetectorState,
    detector: Detector,
    others: Iterable[Detector],
) -> TemplateClaim:
    """Return a template that the change may concern; ``others`` have settled after other orders of the events."""
    after = detector.state
    new, policy_after = after.templates.get(key), _claimed_by(after, key)
    name = key.binding
    binding = after.bindings.get(name)
    policy = after.policy_of(policy_after)
    outcomes = [_outcome(state.state, key) for state in (detector, *others)]
    distinct = [outcome for place, outcome in enumerate(outcomes) if outcome not in outcomes[:place]]
    return TemplateClaim(
        template=key,
        binding=name,
        policy_before=_claimed_by(before, key),
        policy_after=policy_after,
        claim_after=UNCLAIMED if new is None else new.claim,
        binding_before=original,
        binding_after=None if binding is None else _manifest(binding, original, before.bindings.get(name)),
        waits=_waiting_for(new, detector),
        replicas_known=new is None or replicas_of(new, detector.options).known,
        labels_assumed=new is not None
        and new.labels is None
        and policy is not None
        and policy.has_label_selectors,
        alternatives=tuple(distinct[1:]),
    )


def _claimed_by(state: DetectorState, key: TemplateKey) -> PolicyKey | None:
    template = state.templates.get(key)
    return None if template is None else template.claim.policy


def _outcome(state: DetectorState, key: TemplateKey) -> DetectorOutcome:
    binding = state.bindings.get(key.binding)
    return DetectorOutcome(_claimed_by(state, key), None if binding is None else binding.spec)


def _waiting_for(template: Template | None, detector: Detector) -> Waits:
    """Return what the binding of a template waits for."""
    if template is None:
        return Waits.NOTHING
    if template.managed_by:
        return Waits.CONTROLLER
    policy = detector.state.policy_of(template.claim.policy)
    if policy is None:
        return Waits.NOTHING
    binding = detector.state.bindings.get(template.key.binding)
    if template.has_long_name or (binding is not None and not binding.is_of(template)):
        return Waits.NAME
    if policy.match(template) is Match.NONE:
        return Waits.MATCH
    spec = binding_spec(policy, template, None if binding is None else binding.spec, detector.options)
    if spec is None:
        return Waits.PRIORITY_CLASS
    is_applied = binding is not None and _is_applied(policy, binding, spec)
    return Waits.NOTHING if is_applied else Waits.TEMPLATE_CHANGE


def _is_applied(policy: ClaimingPolicy, binding: DetectedBinding, spec: Mapping[str, Any]) -> bool:
    return binding.claim.id_of(policy.key.kind) == policy.permanent_id and all(
        binding.spec.get(name) == spec.get(name) for name in FROM_POLICY
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


_WITH_PREEMPTION: Final = DetectorOptions(FeatureGates({"PropagationPolicyPreemption": True}))
"""An edit that needs the gate PropagationPolicyPreemption says so: nothing that is stored tells whether it is on."""


def received(
    binding: Manifest,
    policies: Iterable[Manifest],
    written: Sequence[Manifest],
    labels: Mapping[str, str] | None,
) -> Manifest | None:
    """Return the binding after policies were written; None if it stays as it is, or that cannot be known.

    Args:
        binding: As it was read.
        policies: All policies before the edit.
        written: Those that are edited, afterwards.
        labels: The labels of the template; None if they are not known, so that no label selector matches it.
    """
    try:
        template = template_of(binding)
        if labels is not None:
            template = replace(template, labels={**labels, **template.claim.labels()})
        events, options = [PolicyWritten(manifest) for manifest in written], _WITH_PREEMPTION
        found = claim([template], policies, [binding], events=events, options=options, other_orders=False)
    except ManifestError:
        return None
    of_template = found.templates.get(template.key)
    if found.refusals or of_template is None or of_template.binding_after is binding:
        return None
    return of_template.binding_after
