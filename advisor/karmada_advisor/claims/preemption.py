"""Takes templates for a policy with ``preemption: Always`` from policies of a lower priority.

Source: karmada v1.18.2 pkg/detector/preemption.go.
"""

from __future__ import annotations

from collections.abc import Callable

from karmada_advisor.claims.policy import ClaimingPolicy
from karmada_advisor.claims.state import DetectorState
from karmada_advisor.claims.template import Template, TemplateKey
from karmada_scheduler.api.policy import CLUSTER_PROPAGATION_POLICY, PROPAGATION_POLICY, PolicyKey

_Claim = Callable[[Template, ClaimingPolicy], Template]


def preempting_between(state: DetectorState, policy: ClaimingPolicy, priority: int) -> list[ClaimingPolicy]:
    """Return the policies that may take templates from one whose priority has been lowered, highest first.

    Args:
        state: All objects.
        policy: With the lower priority.
        priority: The one before.
    """
    found = [
        each
        for each in state.policies_of(policy.key.kind, policy.key.namespace)
        if each.preempts and policy.priority < each.priority < priority
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
