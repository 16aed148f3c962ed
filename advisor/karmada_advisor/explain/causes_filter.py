"""Causes of refusals by filters."""

from __future__ import annotations

from typing import Any, Final

from karmada_advisor.explain.model import Cause, Stage
from karmada_advisor.explain.situation import Basis, Situation
from karmada_advisor.explain.trace_model import FilterCell

_CODES: Final = {
    "ClusterAffinity": "AffinityMismatch",
    "ClusterEviction": "BeingEvicted",
    "TaintToleration": "UntoleratedTaint",
    "WorkloadAffinity": "GroupAffinity",
    "WorkloadAntiAffinity": "GroupAntiAffinity",
}
_OWN_TAINTS: Final = {
    "cluster.karmada.io/not-ready": "it is not ready",
    "cluster.karmada.io/unreachable": "it is not reachable",
    "cluster.karmada.io/terminating": "it is being deleted",
}
"""What Karmada's controllers say with a taint that they set and remove themselves."""

_MISSING: Final = {
    "spec.region": "RegionMissing",
    "spec.provider": "ProviderMissing",
    "spec.zones": "ZonesMissing",
}


def code_of(cell: FilterCell) -> str:
    """Return the code of a refusal."""
    if not cell.plugin:
        return "ClusterBeingDeleted"
    if cell.plugin == "SpreadConstraint":
        return _MISSING.get(str(cell.evidence.get("field")), "PropertyMissing")
    if cell.plugin == "APIEnablement":
        return "ApiListIncomplete" if cell.evidence.get("incomplete") else "ApiMissing"
    return _CODES.get(cell.plugin, "PluginRefused")


def of_cluster(situation: Situation, basis: Basis, cluster: str) -> list[Cause]:
    """Return a cause for each refusal of a cluster.

    The primary one is the refusal of the placement itself, if there is one: it stays when the cluster is repaired.
    Otherwise the order of the plugins counts.
    """
    row = basis.row_of(cluster)
    if row is None:
        return []
    causes = [_cause(cell, cluster) for cell in row.refusals]
    if any(cell.plugin == "ClusterAffinity" for cell in row.refusals):
        causes.sort(key=lambda each: each.code != "AffinityMismatch")
        causes = [*_other_term(situation, basis, cluster), *causes]
    return causes


def _cause(cell: FilterCell, cluster: str) -> Cause:
    evidence = {"cluster": cluster, "plugin": cell.plugin, "reason": cell.reason, **cell.evidence}
    return Cause(code_of(cell), Stage.FILTER, evidence, f"{cluster} is refused: {sentence(cell)}")


def sentence(cell: FilterCell) -> str:
    """Return a refusal in words."""
    evidence = cell.evidence
    match cell.plugin:
        case "TaintToleration":
            since = f", since {evidence['since']}" if evidence.get("since") else ""
            if own := _OWN_TAINTS.get(str(evidence.get("key"))):
                return f"{own}, and Karmada has set the taint {evidence.get('taint')}{since}"
            near = evidence.get("nearToleration")
            but = (
                f"; the toleration {near} differs in its {' and '.join(evidence['differs'])}" if near else ""
            )
            return f"the taint {evidence.get('taint', '')} is not tolerated{since}{but}"
        case "SpreadConstraint":
            return f"{evidence.get('field', 'a property')} is not set, and a spread constraint needs it"
        case "APIEnablement":
            served = evidence.get("servedBy") or []
            by = f"served by {', '.join(map(str, list(served)[:5]))}" if served else "served by no cluster"
            what = f"{evidence.get('apiVersion')} {evidence.get('kind')} is not in its list of APIs ({by})"
            if others := evidence.get("otherVersions"):
                what = f"{what}, but {', '.join(map(str, others))} is"
            return f"{what}; the list is incomplete" if evidence.get("incomplete") else what
        case "ClusterAffinity" if "key" in evidence:
            values = ", ".join(map(str, evidence["values"]))
            wanted = f"{evidence['key']} {evidence['operator']} [{values}]"
            return f"{evidence['path']} wants {wanted}, and it has {evidence['value'] or 'none'}"
        case "ClusterEviction":
            return f"it has a graceful eviction task ({evidence.get('reason', 'without a reason')})"
    return cell.short or cell.reason


def _other_term(situation: Situation, basis: Basis, cluster: str) -> list[Cause]:
    """Return why the affinity term that selects a cluster is not in use."""
    cycle, found = basis.cycle, situation.inputs.snapshot.get(cluster)
    if found is None or cycle.term is None:
        return []
    terms = cycle.placement.cluster_affinities
    names = [each.affinity_name for each in terms]
    used = names.index(cycle.affinity_name)
    overflow = situation.inputs.binding.spec.is_workload
    of_cluster_ = next(
        (
            index
            for index, term in enumerate(terms)
            if term.affinity.matches(found)
            or (overflow and any(each.affinity.matches(found) for each in term.overflow_affinities))
        ),
        None,
    )
    if of_cluster_ is None or of_cluster_ == used:
        return []
    evidence: dict[str, Any] = {"cluster": cluster, "term": names[of_cluster_], "inUse": names[used]}
    if of_cluster_ < used:
        text = f"{cluster} belongs to the term {names[of_cluster_]}, and a binding never returns to a term that it has left"
        plugin = situation.returned_by
        if plugin:
            evidence |= {"proposedBy": plugin}
            text = (
                f"{cluster} belongs to the term {names[of_cluster_]}, which the binding has left; {plugin} proposes to "
                "return there when it works, and its Events say what it waits for"
            )
        return [Cause("TermBehind", Stage.POLICY, evidence, text)]
    short_of = [
        each for each in basis.attempt.selected if each.available < situation.inputs.binding.spec.replicas
    ]
    if cycle.placement.is_duplicated and short_of:
        text = (
            f"Duplicated never asks how many replicas a cluster can take, so the term {names[used]} is used although "
            f"{short_of[0].name} can take {short_of[0].available}"
        )
        evidence |= {"full": {each.name: each.available for each in short_of}}
        return [Cause("NoCapacityCheck", Stage.POLICY, evidence, text)]
    text = (
        f"{cluster} belongs to the term {names[of_cluster_]}, and the term {names[used]} before it suffices"
    )
    return [Cause("TermAhead", Stage.POLICY, evidence, text)]
