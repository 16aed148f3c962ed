"""One pass over the affinity terms of a binding: filter, score, select, assign; the first term that works is used.

Source: karmada v1.18.2 pkg/scheduler/scheduler.go scheduleResourceBindingWithClusterAffinities,
pkg/scheduler/core/generic_scheduler.go Schedule; master of 2026-08-21 (f8fdd02df), for the rules of 1.19.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Final

from karmada_scheduler.api.binding import Binding, BindingSpec, TargetCluster
from karmada_scheduler.api.placement import Placement
from karmada_scheduler.config.features import DecisionRules, FeatureGates
from karmada_scheduler.core.assign_replicas import attach_empty
from karmada_scheduler.core.available_replicas import components_of_targets, counts_component_sets
from karmada_scheduler.core.checks import check_expressions, check_sizes
from karmada_scheduler.core.classify import placement_of
from karmada_scheduler.core.decision import Decision, TermAttempt, TermFailure, each_once
from karmada_scheduler.core.decision_inputs import DecisionInputs, TermShortage
from karmada_scheduler.core.find_clusters import find_clusters_that_fit
from karmada_scheduler.core.prioritize_clusters import candidates_of, prioritize_clusters, scores_of
from karmada_scheduler.framework.cycle import Candidate, Cycle, KeptSteps
from karmada_scheduler.framework.diagnosis import (
    Diagnosis,
    FitError,
    InvalidExpressionError,
    KeptError,
    NotEnoughCapacityError,
    OverBudgetError,
    PluginError,
    SchedulingError,
)
from karmada_scheduler.framework.runtime.framework import Framework
from karmada_scheduler.framework.scheduling_points import AssignContext, SelectContext, Shortage
from karmada_scheduler.structs import replace

UNFINISHED: Final = (InvalidExpressionError, PluginError, OverBudgetError)
"""Errors that end a decision and imply nothing about the clusters."""


async def schedule_terms(binding: Binding, inputs: DecisionInputs, terms: range | None = None) -> Decision:
    """Return the decision of one pass.

    ``terms`` are the indexes of the affinity terms to try, not empty; None for the one in force and those after it.
    """
    try:
        placement = placement_of(binding)
        check_sizes(binding.spec, placement)
        if inputs.slice_is_over():
            await inputs.yield_if_due()
        if placement.cluster_affinities:
            return await _try_terms(binding, placement, inputs, terms)
        cycle = _cycle(binding, placement, inputs, binding.status.scheduler_observing_affinity_name)
        check_expressions(cycle)
    except SchedulingError as error:
        return Decision(binding.key, error=error)
    attempt = await schedule_term(cycle, inputs)
    return _decision(binding, inputs, attempt.error, attempt.targets, (attempt,))


async def _try_terms(
    binding: Binding, placement: Placement, inputs: DecisionInputs, terms: range | None
) -> Decision:
    """Try the affinity terms in turn, starting with the one in use.

    Earlier terms are tried if a Reconsider plugin proposes that, or if a reschedule is requested and decided by the rules of
    1.19. A binding does not return to a term that it has left otherwise.

    If no term works, the error of the first one is the decision's. It clears the placement only if the term in use does not
    fit either. karmada-scheduler 1.19 goes by the first error alone (docs/differences-from-upstream.md).

    A plugin error or an invalid expression ends the pass. It implies nothing about the clusters, so it must neither clear a
    placement nor move the binding to the next term.
    """
    failures: list[TermFailure] = []
    attempts: list[TermAttempt] = []
    in_use = _term_in_use(binding, placement)
    if terms is None:
        first = 0 if _begins_with_first(binding, inputs.gates.rules) else in_use
        terms = range(first, len(placement.cluster_affinities))
    for index in terms:
        name = placement.cluster_affinities[index].affinity_name
        cycle = _cycle(binding, placement, inputs, name)
        try:
            check_expressions(cycle)
        except InvalidExpressionError as problem:
            failures.append(TermFailure(index, name, problem))
            break
        attempt = await (
            _yield_and_schedule(cycle, inputs) if inputs.slice_is_over() else schedule_term(cycle, inputs)
        )
        attempts.append(attempt)
        if attempt.error is None:
            decision = _decision(binding, inputs, None, attempt.targets, attempts)
            return replace(decision, affinity_name=name, failed_terms=tuple(failures))
        failures.append(TermFailure(index, name, attempt.error))
        if isinstance(attempt.error, UNFINISHED):
            break
    last = failures[-1].error
    error = last if isinstance(last, UNFINISHED) else failures[0].error
    if isinstance(error, FitError) and binding.spec.clusters and in_use in terms:
        # The term in use is another than that of the error by the rules of 1.19, and after a start term of a plugin.
        fits_not = isinstance(failures[terms.index(in_use)].error, FitError)
        error = error if fits_not else KeptError(error)
    return replace(_decision(binding, inputs, error, None, attempts), failed_terms=tuple(failures))


async def _yield_and_schedule(cycle: Cycle, inputs: DecisionInputs) -> TermAttempt:
    """Yield to the event loop, then schedule a term."""
    try:
        await inputs.yield_if_due()
    except OverBudgetError as late:
        terms, clusters = len(cycle.placement.cluster_affinities), len(cycle.snapshot)
        error = OverBudgetError(f"{late} (affinity terms: {terms}, clusters: {clusters})")
        return TermAttempt(cycle.affinity_name, cycle, error=error)
    return await schedule_term(cycle, inputs)


def may_return(binding: Binding, rules: DecisionRules) -> bool:
    """Return whether a requested reschedule of a binding tries affinity terms before the one in use."""
    placement = binding.spec.placement
    if not rules.reschedule_from_first or placement is None or placement.cluster_affinity is not None:
        return False
    return bool(placement.cluster_affinities) and _term_in_use(binding, placement) > 0


def terms_from(binding: Binding, name: str, rules: DecisionRules) -> range | None:
    """Return the indexes of the affinity terms from the one with a name on; None if there is none, or all are tried anyway."""
    placement = binding.spec.placement
    names = [term.affinity_name for term in placement.cluster_affinities] if placement is not None else []
    if name not in names or _begins_with_first(binding, rules):
        return None
    return range(names.index(name), len(names))


def _begins_with_first(binding: Binding, rules: DecisionRules) -> bool:
    return rules.reschedule_from_first and binding.reschedule_triggered


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
        kept=KeptSteps(inputs.assumed) if inputs.keeps_steps else None,
    )


def _decision(
    binding: Binding,
    inputs: DecisionInputs,
    error: SchedulingError | None,
    targets: tuple[TargetCluster, ...] | None,
    attempts: Sequence[TermAttempt],
) -> Decision:
    """Return the decision of a pass: if no cluster fits, the targets are cleared; other errors keep them."""
    if isinstance(error, FitError) and not isinstance(error, KeptError):
        targets = ()
    written = None if targets is None else placement_of(binding).to_json()
    targets = None if targets is None else each_once(targets)
    components = None if error is not None else components_of_targets(binding.spec, inputs.gates)
    return Decision(
        binding.key, targets, written, error=error, attempts=tuple(attempts), components=components
    )


async def schedule_term(cycle: Cycle, inputs: DecisionInputs) -> TermAttempt:
    """Run all steps for one affinity term; an exception of a step becomes the attempt's error."""
    framework, name, diagnosis = inputs.framework, cycle.affinity_name, Diagnosis()
    scores: Mapping[str, Sequence[int]] = {}
    candidates: Sequence[Candidate] = ()
    selected: Sequence[Candidate] = ()
    try:
        with _Step("Filter", framework):
            found = await find_clusters_that_fit(cycle, inputs)
            diagnosis = found.diagnosis
            if not found.any_fits:
                error = FitError(len(cycle.snapshot), diagnosis)
                if inputs.is_proposed or not framework.plugins.post_filter:
                    return TermAttempt(name, cycle, None, error, diagnosis)
                result = await framework.run_post_filter(
                    cycle, diagnosis, skipped=found.skipped, left_out=found.rejected_by_pre_filter
                )
                may_work = result.is_success
                return TermAttempt(name, cycle, None, error, diagnosis, may_work_next_time=may_work)
        with _Step("Score", framework, on_error="failed to prioritize clusters"):
            scored = await prioritize_clusters(cycle, found, inputs)
        with _Step("Select", framework, on_error="failed to select clusters"):
            needed = _needed(cycle.binding.spec, inputs.gates)
            candidates = await candidates_of(cycle, scored, inputs, needed)
            scores = scores_of(cycle, scored, candidates, framework)
            selected = await framework.run_select(SelectContext(cycle, candidates, needed))
        with _Step("AssignReplicas", framework, on_error="failed to assign replicas"):
            targets = await framework.run_assign(AssignContext(cycle, selected))
    except SchedulingError as error:
        if inputs.shortages is not None and isinstance(error, NotEnoughCapacityError):
            shortage = Shortage(needed, candidates, error)
            lacking = (cycle, diagnosis, found.skipped, found.rejected_by_pre_filter, shortage)
            inputs.shortages.append(TermShortage(*lacking))
        return TermAttempt(name, cycle, None, error, diagnosis, scores, candidates, selected)
    if inputs.empty_workload_propagation:
        targets = attach_empty(targets, selected)
    return TermAttempt(name, cycle, tuple(targets), None, diagnosis, scores, candidates, selected)


class _Step:
    """Context manager that measures a step and prefixes its errors."""

    __slots__ = ("_name", "_observer", "_on_error", "_start")

    def __init__(
        self, name: str, framework: Framework, *, on_error: str = "failed to find fit clusters"
    ) -> None:
        self._name, self._observer, self._on_error = name, framework.caller.observer, on_error

    def __enter__(self) -> None:
        self._start = 0.0 if self._observer is None else time.perf_counter()

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self._observer is not None:
            self._observer.step(self._name, time.perf_counter() - self._start)
        if isinstance(error, SchedulingError):
            raise error.within(self._on_error) from error


def _needed(spec: BindingSpec, gates: FeatureGates) -> int:
    return 1 if counts_component_sets(spec, gates) else spec.replicas
