"""Names and values in a placement that no cluster has."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from karmada_advisor.state.stored import mappings, part, texts
from karmada_advisor.whatif.plan.model import PlanWarning
from karmada_advisor.whatif.plan.objects import Manifest
from karmada_scheduler.api.matching import (
    EFFECTS,
    SET_OPERATORS,
    TOLERATION_OPERATORS,
    Requirement,
    Taint,
    Toleration,
)
from karmada_scheduler.api.names import FleetValues, ending, near_toleration, nearest
from karmada_scheduler.api.object_fields import read_object
from karmada_scheduler.api.placement import ClusterAffinity, Placement
from karmada_scheduler.core.select_clusters import ignores_spread

_SHOWN: Final = 5
_FIELDS: Final = ("provider", "region", "zone")


def lint_placement(name: str, placement: Manifest, known: FleetValues) -> Iterator[PlanWarning]:
    """Yield what a placement names and no cluster has.

    Args:
        name: Kind and name of the policy.
        placement: As it is stored.
        known: What clusters have.
    """
    for path, affinity in _affinities(placement):
        yield from lint_affinity(name, path, affinity, known)
    yield from _lint_spread(name, placement, known)
    yield from _lint_weights(name, placement, known)
    yield from _lint_tolerations(name, placement, known)


def named_clusters(placement: Manifest) -> Iterator[tuple[str, list[str]]]:
    """Yield where a placement lists names of clusters to use, and the names."""
    for path, affinity in _affinities(placement):
        if names := texts(affinity.get("clusterNames")):
            yield f"{path}.clusterNames", names


def _affinities(placement: Manifest) -> Iterator[tuple[str, Manifest]]:
    """Yield the affinities of a placement, those of static weights included, with their paths."""
    start = "spec.placement"
    if isinstance(affinity := placement.get("clusterAffinity"), Mapping):
        yield f"{start}.clusterAffinity", affinity
    for index, term in enumerate(mappings(placement.get("clusterAffinities"))):
        yield f"{start}.clusterAffinities[{index}]", term
        for number, tier in enumerate(mappings(term.get("overflowAffinities"))):
            yield f"{start}.clusterAffinities[{index}].overflowAffinities[{number}]", tier
    weights = part(placement, "replicaScheduling", "weightPreference").get("staticWeightList")
    for index, weight in enumerate(mappings(weights)):
        if isinstance(target := weight.get("targetCluster"), Mapping):
            path = f"{start}.replicaScheduling.weightPreference.staticWeightList[{index}].targetCluster"
            yield path, target


def lint_affinity(name: str, path: str, affinity: Manifest, known: FleetValues) -> Iterator[PlanWarning]:
    """Yield what an affinity names and no cluster has."""
    found = list(_lint_affinity(name, path, affinity, known))
    yield from found
    matches = read_object(ClusterAffinity, affinity, path).matches
    if not found and known.clusters and not any(map(matches, known.clusters)):
        yield PlanWarning("MatchesNoCluster", name, path, "no cluster matches all of it together")


def _lint_affinity(name: str, path: str, affinity: Manifest, known: FleetValues) -> Iterator[PlanWarning]:
    for field in ("clusterNames", "exclude"):
        yield from lint_names(name, f"{path}.{field}", affinity.get(field), known)
    selected = read_object(ClusterAffinity, affinity, path)
    if selected.field_selector is not None:
        for expression in selected.field_selector.match_expressions:
            yield from _lint_field(name, f"{path}.fieldSelector", expression, known)
    if selected.label_selector is not None:
        where = f"{path}.labelSelector"
        for requirement in selected.label_selector.requirements:
            if not requirement.is_valid_for_labels:
                yield _invalid(name, where, str(requirement), requirement.operator, SET_OPERATORS)
            elif requirement.operator != "DoesNotExist":
                yield from _lint_label(name, where, requirement.key, requirement.values, known)


def lint_names(name: str, path: str, given: object, known: FleetValues) -> Iterator[PlanWarning]:
    """Yield the names of a list that no cluster has."""
    for cluster in texts(given):
        if cluster not in known.names:
            near = known.cluster(cluster)
            text = did_you_mean(f"no cluster is named {cluster}", near)
            yield PlanWarning("ClusterUnknown", name, path, text, near)


def _lint_field(name: str, path: str, each: Requirement, known: FleetValues) -> Iterator[PlanWarning]:
    if each.key not in _FIELDS:
        near = nearest(each.key, _FIELDS)
        text = did_you_mean(
            f"clusters have no field {each.key} to select by, only {', '.join(_FIELDS)}", near
        )
        yield PlanWarning("FieldKeyUnknown", name, path, text, near)
        return
    if not each.is_valid_for_fields:
        yield _invalid(name, path, str(each), each.operator, SET_OPERATORS)
        return
    for near, text in _unknown_values(f"{each.key} ", each.values, known.fields[each.key]):
        yield PlanWarning("FieldValueUnknown", name, path, text, near)


def _invalid(name: str, path: str, shown: str, value: str, known: Sequence[str]) -> PlanWarning:
    """Return the warning about an expression; ``value`` is the part of it that has to be one of ``known``."""
    near = "" if value in known else nearest(value, known)
    text = did_you_mean(f"{shown} is no valid expression: decisions end with an error", near)
    return PlanWarning("ExpressionInvalid", name, path, text, near)


def _lint_label(
    name: str, path: str, key: str, values: Sequence[str], known: FleetValues
) -> Iterator[PlanWarning]:
    if key not in known.labels:
        text, near = f"no cluster has the label {key}", nearest(key, known.labels)
        if any(value in known.fields.get(key, ()) for value in values):
            text, near = f"{text}, which is a field of clusters", "a fieldSelector"
        yield PlanWarning("LabelUnknown", name, path, did_you_mean(text, near), near.removeprefix("a "))
        return
    for near, text in _unknown_values(f"label {key}=", values, known.labels[key]):
        yield PlanWarning("LabelValueUnknown", name, path, text, near)


def _unknown_values(what: str, values: Iterable[str], existing: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield the nearest existing one to each value that does not exist, and a sentence; ``what`` stands before the value."""
    listed = f"; there is {', '.join(sorted(existing))}" if 0 < len(existing) <= _SHOWN else ""
    for value in values:
        if value not in existing:
            text, near = f"no cluster has the {what}{value}", nearest(value, existing)
            yield near, did_you_mean(text, near) if near else text + listed


def _lint_spread(name: str, placement: Manifest, known: FleetValues) -> Iterator[PlanWarning]:
    """Yield constraints that need more groups than there are, in all clusters together."""
    for index, entry in enumerate(mappings(placement.get("spreadConstraints"))):
        field, least = entry.get("spreadByField"), entry.get("minGroups")
        groups = known.names if field == "cluster" else known.fields.get(str(field))
        if groups is None or not isinstance(least, int) or least <= len(groups):
            continue
        text = f"minGroups is {least}, and clusters have {len(groups)} {field}s"
        yield PlanWarning("TooFewGroups", name, f"spec.placement.spreadConstraints[{index}].minGroups", text)


def _lint_tolerations(name: str, placement: Manifest, known: FleetValues) -> Iterator[PlanWarning]:
    """Yield invalid tolerations, those that tolerate no taint but are near one, and those that end.

    Others may be meant for taints of the future.
    """
    taints = dict.fromkeys(taint for cluster in known.clusters for taint in cluster.taints)
    for index, fields in enumerate(mappings(placement.get("clusterTolerations"))):
        where = f"spec.placement.clusterTolerations[{index}]"
        toleration = read_object(Toleration, fields, where)
        for field, known_values in (("operator", TOLERATION_OPERATORS), ("effect", EFFECTS)):
            if (given := getattr(toleration, field)) not in known_values:
                yield _invalid(name, f"{where}.{field}", given, given, known_values)
        if not any(map(toleration.tolerates, taints)):
            yield from _near_taint(name, where, toleration, taints)
        for text in list(filter(None, (ending(taint, [toleration]) for taint in taints)))[:1]:
            yield PlanWarning("TolerationEnds", name, f"{where}.tolerationSeconds", text)


def _near_taint(
    name: str, where: str, toleration: Toleration, taints: Iterable[Taint]
) -> Iterator[PlanWarning]:
    """Yield that a toleration tolerates nothing now, and the taint that it is nearly one of."""
    near = {taint: differs for taint in taints if (differs := near_toleration(taint, [toleration])[1])}
    if near:
        taint = min(near, key=lambda taint: (len(near[taint]), "key" in near[taint], str(taint)))
        text = f"no cluster has a taint that it tolerates; {taint} differs in its {' and '.join(near[taint])}"
        yield PlanWarning("TolerationUnmatched", name, where, text, str(taint))


def _lint_weights(name: str, placement: Manifest, known: FleetValues) -> Iterator[PlanWarning]:
    """Yield static weights of clusters that the affinity leaves out, and clusters that it selects without a weight."""
    read = Placement.from_manifest(placement)
    if read.spread_constraints and ignores_spread(read):
        text = "the weights of replicaScheduling switch spread constraints off: every cluster of the affinity is used"
        yield PlanWarning("SpreadIgnored", name, "spec.placement.spreadConstraints", text)
    weights = read.static_weights
    if not weights:
        return
    terms = [term.affinity for term in read.cluster_affinities]
    if read.cluster_affinity is not None:
        terms.append(read.cluster_affinity)
    selected = [
        cluster for cluster in known.clusters if not terms or any(term.matches(cluster) for term in terms)
    ]
    path = "spec.placement.replicaScheduling.weightPreference.staticWeightList"
    for index, rule in enumerate(weights):
        weighted = [cluster for cluster in known.clusters if rule.target_cluster.matches(cluster)]
        if weighted and not any(cluster in selected for cluster in weighted):
            names = ", ".join(sorted(cluster.name for cluster in weighted)[:_SHOWN])
            yield PlanWarning(
                "WeightUnused", name, f"{path}[{index}]", f"it weights {names}, which the affinity leaves out"
            )
    without = sorted(
        cluster.name
        for cluster in selected
        if not any(rule.target_cluster.matches(cluster) for rule in weights)
    )
    if without and len(without) < len(selected):
        more = f" and {len(without) - _SHOWN} more" if len(without) > _SHOWN else ""
        text = f"without a weight, and so without replicas: {', '.join(without[:_SHOWN])}{more}"
        yield PlanWarning("WeightMissing", name, path, text)


def did_you_mean(start: str, near: str) -> str:
    """Return a sentence with what was probably meant, if anything is near."""
    return f"{start}; did you mean {near}?" if near else start
