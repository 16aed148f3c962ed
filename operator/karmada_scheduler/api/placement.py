"""The placement of a binding's policy, with structural equality.

Bindings of one policy carry equal placements. Parsed placements are cached by content, so equal placements are mostly
the same object. Values derived from a placement (its JSON, compiled selectors) are computed once and stored with it.
The rules of a placement are importable from here as well.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import orjson

from karmada_scheduler.api.content_cache import MEBI, cached_by_content
from karmada_scheduler.api.manifest import (
    Manifest,
    ManifestError,
    read_mappings,
    read_optional_mapping,
    wrong_type,
)
from karmada_scheduler.api.matching import Toleration
from karmada_scheduler.api.placement_json import (
    affinity_fields,
    go_escaped,
    read_affinity,
    read_spread_constraint,
    read_strategy,
    read_term,
    read_toleration,
    read_workload_affinity,
    spread_constraint_fields,
    strategy_fields,
    term_fields,
    toleration_fields,
    workload_affinity_fields,
)
from karmada_scheduler.api.placement_rules import (
    AGGREGATED,
    DIVIDED,
    DUPLICATED,
    SPREAD_BY_CLUSTER,
    SPREAD_BY_PROVIDER,
    SPREAD_BY_REGION,
    SPREAD_BY_ZONE,
    WEIGHTED,
    ClusterAffinity,
    ClusterAffinityTerm,
    ClusterPreferences,
    OverflowAffinity,
    ReplicaSchedulingStrategy,
    SpreadConstraint,
    StaticClusterWeight,
    WorkloadAffinity,
)

__all__ = [
    "AGGREGATED",
    "DIVIDED",
    "DUPLICATED",
    "SPREAD_BY_CLUSTER",
    "SPREAD_BY_PROVIDER",
    "SPREAD_BY_REGION",
    "SPREAD_BY_ZONE",
    "WEIGHTED",
    "ClusterAffinity",
    "ClusterAffinityTerm",
    "ClusterPreferences",
    "OverflowAffinity",
    "Placement",
    "ReplicaSchedulingStrategy",
    "SpreadConstraint",
    "StaticClusterWeight",
    "WorkloadAffinity",
]

_CACHED: Final = 8192
_SHORT: Final = 1024
"""Bytes of a short placement; a parsed one takes up to ten times as many."""
_CACHED_TEXTS: Final = 256
"""An annotation is parsed only if it differs from the current placement: after a change of a policy, whose bindings
have one text. A text that was parsed once is hardly ever seen again, so a large cache would hold what is gone."""


@dataclass(frozen=True)
class Placement:
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
            return _parse(manifest)
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

    def affinity_term(self, name: str) -> ClusterAffinityTerm | None:
        """Return the first affinity term with a name, None without one."""
        return next((term for term in self.cluster_affinities if term.affinity_name == name), None)

    def to_json(self) -> str:
        """Return it as karmada-scheduler writes its annotation: compact, with Go's key order and escapes."""
        return self._json

    @cached_property
    def _json(self) -> str:
        written = json.dumps(_placement_fields(self), ensure_ascii=False, separators=(",", ":"))
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
    return _parse(orjson.loads(content))


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


def _parse(manifest: Manifest) -> Placement:
    affinity = read_optional_mapping(manifest, "clusterAffinity", "")
    strategy = read_optional_mapping(manifest, "replicaScheduling", "")
    workload = read_optional_mapping(manifest, "workloadAffinity", "")
    return Placement(
        cluster_affinity=None if affinity is None else read_affinity(affinity, "clusterAffinity"),
        cluster_affinities=tuple(
            read_term(term, f"clusterAffinities[{index}]")
            for index, term in enumerate(read_mappings(manifest, "clusterAffinities", ""))
        ),
        cluster_tolerations=tuple(
            read_toleration(toleration, f"clusterTolerations[{index}]")
            for index, toleration in enumerate(read_mappings(manifest, "clusterTolerations", ""))
        ),
        spread_constraints=tuple(
            read_spread_constraint(constraint, f"spreadConstraints[{index}]")
            for index, constraint in enumerate(read_mappings(manifest, "spreadConstraints", ""))
        ),
        replica_scheduling=None if strategy is None else read_strategy(strategy),
        workload_affinity=None if workload is None else read_workload_affinity(workload),
    )


def _placement_fields(placement: Placement) -> dict[str, object]:
    # An object that is present stays, even when it is empty: omitempty drops nil pointers only.
    affinity, strategy, workload = (
        placement.cluster_affinity,
        placement.replica_scheduling,
        placement.workload_affinity,
    )
    written: dict[str, object] = {}
    if affinity is not None:
        written["clusterAffinity"] = affinity_fields(affinity)
    if placement.cluster_affinities:
        written["clusterAffinities"] = [term_fields(term) for term in placement.cluster_affinities]
    if placement.cluster_tolerations:
        written["clusterTolerations"] = [toleration_fields(each) for each in placement.cluster_tolerations]
    if placement.spread_constraints:
        written["spreadConstraints"] = [
            spread_constraint_fields(each) for each in placement.spread_constraints
        ]
    if strategy is not None:
        written["replicaScheduling"] = strategy_fields(strategy)
    if workload is not None:
        written["workloadAffinity"] = workload_affinity_fields(workload)
    return written
