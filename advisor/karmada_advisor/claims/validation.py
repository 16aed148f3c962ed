"""Changes of policies that Karmada's validating webhook refuses, as far as they concern claims and placements.

Source: karmada v1.18.2 pkg/webhook/propagationpolicy/validating.go, pkg/webhook/clusterpropagationpolicy/validating.go,
pkg/util/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from karmada_advisor.claims.policy import ClaimingPolicy


def refusal(policy: ClaimingPolicy, before: ClaimingPolicy | None) -> str:
    """Return why the webhook refuses a policy; "" if it accepts it.

    Args:
        policy: As it would be stored.
        before: The existing policy of this name; None if it is created.
    """
    return next(_problems(policy, before), "")


def _problems(policy: ClaimingPolicy, before: ClaimingPolicy | None) -> Iterator[str]:
    if before is not None and before.scheduler_name != policy.scheduler_name:
        yield (
            f"spec.schedulerName cannot be changed from {before.scheduler_name} to {policy.scheduler_name}: "
            "delete the policy and create it again"
        )
    if not policy.selectors:
        yield "spec.resourceSelectors: at least one is needed"
    for index, selector in enumerate(policy.selectors):
        if policy.is_namespaced and selector.namespace != policy.key.namespace:
            yield f"spec.resourceSelectors[{index}].namespace has to be {policy.key.namespace}, the policy's own"
        if policy.preempts and not selector.name:
            yield f"spec.resourceSelectors[{index}].name is needed with preemption: Always"
    yield from _placement_problems(policy.placement)
    suspension: Mapping[str, Any] = policy.spec.get("suspension") or {}
    clusters = (suspension.get("dispatchingOnClusters") or {}).get("clusterNames")
    if suspension.get("dispatching") and clusters:
        yield "spec.suspension: dispatching excludes dispatchingOnClusters"
    failover: Mapping[str, Any] = policy.spec.get("failover") or {}
    if failover.get("application") is not None and not policy.propagates_dependencies:
        yield "spec.propagateDeps has to be true with spec.failover.application"


def _placement_problems(placement: Mapping[str, Any]) -> Iterator[str]:
    if placement.get("clusterAffinity") is not None and placement.get("clusterAffinities"):
        yield "spec.placement: clusterAffinity and clusterAffinities exclude each other"
    names = [each["affinityName"] for each in placement.get("clusterAffinities") or ()]
    if len(set(names)) < len(names):
        yield "spec.placement.clusterAffinities: affinityName has to be unique"
    yield from _spread_problems(placement.get("spreadConstraints") or ())


def _spread_problems(constraints: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    fields: list[str] = []
    for index, constraint in enumerate(constraints):
        path = f"spec.placement.spreadConstraints[{index}]"
        by_field = constraint.get("spreadByField", "")
        low, high = constraint.get("minGroups", 0), constraint.get("maxGroups", 0)
        if by_field and constraint.get("spreadByLabel"):
            yield f"{path}: spreadByField and spreadByLabel exclude each other"
        if low < 0 or high < 0:
            yield f"{path}: minGroups and maxGroups cannot be negative"
        if 0 < high < low:
            yield f"{path}: maxGroups is lower than minGroups"
        if by_field in fields:
            yield f"{path}: another one spreads by {by_field} already"
        if by_field:
            fields.append(by_field)
    if fields and "cluster" not in fields:
        yield "spec.placement.spreadConstraints: one by cluster is needed as well"
