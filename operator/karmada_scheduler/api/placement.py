"""Where a binding may go: the placement of its policy, with structural equality.

Bindings of one policy carry equal placements, so parsing is remembered by content and equal placements
are mostly the same object. What is derived from a placement (its JSON, compiled selectors) is computed
once and stays with it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, NamedTuple

import orjson

from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.content_cache import MEBI, cached_by_content
from karmada_scheduler.api.manifest import (
    Manifest,
    ManifestError,
    read_integer,
    read_mapping,
    read_mappings,
    read_optional_mapping,
    read_text,
    read_text_map,
    read_texts,
    wrong_type,
)
from karmada_scheduler.api.matching import FieldSelector, LabelSelector, Requirement, Toleration

DUPLICATED: Final = "Duplicated"
DIVIDED: Final = "Divided"
AGGREGATED: Final = "Aggregated"
WEIGHTED: Final = "Weighted"

SPREAD_BY_CLUSTER: Final = "cluster"
SPREAD_BY_REGION: Final = "region"
SPREAD_BY_ZONE: Final = "zone"
SPREAD_BY_PROVIDER: Final = "provider"

_REMEMBERED: Final = 8192
_SHORT: Final = 1024
"""Bytes of a placement of which so many are remembered; parsed it takes up to ten times as many."""


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


@dataclass(frozen=True)
class Placement:
    """The rules of a policy, as copied into its bindings.

    Equality is structural: an absent list equals an empty one, an absent object does not equal an
    empty one, order counts.

    Attributes:
        cluster_affinity: The single affinity; None where there are terms, or none at all.
        cluster_affinities: The terms, which are tried in order.
        cluster_tolerations: Taints that do not matter.
        spread_constraints: Over how many groups of clusters to spread.
        replica_scheduling: How replicas are divided; None means Duplicated.
        workload_affinity: Which other workloads to be near to or apart from.
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
        return _remembered(content)

    @classmethod
    def from_json(cls, document: str) -> Placement:
        """Read a placement from the annotation in which the scheduler keeps the applied one.

        Raises:
            ManifestError: It is not JSON, not an object, or a field has the wrong type.
        """
        return _remembered_text(document)

    @property
    def is_duplicated(self) -> bool:
        """Whether every selected cluster gets all replicas."""
        strategy = self.replica_scheduling
        return strategy is None or strategy.replica_scheduling_type == DUPLICATED

    def affinity_term(self, name: str) -> ClusterAffinityTerm | None:
        """Find the first affinity term of a name."""
        return next((term for term in self.cluster_affinities if term.affinity_name == name), None)

    def to_json(self) -> str:
        """Write it as karmada-scheduler writes its annotation: Go's key order and escapes, compact."""
        return self._json

    @cached_property
    def _json(self) -> str:
        written = json.dumps(_placement_fields(self), ensure_ascii=False, separators=(",", ":"))
        return _go_escaped(written)

    @cached_property
    def _hash(self) -> int:
        return hash((
            self.cluster_affinity, self.cluster_affinities, self.cluster_tolerations,
            self.spread_constraints, self.replica_scheduling, self.workload_affinity,
        ))  # fmt: skip

    def __hash__(self) -> int:
        return self._hash


@cached_by_content(entries=_REMEMBERED, short=_SHORT, long_bytes=4 * MEBI)
def _remembered(content: bytes) -> Placement:
    return _parse(orjson.loads(content))


@cached_by_content(entries=_REMEMBERED, short=_SHORT, long_bytes=4 * MEBI)
def _remembered_text(document: str) -> Placement:
    try:
        decoded: Any = orjson.loads(document)
    except ValueError as problem:
        raise ManifestError("", f"not JSON: {problem}") from None
    if decoded is None:
        return Placement.from_manifest({})
    if not isinstance(decoded, dict):
        raise wrong_type(decoded, "", "an object")
    return Placement.from_manifest(decoded)


# --- reading ---


def _parse(manifest: Manifest) -> Placement:
    affinity = read_optional_mapping(manifest, "clusterAffinity", "")
    strategy = read_optional_mapping(manifest, "replicaScheduling", "")
    workload = read_optional_mapping(manifest, "workloadAffinity", "")
    return Placement(
        cluster_affinity=None if affinity is None else read_affinity(affinity, "clusterAffinity"),
        cluster_affinities=tuple(
            _read_term(term, f"clusterAffinities[{index}]")
            for index, term in enumerate(read_mappings(manifest, "clusterAffinities", ""))
        ),
        cluster_tolerations=tuple(
            _read_toleration(toleration, f"clusterTolerations[{index}]")
            for index, toleration in enumerate(read_mappings(manifest, "clusterTolerations", ""))
        ),
        spread_constraints=tuple(
            _read_spread_constraint(constraint, f"spreadConstraints[{index}]")
            for index, constraint in enumerate(read_mappings(manifest, "spreadConstraints", ""))
        ),
        replica_scheduling=None if strategy is None else _read_strategy(strategy),
        workload_affinity=None if workload is None else _read_workload_affinity(workload),
    )


def read_affinity(manifest: Manifest, path: str) -> ClusterAffinity:
    """Read a ClusterAffinity, alone or inlined in a term."""
    labels = read_optional_mapping(manifest, "labelSelector", path)
    fields = read_optional_mapping(manifest, "fieldSelector", path)
    return ClusterAffinity(
        label_selector=None if labels is None else _read_label_selector(labels, f"{path}.labelSelector"),
        field_selector=None
        if fields is None
        else FieldSelector(_read_expressions(fields, f"{path}.fieldSelector")),
        cluster_names=read_texts(manifest, "clusterNames", path),
        exclude=read_texts(manifest, "exclude", path),
    )


def _read_term(manifest: Manifest, path: str) -> ClusterAffinityTerm:
    overflow = tuple(
        OverflowAffinity(
            affinity_name=read_text(each, "affinityName", f"{path}.overflowAffinities[{index}]"),
            affinity=read_affinity(each, f"{path}.overflowAffinities[{index}]"),
        )
        for index, each in enumerate(read_mappings(manifest, "overflowAffinities", path))
    )
    return ClusterAffinityTerm(
        affinity_name=read_text(manifest, "affinityName", path),
        affinity=read_affinity(manifest, path),
        overflow_affinities=overflow,
        divides_by_tiers=manifest.get("overflowAffinities") is not None,
    )


def _read_label_selector(manifest: Manifest, path: str) -> LabelSelector:
    return LabelSelector(
        match_labels=tuple(sorted(read_text_map(manifest, "matchLabels", path).items())),
        match_expressions=_read_expressions(manifest, path),
    )


def _read_expressions(manifest: Manifest, path: str) -> tuple[Requirement, ...]:
    return tuple(
        Requirement(
            key=read_text(each, "key", f"{path}.matchExpressions[{index}]"),
            operator=read_text(each, "operator", f"{path}.matchExpressions[{index}]"),
            values=read_texts(each, "values", f"{path}.matchExpressions[{index}]"),
        )
        for index, each in enumerate(read_mappings(manifest, "matchExpressions", path))
    )


def _read_toleration(manifest: Manifest, path: str) -> Toleration:
    seconds = read_integer(manifest, "tolerationSeconds", path)
    return Toleration(
        key=read_text(manifest, "key", path),
        operator=read_text(manifest, "operator", path),
        value=read_text(manifest, "value", path),
        effect=read_text(manifest, "effect", path),
        toleration_seconds=None if manifest.get("tolerationSeconds") is None else seconds,
    )


def _read_spread_constraint(manifest: Manifest, path: str) -> SpreadConstraint:
    return SpreadConstraint(
        spread_by_field=read_text(manifest, "spreadByField", path),
        spread_by_label=read_text(manifest, "spreadByLabel", path),
        max_groups=read_integer(manifest, "maxGroups", path),
        min_groups=read_integer(manifest, "minGroups", path),
    )


def _read_strategy(manifest: Manifest) -> ReplicaSchedulingStrategy:
    path = "replicaScheduling"
    preference = read_optional_mapping(manifest, "weightPreference", path)
    return ReplicaSchedulingStrategy(
        replica_scheduling_type=read_text(manifest, "replicaSchedulingType", path),
        replica_division_preference=read_text(manifest, "replicaDivisionPreference", path),
        weight_preference=None if preference is None else _read_preferences(preference),
    )


def _read_preferences(manifest: Manifest) -> ClusterPreferences:
    path = "replicaScheduling.weightPreference"
    return ClusterPreferences(
        static_weight_list=tuple(
            StaticClusterWeight(
                target_cluster=read_affinity(
                    read_mapping(rule, "targetCluster", f"{path}.staticWeightList[{index}]"),
                    f"{path}.staticWeightList[{index}].targetCluster",
                ),
                weight=read_integer(rule, "weight", f"{path}.staticWeightList[{index}]"),
            )
            for index, rule in enumerate(read_mappings(manifest, "staticWeightList", path))
        ),
        dynamic_weight=read_text(manifest, "dynamicWeight", path),
    )


def _read_workload_affinity(manifest: Manifest) -> WorkloadAffinity:
    path = "workloadAffinity"
    rules = [read_optional_mapping(manifest, key, path) for key in ("affinity", "antiAffinity")]
    keys = [None if rule is None else read_text(rule, "groupByLabelKey", path) for rule in rules]
    return WorkloadAffinity(*keys)


# --- writing ---


def _go_escaped(document: str) -> str:
    """Escape what Go's encoder escapes beyond the JSON standard."""
    if document.isascii() and not any(each in document for each in "<>&"):
        return document
    return (
        document.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
        .replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    )  # fmt: skip


def _given(**fields: object) -> dict[str, object]:
    """Keep what Go's omitempty keeps."""
    return {
        name: value for name, value in fields.items() if value is not None and value not in ("", 0, [], {})
    }


def _placement_fields(placement: Placement) -> dict[str, object]:
    # An object that is present stays, even when it is empty: omitempty drops nil pointers only.
    affinity, strategy, workload = (
        placement.cluster_affinity,
        placement.replica_scheduling,
        placement.workload_affinity,
    )
    written: dict[str, object] = {}
    if affinity is not None:
        written["clusterAffinity"] = _affinity_fields(affinity)
    if placement.cluster_affinities:
        written["clusterAffinities"] = [_term_fields(term) for term in placement.cluster_affinities]
    if placement.cluster_tolerations:
        written["clusterTolerations"] = [_toleration_fields(each) for each in placement.cluster_tolerations]
    if placement.spread_constraints:
        written["spreadConstraints"] = [_spread_fields(each) for each in placement.spread_constraints]
    if strategy is not None:
        written["replicaScheduling"] = _strategy_fields(strategy)
    if workload is not None:
        written["workloadAffinity"] = {
            name: {"groupByLabelKey": key}
            for name, key in (
                ("affinity", workload.affinity_label_key),
                ("antiAffinity", workload.anti_affinity_label_key),
            )
            if key is not None
        }
    return written


def _affinity_fields(affinity: ClusterAffinity) -> dict[str, object]:
    written: dict[str, object] = {}
    if affinity.label_selector is not None:
        written["labelSelector"] = _given(
            matchLabels=dict(affinity.label_selector.match_labels),
            matchExpressions=_expression_fields(affinity.label_selector.match_expressions),
        )
    if affinity.field_selector is not None:
        written["fieldSelector"] = _given(
            matchExpressions=_expression_fields(affinity.field_selector.match_expressions)
        )
    written |= _given(clusterNames=list(affinity.cluster_names), exclude=list(affinity.exclude))
    return written


def _expression_fields(expressions: tuple[Requirement, ...]) -> list[dict[str, object]]:
    return [
        {"key": each.key, "operator": each.operator} | _given(values=list(each.values))
        for each in expressions
    ]


def _term_fields(term: ClusterAffinityTerm) -> dict[str, object]:
    overflow = [
        {"affinityName": each.affinity_name} | _affinity_fields(each.affinity)
        for each in term.overflow_affinities
    ]
    return (
        {"affinityName": term.affinity_name}
        | _affinity_fields(term.affinity)
        | _given(overflowAffinities=overflow)
    )


def _toleration_fields(toleration: Toleration) -> dict[str, object]:
    written = _given(
        key=toleration.key, operator=toleration.operator, value=toleration.value, effect=toleration.effect
    )
    if toleration.toleration_seconds is not None:
        written["tolerationSeconds"] = toleration.toleration_seconds
    return written


def _spread_fields(constraint: SpreadConstraint) -> dict[str, object]:
    return _given(
        spreadByField=constraint.spread_by_field,
        spreadByLabel=constraint.spread_by_label,
        maxGroups=constraint.max_groups,
        minGroups=constraint.min_groups,
    )


def _strategy_fields(strategy: ReplicaSchedulingStrategy) -> dict[str, object]:
    written = _given(
        replicaSchedulingType=strategy.replica_scheduling_type,
        replicaDivisionPreference=strategy.replica_division_preference,
    )
    preference = strategy.weight_preference
    if preference is not None:
        rules = [
            {"targetCluster": _affinity_fields(rule.target_cluster), "weight": rule.weight}
            for rule in preference.static_weight_list
        ]
        written["weightPreference"] = _given(staticWeightList=rules, dynamicWeight=preference.dynamic_weight)
    return written
