"""The options of the detector, the events that it reacts to, and what it has made of templates."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from enum import Enum
from functools import cached_property
from typing import Any, Final, NamedTuple

from karmada_advisor.claims.policy import ClaimingPolicy, read_policy
from karmada_advisor.claims.template import Claim, Template, TemplateKey
from karmada_scheduler.api.binding_spec import BindingKey
from karmada_scheduler.api.manifest import Manifest, read_mapping
from karmada_scheduler.api.policy import PolicyKey
from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.structs import Struct, field


class Waits(Enum):
    """What has to happen before the binding follows the policy that claims the template."""

    NOTHING = ""
    TEMPLATE_CHANGE = "TemplateChange"
    """A user has to change the template: the policy is lazy, or was when the change was made."""

    MATCH = "Match"
    """The policy claims the template, but no longer matches it; the binding stays until one of both is edited."""

    CONTROLLER = "Controller"
    """Nothing: another controller, such as that of MultiClusterServices, propagates it, and policies have no say."""

    NAME = "Name"
    """For ever: the name of its binding is too long, or belongs to the binding of another template."""

    PRIORITY_CLASS = "PriorityClass"
    """The PriorityClass of ``schedulePriority`` has to exist."""


class DetectorOutcome(Struct, frozen=True):
    """The state after the change, as far as the order of events may change it.

    Attributes:
        policy: That claims the template.
        spec: Of the binding; None without a binding.
    """

    policy: PolicyKey | None
    spec: Mapping[str, Any] | None


class TemplateClaim(Struct, frozen=True):
    """One template before and after a change.

    ``waits`` and ``labels_assumed`` are given for templates that the change concerns: that an event names, that a written or
    deleted policy matches, or that the detector looks at.

    Attributes:
        template: Its type and name.
        binding: The name of its binding.
        policy_before: The policy that claimed it.
        policy_after: The policy that claims it now.
        claim_after: The metadata of its claim now. Policies that are not stored yet have an id like ``shop/web#1``.
        binding_before: As it was given; None without a binding.
        binding_after: As the API server will have it, targets and status unchanged; None without a binding. It is
            ``binding_before`` itself if nothing changes.
        waits: What the binding waits for.
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
    waits: Waits = Waits.NOTHING
    replicas_known: bool = True
    labels_assumed: bool = False
    alternatives: tuple[DetectorOutcome, ...] = ()


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
        return {found.binding: found for found in self.templates.values() if found.waits is not Waits.NAME}


class PolicyWritten(Struct, frozen=True, dict=True):
    """A policy is created or edited, as by ``kubectl apply``.

    Attributes:
        manifest: The policy as a whole.
    """

    manifest: Manifest

    @cached_property
    def policy(self) -> ClaimingPolicy:
        """The policy as the detector reads it; raises ManifestError as ``read_policy`` does."""
        return read_policy(self.manifest)

    @property
    def key(self) -> PolicyKey:
        """The name of the policy."""
        return self.policy.key


class PolicyDeleted(Struct, frozen=True):
    """A policy is deleted."""

    key: PolicyKey


class TemplateWritten(Struct, frozen=True):
    """A template is created or edited; the metadata of its claim stay as they are."""

    template: Template

    @property
    def key(self) -> TemplateKey:
        """The type and name of the template."""
        return self.template.key


Event = PolicyWritten | PolicyDeleted | TemplateWritten


class Replicas(NamedTuple):
    """What the detector writes into a binding about replicas.

    Attributes:
        replicas: How many; 0 for kinds without replicas.
        requirements: ``spec.replicaRequirements``; None if a replica asks for nothing.
        known: Whether they could be read; not for kinds with a customized interpreter, nor without the template.
    """

    replicas: int = 0
    requirements: Mapping[str, Any] | None = None
    known: bool = True


class DetectorOptions(Struct, frozen=True):
    """Flags and gates of karmada-controller-manager, and the other objects that the detector reads.

    The defaults are Karmada's.

    Attributes:
        gates: Its feature gates, and the rules of its version.
        priority_classes: Value by name of PriorityClass; None if they are not known: then policies give no priority.
        sizes: What an interpreter would read, by template.
        customized: apiVersion and kind of the templates whose replicas a ResourceInterpreterCustomization or a webhook of the
            control plane reads: they are not known.
    """

    gates: FeatureGates = field(default_factory=FeatureGates)
    priority_classes: Mapping[str, int] | None = None
    sizes: Mapping[TemplateKey, Replicas] = field(default_factory=dict)
    customized: AbstractSet[tuple[str, str]] = frozenset()

    @property
    def preemption(self) -> bool:
        """Whether policies may take templates from others."""
        return self.gates.enabled("PropagationPolicyPreemption")

    @property
    def known_classes(self) -> Mapping[str, int] | None:
        """The PriorityClasses in which the one of a policy is looked up; None if none is."""
        return self.priority_classes if self.gates.enabled("PriorityBasedScheduling") else None

    def missing_class(self, policy: Manifest) -> str:
        """Return the PriorityClass that a policy names and that does not exist; "" without one, or if it is not looked up."""
        found = read_mapping(read_mapping(policy, "spec", ""), "schedulePriority", "spec")
        name, known = str(found.get("priorityClassName") or ""), self.known_classes
        return name if known is not None and name not in known else ""


DEFAULTS: Final = DetectorOptions()
"""Karmada's own."""
