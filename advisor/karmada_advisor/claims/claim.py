"""From a change of policies to claims and bindings: the public function of the package."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from karmada_advisor.claims.detector import Detector
from karmada_advisor.claims.model import (
    ClaimRefusal,
    Claims,
    DetectorOptions,
    Event,
    PolicyDeleted,
    PolicyWritten,
    TemplateWritten,
)
from karmada_advisor.claims.policy import read_policy, refusal
from karmada_advisor.claims.replicas import ReplicaReader
from karmada_advisor.claims.state import DetectorState, read_binding
from karmada_advisor.claims.template import Template, TemplateKey
from karmada_advisor.claims.template_claims import SidesOfChange
from karmada_scheduler.api.manifest import Manifest
from karmada_scheduler.api.policy import PolicyKey
from karmada_scheduler.structs import Struct

DEFAULTS: Final = DetectorOptions()


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
    change = _Change(before, options, accepted, ReplicaReader(options))
    after = change.made(_in_turn(accepted))
    others = change.in_other_orders() if other_orders else []
    concerned = _concerned(before, after.state, accepted)
    for detector in (after, *others):
        concerned.update(detector.concerned)
    view = SidesOfChange(
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
            case PolicyWritten() | PolicyDeleted():
                name = _touched(event)
                assert isinstance(name, PolicyKey)
                old, new = before.policies.get(name), after.policies.get(name)
                if old is not None:
                    found.update(each.key for each in old.matched(old_groups))
                if new is not None and (old is None or new.selectors != old.selectors):
                    found.update(each.key for each in new.matched(new_groups))
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
            policy = read_policy(event.manifest)
            if problem := refusal(policy, policies.get(policy.key)):
                refusals.append(ClaimRefusal(policy.key, problem))
                continue
            policies[policy.key] = policy
        accepted.append(event)
    return accepted, refusals


class _Change(Struct, frozen=True):
    """A change, which can be made in several orders.

    Attributes:
        before: The objects before it.
        options: How the detector runs.
        events: In the order in which they were given.
        replicas: Read once for all orders.
    """

    before: DetectorState
    options: DetectorOptions
    events: Sequence[Event]
    replicas: ReplicaReader

    def made(self, events: Iterable[Sequence[Event]], *, templates_last: bool = False) -> Detector:
        """Return the detector after events; those of one sequence come at once."""
        detector = Detector(self.before.copy(), self.options, self.replicas, templates_last=templates_last)
        for each in events:
            detector.react(*each)
        return detector

    def in_other_orders(self) -> list[Detector]:
        """Return the detectors after the same events in other orders."""
        found: list[Detector] = []
        if self.options.preemption and any(isinstance(event, PolicyWritten) for event in self.events):
            found.append(self.made(_in_turn(self.events), templates_last=True))
        touched = [_touched(event) for event in self.events]
        if len(touched) > 1 and len(set(touched)) == len(touched):  # events of one object have a fixed order
            backwards = self.events[::-1]
            found += map(self.made, (_in_turn(backwards), [self.events], [backwards]))
        return found


def _in_turn(events: Sequence[Event]) -> list[Sequence[Event]]:
    return [[each] for each in events]


def _touched(event: Event) -> PolicyKey | TemplateKey:
    match event:
        case PolicyWritten(manifest):
            return read_policy(manifest).key
        case TemplateWritten(template):
            return template.key
        case _:
            return event.key
