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
    """Which clusters are meant; an empty one means all.

    Attributes:
        label_selector: Over labels of Clusters.
        field_selector: Over provider, region and zones.
        cluster_names: These only; empty for all.
        exclude: Never these.
    """

    label_selector: LabelSelector | None = None
    field_selector: FieldSelector | None = None
    cluster_names: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    def matches(self, cluster: Cluster) -> bool:
        """Tell whether a cluster is meant. An excluded one never is.

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
        """Whether it means the clusters that it names, and looks at nothing else of them."""
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
        affinity: Which clusters.
    """

    affinity_name: str
    affinity: ClusterAffinity


@dataclass(frozen=True, slots=True)
class ClusterAffinityTerm:
    """One of several affinities that are tried in order.

    Attributes:
        affinity_name: Its name, by which the status says which term is in force.
        affinity: Which clusters.
        overflow_affinities: Further clusters, tier by tier, for what does not fit.
        divides_by_tiers: Whether overflow affinities were given at all. An explicit empty list changes how
            replicas are divided upstream, but not what the placement means, so it does not count in
            comparisons.
    """

    affinity_name: str
    affinity: ClusterAffinity = field(default_factory=ClusterAffinity)
    overflow_affinities: tuple[OverflowAffinity, ...] = ()
    divides_by_tiers: bool = field(default=False, compare=False)


class SpreadConstraint(NamedTuple):
    """Over how many groups of clusters to spread.

    Attributes:
        spread_by_field: ``cluster``, ``region``, ``zone`` or ``provider``; empty if it is by a label.
        spread_by_label: The key of a label of Clusters.
        max_groups: At most so many groups; 0 for no limit.
        min_groups: At least so many.
    """

    spread_by_field: str = ""
    spread_by_label: str = ""
    max_groups: int = 0
    min_groups: int = 0


@dataclass(frozen=True, slots=True)
class StaticClusterWeight:
    """A fixed weight for some clusters.

    Attributes:
        target_cluster: Which clusters.
        weight: 1 or more.
    """

    target_cluster: ClusterAffinity
    weight: int


@dataclass(frozen=True, slots=True)
class ClusterPreferences:
    """By which weights replicas are divided.

    Attributes:
        static_weight_list: Fixed weights.
        dynamic_weight: ``AvailableReplicas``, or empty; goes before fixed weights.
    """

    static_weight_list: tuple[StaticClusterWeight, ...] = ()
    dynamic_weight: str = ""


@dataclass(frozen=True, slots=True)
class ReplicaSchedulingStrategy:
    """How replicas are spread over the selected clusters.

    Attributes:
        replica_scheduling_type: ``Duplicated`` or ``Divided``.
        replica_division_preference: Of Divided: ``Aggregated`` or ``Weighted``.
        weight_preference: Of Weighted; without it all clusters weigh the same.
    """

    replica_scheduling_type: str = ""
    replica_division_preference: str = ""
    weight_preference: ClusterPreferences | None = None


@dataclass(frozen=True, slots=True)
class WorkloadAffinity:
    """By which labels workloads attract or repel each other; None where a rule is absent."""

    affinity_label_key: str | None = None
    anti_affinity_label_key: str | None = None
