"""ClusterAffinity: refuse clusters that the binding's placement does not select."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any, Final

from karmada_scheduler.api.matching import Requirement
from karmada_scheduler.api.placement import ClusterAffinity as Affinity
from karmada_scheduler.framework import (
    SUCCESS,
    Cluster,
    Cycle,
    Edit,
    EditContext,
    Evidence,
    EvidenceContext,
    FilterContext,
    Harm,
    Result,
    ScoreContext,
)
from karmada_scheduler_plugins.placement_edits import drop_term, overflow, select
from karmada_scheduler_plugins.selector_edits import as_fields, matches

_CODE: Final = "AffinityMismatch"
_NO_MATCH: Final = Result.unschedulable("cluster(s) did not match the placement cluster affinity constraint")


class ClusterAffinity:
    """Filter by the single affinity, or by those of the current affinity term.

    A current cluster passes only if it matches. The score is always 0; upstream's plugin has one, which metrics show.
    """

    name = "ClusterAffinity"
    filter_key_covers_current = True
    free_of_side_effects = True
    codes: Final = {_CODE: "the affinity does not select the cluster"}

    def filter_key(self, cycle: Cycle, /) -> Hashable:
        """Depends on the affinities of the term in use."""
        return cycle.affinities

    def filter(self, context: FilterContext, /) -> Result:
        """Refuse a cluster that no affinity matches; without affinities, all pass."""
        affinities = context.cycle.affinities
        for affinity in affinities:
            if affinity.matches(context.cluster):
                return SUCCESS
        return _NO_MATCH if affinities else SUCCESS

    def evidence(self, context: EvidenceContext, /) -> Evidence:
        """Return the first clause of the first affinity that does not select the cluster."""
        cycle, cluster = context.cycle, context.cluster
        short, fields = "", dict[str, Any]()
        for affinity in cycle.affinities:
            if not affinity.matches(cluster):
                short, fields = _miss(affinity, cluster)
                break
        text = ""
        if "key" in fields:
            wanted = f"{fields['key']} {fields['operator']} [{', '.join(fields['values'])}]"
            text = f"{fields['path']} wants {wanted}, and it has {fields['value'] or 'none'}"
        if cycle.affinity_name:
            fields["affinityName"] = cycle.affinity_name
        return Evidence(_CODE, short, fields, text, "cluster affinity", by_placement=True)

    def edits(self, context: EditContext, /) -> Iterator[Edit]:
        """Yield edits of the affinity, of what it selects the cluster by, and of the affinity terms."""
        for path, found in context.affinity_paths():
            if isinstance(found, dict):
                yield from as_fields(context, path, found)
                yield from select(context, path, found)
        if context.cycle.placement.cluster_affinity is not None:
            yield context.on_policy.remove(
                "dropAffinity", ("clusterAffinity",), "drop clusterAffinity", extra=1.5, harm=Harm.WIDENS
            )
        elif context.cycle.placement.cluster_affinities:
            yield from _terms(context)

    def score_key(self, cycle: Cycle, /) -> Hashable:  # noqa: ARG002
        """Depends on nothing."""
        return ()

    def score(self, context: ScoreContext, /) -> int:  # noqa: ARG002
        """Return 0 for every cluster."""
        return 0


def _miss(affinity: Affinity, cluster: Cluster) -> tuple[str, dict[str, Any]]:
    """Return the first clause of an affinity that does not select a cluster, in short and as fields."""
    if cluster.name in affinity.exclude:
        return "excluded", {"clause": "excluded", "path": "exclude"}
    if affinity.label_selector is not None:
        for requirement in affinity.label_selector.requirements:
            test = requirement.compile()
            if test is None or not test(cluster.labels):
                value = cluster.labels.get(requirement.key)
                short = f"no label {requirement.key}" if value is None else f"{requirement.key}={value}"
                return short, _clause("label", requirement, value)
    if affinity.field_selector is not None and not affinity.field_selector.matches(
        provider=cluster.provider, region=cluster.region, zones=cluster.zones
    ):
        return _field_miss(affinity, cluster)
    if affinity.cluster_names and cluster.name not in affinity.cluster_names:
        return "not in clusterNames", {"clause": "not in clusterNames", "path": "clusterNames"}
    return "", {}


def _clause(selects_by: str, requirement: Requirement, value: str | None) -> dict[str, Any]:
    return {
        "clause": f"{selects_by} {requirement.key}",
        "path": f"{selects_by}Selector",
        "key": requirement.key,
        "operator": requirement.operator,
        "values": list(requirement.values),
        "value": value,
    }


def _field_miss(affinity: Affinity, cluster: Cluster) -> tuple[str, dict[str, Any]]:
    assert affinity.field_selector is not None
    values = {"provider": cluster.provider, "region": cluster.region, "zone": ",".join(cluster.zones)}
    for requirement in affinity.field_selector.match_expressions:
        alone = type(affinity.field_selector)((requirement,))
        if not alone.matches(provider=cluster.provider, region=cluster.region, zones=cluster.zones):
            value = values.get(requirement.key, "")
            short = f"{requirement.key}={value}" if value else f"no {requirement.key}"
            return short, _clause("field", requirement, value)
    return "field selector", {"clause": "field selector", "path": "fieldSelector"}


def _terms(context: EditContext) -> Iterator[Edit]:
    """Yield edits of the affinity terms: overflow to the cluster, and terms that no longer come first."""
    name = context.cycle.affinity_name
    listed = context.placement_items("clusterAffinities")
    for index, term in enumerate(listed):
        if not isinstance(term, dict):
            continue
        if term.get("affinityName") == name:
            if context.cycle.binding.spec.is_workload:
                yield overflow(context, index, name)
            if len(listed) > 1:
                yield drop_term(context, index, name, extra=0.5)
        elif matches(term, context.cluster):
            others = [other for other in listed if other is not term]
            yield context.on_policy.set(
                "termFirst", ("clusterAffinities",),
                [{**term, "affinityName": f"{term.get('affinityName')}-first"[:63]}, *others],
                f"affinity term {term.get('affinityName')} first, with another name", extra=0.5,
            )  # fmt: skip
    yield context.on_policy.remove(
        "dropTerms", ("clusterAffinities",), "drop clusterAffinities", extra=1.5, harm=Harm.WIDENS
    )
