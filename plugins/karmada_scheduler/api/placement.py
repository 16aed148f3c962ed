"""The placement of a binding's policy, with structural equality.

Bindings of one policy carry equal placements. Parsed placements are cached by content, so equal placements are mostly
the same object. Values derived from a placement (its JSON, compiled selectors) are computed once and stored with it.
"""

from __future__ import annotations

import json
from functools import cached_property
from typing import Annotated, Any, Final, NamedTuple

import orjson

from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.content_cache import MEBI, cached_by_content
from karmada_scheduler.api.manifest import Manifest, ManifestError, wrong_type
from karmada_scheduler.api.matching import (
    FieldSelector,
    InvalidExpression,
    LabelSelector,
    Toleration,
    matching_all_zones,
)
from karmada_scheduler.api.object_fields import (
    ALWAYS,
    INLINE,
    ApiField,
    go_escaped,
    object_fields,
    read_object,
)
from karmada_scheduler.structs import Struct, field

DUPLICATED: Final = "Duplicated"
DIVIDED: Final = "Divided"
AGGREGATED: Final = "Aggregated"
WEIGHTED: Final = "Weighted"

SPREAD_BY_CLUSTER: Final = "cluster"
SPREAD_BY_REGION: Final = "region"
SPREAD_BY_ZONE: Final = "zone"
SPREAD_BY_PROVIDER: Final = "provider"


class ClusterAffinity(Struct, frozen=True, dict=True):
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

    @cached_property
    def invalid(self) -> InvalidExpression | None:
        """The first invalid expression of its selectors, None if there is none."""
        if self.label_selector is not None and self.label_selector.invalid:
            return self.label_selector.invalid.within(("labelSelector",), "labelSelector: ")
        if self.field_selector is not None and self.field_selector.invalid:
            return self.field_selector.invalid.within(("fieldSelector",), "fieldSelector: ")
        return None

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


class OverflowAffinity(Struct, frozen=True):
    """Clusters to use when those before them are full.

    Attributes:
        affinity_name: Its name.
        affinity: Selects its clusters.
    """

    affinity_name: Annotated[str, ALWAYS]
    affinity: Annotated[ClusterAffinity, INLINE]


class ClusterAffinityTerm(Struct, frozen=True):
    """One of several affinities that are tried in order.

    Attributes:
        affinity_name: Its name; the status has the name of the term in use.
        affinity: Selects its clusters.
        overflow_affinities: Further clusters, tier by tier, for replicas that do not fit.
        divides_by_tiers: Whether overflow affinities are set. An explicit empty list changes how upstream divides
            replicas, but not the meaning of the placement, so it does not count in comparisons.
    """

    affinity_name: Annotated[str, ALWAYS]
    affinity: Annotated[ClusterAffinity, INLINE] = field(default_factory=ClusterAffinity)
    overflow_affinities: tuple[OverflowAffinity, ...] = ()
    divides_by_tiers: Annotated[bool, ApiField(presence_of="overflowAffinities")] = False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ClusterAffinityTerm) and self._compared == other._compared

    def __hash__(self) -> int:
        return hash(self._compared)

    @property
    def _compared(self) -> tuple[str, ClusterAffinity, tuple[OverflowAffinity, ...]]:
        return self.affinity_name, self.affinity, self.overflow_affinities


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


class StaticClusterWeight(Struct, frozen=True):
    """A static weight for some clusters.

    Attributes:
        target_cluster: Selects the clusters.
        weight: 1 or more.
    """

    target_cluster: ClusterAffinity
    weight: Annotated[int, ALWAYS]


class ClusterPreferences(Struct, frozen=True):
    """The weights by which replicas are divided.

    Attributes:
        static_weight_list: Static weights.
        dynamic_weight: ``AvailableReplicas``, or empty; it has precedence over static weights.
    """

    static_weight_list: tuple[StaticClusterWeight, ...] = ()
    dynamic_weight: str = ""


class ReplicaSchedulingStrategy(Struct, frozen=True):
    """How replicas are divided over the selected clusters.

    Attributes:
        replica_scheduling_type: ``Duplicated`` or ``Divided``.
        replica_division_preference: With Divided: ``Aggregated`` or ``Weighted``.
        weight_preference: With Weighted; without it, all clusters have the same weight.
    """

    replica_scheduling_type: str = ""
    replica_division_preference: str = ""
    weight_preference: ClusterPreferences | None = None


class WorkloadAffinity(Struct, frozen=True):
    """Label keys of affinity and anti-affinity between workloads; None without a rule."""

    affinity_label_key: Annotated[str | None, ApiField("affinity", within="groupByLabelKey")] = None
    anti_affinity_label_key: Annotated[str | None, ApiField("antiAffinity", within="groupByLabelKey")] = None


_CACHED: Final = 8192
_SHORT: Final = 1024
"""Bytes of a short placement; a parsed one takes up to ten times as many."""
_CACHED_TEXTS: Final = 256
"""An annotation is parsed only if it differs from the current placement: after a change of a policy, whose bindings
have one text. A text that was parsed once is hardly ever seen again, so a large cache would hold what is gone."""


class Placement(Struct, frozen=True, dict=True, weakref=True):
    """The placement of a policy, as copied into its bindings.

    Equality is structural: an absent list equals an empty one, an absent object does not equal an
    empty one, order counts.

    Attributes:
        cluster_affinity: The single affinity; None with affinity terms, or without affinity.
        cluster_affinities: The affinity terms, which are tried in order.
        cluster_tolerations: Tolerations of taints.
        spread_constraints: Limits of the number of groups of clusters.
        replica_scheduling: How replicas are divided; None means Duplicated.
        workload_affinity: Affinity and anti-affinity to other workloads.
    """

    cluster_affinity: ClusterAffinity | None = None
    cluster_affinities: tuple[ClusterAffinityTerm, ...] = ()
    cluster_tolerations: tuple[Toleration, ...] = ()
    spread_constraints: tuple[SpreadConstraint, ...] = ()
    replica_scheduling: ReplicaSchedulingStrategy | None = None
    workload_affinity: WorkloadAffinity | None = None

    @classmethod
    def from_manifest(cls, manifest: Manifest) -> Placement:
        """Read a placement.

        Raises:
            ManifestError: A field has the wrong type; the path starts below the placement.
        """
        try:
            content = orjson.dumps(manifest, option=orjson.OPT_PASSTHROUGH_DATETIME)
        except TypeError:
            return read_object(Placement, manifest, "")
        return _cached(content)

    @classmethod
    def from_json(cls, document: str) -> Placement:
        """Read a placement from the annotation with the applied placement.

        Raises:
            ManifestError: It is not JSON, not an object, or a field has the wrong type.
        """
        return _cached_text(document)

    @property
    def is_duplicated(self) -> bool:
        """Whether every selected cluster gets all replicas."""
        strategy = self.replica_scheduling
        return strategy is None or strategy.replica_scheduling_type == DUPLICATED

    @property
    def static_weights(self) -> tuple[StaticClusterWeight, ...]:
        """The static weights that count: none next to a dynamic weight, or without a division by weights."""
        preference = None if self.replica_scheduling is None else self.replica_scheduling.weight_preference
        return () if preference is None or preference.dynamic_weight else preference.static_weight_list

    def affinity_term(self, name: str) -> ClusterAffinityTerm | None:
        """Return the first affinity term with a name, None without one."""
        return next((term for term in self.cluster_affinities if term.affinity_name == name), None)

    def to_json(self) -> str:
        """Return it as karmada-scheduler writes its annotation: compact, with Go's key order and escapes."""
        return self._json

    @cached_property
    def matching_all_zones(self) -> Placement:
        """The same placement, whose field selectors are ``AllZonesSelector``s; made for matching, not for writing."""
        found: Placement = matching_all_zones(self)
        return found

    @cached_property
    def _json(self) -> str:
        written = json.dumps(object_fields(self), ensure_ascii=False, separators=(",", ":"))
        return go_escaped(written)

    @cached_property
    def _hash(self) -> int:
        return hash((
            self.cluster_affinity, self.cluster_affinities, self.cluster_tolerations,
            self.spread_constraints, self.replica_scheduling, self.workload_affinity,
        ))  # fmt: skip

    def __hash__(self) -> int:
        return self._hash


@cached_by_content(entries=_CACHED, short=_SHORT, long_bytes=4 * MEBI)
def _cached(content: bytes) -> Placement:
    return read_object(Placement, orjson.loads(content), "")


@cached_by_content(entries=_CACHED_TEXTS, short=_SHORT, long_bytes=4 * MEBI)
def _cached_text(document: str) -> Placement:
    try:
        decoded: Any = orjson.loads(document)
    except ValueError as problem:
        raise ManifestError("", f"not JSON: {problem}") from None
    if decoded is None:
        return Placement.from_manifest({})
    if not isinstance(decoded, dict):
        raise wrong_type(decoded, "", "an object")
    return Placement.from_manifest(decoded)
