"""The options of the detector, the events that it reacts to, and what it has made of templates."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from enum import Enum
from functools import cached_property
from typing import Any, Final, NamedTuple

from karmada_advisor.claims.template import SKIPPED_NAMESPACES, Claim, Template, TemplateKey
from karmada_scheduler.api.binding_spec import BindingKey
from karmada_scheduler.api.manifest import Manifest
from karmada_scheduler.api.policy import PolicyKey
from karmada_scheduler.structs import Struct, field


class UnclaimedReason(Enum):
    """Why a policy claims a template after the change, or none does."""

    KEPT = "Kept"
    """The policy that claimed it before."""

    MATCHED = "Matched"
    """Nothing claimed it before, and this policy is the first of those that match."""

    PREEMPTED = "Preempted"
    """This policy took it from another one."""

    AFTER_DELETION = "AfterDeletion"
    """The policy that claimed it was deleted, and this one is the first of those that match."""

    AFTER_EDIT = "AfterEdit"
    """The policy that claimed it no longer matches, and this one is the first of those that match."""

    RELEASED_BY_DELETION = "ReleasedByDeletion"
    """The policy that claimed it was deleted, and no other one matches."""

    RELEASED_BY_EDIT = "ReleasedByEdit"
    """The policy that claimed it no longer matches, and no other one does."""

    NOT_MATCHED = "NotMatched"
    """No policy claimed it before, and none matches."""

    SKIPPED = "Skipped"
    """The detector never looks at its namespace or its type."""

    OTHER_CONTROLLER = "OtherController"
    """Another controller of Karmada propagates it."""

    DELETED = "Deleted"
    """The template was deleted, and its binding with it."""


class Waits(Enum):
    """What has to happen before the binding follows the policy that claims the template."""

    NOTHING = ""
    TEMPLATE_CHANGE = "TemplateChange"
    """A user has to change the template: the policy is lazy, or was when the change was made."""

    MATCH = "Match"
    """The policy claims the template, but no longer matches it; the binding stays until one of both is edited."""

    OVERRIDES = "Overrides"
    """An override policy of ``dependentOverrides`` has to exist."""

    PRIORITY_CLASS = "PriorityClass"
    """The PriorityClass of ``schedulePriority`` has to exist."""


class DetectorOutcome(NamedTuple):
    """The state after the change, as far as the order of events may change it.

    Attributes:
        policy: That claims the template.
        spec: Of the binding; None without a binding.
    """

    policy: PolicyKey | None
    spec: Mapping[str, Any] | None


class TemplateClaim(Struct, frozen=True):
    """One template before and after a change.

    ``waits``, ``spec_awaited``, ``held_from`` and ``labels_assumed`` are given for templates that the change concerns: that an
    event names, that a written or deleted policy matches, or that the detector looks at.

    Attributes:
        template: Its type and name.
        binding: The name of its binding.
        policy_before: The policy that claimed it.
        policy_after: The policy that claims it now.
        claim_after: The metadata of its claim now. Policies that are not stored yet have an id like ``shop/web#1``.
        binding_before: As it was given; None without a binding.
        binding_after: As the API server will have it, targets and status unchanged; None without a binding. It is
            ``binding_before`` itself if nothing changes.
        reason: Why.
        waits: What the binding waits for.
        spec_awaited: The spec of the binding after that has happened; None if nothing is awaited, or not known.
        held_from: The policy that would claim it if no other one did, if that is another one: a claim is kept as long as its
            policy matches, whatever the priorities of others.
        replicas_known: Whether replicas and requests of the binding could be read from the template.
        labels_assumed: Whether a label selector of its policy was taken to match because the labels are not known.
        alternatives: Other results of the same change, if the events may arrive in another order.
    """

    template: TemplateKey
    binding: BindingKey
    policy_before: PolicyKey | None
    policy_after: PolicyKey | None
    claim_after: Claim
    binding_before: Manifest | None
    binding_after: Manifest | None
    reason: UnclaimedReason
    waits: Waits = Waits.NOTHING
    spec_awaited: Mapping[str, Any] | None = None
    held_from: PolicyKey | None = None
    replicas_known: bool = True
    labels_assumed: bool = False
    alternatives: tuple[DetectorOutcome, ...] = ()

    @property
    def is_changed(self) -> bool:
        """Whether the change has an effect on the claim or the binding."""
        return self.policy_before != self.policy_after or self.binding_after is not self.binding_before


class ClaimRefusal(Struct, frozen=True):
    """A change that Karmada's validating webhook refuses; it has no effect.

    Attributes:
        policy: The policy.
        text: Why, for people.
    """

    policy: PolicyKey
    text: str


class Claims(Struct, frozen=True, dict=True):
    """The result of a change.

    Attributes:
        templates: By template, before and after.
        refusals: Changes that have no effect.
    """

    templates: Mapping[TemplateKey, TemplateClaim]
    refusals: tuple[ClaimRefusal, ...] = ()

    @cached_property
    def by_binding(self) -> Mapping[BindingKey, TemplateClaim]:
        """The templates that have a binding, by its key."""
        return {each.binding: each for each in self.templates.values()}


class PolicyWritten(Struct, frozen=True):
    """A policy is created or edited, as by ``kubectl apply``.

    Attributes:
        manifest: The policy as a whole.
    """

    manifest: Manifest


class PolicyDeleted(Struct, frozen=True):
    """A policy is deleted."""

    key: PolicyKey


class TemplateWritten(Struct, frozen=True):
    """A template is created or edited; the metadata of its claim stay as they are."""

    template: Template


class TemplateDeleted(Struct, frozen=True):
    """A template is deleted; its binding is deleted with it."""

    key: TemplateKey


Event = PolicyWritten | PolicyDeleted | TemplateWritten | TemplateDeleted


CUSTOMIZED: Final = frozenset(
    {
        ("apps.kruise.io/v1alpha1", "BroadcastJob"),
        ("apps.kruise.io/v1alpha1", "CloneSet"),
        ("apps.kruise.io/v1alpha1", "SidecarSet"),
        ("apps.kruise.io/v1alpha1", "UnitedDeployment"),
        ("apps.kruise.io/v1beta1", "StatefulSet"),
        ("argoproj.io/v1alpha1", "Workflow"),
        ("flink.apache.org/v1beta1", "FlinkDeployment"),
        ("kubeflow.org/v1", "Notebook"),
        ("ray.io/v1", "RayService"),
    }
)
"""Kinds whose replicas Karmada reads with scripts that it ships.

Source: karmada v1.18.2 pkg/resourceinterpreter/default/thirdparty/resourcecustomizations (replicaResource).
"""


class DetectorOptions(Struct, frozen=True):
    """Flags and gates of karmada-controller-manager, and the other objects that the detector reads.

    The defaults are Karmada's.

    Attributes:
        preemption: Gate PropagationPolicyPreemption.
        workload_affinity: Gate WorkloadAffinity.
        priority_based_scheduling: Gate PriorityBasedScheduling.
        resource_quota_estimate: Gate ResourceQuotaEstimate.
        skipped_namespaces: Flag ``--skipped-propagating-namespaces``.
        customized: apiVersion and kind of templates whose replicas a customized interpreter reads.
        priority_classes: Value by name of PriorityClass.
        sizes: By template, ``spec.replicas`` and ``spec.replicaRequirements`` of its binding, as an interpreter would read them.
        overrides: Namespace and name of the existing OverridePolicies, an empty namespace for ClusterOverridePolicies;
            None if they are not known, then all that policies depend on are assumed to exist.
    """

    preemption: bool = False
    workload_affinity: bool = False
    priority_based_scheduling: bool = False
    resource_quota_estimate: bool = False
    skipped_namespaces: tuple[str, ...] = SKIPPED_NAMESPACES
    customized: frozenset[tuple[str, str]] = CUSTOMIZED
    priority_classes: Mapping[str, int] = field(default_factory=dict)
    sizes: Mapping[TemplateKey, tuple[int, Mapping[str, Any] | None]] = field(default_factory=dict)
    overrides: AbstractSet[tuple[str, str]] | None = None
