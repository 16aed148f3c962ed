"""The rules that a placement consists of."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, NamedTuple

from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.matching import FieldSelector, LabelSelector

DUPLICATED: Final = "Duplicated"
DIVIDED: Final = "Divided"
AGGREGATED: Final = "Aggregated"
WEIGHTED: Final = "Weighted"

SPREAD_BY_CLUSTER: Final = "cluster"
SPREAD_BY_REGION: Final = "region"
SPREAD_BY_ZONE: Final = "zone"
SPREAD_BY_PROVIDER: Final = "provider"


@dataclass(frozen=True)
class ClusterAffinity:
    """Selects clusters; an empty one selects all.

    Attributes:
        label_selector: Selects by labels of Clusters.
        field_selector: Selects by provider, region and zones.
        cluster_names: Names of selected clusters; empty for all.
        exclude: Names of clusters that are not selected.
    """

    label_selector: LabelSelector | None = None
    field_selector: FieldSelector | None = None
    cluster_names: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.label_selector, self.field_selector, self.cluster_names, self.exclude))

    def matches(self, cluster: Cluster) -> bool:
        """Return whether a cluster is selected; an excluded one never is.

        Source: karmada v1.18.2 pkg/util/selector.go ClusterMatches.
        """
        if cluster.name in self._excluded:
            return False
        if self.label_selector is not None and not self.label_selector.matches(cluster.labels):
            return False
        if self.field_selector is not None and not self.field_selector.matches(
            provider=cluster.provider, region=cluster.region, zones=cluster.zones
        ):
            return False
        return not self.cluster_names or cluster.name in self._named

    @property
    def only_names(self) -> bool:
        """Whether it selects by name only."""
        return bool(self.cluster_names) and not (self.exclude or self.label_selector or self.field_selector)

    @cached_property
    def _named(self) -> frozenset[str]:
        return frozenset(self.cluster_names)

    @cached_property
    def _excluded(self) -> frozenset[str]:
        return frozenset(self.exclude)


@dataclass(frozen=True, slots=True)
class OverflowAffinity:
    """Clusters to use when those before them are full.

    Attributes:
        affinity_name: Its name.
        affinity: Selects its clusters.
    """

    affinity_name: str
    affinity: ClusterAffinity


@dataclass(frozen=True, slots=True)
class ClusterAffinityTerm:
    """One of several affinities that are tried in order.

    Attributes:
        affinity_name: Its name; the status has the name of the term in use.
        affinity: Selects its clusters.
        overflow_affinities: Further clusters, tier by tier, for replicas that do not fit.
        divides_by_tiers: Whether overflow affinities are set. An explicit empty list changes how upstream divides
            replicas, but not the meaning of the placement, so it does not count in comparisons.
    """

    affinity_name: str
    affinity: ClusterAffinity = field(default_factory=ClusterAffinity)
    overflow_affinities: tuple[OverflowAffinity, ...] = ()
    divides_by_tiers: bool = field(default=False, compare=False)


class SpreadConstraint(NamedTuple):
    """Limits of the number of groups of clusters to spread over.

    Attributes:
        spread_by_field: ``cluster``, ``region``, ``zone`` or ``provider``; empty if it is by a label.
        spread_by_label: The key of a label of Clusters.
        max_groups: Maximum number of groups.
        min_groups: Minimum number of groups.
    """

    spread_by_field: str = ""
    spread_by_label: str = ""
    max_groups: int = 0
    min_groups: int = 0


@dataclass(frozen=True, slots=True)
class StaticClusterWeight:
    """A static weight for some clusters.

    Attributes:
        target_cluster: Selects the clusters.
        weight: 1 or more.
    """

    target_cluster: ClusterAffinity
    weight: int


@dataclass(frozen=True, slots=True)
class ClusterPreferences:
    """The weights by which replicas are divided.

    Attributes:
        static_weight_list: Static weights.
        dynamic_weight: ``AvailableReplicas``, or empty; it has precedence over static weights.
    """

    static_weight_list: tuple[StaticClusterWeight, ...] = ()
    dynamic_weight: str = ""


@dataclass(frozen=True, slots=True)
class ReplicaSchedulingStrategy:
    """How replicas are divided over the selected clusters.

    Attributes:
        replica_scheduling_type: ``Duplicated`` or ``Divided``.
        replica_division_preference: With Divided: ``Aggregated`` or ``Weighted``.
        weight_preference: With Weighted; without it, all clusters have the same weight.
    """

    replica_scheduling_type: str = ""
    replica_division_preference: str = ""
    weight_preference: ClusterPreferences | None = None


@dataclass(frozen=True, slots=True)
class WorkloadAffinity:
    """Label keys of affinity and anti-affinity between workloads; None without a rule."""

    affinity_label_key: str | None = None
    anti_affinity_label_key: str | None = None
