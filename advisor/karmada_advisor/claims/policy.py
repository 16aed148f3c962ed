"""A policy as the detector reads it, and why the webhook refuses it.

Source of the refusals: karmada v1.18.2 pkg/webhook/propagationpolicy/validating.go,
pkg/webhook/clusterpropagationpolicy/validating.go, pkg/util/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

from karmada_advisor.claims.shapes import Match, PolicySpec, Selector, stored_spec
from karmada_advisor.claims.template import Claim, Template
from karmada_scheduler.api.manifest import Manifest, ManifestError, read_boolean, read_mapping
from karmada_scheduler.api.object_fields import read_object
from karmada_scheduler.api.policy import PROPAGATION_POLICY, Policy, PolicyKey
from karmada_scheduler.structs import Struct

LAZY: Final = "Lazy"
ALWAYS: Final = "Always"


class ClaimingPolicy(Struct, frozen=True, dict=True):
    """A PropagationPolicy or ClusterPropagationPolicy, with all defaults.

    Attributes:
        key: Its name.
        permanent_id: The id that the webhook gives to a policy when it is created; the claims of its templates and
            bindings carry it.
        selectors: Of templates.
        priority: Higher takes precedence.
        preempts: Whether it takes templates from policies that claim them (``preemption: Always``).
        is_lazy: Whether its changes reach a binding only when the template changes.
        scheduler_name: ``spec.schedulerName``.
        priority_class: The PriorityClass of ``spec.schedulePriority``; empty without one.
        deleting: Whether it is being deleted.
        spec: As the API server stores it.
    """

    key: PolicyKey
    permanent_id: str
    selectors: tuple[Selector, ...]
    priority: int
    preempts: bool
    is_lazy: bool
    scheduler_name: str
    priority_class: str
    deleting: bool
    spec: Mapping[str, Any]

    @property
    def is_namespaced(self) -> bool:
        """Whether it is a PropagationPolicy."""
        return self.key.kind == PROPAGATION_POLICY

    @property
    def propagates_dependencies(self) -> bool:
        """Whether dependencies follow (``spec.propagateDeps``)."""
        return read_boolean(self.spec, "propagateDeps", "spec")

    @property
    def placement(self) -> Mapping[str, Any]:
        """``spec.placement``; the same object for all bindings of the policy."""
        return read_mapping(self.spec, "placement", "spec")

    @cached_property
    def has_label_selectors(self) -> bool:
        """Whether some selector needs the labels of templates."""
        return any(selector.labels is not None for selector in self.selectors)

    def has_claimed(self, claim: Claim) -> bool:
        """Return whether a claim has the permanent id of this policy."""
        return bool(self.permanent_id) and claim.id_of(self.key.kind) == self.permanent_id

    def match(self, template: Template) -> Match:
        """Return how it matches a template: the best of its selectors.

        A label selector whose template has unknown labels matches if the policy claims the template already.

        Source: karmada v1.18.2 pkg/util/selector.go ResourceMatchSelectorsPriority.
        """
        key = template.key
        selectors = self.by_type.get((key.api_version, key.kind))
        if selectors is None:
            return Match.NONE
        assumed = template.labels is None and self.claims(template)
        return max(selector.match(template, assumed=assumed) for selector in selectors)

    @cached_property
    def by_type(self) -> Mapping[tuple[str, str], list[Selector]]:
        """The selectors by apiVersion and kind of templates."""
        found: dict[tuple[str, str], list[Selector]] = {}
        for selector in self.selectors:
            found.setdefault((selector.api_version, selector.kind), []).append(selector)
        return found

    def claims(self, template: Template) -> bool:
        """Return whether the metadata of a template names this policy, whatever its id."""
        claim = template.claim
        if self.is_namespaced:
            return (claim.namespace, claim.name) == (self.key.namespace, self.key.name)
        return claim.cluster_name == self.key.name


def highest(policies: Iterable[ClaimingPolicy], template: Template) -> ClaimingPolicy | None:
    """Return the policy that claims a template first, None if none matches it.

    The higher ``spec.priority`` comes first, then a match by name before one by labels before one of all, then the smaller
    name.

    Args:
        policies: By priority, the highest first.
        template: The template.

    Source: karmada v1.18.2 pkg/detector/compare.go.
    """
    best: tuple[int, int, str] | None = None
    found: ClaimingPolicy | None = None
    for policy in policies:
        if found is not None and policy.priority < found.priority:
            break
        if policy.deleting or (match := policy.match(template)) is Match.NONE:
            continue
        order = (-policy.priority, -match, policy.key.name)
        if best is None or order < best:
            best, found = order, policy
    return found


def read_policy(manifest: Manifest) -> ClaimingPolicy:
    """Read a policy of policy.karmada.io/v1alpha1, with the defaults of the CRD and of the webhook.

    Args:
        manifest: The policy, as a user wrote it or as the API server has it.

    Raises:
        ManifestError: A field is missing or of the wrong type.
    """
    policy = Policy.from_manifest(manifest)
    key = policy.key
    if key.kind == PROPAGATION_POLICY and not key.namespace:
        raise ManifestError("metadata.namespace", "is missing")
    stored = stored_spec(read_mapping(manifest, "spec", ""), namespace=key.namespace)
    spec = read_object(PolicySpec, stored, "spec")
    return ClaimingPolicy(
        key=key,
        permanent_id=policy.permanent_id,
        selectors=spec.resource_selectors,
        priority=spec.priority or 0,
        preempts=spec.preemption == ALWAYS,
        is_lazy=spec.activation_preference == LAZY,
        scheduler_name=spec.scheduler_name,
        priority_class="" if spec.schedule_priority is None else spec.schedule_priority.priority_class_name,
        deleting=read_mapping(manifest, "metadata", "").get("deletionTimestamp") is not None,
        spec=stored,
    )


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
    names = [term["affinityName"] for term in placement.get("clusterAffinities") or ()]
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
