"""How Karmada's controller manager runs the detector."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from karmada_advisor.claims.replicas import CUSTOMIZED
from karmada_advisor.claims.template import SKIPPED_NAMESPACES


@dataclass(frozen=True, slots=True)
class DetectorOptions:
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
    overrides: AbstractSet[tuple[str, str]] | None = None
