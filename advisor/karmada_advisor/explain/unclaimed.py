"""The explanation of a template without a binding: no policy claims it, or Karmada cannot make the binding."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from karmada_advisor.explain.causes_state import reported_by
from karmada_advisor.explain.inputs import Manifest
from karmada_advisor.explain.model import BindingHead, Cause, Explanation, Provenance, Stage, Tense
from karmada_advisor.explain.names import nearest
from karmada_advisor.explain.policies import TemplateHead, matching, misses, priority_class_of
from karmada_advisor.state.model import BindingState, StateName


def explain_unclaimed(
    template: TemplateHead,
    policies: Sequence[Manifest],
    *,
    source: str = "files",
    priority_classes: Collection[str] | None = None,
    events: Sequence[Manifest] = (),
) -> Explanation:
    """Return why a template has no binding.

    Args:
        template: The template.
        policies: All policies.
        source: Where they come from, for people.
        priority_classes: The names of the PriorityClasses that exist; None if that is not known.
        events: The Warning Events of the template, the newest first.
    """
    found = matching(policies, template)
    missed = misses(policies, template)
    evidence = {
        "template": f"{template.api_version} {template.kind}",
        "nearest": {each.name: each.reason for each in missed},
        "matching": [each.name for each in found],
        "reserved": template.is_reserved,
    }
    if template.is_reserved:
        text = f"templates of the namespace {template.namespace} are never propagated"
    elif found:
        text = f"{found[0].name} matches, but Karmada's detector has not made a binding yet"
    elif missed and missed[0].index >= 0:
        text = f"no policy matches it; nearest: {missed[0].name}, but its {missed[0].reason}"
    elif missed:
        text = f"no policy matches it; nearest: {missed[0].name}, but it {missed[0].reason}"
    else:
        text = "there is no policy"
    cause = Cause("NotClaimed", Stage.POLICY, evidence, text, primary=True)
    if not template.is_reserved:
        cause = _without_priority_class(policies, template, priority_classes) or cause
    head = BindingHead(template.kind, template.namespace, template.name, 0, 0, {})
    provenance = Provenance(Tense.RECOMPUTED, source)
    state = BindingState(StateName.NOT_CLAIMED, text=cause.text, reason="NotClaimed")
    return Explanation(head, state, provenance, causes=(cause, *reported_by(events)))


def _without_priority_class(
    policies: Sequence[Manifest], template: TemplateHead, known: Collection[str] | None
) -> Cause | None:
    """Return that the PriorityClass of a policy does not exist; None if it does, or if that is not known.

    Source: karmada v1.18.2 pkg/detector/detector.go, which looks it up with the gate PriorityBasedScheduling only.
    """
    wanted = priority_class_of(policies, template)
    if wanted is None or known is None or wanted[1] in known:
        return None
    policy, name = wanted
    near = nearest(name, known)
    text = f"{policy} matches, but its spec.schedulePriority names PriorityClass {name}, which does not exist"
    if near:
        text += f"; nearest: {near}"
    evidence = {"policy": policy, "priorityClass": name, "nearest": near}
    return Cause("PriorityClassMissing", Stage.POLICY, evidence, text, primary=True)
