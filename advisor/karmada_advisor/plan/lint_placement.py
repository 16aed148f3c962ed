"""Names and values in a placement that no cluster has."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from karmada_advisor.explain.names import FleetValues, nearest
from karmada_advisor.plan.model import PlanWarning
from karmada_advisor.plan.objects import Manifest, part
from karmada_advisor.state.stored import mappings, texts
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.matching import Requirement
from karmada_scheduler.api.object_fields import read_object
from karmada_scheduler.api.placement import ClusterAffinity

_SHOWN: Final = 5
_FIELDS: Final = ("provider", "region", "zone")


class KnownValues:
    """The names, fields and labels of the clusters that exist."""

    def __init__(self, clusters: Iterable[Cluster]) -> None:
        """Take the clusters that are not being deleted."""
        self.clusters = [each for each in clusters if not each.deleting]
        self.names = {each.name for each in self.clusters}
        values = FleetValues(self.clusters)
        self.fields, self.labels = values.fields, values.labels
        self._nearest: dict[str, str] = {}

    def nearest_name(self, name: str) -> str:
        """Return the most similar name of a cluster, "" without one; searched once for all policies that name it."""
        if name not in self._nearest:
            self._nearest[name] = nearest(name, self.names)
        return self._nearest[name]


def lint_placement(name: str, placement: Manifest, known: KnownValues) -> Iterator[PlanWarning]:
    """Yield what a placement names and no cluster has.

    Args:
        name: Kind and name of the policy.
        placement: As it is stored.
        known: What clusters have.
    """
    for path, affinity in _affinities(placement):
        found = list(_lint_affinity(name, path, affinity, known))
        yield from found
        if (
            not found
            and known.clusters
            and not any(map(read_object(ClusterAffinity, affinity, path).matches, known.clusters))
        ):
            yield PlanWarning("MatchesNoCluster", name, path, "no cluster matches all of it together")
    yield from _lint_spread(name, placement, known)
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
        for number, each in enumerate(mappings(term.get("overflowAffinities"))):
            yield f"{start}.clusterAffinities[{index}].overflowAffinities[{number}]", each
    weights = part(placement, "replicaScheduling", "weightPreference").get("staticWeightList")
    for index, each in enumerate(mappings(weights)):
        if isinstance(target := each.get("targetCluster"), Mapping):
            path = f"{start}.replicaScheduling.weightPreference.staticWeightList[{index}].targetCluster"
            yield path, target


def _lint_affinity(name: str, path: str, affinity: Manifest, known: KnownValues) -> Iterator[PlanWarning]:
    for field in ("clusterNames", "exclude"):
        for given in texts(affinity.get(field)):
            if given not in known.names:
                near = known.nearest_name(given)
                text = did_you_mean(f"no cluster is named {given}", near)
                yield PlanWarning("ClusterUnknown", name, f"{path}.{field}", text, near)
    selected = read_object(ClusterAffinity, affinity, path)
    if selected.field_selector is not None:
        for each in selected.field_selector.match_expressions:
            yield from _lint_field(name, f"{path}.fieldSelector", each, known)
    if selected.label_selector is not None:
        where = f"{path}.labelSelector"
        for key, value in selected.label_selector.match_labels:
            yield from _lint_label(name, where, key, (value,), known)
        for each in selected.label_selector.match_expressions:
            if each.operator != "DoesNotExist":
                yield from _lint_label(name, where, each.key, each.values, known)


def _lint_field(name: str, path: str, each: Requirement, known: KnownValues) -> Iterator[PlanWarning]:
    if each.key not in _FIELDS:
        near = nearest(each.key, _FIELDS)
        text = did_you_mean(
            f"clusters have no field {each.key} to select by, only {', '.join(_FIELDS)}", near
        )
        yield PlanWarning("FieldKeyUnknown", name, path, text, near)
        return
    for value in each.values:
        if value not in known.fields[each.key]:
            near, text = _unknown_value(
                f"no cluster has the {each.key} {value}", value, known.fields[each.key]
            )
            yield PlanWarning("FieldValueUnknown", name, path, text, near)


def _lint_label(
    name: str, path: str, key: str, values: Sequence[str], known: KnownValues
) -> Iterator[PlanWarning]:
    if key not in known.labels:
        near = nearest(key, known.labels)
        yield PlanWarning(
            "LabelUnknown", name, path, did_you_mean(f"no cluster has the label {key}", near), near
        )
        return
    for value in values:
        if value not in known.labels[key]:
            near, text = _unknown_value(f"no cluster has the label {key}={value}", value, known.labels[key])
            yield PlanWarning("LabelValueUnknown", name, path, text, near)


def _unknown_value(start: str, value: str, existing: Collection[str]) -> tuple[str, str]:
    near = nearest(value, existing)
    listed = ", ".join(sorted(existing)) if 0 < len(existing) <= _SHOWN else ""
    if near or not listed:
        return near, did_you_mean(start, near)
    return near, f"{start}; there is {listed}"


def _lint_spread(name: str, placement: Manifest, known: KnownValues) -> Iterator[PlanWarning]:
    """Yield constraints that need more groups than there are, in all clusters together."""
    for index, each in enumerate(mappings(placement.get("spreadConstraints"))):
        field, least = each.get("spreadByField"), each.get("minGroups")
        groups = known.names if field == "cluster" else known.fields.get(str(field))
        if groups is None or not isinstance(least, int) or least <= len(groups):
            continue
        text = f"minGroups is {least}, and clusters have {len(groups)} {field}s"
        yield PlanWarning("TooFewGroups", name, f"spec.placement.spreadConstraints[{index}].minGroups", text)


def _lint_tolerations(name: str, placement: Manifest, known: KnownValues) -> Iterator[PlanWarning]:
    """Yield tolerations that tolerate nothing now, where a taint is much like what they name.

    Others may be meant for taints of the future.
    """
    taints = [taint for each in known.clusters for taint in each.taints]
    for index, each in enumerate(mappings(placement.get("clusterTolerations"))):
        key, value = str(each.get("key") or ""), str(each.get("value") or "")
        if not key or any(taint.key == key and (not value or taint.value == value) for taint in taints):
            continue
        path = f"spec.placement.clusterTolerations[{index}]"
        values = {taint.value for taint in taints if taint.key == key}
        if near := nearest(value, values) if values else nearest(key, {taint.key for taint in taints}):
            start = f"no cluster has the taint {key}={value}" if values else f"no cluster has the taint {key}"
            yield PlanWarning("TolerationUnmatched", name, path, did_you_mean(start, near), near)


def did_you_mean(start: str, near: str) -> str:
    """Return a sentence with what was probably meant, if anything is near."""
    return f"{start}; did you mean {near}?" if near else start
