"""How many replicas each candidate can take, and which resource limits it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from karmada_advisor.explain.amounts import request_of, shown
from karmada_advisor.explain.inputs import ExplainInputs
from karmada_advisor.explain.trace_model import CapacityCell, Estimate, Mismatch
from karmada_scheduler.api.binding import BindingSpec
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.quantity import MAX_INT32
from karmada_scheduler.core.available_replicas import (
    NO_OPINION,
    Assumed,
    LocalEstimator,
    counts,
    counts_component_sets,
    with_footprint,
)
from karmada_scheduler.core.decision import Decision, TermAttempt
from karmada_scheduler.framework.cycle import Candidate, Cycle
from karmada_scheduler.structs import replace

_PODS = "pods"
_NODES = "nodes"
_SETS = "sets of components"


class CapacityTrace(NamedTuple):
    """Capacity by cluster name, of the candidates."""

    cells: Mapping[str, CapacityCell]
    mismatches: Sequence[Mismatch]


class _Limit(NamedTuple):
    name: str
    free: str = ""
    requested: str = ""


def trace_capacity(
    cycle: Cycle, attempt: TermAttempt, decision: Decision, inputs: ExplainInputs
) -> CapacityTrace:
    """Ask the estimators of this process again, in all and for each resource alone."""
    spec, candidates = cycle.binding.spec, attempt.candidates
    assumed = _assumed_in(attempt, decision, inputs)
    clusters = [each.cluster for each in candidates]
    answers = {each.name: _estimates(each, clusters, spec, assumed, inputs) for each in inputs.estimators}
    limits = _limits(clusters, next(iter(answers.values()), ()), spec, assumed, inputs)
    cells: dict[str, CapacityCell] = {}
    for index, each in enumerate(candidates):
        estimates = tuple(Estimate(name, values[index]) for name, values in answers.items())
        known = [each for each in estimates if each.replicas is not None]
        least = min(known, key=lambda estimate: estimate.replicas or 0, default=None)
        limit = limits[index] if limits else _Limit("")
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
        )
    return CapacityTrace(cells, _compare(candidates, answers.values(), spec))


def _assumed_in(attempt: TermAttempt, decision: Decision, inputs: ExplainInputs) -> Assumed:
    """Return the placements that counted as taken in one attempt: later passes count the result of the earlier ones."""
    if not inputs.gates.enabled("SchedulingOvercommitProtection"):
        return {}
    assumed, binding = inputs.assumed, inputs.binding
    for each in decision.attempts:
        assert each.cycle is not None  # as in ``Basis.cycle``
        if each.cycle.binding is not binding:
            assumed = with_footprint(assumed, binding, each.cycle.binding.spec.clusters)
            binding = each.cycle.binding
        if each is attempt:
            break
    return assumed


def _compare(
    candidates: Sequence[Candidate], answers: Iterable[Sequence[int | None]], spec: BindingSpec
) -> list[Mismatch]:
    """Compare the smallest estimates with what the decision counted on."""
    least = [MAX_INT32] * len(candidates)
    for answer in answers:
        least = [
            known if each is None else min(known, each) for known, each in zip(least, answer, strict=True)
        ]
    if counts(spec):
        least = [spec.replicas if known == MAX_INT32 else known for known in least]
    return [
        Mismatch("capacity", each.name, str(free), str(each.allocatable))
        for each, free in zip(candidates, least, strict=True)
        if free != each.allocatable
    ]


def _estimates(
    estimator: LocalEstimator,
    clusters: Sequence[Cluster],
    spec: BindingSpec,
    assumed: Assumed,
    inputs: ExplainInputs,
) -> list[int | None]:
    if not counts(spec):
        return [None] * len(clusters)
    if counts_component_sets(spec, inputs.gates):
        found = estimator.max_available_component_sets(
            clusters, spec.components, spec.resource.namespace, assumed
        )
    else:
        found = estimator.max_available_replicas(clusters, spec.replica_requirements, assumed)
    assert isinstance(found, Sequence)  # estimators of this process do not wait
    return [None if each == NO_OPINION else each for each in found]


def _limits(
    clusters: Sequence[Cluster],
    total: Sequence[int | None],
    spec: BindingSpec,
    assumed: Assumed,
    inputs: ExplainInputs,
) -> list[_Limit]:
    """Return the resource that limits each cluster: the one that alone allows as few replicas as all together."""
    general = next(iter(inputs.estimators), None)
    if general is None or not counts(spec):
        return []
    if counts_component_sets(spec, inputs.gates):
        return [_Limit(_SETS)] * len(clusters)
    requirements = spec.replica_requirements
    request = request_of(spec)
    pods = general.max_available_replicas(clusters, None, assumed)
    assert isinstance(pods, Sequence)
    alone: dict[str, Sequence[int]] = {}
    for name, amount in request.items():
        assert requirements is not None
        answer = general.max_available_replicas(
            clusters, replace(requirements, resource_request={name: amount}), assumed
        )
        assert isinstance(answer, Sequence)
        alone[name] = answer
    limits: list[_Limit] = []
    requested = {name: shown(name, amount) for name, amount in request.items()}
    for index, cluster in enumerate(clusters):
        summary = cluster.resource_summary
        if summary is None:
            limits.append(_Limit("no resource summary"))
            continue
        name = next(
            (each for each, counts_ in alone.items() if counts_[index] == total[index] != pods[index]), ""
        )
        if not name:
            name = _PODS if pods[index] == total[index] else _NODES
        free = "" if name == _NODES else shown(name, summary.left(name))
        limits.append(_Limit(name, free, requested.get(name, "")))
    return limits
