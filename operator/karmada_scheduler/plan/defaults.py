"""The defaults of policies: those of the API server and of Karmada's webhook that decisions read.

Source: karmada v1.18.2 pkg/webhook/propagationpolicy/mutating.go, pkg/util/helper/policy.go; the CRDs of policies.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from karmada_scheduler.api.binding import DEFAULT_SCHEDULER_NAME
from karmada_scheduler.api.policy import PROPAGATION_POLICY
from karmada_scheduler.plan.objects import Manifest, part, text_of


def with_defaults(policy: Manifest) -> Manifest:
    """Return a policy with the defaults of the API server and of Karmada's webhook that decisions read."""
    spec = dict(part(policy, "spec"))
    placement = dict(part(spec, "placement"))
    constraints = placement.get("spreadConstraints")
    if isinstance(constraints, list):
        placement["spreadConstraints"] = [_constraint(each) for each in constraints]
    strategy = placement.get("replicaScheduling")
    if isinstance(strategy, Mapping):
        strategy = {"replicaSchedulingType": "Divided", **strategy}
        if strategy["replicaSchedulingType"] == "Divided" and not strategy.get("replicaDivisionPreference"):
            strategy["replicaDivisionPreference"] = "Weighted"
        placement["replicaScheduling"] = strategy
    if "placement" in spec or placement:
        spec["placement"] = placement
    spec = {
        "conflictResolution": "Abort",
        "preemption": "Never",
        "priority": 0,
        "schedulerName": DEFAULT_SCHEDULER_NAME,
        **spec,
    }
    if text_of(policy, "kind") == PROPAGATION_POLICY:
        namespace = text_of(policy, "metadata", "namespace")
        selectors = spec.get("resourceSelectors")
        if isinstance(selectors, list):
            spec["resourceSelectors"] = [
                {**each, "namespace": each.get("namespace") or namespace}
                if isinstance(each, Mapping)
                else each
                for each in selectors
            ]
    return {**policy, "spec": spec}


def _constraint(constraint: Any) -> Any:
    if not isinstance(constraint, Mapping):
        return constraint
    filled = {**constraint, "minGroups": constraint.get("minGroups") or 1}
    if not filled.get("spreadByField") and not filled.get("spreadByLabel"):
        filled["spreadByField"] = "cluster"
    return filled
