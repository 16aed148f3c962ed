"""Runs decisions: synchronously if they do no I/O, otherwise in a task."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any

from karmada_pyscheduler.estimator.accurate import AccurateEstimator
from karmada_pyscheduler.estimator.session import keep_slot
from karmada_pyscheduler.scheduler.attempt import Attempt, DecisionRequest
from karmada_pyscheduler.scheduler.state import SchedulerState
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.core import requeue_rules
from karmada_scheduler.core.available_replicas import ReplicaEstimator
from karmada_scheduler.core.budget import Budget, BudgetedCoroutine, WaitsError, begin
from karmada_scheduler.core.decision import Decision
from karmada_scheduler.core.reconsider import with_term
from karmada_scheduler.core.schedule import SchedulingAlgorithm
from karmada_scheduler.structs import Struct, field, replace


def new_budget() -> Budget:
    """Return the budget of one decision, in CPU time of this thread."""
    return Budget(time.perf_counter, time.thread_time)


class Undecided(Struct, frozen=True):
    """A decision that has to wait: it does I/O, or has exceeded its time slice.

    Attributes:
        request: What it is about.
        begun: The decision if it has begun; None if it begins when it is finished.
        lock: To be held while it is finished, and until its placement is assumed.
    """

    request: DecisionRequest
    begun: BudgetedCoroutine[Decision] | None
    lock: AbstractAsyncContextManager[object]


class DecisionRunner(Struct):
    """Runs the scheduling algorithm on the state of the caches.

    Attributes:
        state: The caches and the plugins.
        algorithm: Decides.
        accurate: Requests available replicas from the member clusters; None if that is off.
        in_flight: The bindings that are decided and not written yet.
        new_budget: Returns the budget of one decision.
    """

    state: SchedulerState
    algorithm: SchedulingAlgorithm
    accurate: AccurateEstimator | None
    in_flight: Mapping[BindingKey, Binding]
    new_budget: Callable[[], Budget]
    _decision_lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _long_decision_lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def begin(self, request: DecisionRequest) -> Decision | Undecided:
        """Return the decision about a binding; if it has to wait, other bindings are decided until it is finished."""
        framework = request.framework
        requests_estimates = self.accurate is not None and request.binding.spec.is_workload
        if framework.is_async or requests_estimates or self._decision_lock.locked():
            return self._undecided(request)
        budget = self.new_budget()
        try:
            decision = begin(self._decide(request, budget), budget)
        except WaitsError:
            framework.is_async = True
            return self._undecided(request)
        if not isinstance(decision, BudgetedCoroutine):
            return decision
        if self.state.assumed is None:
            return self._undecided(request, decision)
        # Other decisions may assume placements before it continues, so it begins again under the lock.
        decision.close()
        return self._undecided(request)

    def _undecided(
        self, request: DecisionRequest, begun: BudgetedCoroutine[Decision] | None = None
    ) -> Undecided:
        """Return a decision that has to wait, with its lock.

        With overcommit protection, each decision depends on the placements that the ones before have assumed. Decisions
        that exceeded their time slice run one at a time, so that all others get every second slice.
        """
        self.state.refused.begin(request.binding.key, request.framework.requeue_events)
        lock: AbstractAsyncContextManager[object] = nullcontext()
        if self.state.assumed is not None:
            lock = self._decision_lock
        elif begun is not None:
            lock = self._long_decision_lock
        return Undecided(request, begun, lock)

    async def finish(self, undecided: Undecided, attempt: Attempt) -> Decision:
        """Return the decision about a binding; call it within its lock."""
        if undecided.begun is not None:
            return await undecided.begun
        request = undecided.request
        budget = self.new_budget()
        if self.accurate is None:
            return await BudgetedCoroutine(self._decide(request, budget), budget)
        # With overcommit protection it keeps its slot, because the next decisions wait for the lock with theirs.
        without_slot = attempt.undecided_without_slot if self.state.assumed is None else keep_slot
        session = self.accurate.session(request.binding, without_slot)
        decision = await BudgetedCoroutine(self._decide(request, budget, session), budget)
        if not session.fallbacks:
            return decision
        extent = "all" if session.fallbacks.keys() >= session.clusters else "some"
        self.state.metrics.estimators.fallbacks.labels(extent).inc()
        return replace(decision, fallbacks=session.fallbacks)

    def _decide(
        self, request: DecisionRequest, budget: Budget, session: ReplicaEstimator | None = None
    ) -> Coroutine[Any, Any, Decision]:
        binding = request.binding
        return self.algorithm.decide(
            with_term(binding, request.term) if request.term else binding,
            self.state.clusters.snapshot(),
            request.framework,
            session=session,
            assumed={} if self.state.assumed is None else self.state.assumed.by_cluster(),
            in_flight=tuple(self.in_flight.values()),
            until_stable=requeue_rules.is_claimed_and_assigned(request.binding, self.state.profiles.names),
            budget=budget,
            workload=request.workload,
            proposed=request.proposed,
            start_term=request.start_term,
        )
