"""Override policies that select no template, name no cluster, or change replicas that the scheduler divides."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from karmada_advisor.claims.policy import read_policy
from karmada_advisor.state.stored import mapping, mappings, part, policy_key, text_of
from karmada_advisor.whatif.plan.lint_placement import lint_affinity
from karmada_advisor.whatif.plan.lint_selectors import Templates
from karmada_advisor.whatif.plan.model import PlanWarning
from karmada_advisor.whatif.plan.objects import Manifest
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.names import FleetValues

_REPLICAS: Final = ("/spec/replicas", "/spec/parallelism")


def lint_overrides(
    manifest: Manifest, templates: Templates, known: FleetValues, bindings: Mapping[BindingKey, Binding]
) -> Iterator[PlanWarning]:
    """Yield what is wrong with an override policy.

    Args:
        manifest: An OverridePolicy or ClusterOverridePolicy.
        templates: Those after the change.
        known: What clusters have.
        bindings: Those after the change.
    """
    key, spec = policy_key(manifest), part(manifest, "spec")
    name = f"{key.kind}/{key}"
    selecting = {"resourceSelectors": spec.get("resourceSelectors")}
    policy = read_policy({**manifest, "kind": key.kind.replace("Override", "Propagation"), "spec": selecting})
    yield from templates.lint_selectors(name, policy, [])
    divided = sorted(
        str(template)
        for template in templates.selected(policy)
        if (found := bindings.get(template.binding)) is not None
        and found.spec.placement is not None
        and not found.spec.placement.is_duplicated
    )
    for index, rule in enumerate(mappings(spec.get("overrideRules"))):
        path = f"spec.overrideRules[{index}]"
        yield from lint_affinity(name, f"{path}.targetCluster", mapping(rule.get("targetCluster")), known)
        for number, each in enumerate(mappings(part(rule, "overriders").get("plaintext"))):
            if divided and text_of(each, "path") in _REPLICAS:
                text = f"it changes the replicas of {', '.join(divided)}, which the scheduler divides"
                yield PlanWarning("ReplicasOverridden", name, f"{path}.overriders.plaintext[{number}]", text)
