"""Runs decisions: synchronously if they do no I/O, otherwise in a task."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.workload import WorkloadAnswer
from karmada_scheduler.cache.assumed import AssumedPlacements
from karmada_scheduler.cache.clusters import ClusterCache
from karmada_scheduler.core import requeue_rules
from karmada_scheduler.core.available_replicas import ReplicaEstimator
from karmada_scheduler.core.budget import Budget
from karmada_scheduler.core.classify import Classification
from karmada_scheduler.core.decision import Decision
from karmada_scheduler.core.reconsider import with_term
from karmada_scheduler.core.run_sync import BudgetedCoroutine, WaitsError, begin
from karmada_scheduler.core.schedule import SchedulingAlgorithm
from karmada_scheduler.estimator.accurate import AccurateEstimator
from karmada_scheduler.estimator.session import keep_slot
from karmada_scheduler.framework.profile.profiles import Profiles
from karmada_scheduler.framework.runtime.framework import Framework
from karmada_scheduler.framework.runtime.reconsidering import Proposed
from karmada_scheduler.metrics.metrics import Metrics
from karmada_scheduler.scheduler.attempt import Attempt


def new_budget() -> Budget:
    """Return the budget of one decision, in CPU time of this thread."""
    return Budget(time.perf_counter, time.thread_time)


@dataclass(slots=True)
class Request:
    """A binding to decide about.

    Attributes:
        binding: The binding as it is now.
        framework: The plugins of its profile.
        classification: The kind of scheduling, and the reason.
        workload: The metadata of its workload; None if no plugin of the profile needs it.
        event: The event that enqueued the binding, "" if it is not recorded.
        proposed: The proposal of a Reconsider plugin to try; None for a decision that an event requires.
        term: The affinity term to begin with instead of the one in the status; "" for that one.
        unfinished: The decision if it has begun and goes on in a task, because it exceeded its time slice.
    """

    binding: Binding
    framework: Framework
    classification: Classification
    workload: WorkloadAnswer | None = None
    event: str = ""
    proposed: Proposed | None = None
    term: str = ""
    unfinished: BudgetedCoroutine[Decision] | None = None


class DecisionRunner:
    """Runs the scheduling algorithm on the state of the caches."""

    def __init__(
        self,
        *,
        algorithm: SchedulingAlgorithm,
        clusters: ClusterCache,
        profiles: Profiles,
        accurate: AccurateEstimator | None,
        assumed: AssumedPlacements | None,
        in_flight: Callable[[], Sequence[Binding]],
        metrics: Metrics,
        new_budget: Callable[[], Budget] = new_budget,
    ) -> None:
        """Set the dependencies of all decisions.

        Args:
            algorithm: Decides.
            clusters: All clusters.
            profiles: The plugins by scheduler name.
            accurate: Requests available replicas from the member clusters; None if that is off.
            assumed: The assumed placements; None without the gate SchedulingOvercommitProtection.
            in_flight: Returns the bindings that are decided and not written yet.
            metrics: Counts decisions that fell back to the resource summary.
            new_budget: Returns the budget of one decision.
        """
        self._algorithm = algorithm
        self._clusters = clusters
        self._profiles = profiles
        self._accurate = accurate
        self._assumed = assumed
        self._in_flight = in_flight
        self._metrics = metrics
        self._new_budget = new_budget
        self._decision_lock = asyncio.Lock()
        self._long_decision_lock = asyncio.Lock()

    def run_now(self, request: Request) -> Decision | None:
        """Return the decision about a binding, or None if it has to go on in a task (``run``).

        It continues in a task if it does I/O, or if it exceeds its time slice, so that other bindings are decided
        meanwhile.
        """
        framework = request.framework
        if framework.is_async or self._requests_estimates(request.binding) or self._decision_lock.locked():
            return None
        budget = self._new_budget()
        try:
            decision = begin(self._decide(request, budget), budget)
        except WaitsError:
            framework.mark_async()
            return None
        if not isinstance(decision, BudgetedCoroutine):
            return decision
        if self._assumed is None:
            request.unfinished = decision
        else:
            # Other decisions may assume placements before it continues, so it starts again under the lock.
            decision.close()
        return None

    def lock_for(self, request: Request) -> AbstractAsyncContextManager[object]:
        """Return the lock under which ``run`` is to be called, and the placement assumed.

        With overcommit protection, each decision depends on the placements that the ones before have assumed. Decisions
        that exceeded their time slice run one at a time, so that all others get every second slice.
        """
        if self._assumed is not None:
            return self._decision_lock
        return nullcontext() if request.unfinished is None else self._long_decision_lock

    async def run(self, request: Request, attempt: Attempt) -> Decision:
        """Return the decision about a binding; call it within ``lock_for``."""
        if request.unfinished is not None:
            return await request.unfinished
        budget = self._new_budget()
        if self._accurate is None:
            return await BudgetedCoroutine(self._decide(request, budget), budget)
        # With overcommit protection it keeps its slot, because the next decisions wait for the lock with theirs.
        without_slot = attempt.undecided_without_slot if self._assumed is None else keep_slot
        session = self._accurate.session(request.binding, without_slot)
        decision = await BudgetedCoroutine(self._decide(request, budget, session), budget)
        if not session.fallbacks:
            return decision
        extent = "all" if session.fallbacks.keys() >= session.clusters else "some"
        self._metrics.estimators.fallbacks.labels(extent).inc()
        return replace(decision, fallbacks=session.fallbacks)

    def _requests_estimates(self, binding: Binding) -> bool:
        return self._accurate is not None and binding.spec.is_workload

    def _decide(
        self, request: Request, budget: Budget, session: ReplicaEstimator | None = None
    ) -> Coroutine[Any, Any, Decision]:
        binding = with_term(request.binding, request.term) if request.term else request.binding
        return self._algorithm.decide(
            binding,
            self._clusters.snapshot(),
            request.framework,
            session=session,
            assumed={} if self._assumed is None else self._assumed.by_cluster(),
            in_flight=self._in_flight(),
            until_stable=requeue_rules.is_claimed_and_assigned(request.binding, self._profiles.names),
            budget=budget,
            workload=request.workload,
            proposed=request.proposed,
        )
