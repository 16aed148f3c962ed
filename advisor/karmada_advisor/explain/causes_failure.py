"""Causes for which a decision fails."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache, reduce
from typing import Any

from karmada_advisor.explain.amounts import counted, request_of, shown_times
from karmada_advisor.explain.causes_capacity import not_in_models
from karmada_advisor.explain.model import Cause, Stage
from karmada_advisor.explain.situation import Basis, Situation
from karmada_advisor.explain.trace_model import DivideTrace, SelectTrace
from karmada_scheduler.api.matching import EXISTS, IN
from karmada_scheduler.api.names import FleetValues
from karmada_scheduler.api.placement import ClusterAffinity, Placement
from karmada_scheduler.core.available_replicas import counts_component_sets
from karmada_scheduler.framework.diagnosis import FitError, HeldError, PluginError, UnschedulableError
from karmada_scheduler.framework.extension_points import Point
from karmada_scheduler.framework.runtime.binding_points import RefusedError
from karmada_scheduler.framework.snapshot import Snapshot


def of_failure(situation: Situation) -> Iterator[Cause]:
    """Yield why the decision on the binding as it is fails, at the step where the last candidate disappeared."""
    error, basis = situation.now.decision.error, situation.now
    if error is None:
        return
    if isinstance(error, HeldError):
        return  # the decision itself succeeded; causes_guard names the plugin
    if isinstance(error, RefusedError):
        evidence = {"plugin": error.plugin, "point": error.point.label, "reason": error.why}
        stage = {Point.SELECT: Stage.SELECT, Point.ASSIGN: Stage.DIVIDE}.get(error.point, Stage.WRITE)
        steps = ("failed to select clusters: ", "failed to assign replicas: ")
        refused = reduce(str.removeprefix, steps, str(error))
        yield Cause("DecisionRefused", stage, evidence, f"the decision is {refused}")
        return
    if isinstance(error, PluginError):
        yield Cause("PluginFailed", Stage.FILTER, {"error": str(error)}, str(error))
        return
    if not basis.decision.attempts:
        yield Cause("Refused", Stage.POLICY, {"error": str(error)}, str(error))
        return
    yield from _terms(situation)
    if isinstance(error, FitError):
        yield from unknown_names(situation)
        yield from _unknown_values(situation)
        if not len(situation.snapshot):
            yield Cause("NoClusters", Stage.FILTER, {}, "no cluster exists")
        yield from _refusals(situation)
    elif basis.select is not None and basis.select.error:
        yield from _of_select(situation, basis.select)
    elif basis.divide is not None and basis.divide.error:
        yield from _of_divide(situation, basis.divide)
    else:
        yield Cause("Refused", Stage.POLICY, {"error": str(error)}, str(error))


def unknown_names(situation: Situation) -> Iterator[Cause]:
    """Yield the names in the placement's affinities that no cluster has."""
    placement, snapshot = situation.spec.placement, situation.snapshot
    if placement is None:
        return
    names = [name for affinity in affinities_of(placement) for name in affinity.cluster_names]
    unknown = {name: _values_of(snapshot).cluster(name) for name in names if snapshot.get(name) is None}
    if unknown:
        shown = "; ".join(_nearest(f"{name} does not exist", near) for name, near in unknown.items())
        yield Cause("ClusterUnknown", Stage.POLICY, {"unknown": unknown}, f"clusterNames: {shown}")


def _nearest(text: str, near: str) -> str:
    return f"{text}, nearest: {near}" if near else text


@lru_cache(maxsize=1)
def _values_of(snapshot: Snapshot) -> FleetValues:
    """Return the values that clusters have; cached, because every cause of a decision asks for them."""
    return FleetValues(snapshot)


def _unknown_values(situation: Situation) -> Iterator[Cause]:
    """Yield what the placement's selectors ask for and no cluster has, with the nearest value that some cluster has."""
    placement = situation.spec.placement
    if placement is None:
        return
    values = _values_of(situation.snapshot)
    unknown = {asked: near for each in affinities_of(placement) for asked, near in _unknown(each, values)}
    if unknown:
        shown = "; ".join(_nearest(f"no cluster has {asked}", near) for asked, near in unknown.items())
        yield Cause("ValueUnknown", Stage.POLICY, {"unknown": unknown}, shown)


def _unknown(affinity: ClusterAffinity, values: FleetValues) -> Iterator[tuple[str, str]]:
    """Yield what no cluster has, with the nearest value, as ``key=value`` for labels and ``key value`` for fields."""
    labels, fields = affinity.label_selector, affinity.field_selector
    for found in labels.requirements if labels is not None else ():
        existing = values.labels.get(found.key, set())
        if found.operator == IN and existing.isdisjoint(found.values):
            near = [label for value in found.values if (label := values.label(found.key, value)) is not None]
            yield f"{found.key}={' or '.join(found.values)}", str(near[0]) if near else ""
        elif found.operator == EXISTS and not existing:
            yield f"the label {found.key}", values.label_key(found.key)
    for found in fields.match_expressions if fields is not None else ():
        if found.operator == IN and values.fields.get(found.key, set()).isdisjoint(found.values):
            similar = [field for value in found.values if (field := values.field(found.key, value))]
            yield f"{found.key} {' or '.join(found.values)}", similar[0] if similar else ""


def _refusals(situation: Situation) -> Iterator[Cause]:
    """Yield a cause for each first refusal.

    Clusters that the affinity selects come first: that it does not select others is what the user wrote. Then the most
    frequent refusal comes first.
    """
    rows = situation.now.filter
    wanted = _wanted(situation)
    for refused in sorted(situation.now.filter.counted(), key=lambda found: wanted.isdisjoint(found.names)):
        chosen = next((name for name in refused.names if name in wanted), refused.names[0])
        refusal, count = rows[chosen][0], len(refused.names)
        evidence: dict[str, Any] = {"plugin": refusal.plugin, "count": count, "of": len(rows)}
        evidence |= {"clusters": list(refused.names), **refusal.evidence.fields}
        are = "is" if count == 1 else "are"
        is_shared = count == 1 or "value" not in refusal.evidence.fields
        why = refusal.evidence.text if is_shared else refusal.reason
        text = f"{count:,} of {counted(len(rows), 'cluster')} {are} refused: {why}"
        yield Cause(refusal.evidence.code, Stage.FILTER, evidence, text)


def _wanted(situation: Situation) -> frozenset[str]:
    """Return the clusters that the affinity selects; if it selects none, those that it names and excludes."""
    affinities = situation.now.cycle.affinities
    clusters = situation.snapshot
    matching = (each for each in clusters if any(affinity.matches(each) for affinity in affinities))
    selected = frozenset(cluster.name for cluster in (matching if affinities else clusters))
    excluded = frozenset(name for each in affinities for name in each.exclude if name in each.cluster_names)
    return selected or excluded


def _terms(situation: Situation) -> Iterator[Cause]:
    """Yield the cause that no single affinity term suffices, although all of them together would."""
    attempts = [attempt for attempt in situation.now.decision.attempts if attempt.affinity_name]
    needed = situation.spec.replicas
    holds = {each.affinity_name: sum(found.available for found in each.candidates) for each in attempts}
    if not all(isinstance(attempt.error, UnschedulableError | FitError) for attempt in attempts):
        return
    if len(holds) > 1 and 0 < max(holds.values()) < needed <= sum(holds.values()):
        shown = ", ".join(f"{name} {count}" for name, count in holds.items())
        alone = f"each affinity term has to take all {needed} replicas alone ({shown})"
        text = f"{alone}; the condition shows the first only"
        evidence = {"terms": holds, "replicas": needed, "condition": str(situation.now.decision.error)}
        yield Cause("TermsDoNotAdd", Stage.POLICY, evidence, text)


def _of_select(situation: Situation, trace: SelectTrace) -> Iterator[Cause]:
    error, feasible = trace.error, len(situation.now.attempt.candidates)
    limits = {field: list(pair) for field, pair in trace.limits.items()}
    evidence: dict[str, Any] = {"error": error, "limits": limits, "feasible": feasible}
    least, most = trace.limits.get(trace.by, (0, 1))
    groups = len(trace.groups) if trace.by == "region" else feasible
    is_unmet = "MinGroups" in error and (most != 0 or groups < least)
    if is_unmet:
        yield from _minimum(situation, trace, evidence)
    if most == 0:
        yield _zero_maximum(trace.by, evidence)
    elif "no enough resource" in error:
        yield from _too_little(situation, trace, evidence)
    elif "just support" in error:
        names = list(trace.ignored)
        text = f"only cluster and region are supported as spread constraints, not {', '.join(names)}"
        yield Cause("SpreadUnsupported", Stage.SELECT, evidence | {"unsupported": names}, text)
    elif not is_unmet:
        yield Cause("SelectFailed", Stage.SELECT, evidence, error)


def _zero_maximum(field: str, evidence: dict[str, Any]) -> Cause:
    text = f"maxGroups of {field} is not set, which means 0, not unlimited: no cluster is selected"
    return Cause("MaxGroupsZero", Stage.SELECT, evidence | {"field": field}, text)


def _minimum(situation: Situation, trace: SelectTrace, evidence: dict[str, Any]) -> Iterator[Cause]:
    """Yield that there are too few groups, and who refused the others."""
    candidates = situation.now.attempt.candidates
    if "feasible region" in trace.error:
        least = trace.limits["region"][0]
        regions: dict[str, list[str]] = {}
        for candidate in candidates:
            if candidate.cluster.region:
                regions.setdefault(candidate.cluster.region, []).append(candidate.name)
        are = "1 region is" if len(regions) == 1 else f"{len(regions)} regions are"
        text = f"{are} feasible ({', '.join(regions) or 'none'}), and minGroups is {least}"
        found = evidence | {"regions": regions, "required": least}
        yield Cause("MinRegionsUnmet", Stage.SELECT, found, text)
    else:
        least = trace.limits.get("cluster", (0, 0))[0]
        feasible = [candidate.name for candidate in candidates]
        are = "1 cluster is" if len(feasible) == 1 else f"{len(feasible)} clusters are"
        text = f"{are} feasible, and minGroups is {least}"
        if trace.by == "region" and len(feasible) >= least:
            most = trace.limits["region"][1]
            together = sum(sorted((len(group.clusters) for group in trace.groups), reverse=True)[:most])
            evidence |= {"maxRegions": most, "together": together}
            regions_ = counted(most, "region, the largest, has", "regions, the largest, have")
            text = f"{regions_} {counted(together, 'cluster')}, and minGroups of cluster is {least}"
        found = evidence | {"clusters": feasible, "required": least}
        yield Cause("MinGroupsUnmet", Stage.SELECT, found, text)
    yield from _refusals(situation)


def _too_little(situation: Situation, trace: SelectTrace, evidence: dict[str, Any]) -> Iterator[Cause]:
    _, most = trace.limits.get("cluster", (0, 0))
    by_capacity = sorted(situation.now.attempt.candidates, key=lambda each: -each.available)
    best = {candidate.name: candidate.available for candidate in by_capacity[:most]}
    needed = situation.spec.replicas
    if counts_component_sets(situation.spec, situation.inputs.algorithm.gates):
        text = "no cluster can take one set of all components"
        yield Cause("ComponentSets", Stage.CAPACITY, evidence | {"sets": best}, text)
        return
    total = sum(candidate.available for candidate in by_capacity)
    found = evidence | {"best": best, "holds": sum(best.values()), "replicas": needed, "all": total}
    if total < needed:
        yield from not_in_models(situation)
        yield _not_enough(situation.now, needed, total, found)
        return
    held = sum(best.values())
    text = f"the best {most} clusters can take {held} of {needed} replicas, all together {total}"
    yield Cause("TooLittleSelected", Stage.SELECT, found, text)


def _of_divide(situation: Situation, trace: DivideTrace) -> Iterator[Cause]:
    evidence: dict[str, Any] = {"error": trace.error}
    if not situation.now.attempt.selected:
        select = situation.now.select
        if select is not None and select.limits.get(select.by, (0, 1))[1] == 0:
            yield _zero_maximum(select.by, evidence)
        else:
            yield Cause("NothingSelected", Stage.SELECT, evidence, "no cluster is selected")
        return
    if isinstance(situation.now.decision.error, UnschedulableError):
        yield from not_in_models(situation)
        yield _not_enough(situation.now, trace.divided, trace.available, evidence)
        return
    yield Cause("StrategyUnsupported", Stage.DIVIDE, evidence, trace.error)


def _not_enough(basis: Basis, wanted: int, available: int, evidence: dict[str, Any]) -> Cause:
    if not wanted:
        overflows = "a decision fails, because the sum of what clusters can take overflows"
        text = f"0 replicas are wanted: there is nothing to place; {overflows}"
        return Cause("ZeroReplicas", Stage.DIVIDE, evidence | {"available": available}, text)
    counts = {candidate.name: candidate.allocatable for candidate in basis.attempt.candidates}
    clusters = {name: {"allocatable": count, **basis.limit_of(name)} for name, count in counts.items()}
    missing = wanted - available
    request = request_of(basis.cycle.binding.spec)
    amounts = {name: shown_times(name, amount, missing) for name, amount in request.items()}
    found = evidence | {"available": available, "wanted": wanted, "missing": missing}
    found |= {"clusters": clusters, "missingAmounts": amounts}
    shown = "".join(f", {amount} {name}" for name, amount in amounts.items())
    text = f"{available} of {wanted} replicas fit ({missing} missing{shown}), and all are placed or none"
    return Cause("NotEnoughRoom", Stage.CAPACITY, found, text)


def affinities_of(placement: Placement) -> list[ClusterAffinity]:
    """Return the affinities of a placement: the single one, or those of all terms with their overflow."""
    found = [placement.cluster_affinity] if placement.cluster_affinity is not None else []
    for term in placement.cluster_affinities:
        found += [term.affinity, *(affinity.affinity for affinity in term.overflow_affinities)]
    return found
