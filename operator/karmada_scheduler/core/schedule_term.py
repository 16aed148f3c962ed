"""One run of the algorithm with one affinity term: filter, score, select, assign.

Source: karmada v1.18.2 pkg/scheduler/core/generic_scheduler.go Schedule.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from karmada_scheduler.api.binding import BindingSpec
from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.core.assign_replicas import attach_empty
from karmada_scheduler.core.available_replicas import counts_component_sets
from karmada_scheduler.core.decision import TermAttempt
from karmada_scheduler.core.decision_inputs import DecisionInputs
from karmada_scheduler.core.find_clusters import find_clusters_that_fit
from karmada_scheduler.core.prioritize_clusters import candidates_of, prioritize_clusters, scores_of
from karmada_scheduler.framework.cycle import Candidate, Cycle
from karmada_scheduler.framework.diagnosis import Diagnosis, FitError, SchedulingError
from karmada_scheduler.framework.runtime.framework import Framework
from karmada_scheduler.framework.scheduling_points import AssignContext, SelectContext


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
                may_work_next_time = not inputs.is_proposed and await framework.run_post_filter(
                    cycle, diagnosis, skipped=found.skipped, left_out=found.rejected_by_pre_filter
                )
                error = FitError(len(cycle.snapshot), diagnosis)
                return TermAttempt(name, cycle, None, error, diagnosis, may_work_next_time=may_work_next_time)
        with _Step("Score", framework, on_error="failed to prioritize clusters"):
            scored = await prioritize_clusters(cycle, found, inputs)
        with _Step("Select", framework, on_error="failed to select clusters"):
            candidates = await candidates_of(cycle, scored, inputs)
            scores = scores_of(cycle, scored, candidates, framework)
            needed = _needed(cycle.binding.spec, inputs.gates)
            selected = await framework.run_select(SelectContext(cycle, candidates, needed))
        with _Step("AssignReplicas", framework, on_error="failed to assign replicas"):
            targets = await framework.run_assign(AssignContext(cycle, selected))
    except SchedulingError as error:
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
