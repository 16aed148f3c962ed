"""What the planner has found, before it becomes a plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from karmada_advisor.claims.quota import Quota
from karmada_advisor.plan.derive import Derived
from karmada_advisor.plan.effects import Comparison
from karmada_advisor.plan.model import BlockedDeletion, Capacity, ClusterLoad, FailureGroup
from karmada_advisor.plan.parsed import Parsed
from karmada_scheduler.api.binding import BindingKey


@dataclass(frozen=True)
class Compared:
    """What the planner has found.

    Attributes:
        all: Every binding on both sides.
        parsed: The objects.
        derived: What follows from policies.
        failures: Failing decisions.
        capacity: What the plan asks of clusters.
        latent_load: The same at the next rebalance.
        blocked: Deleted clusters that stay Terminating.
        restarts: Whether the configuration changes.
        unsure_quotas: Quotas of which the status does not tell whether Karmada enforces them.
    """

    all: Mapping[BindingKey, Comparison]
    parsed: Parsed
    derived: Derived
    failures: tuple[FailureGroup, ...]
    capacity: tuple[Capacity, ...]
    latent_load: tuple[ClusterLoad, ...]
    blocked: tuple[BlockedDeletion, ...]
    restarts: bool
    unsure_quotas: tuple[Quota, ...] = ()
