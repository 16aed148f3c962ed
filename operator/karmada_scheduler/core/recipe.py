"""One run through the recipe, with one affinity term: filter, score, select, assign.

Source: karmada v1.18.2 pkg/scheduler/core/generic_scheduler.go Schedule.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from karmada_scheduler.api.binding import BindingSpec
from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.core.assign_replicas import attach_empty
from karmada_scheduler.core.available_replicas import counts_component_sets
from karmada_scheduler.core.candidates import Recipe, Scores, candidates_of, find, scores_of
from karmada_scheduler.core.decision import Attempt
from karmada_scheduler.framework.cycle import Cycle
from karmada_scheduler.framework.deciding import AssignContext, SelectContext
from karmada_scheduler.framework.diagnosis import FitError, SchedulingError
from karmada_scheduler.framework.runtime import Framework


async def run(cycle: Cycle, recipe: Recipe) -> Attempt:
    """Filter, score, select, assign."""
    framework, attempt = recipe.framework, Attempt(cycle.affinity_name, cycle)
    try:
        with _step("Filter", framework):
            found = await find(cycle, recipe)
            attempt = replace(attempt, diagnosis=found.diagnosis)
            if not found.any:
                may_work_next_time = await framework.run_post_filter(
                    cycle, found.diagnosis, skipped=found.skipped, left_out=found.left_out
                )
                nowhere = FitError(len(cycle.snapshot), found.diagnosis)
                return replace(attempt, error=nowhere, may_work_next_time=may_work_next_time)
        with _step("Score", framework, on_error="failed to prioritize clusters"):
            scores, ranking = await scores_of(cycle, found, recipe)
        with _step("Select", framework, on_error="failed to select clusters"):
            candidates = await candidates_of(cycle, found, scores, ranking, recipe)
            if ranking is not None:
                scores = Scores(framework, cycle, candidates)
            attempt = replace(attempt, scores=scores, candidates=candidates)
            needed = _needed(cycle.binding.spec, recipe.gates)
            selected = await framework.run_select(SelectContext(cycle, candidates, needed))
        attempt = replace(attempt, selected=selected)
        with _step("AssignReplicas", framework, on_error="failed to assign replicas"):
            targets = await framework.run_assign(AssignContext(cycle, selected))
    except SchedulingError as error:
        return replace(attempt, error=error)
    if recipe.empty_workload_propagation:
        targets = attach_empty(targets, selected)
    return replace(attempt, targets=tuple(targets))


@contextmanager
def _step(
    name: str, framework: Framework, *, on_error: str = "failed to find fit clusters"
) -> Iterator[None]:
    start = time.perf_counter()
    try:
        yield
    except SchedulingError as error:
        raise error.within(on_error) from error
    finally:
        if framework.observer is not None:
            framework.observer.step(name, time.perf_counter() - start)


def _needed(spec: BindingSpec, gates: FeatureGates) -> int:
    return 1 if counts_component_sets(spec, gates) else spec.replicas
