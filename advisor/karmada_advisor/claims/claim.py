"""From a change of policies to claims and bindings: the public function of the package."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from karmada_advisor.claims.binding_spec import MissingPriorityClassError
from karmada_advisor.claims.detector import Detector
from karmada_advisor.claims.model import (
    ClaimRefusal,
    Claims,
    DetectorOptions,
    DetectorOutcome,
    Event,
    PolicyDeleted,
    PolicyWritten,
    TemplateClaim,
    TemplateDeleted,
    TemplateWritten,
    UnclaimedReason,
    Waits,
)
from karmada_advisor.claims.policy import ClaimingPolicy, read_policy, refusal
from karmada_advisor.claims.replicas import ReplicaReader
from karmada_advisor.claims.selectors import Match
from karmada_advisor.claims.state import DetectedBinding, DetectorState, How, read_binding
from karmada_advisor.claims.template import CLAIM_ANNOTATIONS, CLAIM_LABELS, UNCLAIMED, Template, TemplateKey
from karmada_scheduler.api.binding import API_VERSION
from karmada_scheduler.api.binding_spec import BindingKey
from karmada_scheduler.api.manifest import Manifest, read_mapping
from karmada_scheduler.api.policy import PolicyKey

DEFAULTS: Final = DetectorOptions()

_React = Callable[[Detector, Sequence[Event]], None]

FROM_POLICY: Final = (
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
    run = _Run(before, options, accepted)
    after = run.settled(_in_turn)
    others = _others(run) if other_orders else []
    concerned = _concerned(before, after.state, accepted)
    for detector in (after, *others):
        concerned.update(detector.concerned)
    view = _View(
        before, after, [each.state for each in others], {key: each for key, (_, each) in manifests.items()}
    )
    keys = dict.fromkeys([*before.templates, *after.state.templates])
    found = {key: view.concerned(key) if key in concerned else view.unconcerned(key) for key in keys}
    return Claims(found, tuple(refusals))


def _concerned(before: DetectorState, after: DetectorState, events: Sequence[Event]) -> set[TemplateKey]:
    """Return the templates that an event names, or that a written policy matches before or after it."""
    found: set[TemplateKey] = set()
    old_groups, new_groups = before.selectable_groups(), after.selectable_groups()
    for event in events:
        match event:
            case TemplateWritten(template):
                found.add(template.key)
            case TemplateDeleted(key):
                found.add(key)
            case PolicyWritten() | PolicyDeleted():
                name = _touched(event)
                assert isinstance(name, PolicyKey)
                old, new = before.policies.get(name), after.policies.get(name)
                if old is not None:
                    found.update(each.key for each in old.matched(old_groups))
                if new is not None and (old is None or new.selectors != old.selectors):
                    found.update(each.key for each in new.matched(new_groups))
    return found


def changes(before: Iterable[Manifest], after: Iterable[Manifest]) -> list[Event]:
    """Return the events between two sets of policies: what ``kubectl apply --prune`` does, deletions last.

    Raises:
        ManifestError: A field of a policy has the wrong type.
    """
    old, new = ({read_policy(each).key: each for each in side} for side in (before, after))
    written: list[Event] = [
        PolicyWritten(manifest)
        for key, manifest in new.items()
        if key not in old or read_policy(old[key]).spec != read_policy(manifest).spec
    ]
    return [*written, *(PolicyDeleted(key) for key in old if key not in new)]


def _accepted(before: DetectorState, events: Sequence[Event]) -> tuple[list[Event], list[ClaimRefusal]]:
    """Drop the events that the webhook refuses."""
    policies = dict(before.policies)
    accepted: list[Event] = []
    refusals: list[ClaimRefusal] = []
    for event in events:
        if isinstance(event, PolicyDeleted):
            policies.pop(event.key, None)
        elif isinstance(event, PolicyWritten):
            policy = read_policy(event.manifest)
            if problem := refusal(policy, policies.get(policy.key)):
                refusals.append(ClaimRefusal(policy.key, problem))
                continue
            policies[policy.key] = policy
        accepted.append(event)
    return accepted, refusals


def _in_turn(detector: Detector, events: Sequence[Event]) -> None:
    for event in events:
        detector.react(event)


def _at_once(detector: Detector, events: Sequence[Event]) -> None:
    detector.react_to_all(events)


class _Run:
    """A change, which can be made in several orders."""

    def __init__(self, before: DetectorState, options: DetectorOptions, events: Sequence[Event]) -> None:
        self.before = before
        self.options = options
        self.events = events
        self._replicas = ReplicaReader(options)

    def settled(
        self, react: _React, *, events: Sequence[Event] | None = None, templates_last: bool = False
    ) -> Detector:
        """Return the detector after the change."""
        detector = Detector(
            self.before.copy(), self.options, replicas=self._replicas, templates_last=templates_last
        )
        react(detector, self.events if events is None else events)
        return detector


def _others(run: _Run) -> list[Detector]:
    """Return the detectors after the same events in other orders."""
    found: list[Detector] = []
    if run.options.preemption and any(isinstance(event, PolicyWritten) for event in run.events):
        found.append(run.settled(_in_turn, templates_last=True))
    touched = [_touched(event) for event in run.events]
    if len(touched) > 1 and len(set(touched)) == len(touched):  # events of one object have a fixed order
        backwards = list(reversed(run.events))
        found += [
            run.settled(_in_turn, events=backwards),
            run.settled(_at_once),
            run.settled(_at_once, events=backwards),
        ]
    return found


def _touched(event: Event) -> PolicyKey | TemplateKey:
    match event:
        case PolicyWritten(manifest):
            return read_policy(manifest).key
        case TemplateWritten(template):
            return template.key
        case _:
            return event.key


class _View:
    """Both sides of a change, and the results of its other orders."""

    def __init__(
        self,
        before: DetectorState,
        after: Detector,
        others: Sequence[DetectorState],
        originals: Mapping[BindingKey, Manifest],
    ) -> None:
        self._before = before
        self._after = after
        self._others = others
        self._originals = originals

    def unconcerned(self, key: TemplateKey) -> TemplateClaim:
        """Return a template that the change does not concern."""
        template = self._before.templates[key]
        policy, binding = template.claim.policy, self._originals.get(key.binding)
        return TemplateClaim(
            template=key,
            binding=key.binding,
            policy_before=policy,
            policy_after=policy,
            claim_after=template.claim,
            binding_before=binding,
            binding_after=binding,
            reason=UnclaimedReason.KEPT
            if policy is not None
            else _reason_unclaimed(template, None, (), self._after),
        )

    def concerned(self, key: TemplateKey) -> TemplateClaim:
        """Return a template that the change may concern."""
        before, detector = self._before, self._after
        after = detector.state
        new, policy_after = after.templates.get(key), _claimed_by(after, key)
        name = key.binding
        binding, original = after.bindings.get(name), self._originals.get(name)
        waits, awaited = _waiting_for(new, detector)
        policy = after.policy_of(policy_after)
        first = detector.best_policy(new) if new is not None and policy is not None else None
        outcome, others = _outcome(after, key), [_outcome(each, key) for each in self._others]
        return TemplateClaim(
            template=key,
            binding=name,
            policy_before=_claimed_by(before, key),
            policy_after=policy_after,
            claim_after=UNCLAIMED if new is None else new.claim,
            binding_before=original,
            binding_after=None
            if binding is None
            else _manifest(binding, original, before.bindings.get(name)),
            reason=_reason(key, before, detector),
            waits=waits,
            spec_awaited=awaited,
            held_from=None if first is None or first.key == policy_after else first.key,
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


def _reason(key: TemplateKey, before: DetectorState, detector: Detector) -> UnclaimedReason:
    after = detector.state
    old, new = before.templates.get(key), after.templates.get(key)
    policy_before, policy_after = _claimed_by(before, key), _claimed_by(after, key)
    if new is None:
        return UnclaimedReason.DELETED
    steps = after.steps.get(key, [])
    if policy_after is None:
        return _reason_unclaimed(new, policy_before, steps, detector)
    if policy_after == policy_before and old is not None and _id(old) == _id(new):
        return UnclaimedReason.KEPT
    if steps and steps[-1] is How.PREEMPTION:
        return UnclaimedReason.PREEMPTED
    if policy_before is None:
        return UnclaimedReason.MATCHED
    return UnclaimedReason.AFTER_EDIT if How.SELECTORS in steps else UnclaimedReason.AFTER_DELETION


def _reason_unclaimed(
    template: Template, before: PolicyKey | None, steps: Sequence[How], detector: Detector
) -> UnclaimedReason:
    if before is not None:
        return (
            UnclaimedReason.RELEASED_BY_EDIT
            if How.SELECTORS in steps
            else UnclaimedReason.RELEASED_BY_DELETION
        )
    if template.is_claimed_by_controller:
        return UnclaimedReason.OTHER_CONTROLLER
    skipped = template.is_skipped(detector.options.skipped_namespaces)
    return UnclaimedReason.SKIPPED if skipped else UnclaimedReason.NOT_MATCHED


def _id(template: Template) -> str:
    policy = template.claim.policy
    return "" if policy is None else template.claim.id_of(policy.kind)


def _waiting_for(template: Template | None, detector: Detector) -> tuple[Waits, Mapping[str, Any] | None]:
    """Return what the binding of a template waits for, and its spec after that."""
    state = detector.state
    policy = None if template is None else state.policy_of(template.claim.policy)
    if template is None:
        return Waits.NOTHING, None
    if policy is None:
        best = detector.best_policy(template) if template.claim.policy is None else None
        ignored = template.is_claimed_by_controller or template.is_skipped(
            detector.options.skipped_namespaces
        )
        lacks = best is not None and not ignored and detector.lacks_overrides(best)
        return (Waits.OVERRIDES if lacks else Waits.NOTHING), None
    if policy.match(template) is Match.NONE:
        return Waits.MATCH, None
    binding = state.bindings.get(template.key.binding)
    try:
        spec = detector.spec_of(policy, template, None if binding is None else binding.spec)
    except MissingPriorityClassError:
        return Waits.PRIORITY_CLASS, None
    if binding is not None and _is_applied(policy, binding, spec):
        return Waits.NOTHING, None
    return (Waits.OVERRIDES if detector.lacks_overrides(policy) else Waits.TEMPLATE_CHANGE), spec


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
