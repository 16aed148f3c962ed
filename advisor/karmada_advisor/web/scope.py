"""What a viewer may read of a fleet."""

from __future__ import annotations

from enum import Enum

from karmada_scheduler.structs import Struct


class Reveal(Enum):
    """What answers to viewers are computed from, besides the bindings that they may list."""

    OWN = "own"
    """The clusters, policies and Leases that they may list as well."""
    FLEET = "fleet"
    """All clusters, policies and Leases, and the records of the scheduler: for tenants who are trusted with them."""


class Scope(Struct, frozen=True):
    """What a viewer may read of a fleet.

    Attributes:
        namespaces: Those whose bindings are read; "" is that of ClusterResourceBindings.
        clusters: Whether Clusters are read; without them, nothing is decided.
        policies: Whether the policies of these namespaces and ClusterPropagationPolicies are read: of a part of them it would
            not be known which one claims a workload.
        schedulers: Whether the Leases of schedulers are read.
        is_trusted: Whether clusters, policies, Leases and records are read because the operator of the page allows it.
        unlisted: Why there are bindings that are not read; "" if all are.
        not_judged: What is not read, and why, one line each.
    """

    namespaces: frozenset[str]
    clusters: bool
    policies: bool
    schedulers: bool
    is_trusted: bool = False
    unlisted: str = ""
    not_judged: tuple[str, ...] = ()

    @property
    def has_all_facts(self) -> bool:
        """Whether states of bindings are the same as with the whole fleet."""
        return self.clusters and self.policies and self.schedulers
