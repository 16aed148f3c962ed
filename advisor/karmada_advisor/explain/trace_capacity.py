"""How many replicas each candidate can take, and which resource limits it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from karmada_advisor.explain.amounts import request_of, shown
from karmada_advisor.explain.inputs import ExplainInputs
from karmada_advisor.explain.trace_model import CapacityCell, Estimate
from karmada_scheduler.api.binding import BindingSpec, ReplicaRequirements
from karmada_scheduler.api.cluster import Cluster, GradeCount, ResourceSummary
from karmada_scheduler.api.quantity import MAX_INT32
from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.core.available_replicas import (
    NO_OPINION,
    Assumed,
    LocalEstimator,
    counts,
    counts_component_sets,
)
from karmada_scheduler.core.decision import TermAttempt
from karmada_scheduler.estimator.general import GeneralEstimator
from karmada_scheduler.framework.cycle import Cycle, KeptSteps
from karmada_scheduler.structs import replace

_PODS = "pods"
_NODES = "nodes"
_SETS = "sets of components"


class _Limit(NamedTuple):
    name: str
    free: str = ""
    requested: str = ""


def trace_capacity(
    cycle: Cycle, attempt: TermAttempt, kept: KeptSteps, inputs: ExplainInputs
) -> Mapping[str, CapacityCell]:
    """Return the capacity of the candidates by name; the estimators of this process say it for each resource alone."""
    spec, candidates = cycle.binding.spec, attempt.candidates
    assumed = kept.assumed if inputs.gates.enabled("SchedulingOvercommitProtection") else {}
    clusters = [each.cluster for each in candidates]
    is_counted, by_sets = counts(spec), counts_component_sets(spec, inputs.gates)

    def asked(estimator: LocalEstimator, requirements: ReplicaRequirements | None) -> list[int | None]:
        if not is_counted:
            return [None] * len(clusters)
        if by_sets:
            namespace = spec.resource.namespace
            found = estimator.max_available_component_sets(clusters, spec.components, namespace, assumed)
        else:
            found = estimator.max_available_replicas(clusters, requirements, assumed)
        assert isinstance(found, Sequence)  # estimators of this process do not wait
        return [None if each == NO_OPINION else each for each in found]

    answers = {each.name: asked(each, spec.replica_requirements) for each in inputs.estimators}
    limits: list[_Limit] = []
    if inputs.estimators and by_sets:
        limits = [_Limit(_SETS)] * len(clusters)
    elif inputs.estimators and is_counted:
        general = inputs.estimators[0]
        limits = _limits(clusters, answers[general.name], spec, partial(asked, general))
    cells: dict[str, CapacityCell] = {}
    for index, each in enumerate(candidates):
        estimates = tuple(Estimate(name, values[index]) for name, values in answers.items())
        known = [each for each in estimates if each.replicas is not None]
        least = min(known, key=lambda estimate: estimate.replicas or 0, default=None)
        limit = limits[index] if limits else _Limit("")
        counted = known and is_counted and not by_sets
        cells[each.name] = CapacityCell(
            available=each.available,
            allocatable=each.allocatable,
            own=each.available - each.allocatable,
            estimates=estimates,
            source="" if least is None or each.allocatable == MAX_INT32 else least.estimator,
            limited_by=limit.name,
            free=limit.free,
            requested=limit.requested,
            assumed=tuple(str(work.binding) for work in assumed.get(each.name, ()) if work.binding),
            bounded_by=_bound(each.cluster, spec, assumed, inputs.gates) if counted else "",
        )
    return cells


def _bound(cluster: Cluster, spec: BindingSpec, assumed: Assumed, gates: FeatureGates) -> str:
    """Return what the estimate for a cluster comes from: without it, there would be more."""
    summary = cluster.resource_summary or ResourceSummary()

    def estimate(modelings: tuple[GradeCount, ...], assumed: Assumed) -> int:
        changed = replace(cluster, resource_summary=replace(summary, modelings=modelings))
        return GeneralEstimator(gates).max_available_replicas([changed], spec.replica_requirements, assumed)[
            0
        ]

    if summary.modelings and estimate((), assumed) > estimate(summary.modelings, assumed):
        grades = [each.grade for each in summary.modelings if each.nodes > 0]
        largest = f"no node above grade {max(grades)}" if grades else "no free node"
        return f"resource models: {largest}"
    if assumed.get(cluster.name) and estimate(summary.modelings, {}) > estimate(summary.modelings, assumed):
        return "assumed workloads"
    return "resource summary"


def _limits(
    clusters: Sequence[Cluster],
    total: Sequence[int | None],
    spec: BindingSpec,
    ask: Callable[[ReplicaRequirements | None], Sequence[int | None]],
) -> list[_Limit]:
    """Return the resource that limits each cluster: the one that alone allows as few replicas as all together."""
    request, requirements = request_of(spec), spec.replica_requirements or ReplicaRequirements()
    pods = ask(None)
    alone = {
        name: ask(replace(requirements, resource_request={name: amount})) for name, amount in request.items()
    }
    limits: list[_Limit] = []
    requested = {name: shown(name, amount) for name, amount in request.items()}
    for index, cluster in enumerate(clusters):
        summary = cluster.resource_summary
        if summary is None:
            limits.append(_Limit("no resource summary"))
            continue
        replicas = total[index]
        names = [each for each, answer in alone.items() if answer[index] == replicas != pods[index]]
        is_known = replicas is not None and (names or pods[index] == replicas)
        name = next(iter(names), _PODS) if is_known else _NODES
        free = "" if name == _NODES else shown(name, summary.left(name))
        limits.append(_Limit(name, free, requested.get(name, "")))
    return limits
