"""The explanation of a template without a binding: no policy claims it."""

from __future__ import annotations

from collections.abc import Sequence

from karmada_advisor.explain.inputs import Manifest
from karmada_advisor.explain.model import BindingHead, Cause, Explanation, Provenance, Stage, Tense
from karmada_advisor.explain.policies import TemplateHead, matching, misses
from karmada_advisor.state.model import BindingState, StateName


def explain_unclaimed(
    template: TemplateHead, policies: Sequence[Manifest], *, source: str = "files"
) -> Explanation:
    """Return why a template has no binding.

    Args:
        template: The template.
        policies: All policies.
        source: Where they come from, for people.
    """
    found = matching(policies, template)
    missed = misses(policies, template)
    nearest = {each.name: each.reason for each in missed}
    evidence = {
        "template": f"{template.api_version} {template.kind}",
        "nearest": nearest,
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
    head = BindingHead(template.kind, template.namespace, template.name, 0, 0, {})
    provenance = Provenance(Tense.RECOMPUTED, source)
    state = BindingState(StateName.NOT_CLAIMED, text=text, reason="NotClaimed")
    return Explanation(head, state, provenance, causes=(cause,))
