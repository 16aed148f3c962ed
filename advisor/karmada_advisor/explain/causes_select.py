"""Causes for which a cluster is refused by filters, or not selected."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from karmada_advisor.explain.amounts import counted
from karmada_advisor.explain.model import Cause, Stage
from karmada_advisor.explain.situation import Basis, Situation
from karmada_advisor.explain.trace_model import SelectTrace
from karmada_advisor.explain.trace_select import LOSSES
from karmada_scheduler.api.placement import AGGREGATED, ClusterAffinityTerm, Placement
from karmada_scheduler.framework import MAX_CLUSTER_SCORE

RETURNS_ON_REQUEST: Final = (
    "a binding returns to a term that it has left only when a WorkloadRebalancer names it"
)
"""By the rules of 1.19."""


def refusals_of(situation: Situation, basis: Basis, cluster: str) -> list[Cause]:
    """Return a cause for each refusal of a cluster.

    The primary one is the refusal of the placement itself, if there is one: it stays when the cluster is repaired.
    Otherwise the order of the plugins counts.
    """
    refusals, causes = basis.filter.get(cluster, ()), list[Cause]()
    for refusal in sorted(refusals, key=lambda refusal: not refusal.evidence.by_placement):
        evidence: dict[str, Any] = {"cluster": cluster, "plugin": refusal.plugin, "reason": refusal.reason}
        evidence |= refusal.evidence.fields
        text = f"{cluster} is refused: {refusal.evidence.text}"
        causes.append(Cause(refusal.evidence.code, Stage.FILTER, evidence, text))
    by_placement = any(refusal.evidence.by_placement for refusal in refusals)
    return [*(_other_term(situation, basis, cluster) if by_placement else ()), *causes]


def _other_term(situation: Situation, basis: Basis, cluster: str) -> list[Cause]:
    """Return why the affinity term that selects a cluster is not in use."""
    cycle, found = basis.cycle, situation.snapshot.get(cluster)
    if found is None or cycle.term is None:
        return []
    terms = cycle.placement.cluster_affinities
    names = [term.affinity_name for term in terms]
    used = names.index(cycle.affinity_name)
    overflow = situation.spec.is_workload

    def selects(term: ClusterAffinityTerm) -> bool:
        others = (other.affinity for other in term.overflow_affinities if overflow)
        return any(affinity.matches(found) for affinity in (term.affinity, *others))

    of_cluster_ = next((index for index, term in enumerate(terms) if selects(term)), None)
    if of_cluster_ is None or of_cluster_ == used:
        return []
    own, in_use = names[of_cluster_], names[used]
    evidence: dict[str, Any] = {"cluster": cluster, "term": own, "inUse": in_use}
    if of_cluster_ < used:
        never = "a binding never returns to a term that it has left"
        if situation.inputs.algorithm.gates.rules.reschedule_from_first:
            never = RETURNS_ON_REQUEST
        text = f"{cluster} belongs to the term {own}, and {never}"
        plugin = situation.returned_by
        if plugin:
            evidence |= {"proposedBy": plugin}
            left = f"{cluster} belongs to the term {own}, which the binding has left"
            again = "return there when it works, and its Events say what it waits for"
            text = f"{left}; {plugin} proposes to {again}"
        return [Cause("TermBehind", Stage.POLICY, evidence, text)]
    wanted = situation.spec.replicas
    short_of = [candidate for candidate in basis.attempt.selected if candidate.available < wanted]
    if cycle.placement.is_duplicated and short_of:
        never = "Duplicated never asks how many replicas a cluster can take"
        although = f"{short_of[0].name} can take {short_of[0].available}"
        text = f"{never}, so the term {in_use} is used although {although}"
        evidence |= {"full": {candidate.name: candidate.available for candidate in short_of}}
        return [Cause("NoCapacityCheck", Stage.POLICY, evidence, text)]
    text = f"{cluster} belongs to the term {own}, and the term {in_use} before it suffices"
    return [Cause("TermAhead", Stage.POLICY, evidence, text)]


def is_aggregated(placement: Placement) -> bool:
    """Return whether replicas are divided over the fewest clusters."""
    strategy = placement.replica_scheduling
    return strategy is not None and strategy.replica_division_preference == AGGREGATED


def of_cluster(situation: Situation, basis: Basis, cluster: str) -> Iterator[Cause]:
    """Yield why a cluster that passes the filters is not selected."""
    trace = basis.select
    loss = None if trace is None or trace.error else trace.losses.get(cluster)
    if trace is None or loss is None:
        return
    evidence = _evidence(basis, trace, cluster, loss)
    if _keeps_locality(situation, basis, cluster):
        present = [each.name for each in basis.attempt.selected if each.name in situation.present]
        selected = f"present clusters score 100, so {', '.join(present)} are selected before {cluster}"
        text = f"{selected}; a WorkloadRebalancer does not change that"
        yield Cause("LocalityKeeps", Stage.SELECT, evidence | {"present": present}, text)
        return
    if loss.startswith("region:"):
        yield from _set_suffices(trace, evidence)
    code, text = LOSSES[loss].code, LOSSES[loss].text
    if loss == "available" and is_aggregated(basis.cycle.placement):
        code = "AggregatedFewest"
        text = "as few clusters as possible are used, and {} can take fewer replicas"
    yield Cause(code, Stage.SELECT, evidence, text.format(cluster))


def _keeps_locality(situation: Situation, basis: Basis, cluster: str) -> bool:
    """Return whether a first decision puts replicas on a cluster that the scores of present clusters keep out."""
    if not situation.present or situation.is_shown_as_new:
        return False
    held = [candidate.name for candidate in basis.attempt.selected if candidate.name in situation.present]
    cells = (cell for name in held for cell in basis.score[name])
    best = {cell.plugin for cell in cells if cell.normalized == MAX_CLUSTER_SCORE}
    if all(cell.plugin not in best for cell in basis.score.get(cluster, ())):
        return False
    return situation.is_on(situation.first.placement, cluster)


def _set_suffices(trace: SelectTrace, evidence: Mapping[str, Any]) -> Iterator[Cause]:
    """Yield that fewer regions than the maximum are taken."""
    least, most = trace.limits.get("region", (0, 0))
    names = trace.combinations[0].names if trace.combinations else ()
    if most > len(names) >= least:
        text = f"{' + '.join(names)} suffices: no larger set is tried, although region maxGroups is {most}"
        yield Cause("SetSuffices", Stage.SELECT, evidence, text)


def _evidence(basis: Basis, trace: SelectTrace, cluster: str, loss: str) -> dict[str, Any]:
    evidence: dict[str, Any] = {"cluster": cluster, "criterion": loss.rpartition(":")[2]}
    if trace.combinations:
        best = trace.combinations[0]
        region = next((group.name for group in trace.groups if cluster in group.clusters), "")
        own = next((each for each in trace.combinations if region in each.names and not each.taken), None)
        evidence |= {"wonBy": list(best.names), "weight": best.weight}
        evidence |= {"clusters": best.clusters, "region": region}
        if own is not None:
            evidence |= {"lost": list(own.names), "lostWeight": own.weight, "lostClusters": own.clusters}
    shown = {cluster, *(candidate.name for candidate in basis.attempt.selected[:5])}
    cells = basis.capacity
    return evidence | {"available": {name: cells[name].available for name in sorted(shown) if name in cells}}


def of_placed(situation: Situation) -> Iterator[Cause]:
    """Yield what the selection did that a reader of the policy may not expect."""
    basis = situation.shown
    trace = basis.select
    if trace is None:
        return
    if trace.ignored and trace.by == "all":
        text = "static weights switch selection by spread constraints off: every cluster that passes the filters is used"
        yield Cause("SpreadIgnored", Stage.SELECT, {"ignored": list(trace.ignored)}, text)
    _, most = trace.limits.get("cluster", (0, 0))
    if trace.by == "region" and most and len(basis.attempt.selected) > most:
        regions = len({candidate.cluster.region for candidate in basis.attempt.selected})
        evidence = {"regions": regions, "maxClusters": most, "selected": len(basis.attempt.selected)}
        text = f"{counted(regions, 'region needs a cluster', 'regions need a cluster each')}, so the cluster maximum of {most} is exceeded"
        yield Cause("RegionsFirst", Stage.SELECT, evidence, text)
    unused = [candidate for candidate in basis.attempt.candidates if candidate.name in trace.losses]
    if unused:
        yield from of_cluster(situation, basis, max(unused, key=lambda each: each.available).name)
