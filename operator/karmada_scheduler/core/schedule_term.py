"""One run through the recipe, with one affinity term: filter, score, select, assign.

Source: karmada v1.18.2 pkg/scheduler/core/generic_scheduler.go Schedule.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from karmada_scheduler.api.binding import BindingSpec
from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.core.assign_replicas import attach_empty
from karmada_scheduler.core.available_replicas import counts_component_sets
from karmada_scheduler.core.decision import Attempt
from karmada_scheduler.core.find_clusters import DecisionInputs, Scores, candidates_of, find, scores_of
from karmada_scheduler.framework.cycle import Candidate, Cycle
from karmada_scheduler.framework.diagnosis import Diagnosis, FitError, SchedulingError
from karmada_scheduler.framework.runtime.framework import Framework
from karmada_scheduler.framework.scheduling_points import AssignContext, SelectContext


async def run(cycle: Cycle, recipe: DecisionInputs) -> Attempt:
    """Filter, score, select, assign."""
    framework, name, diagnosis = recipe.framework, cycle.affinity_name, Diagnosis()
    scores: Mapping[str, Sequence[int]] = {}
    candidates: Sequence[Candidate] = ()
    selected: Sequence[Candidate] = ()
    try:
        with _Step("Filter", framework):
            found = await find(cycle, recipe)
            diagnosis = found.diagnosis
            if not found.any:
                may_work_next_time = await framework.run_post_filter(
                    cycle, diagnosis, skipped=found.skipped, left_out=found.left_out
                )
                nowhere = FitError(len(cycle.snapshot), diagnosis)
                return Attempt(name, cycle, None, nowhere, diagnosis, may_work_next_time=may_work_next_time)
        with _Step("Score", framework, on_error="failed to prioritize clusters"):
            given, ranking = await scores_of(cycle, found, recipe)
        with _Step("Select", framework, on_error="failed to select clusters"):
            candidates = await candidates_of(cycle, found, given, ranking, recipe)
            scores = given if ranking is None else Scores(framework, cycle, candidates)
            needed = _needed(cycle.binding.spec, recipe.gates)
            selected = await framework.run_select(SelectContext(cycle, candidates, needed))
        with _Step("AssignReplicas", framework, on_error="failed to assign replicas"):
            targets = await framework.run_assign(AssignContext(cycle, selected))
    except SchedulingError as error:
        return Attempt(name, cycle, None, error, diagnosis, scores, candidates, selected)
    if recipe.empty_workload_propagation:
        targets = attach_empty(targets, selected)
    return Attempt(name, cycle, tuple(targets), None, diagnosis, scores, candidates, selected)


class _Step:
    """Times a step and says of what goes wrong in it where that was."""

    __slots__ = ("_framework", "_name", "_on_error", "_start")

    def __init__(
        self, name: str, framework: Framework, *, on_error: str = "failed to find fit clusters"
    ) -> None:
        self._name, self._framework, self._on_error = name, framework, on_error

    def __enter__(self) -> None:
        self._start = time.perf_counter()

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self._framework.observer is not None:
            self._framework.observer.step(self._name, time.perf_counter() - self._start)
        if isinstance(error, SchedulingError):
            raise error.within(self._on_error) from error


def _needed(spec: BindingSpec, gates: FeatureGates) -> int:
    return 1 if counts_component_sets(spec, gates) else spec.replicas
