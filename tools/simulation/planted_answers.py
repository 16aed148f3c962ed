"""Bugs in what follows from answers of plugins, estimators and the API server; see ``planted_bugs``."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from karmada_pyscheduler.binding_cycle.cycle import BindingCycle
from karmada_pyscheduler.cache.assumed import AssumedPlacements
from karmada_pyscheduler.estimator import session
from karmada_pyscheduler.estimator.session import EstimatorResponse
from karmada_scheduler.binding_cycle.result import AttemptOutcome
from karmada_scheduler.core import requeue_rules
from karmada_scheduler.core.decision import Decision
from karmada_scheduler.structs import replace
from tools.simulation.planted_bugs import Patches, PlantedBug, plants

ANSWER_BUGS: Final[list[PlantedBug]] = []
_bug = partial(plants, ANSWER_BUGS)


@_bug("an earlier assumption is lost", "no overcommit", found_by=("2", "answers"))
def _earlier_assumption_is_lost() -> Patches:
    def forget(self: AssumedPlacements, key: Any) -> None:
        entry = self._entries.get(key)
        if entry is not None and entry.is_pending:
            self._replace(key, None)

    yield AssumedPlacements, "forget", forget


@_bug("a late estimate is 0", "estimated", found_by=("1", "answers"))
def _late_estimate_is_0() -> Patches:
    def response(replicas: int, problem: str = "", *, timed_out: bool = False) -> EstimatorResponse:
        is_late = problem.startswith("no answer within")
        return EstimatorResponse(0 if is_late else replicas, problem, timed_out)

    yield session, "EstimatorResponse", response


@_bug("an older generation is ignored", "converged", "no lost key", found_by=("3", "answers"))
def _older_generation_is_ignored() -> Patches:
    original = requeue_rules.on_binding

    def on_binding(old: Any, new: Any, scheduler_names: Any) -> str | None:
        event = original(old, new, scheduler_names)
        is_older = old is not None and new is not None and old.generation > new.generation
        return None if is_older and event == requeue_rules.BINDING_UPDATE else event

    yield requeue_rules, "on_binding", on_binding


@_bug("the time of a refusal is lost", "in time", found_by=("4", "answers"))
def _time_of_a_refusal_is_lost() -> Patches:
    original = BindingCycle._report_end

    async def report_end(
        self: BindingCycle, binding: Any, decision: Decision, *rest: Any, **more: Any
    ) -> AttemptOutcome:
        outcome = await original(self, binding, decision, *rest, **more)
        return replace(outcome, delay=decision.retry_after)

    yield BindingCycle, "_report_end", report_end


@_bug("the time that a filter asks for is lost", "converged", "in time", found_by=("4", "answers"))
def _time_of_a_filter_is_lost() -> Patches:
    yield Decision, "retry_after", 0.0
