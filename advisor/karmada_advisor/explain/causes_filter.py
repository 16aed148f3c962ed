"""Causes of refusals by filters."""

from __future__ import annotations

from typing import Any

from karmada_advisor.explain.model import Cause, Stage
from karmada_advisor.explain.situation import Basis, Situation


def of_cluster(situation: Situation, basis: Basis, cluster: str) -> list[Cause]:
    """Return a cause for each refusal of a cluster.

    The primary one is the refusal of the placement itself, if there is one: it stays when the cluster is repaired.
    Otherwise the order of the plugins counts.
    """
    refusals = basis.filter.get(cluster, ())
    by_placement = [each for each in refusals if each.evidence.by_placement]
    others = [each for each in refusals if not each.evidence.by_placement]
    causes = [
        Cause(
            refusal.evidence.code,
            Stage.FILTER,
            {
                "cluster": cluster,
                "plugin": refusal.plugin,
                "reason": refusal.reason,
                **refusal.evidence.fields,
            },
            f"{cluster} is refused: {refusal.evidence.text}",
        )
        for refusal in (*by_placement, *others)
    ]
    return [*_other_term(situation, basis, cluster), *causes] if by_placement else causes


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
