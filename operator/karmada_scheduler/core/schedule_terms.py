"""One pass over the affinity terms of a binding: the first term that works is used.

Source: karmada v1.18.2 pkg/scheduler/scheduler.go scheduleResourceBindingWithClusterAffinities.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from karmada_scheduler.api.binding import Binding, TargetCluster
from karmada_scheduler.api.placement import Placement
from karmada_scheduler.core import limits
from karmada_scheduler.core.classify import placement_of
from karmada_scheduler.core.decision import Decision, TermAttempt, TermFailure
from karmada_scheduler.core.decision_inputs import DecisionInputs
from karmada_scheduler.core.schedule_term import schedule_term
from karmada_scheduler.framework.cycle import Cycle
from karmada_scheduler.framework.diagnosis import FitError, OverBudgetError, PluginError, SchedulingError
from karmada_scheduler.structs import replace

UNFINISHED: Final = (PluginError, OverBudgetError)
"""Errors that end a decision and imply nothing about the clusters."""


async def schedule_terms(binding: Binding, inputs: DecisionInputs, terms: range | None = None) -> Decision:
    """Return the decision of one pass.

    ``terms`` are the indexes of the affinity terms to try, not empty; None for the one in force and those after it.
    """
    try:
        placement = placement_of(binding)
        limits.check(binding.spec, placement)
        if inputs.slice_is_over():
            await inputs.yield_if_due()
    except SchedulingError as error:
        return Decision(binding.key, error=error)
    # An explicit empty list of affinity terms is none: upstream would schedule nothing and report success.
    if placement.cluster_affinities:
        return await _try_terms(binding, placement, inputs, terms)
    cycle = _cycle(binding, placement, inputs, binding.status.scheduler_observing_affinity_name)
    attempt = await schedule_term(cycle, inputs)
    return _decision(binding, placement, attempt.error, attempt.targets, (attempt,))


async def _try_terms(
    binding: Binding, placement: Placement, inputs: DecisionInputs, terms: range | None
) -> Decision:
    """Try the affinity terms in turn, starting with the one in use.

    If none works, the error of the first is the decision's. Earlier terms are not tried: a binding does not return
    to a term that it has left, unless a Reconsider plugin proposes that. A plugin error ends the pass: it implies
    nothing about the clusters, so it must neither clear a placement nor move the binding to the next term.
    """
    failures: list[TermFailure] = []
    attempts: list[TermAttempt] = []
    if terms is None:
        terms = range(_term_in_use(binding, placement), len(placement.cluster_affinities))
    for index in terms:
        name = placement.cluster_affinities[index].affinity_name
        cycle = _cycle(binding, placement, inputs, name)
        attempt = await (
            _yield_and_schedule(cycle, inputs) if inputs.slice_is_over() else schedule_term(cycle, inputs)
        )
        attempts.append(attempt)
        if attempt.error is None:
            decision = _decision(binding, placement, None, attempt.targets, attempts)
            return replace(decision, affinity_name=name, failed_terms=tuple(failures))
        failures.append(TermFailure(index, name, attempt.error))
        if isinstance(attempt.error, UNFINISHED):
            break
    last = failures[-1].error
    error = last if isinstance(last, UNFINISHED) else failures[0].error
    return replace(_decision(binding, placement, error, None, attempts), failed_terms=tuple(failures))


async def _yield_and_schedule(cycle: Cycle, inputs: DecisionInputs) -> TermAttempt:
    """Yield to the event loop, then schedule a term."""
    try:
        await inputs.yield_if_due()
    except OverBudgetError as late:
        terms, clusters = len(cycle.placement.cluster_affinities), len(cycle.snapshot)
        error = OverBudgetError(f"{late} (affinity terms: {terms}, clusters: {clusters})")
        return TermAttempt(cycle.affinity_name, cycle, error=error)
    return await schedule_term(cycle, inputs)


def _term_in_use(binding: Binding, placement: Placement) -> int:
    name = binding.status.scheduler_observing_affinity_name
    names = [term.affinity_name for term in placement.cluster_affinities]
    return names.index(name) if name in names else 0


def _cycle(binding: Binding, placement: Placement, inputs: DecisionInputs, affinity_name: str) -> Cycle:
    return Cycle(
        binding,
        inputs.gates.rules.placement(placement),
        affinity_name,
        inputs.snapshot,
        peers=inputs.peers,
        workload_answer=inputs.workload,
        stored_workload=inputs.stored_workload,
    )


def _decision(
    binding: Binding,
    placement: Placement,
    error: SchedulingError | None,
    targets: tuple[TargetCluster, ...] | None,
    attempts: Sequence[TermAttempt],
) -> Decision:
    """Return the decision of a pass: if no cluster fits, the targets are cleared; other errors keep them."""
    if isinstance(error, FitError):
        targets = ()
    written = None if targets is None else placement.to_json()
    return Decision(binding.key, targets, written, error=error, attempts=tuple(attempts))
