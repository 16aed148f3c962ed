"""What an in-tree Filter plugin compared when it refused a cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from karmada_advisor.explain.inputs import ExplainInputs, Manifest
from karmada_advisor.explain.names import near_toleration
from karmada_advisor.state.stored import mappings, value_at
from karmada_scheduler.api.binding_spec import ObjectReference
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.matching import IN, LabelSelector, Requirement, Taint
from karmada_scheduler.api.placement import ClusterAffinity, Placement
from karmada_scheduler.framework.cycle import Cycle
from karmada_scheduler.framework.snapshot import Snapshot

COMPLETE_API_LIST: Final = "CompleteAPIEnablements"


class Evidence(NamedTuple):
    """What was compared.

    Attributes:
        short: A few words; "" for the reason of the plugin.
        fields: JSON values; ``clause`` groups equal reasons of several clusters.
    """

    short: str
    fields: Mapping[str, Any]


def evidence_of(plugin: str, cycle: Cycle, cluster: Cluster, inputs: ExplainInputs) -> Evidence:
    """Return what a plugin compared; empty for a plugin that is not ours."""
    found = _EVIDENCE.get(plugin)
    return Evidence("", {}) if found is None else found(cycle, cluster, inputs)


def _affinity(cycle: Cycle, cluster: Cluster, inputs: ExplainInputs) -> Evidence:  # noqa: ARG001
    affinities = cycle.affinities
    misses = [miss for each in affinities if (miss := affinity_miss(each, cluster)) is not None]
    if not misses:
        return Evidence("", {})
    fields = dict(misses[0].fields)
    if cycle.affinity_name:
        fields["affinityName"] = cycle.affinity_name
    return Evidence(misses[0].short, fields)


def affinity_miss(affinity: ClusterAffinity, cluster: Cluster) -> Evidence | None:
    """Return the first clause of an affinity that does not select a cluster, None if it is selected."""
    if cluster.name in affinity.exclude:
        return Evidence("excluded", {"clause": "excluded", "path": "exclude"})
    if affinity.label_selector is not None:
        for requirement in _requirements(affinity.label_selector):
            test = requirement.compile()
            if test is None or not test(cluster.labels):
                value = cluster.labels.get(requirement.key)
                short = f"no label {requirement.key}" if value is None else f"{requirement.key}={value}"
                fields = {
                    "clause": f"label {requirement.key}",
                    "path": "labelSelector",
                    "key": requirement.key,
                    "operator": requirement.operator,
                    "values": list(requirement.values),
                    "value": value,
                }
                return Evidence(short, fields)
    if affinity.field_selector is not None and not affinity.field_selector.matches(
        provider=cluster.provider, region=cluster.region, zones=cluster.zones
    ):
        return _field_miss(affinity, cluster)
    if affinity.cluster_names and cluster.name not in affinity.cluster_names:
        return Evidence("not in clusterNames", {"clause": "not in clusterNames", "path": "clusterNames"})
    return None if affinity.matches(cluster) else Evidence("", {})


def _requirements(selector: LabelSelector) -> list[Requirement]:
    labels = [Requirement(key, IN, (value,)) for key, value in selector.match_labels]
    return [*labels, *selector.match_expressions]


def _field_miss(affinity: ClusterAffinity, cluster: Cluster) -> Evidence:
    assert affinity.field_selector is not None
    fields = {key: text for key, text in (("provider", cluster.provider), ("region", cluster.region)) if text}
    for each in affinity.field_selector.match_expressions:
        if each.key == "zone":
            holds = affinity.field_selector.matches_zones(each, cluster.zones)
            value = ",".join(cluster.zones)
        else:
            test = each.compile()
            holds, value = test is not None and test(fields), fields.get(each.key, "")
        if not holds:
            short = f"{each.key}={value}" if value else f"no {each.key}"
            evidence = {
                "clause": f"field {each.key}",
                "path": "fieldSelector",
                "key": each.key,
                "operator": each.operator,
                "values": list(each.values),
                "value": value,
            }
            return Evidence(short, evidence)
    return Evidence("field selector", {"clause": "field selector", "path": "fieldSelector"})


def untolerated(cluster: Cluster, placement: Placement) -> list[Taint]:
    """Return the taints for which a cluster is refused."""
    tolerations = placement.cluster_tolerations
    return [
        taint
        for taint in cluster.taints
        if taint.blocks_scheduling and not any(each.tolerates(taint) for each in tolerations)
    ]


def _taint(cycle: Cycle, cluster: Cluster, inputs: ExplainInputs) -> Evidence:
    for taint in untolerated(cluster, cycle.placement)[:1]:
        short = f"{taint.key.rpartition('/')[2]}:{taint.effect}"
        fields: dict[str, Any] = {
            "clause": short,
            "taint": str(taint),
            "key": taint.key,
            "value": taint.value,
            "effect": taint.effect,
            "since": _taint_since(inputs.cluster_manifest(cluster.name), taint.key, taint.effect),
        }
        near, differs = near_toleration(taint, cycle.placement.cluster_tolerations)
        if near:
            fields |= {"nearToleration": near, "differs": differs}
        return Evidence(short, fields)
    return Evidence("", {})


def _taint_since(manifest: Manifest | None, key: str, effect: str) -> str:
    for taint in mappings(value_at(manifest, "spec", "taints")):
        if taint.get("key") == key and taint.get("effect") == effect:
            return str(taint.get("timeAdded") or "")
    return ""


def _spread(cycle: Cycle, cluster: Cluster, inputs: ExplainInputs) -> Evidence:  # noqa: ARG001
    fields = {"provider": cluster.provider, "region": cluster.region, "zone": cluster.zones}
    for constraint in cycle.placement.spread_constraints:
        field = constraint.spread_by_field
        if field in fields and not fields[field]:
            shown = "zones" if field == "zone" else field
            return Evidence(f"no {shown}", {"clause": f"no {shown} property", "field": f"spec.{shown}"})
    return Evidence("", {})


@lru_cache(maxsize=1)
def _serving(snapshot: Snapshot, api_version: str, kind: str) -> tuple[str, ...]:
    """Return the clusters that serve a kind; cached, because every cluster that does not has them as evidence."""
    return tuple(each.name for each in snapshot if (api_version, kind) in each.api_kinds)


def served_versions(cluster: Cluster, resource: ObjectReference) -> set[str]:
    """Return the versions of a workload's API that a cluster serves."""
    group, _, _ = resource.api_version.rpartition("/")
    return {
        version
        for version, kind in cluster.api_kinds
        if kind == resource.kind and version.rpartition("/")[0] == group
    }


def _api(cycle: Cycle, cluster: Cluster, inputs: ExplainInputs) -> Evidence:
    resource = cycle.binding.spec.resource
    condition = cluster.condition(COMPLETE_API_LIST)
    incomplete = condition is not None and condition.status != "True"
    clause = "API list incomplete" if incomplete else "API missing"
    fields = {
        "clause": clause,
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "servedBy": list(_serving(inputs.snapshot, resource.api_version, resource.kind)),
        "incomplete": incomplete,
    }
    others = sorted(served_versions(cluster, resource))
    if others:
        fields["otherVersions"] = others
    if condition is not None and incomplete:
        fields["condition"] = f"{condition.type}={condition.status} {condition.reason}".strip()
    return Evidence(clause, fields)


def _eviction(cycle: Cycle, cluster: Cluster, inputs: ExplainInputs) -> Evidence:  # noqa: ARG001
    fields: dict[str, Any] = {"clause": "being evicted"}
    for task in mappings(value_at(inputs.binding_manifest, "spec", "gracefulEvictionTasks")):
        if task.get("fromCluster") == cluster.name:
            names = ("reason", "message", "producer", "creationTimestamp", "gracePeriodSeconds")
            fields |= {name: task[name] for name in names if task.get(name) is not None}
            break
    return Evidence("being evicted", fields)


def _affinity_group(cycle: Cycle, cluster: Cluster, inputs: ExplainInputs) -> Evidence:  # noqa: ARG001
    return _group(cycle, anti=False)


def _anti_affinity_group(cycle: Cycle, cluster: Cluster, inputs: ExplainInputs) -> Evidence:  # noqa: ARG001
    return _group(cycle, anti=True)


def _group(cycle: Cycle, *, anti: bool) -> Evidence:
    groups, peers = cycle.binding.spec.workload_affinity_groups, cycle.peers
    if groups is None or peers is None:
        return Evidence("", {})
    name = groups.anti_affinity_group if anti else groups.affinity_group
    members = peers.in_anti_affinity_group(name) if anti else peers.in_affinity_group(name)
    on = {
        str(each.key): [target.name for target in each.spec.clusters]
        for each in members
        if each.key != cycle.binding.key and each.spec.clusters
    }
    kind = "anti-affinity group" if anti else "affinity group"
    return Evidence(kind, {"clause": kind, "group": name, "peers": on})


_EVIDENCE: Final[Mapping[str, Callable[[Cycle, Cluster, ExplainInputs], Evidence]]] = {
    "APIEnablement": _api,
    "ClusterAffinity": _affinity,
    "ClusterEviction": _eviction,
    "SpreadConstraint": _spread,
    "TaintToleration": _taint,
    "WorkloadAffinity": _affinity_group,
    "WorkloadAntiAffinity": _anti_affinity_group,
}
