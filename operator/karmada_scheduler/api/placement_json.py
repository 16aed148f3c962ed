"""Reads the rules of a placement, and writes them as karmada-scheduler writes its annotation.

The annotation has Go's key order and escapes. Fields that Go's ``omitempty`` drops are left out.
"""

from __future__ import annotations

from karmada_scheduler.api.manifest import (
    Manifest,
    read_integer,
    read_mapping,
    read_mappings,
    read_optional_mapping,
    read_text,
    read_text_map,
    read_texts,
)
from karmada_scheduler.api.matching import FieldSelector, LabelSelector, Requirement, Toleration
from karmada_scheduler.api.placement_rules import (
    ClusterAffinity,
    ClusterAffinityTerm,
    ClusterPreferences,
    OverflowAffinity,
    ReplicaSchedulingStrategy,
    SpreadConstraint,
    StaticClusterWeight,
    WorkloadAffinity,
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


def read_term(manifest: Manifest, path: str) -> ClusterAffinityTerm:
    """Read an affinity term."""
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


def read_toleration(manifest: Manifest, path: str) -> Toleration:
    """Read a toleration."""
    seconds = read_integer(manifest, "tolerationSeconds", path)
    return Toleration(
        key=read_text(manifest, "key", path),
        operator=read_text(manifest, "operator", path),
        value=read_text(manifest, "value", path),
        effect=read_text(manifest, "effect", path),
        toleration_seconds=None if manifest.get("tolerationSeconds") is None else seconds,
    )


def read_spread_constraint(manifest: Manifest, path: str) -> SpreadConstraint:
    """Read a spread constraint."""
    return SpreadConstraint(
        spread_by_field=read_text(manifest, "spreadByField", path),
        spread_by_label=read_text(manifest, "spreadByLabel", path),
        max_groups=read_integer(manifest, "maxGroups", path),
        min_groups=read_integer(manifest, "minGroups", path),
    )


def read_strategy(manifest: Manifest) -> ReplicaSchedulingStrategy:
    """Read how replicas are divided."""
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


def read_workload_affinity(manifest: Manifest) -> WorkloadAffinity:
    """Read workload affinity rules."""
    path = "workloadAffinity"
    rules = [read_optional_mapping(manifest, key, path) for key in ("affinity", "antiAffinity")]
    keys = [None if rule is None else read_text(rule, "groupByLabelKey", path) for rule in rules]
    return WorkloadAffinity(*keys)


def go_escaped(document: str) -> str:
    """Escape the characters that Go's encoder escapes in addition to those of the JSON standard."""
    if document.isascii() and not any(each in document for each in "<>&"):
        return document
    return (
        document.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
        .replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    )  # fmt: skip


def _given(**fields: object) -> dict[str, object]:
    """Omit the values that Go's omitempty omits."""
    return {
        name: value for name, value in fields.items() if value is not None and value not in ("", 0, [], {})
    }


def affinity_fields(affinity: ClusterAffinity) -> dict[str, object]:
    """Return the fields of a ClusterAffinity."""
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


def term_fields(term: ClusterAffinityTerm) -> dict[str, object]:
    """Return the fields of an affinity term."""
    overflow = [
        {"affinityName": each.affinity_name} | affinity_fields(each.affinity)
        for each in term.overflow_affinities
    ]
    return (
        {"affinityName": term.affinity_name}
        | affinity_fields(term.affinity)
        | _given(overflowAffinities=overflow)
    )


def toleration_fields(toleration: Toleration) -> dict[str, object]:
    """Return the fields of a toleration."""
    written = _given(
        key=toleration.key, operator=toleration.operator, value=toleration.value, effect=toleration.effect
    )
    if toleration.toleration_seconds is not None:
        written["tolerationSeconds"] = toleration.toleration_seconds
    return written


def spread_constraint_fields(constraint: SpreadConstraint) -> dict[str, object]:
    """Return the fields of a spread constraint."""
    return _given(
        spreadByField=constraint.spread_by_field,
        spreadByLabel=constraint.spread_by_label,
        maxGroups=constraint.max_groups,
        minGroups=constraint.min_groups,
    )


def strategy_fields(strategy: ReplicaSchedulingStrategy) -> dict[str, object]:
    """Return the fields of a replica scheduling strategy."""
    written = _given(
        replicaSchedulingType=strategy.replica_scheduling_type,
        replicaDivisionPreference=strategy.replica_division_preference,
    )
    preference = strategy.weight_preference
    if preference is not None:
        rules = [
            {"targetCluster": affinity_fields(rule.target_cluster), "weight": rule.weight}
            for rule in preference.static_weight_list
        ]
        written["weightPreference"] = _given(staticWeightList=rules, dynamicWeight=preference.dynamic_weight)
    return written


def workload_affinity_fields(rules: WorkloadAffinity) -> dict[str, object]:
    """Return the fields of workload affinity rules."""
    keys = (("affinity", rules.affinity_label_key), ("antiAffinity", rules.anti_affinity_label_key))
    return {name: {"groupByLabelKey": key} for name, key in keys if key is not None}
