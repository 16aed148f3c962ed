"""Labels, annotations and conditions that Karmada's components agree on."""

from __future__ import annotations

from typing import Final

from karmada_scheduler.structs import Struct

APPLIED_PLACEMENT_ANNOTATION: Final = "policy.karmada.io/applied-placement"
POLICY_ID_LABEL: Final = "propagationpolicy.karmada.io/permanent-id"
CLUSTER_POLICY_ID_LABEL: Final = "clusterpropagationpolicy.karmada.io/permanent-id"
MANAGED_BY_LABEL: Final = "binding.karmada.io/managed-by"

SCHEDULER_NAMES_ANNOTATION: Final = "pyscheduler.karmada.io/scheduler-names"
"""On the Lease of a leader: the names of its profiles, separated by commas."""

DEFAULT_PROFILES_ANNOTATION: Final = "pyscheduler.karmada.io/default-profiles"
"""On the same Lease: those of them that decide by the plugins and gates that karmada-scheduler has by default."""

VERSION_ANNOTATION: Final = "pyscheduler.karmada.io/version"
"""On the same Lease: ``VERSION of HOLDER``. Other holders leave it, so it counts for that ``holderIdentity`` only."""

SCHEDULED_CONDITION: Final = "Scheduled"

CORDON_TAINT: Final = "cluster.karmada.io/unschedulable"
"""Set by ``karmadactl cordon``."""
KARMADA_TAINTS: Final = frozenset(
    {"cluster.karmada.io/not-ready", "cluster.karmada.io/unreachable", "cluster.karmada.io/terminating"}
)
"""Set and removed by Karmada's controllers, whatever a person does."""


class Condition(Struct, frozen=True):
    """One entry of ``status.conditions`` as far as it is decided by the scheduler."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
