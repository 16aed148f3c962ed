"""The scheduling loop: take a key, decide, and hand the decision to the binding cycle.

Decisions are taken one after another, and each is based on the results of those before: the answer to a write enters
the cache. Writes of different bindings overlap. Writes of one binding do not, because its key stays in process until
its binding cycle has ended.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final

from karmada_scheduler import logs
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.workload import WorkloadAnswer
from karmada_scheduler.binding_cycle.cycle import BindingCycle
from karmada_scheduler.binding_cycle.transaction import BindingTransaction
from karmada_scheduler.cache.assumed import AssumedPlacements
from karmada_scheduler.cache.bindings import BindingCache
from karmada_scheduler.cache.clusters import ClusterCache
from karmada_scheduler.config.options import Options
from karmada_scheduler.core import requeue_rules
from karmada_scheduler.core.budget import Budget
from karmada_scheduler.core.classify import Classification, ScheduleType, classify
from karmada_scheduler.core.decision import Decision
from karmada_scheduler.core.schedule import SchedulingAlgorithm
from karmada_scheduler.estimator.accurate import AccurateEstimator
from karmada_scheduler.framework.diagnosis import FitError, PluginError
from karmada_scheduler.framework.profile.profiles import Profiles
from karmada_scheduler.framework.runtime.waiting_bindings import WaitingBindings
from karmada_scheduler.informer.workloads import NotSynced
from karmada_scheduler.metrics.metrics import Metrics
from karmada_scheduler.records.recorder import Recorder
from karmada_scheduler.scheduler import decision_log
from karmada_scheduler.scheduler.attempt import Attempt, Attempts
from karmada_scheduler.scheduler.decision_runner import DecisionRunner, Request, new_budget
from karmada_scheduler.scheduler.guarded import count_answer
from karmada_scheduler.scheduler.missing_placements import MissingPlacements
from karmada_scheduler.scheduler.observed_generation import ObservedGeneration, may_observe
from karmada_scheduler.scheduler.permit import AttemptPermit, Permit
from karmada_scheduler.scheduler.pre_enqueue import PreEnqueueGate
from karmada_scheduler.scheduler.reconsideration import Reconsiderations
from karmada_scheduler.scheduler.recording import Recording
from karmada_scheduler.scheduler.retry import DONE, Action, Outcome, Requeuer, failed, outcome_of
from karmada_scheduler.scheduler.tasks import AttemptTasks
from karmada_scheduler.scheduling_queue.async_queue import AsyncQueue

log = logging.getLogger(__name__)

_SLICE_SECONDS: Final = 0.005
"""Seconds after which the loop yields to watches, responses and the Lease."""

_BLOCKED_SECONDS: Final = 0.25
"""A decision that blocks the event loop for longer, as one with a plugin that hangs does, is followed by a pause."""

_MAX_PAUSE: Final = 0.25
"""The longest such pause in seconds."""


class Scheduler:
    """Turns keys of the queue into decisions and writes."""

    def __init__(
        self,
        *,
        options: Options,
        queue: AsyncQueue[BindingKey],
        gate: PreEnqueueGate,
        bindings: BindingCache,
        clusters: ClusterCache,
        profiles: Profiles,
        waiting: WaitingBindings,
        cycle: BindingCycle,
        find_workload: Callable[[Binding], WorkloadAnswer | NotSynced],
        algorithm: SchedulingAlgorithm,
        accurate: AccurateEstimator | None = None,
        assumed: AssumedPlacements | None = None,
        metrics: Metrics,
        clock: Callable[[], float],
        new_budget: Callable[[], Budget] = new_budget,
        recorder: Recorder | None = None,
        reconsiderations: Reconsiderations | None = None,
    ) -> None:
        """Set the caches, the plugins, and the binding cycle.

        Args:
            options: Feature gates and ``--max-in-flight``.
            queue: The keys of bindings that may have to be scheduled.
            gate: Keeps the bindings that PreEnqueue plugins hold back.
            bindings: All bindings.
            clusters: All clusters.
            profiles: The plugins by scheduler name.
            waiting: The bindings that wait at Permit.
            cycle: Writes decisions.
            find_workload: Returns the metadata of a binding's workload; called if a plugin of its profile needs it.
            algorithm: Decides.
            accurate: Requests available replicas from the member clusters; None if that is off.
            assumed: The assumed placements; None without the gate SchedulingOvercommitProtection.
            metrics: Upstream's metrics and our own.
            clock: Returns seconds, never running backwards.
            new_budget: Returns the budget of one decision.
            recorder: Records decisions; None without records.
            reconsiderations: The bindings that Reconsider plugins may want decided again; None without such plugins.
        """
        self._reconsiderations = reconsiderations
        self._recording = Recording(recorder, clock=clock)
        self._gates = options.feature_gates
        self._counts_peers = self._gates.enabled("WorkloadAffinity")
        self._queue = queue
        self._gate = gate
        self._bindings = bindings
        self._clusters = clusters
        self._profiles = profiles
        self._waiting = waiting
        self._cycle = cycle
        self._find_workload = find_workload
        self._metrics = metrics
        self._clock = clock
        self._attempts = Attempts(
            options.max_in_flight, bindings=bindings, assumed=assumed, metrics=metrics, clock=clock
        )
        self._decisions = DecisionRunner(
            algorithm=algorithm,
            clusters=clusters,
            profiles=profiles,
            accurate=accurate,
            assumed=assumed,
            in_flight=self._attempts.in_flight,
            metrics=metrics,
            new_budget=new_budget,
        )
        self._permit = Permit(
            waiting,
            cycle=cycle,
            bindings=bindings,
            clusters=clusters,
            profiles=profiles,
            metrics=metrics,
            clock=clock,
        )
        self._observed_generation = ObservedGeneration(
            cycle=cycle, bindings=bindings, profiles=profiles, classify=self._classify
        )
        self._missing_placements = MissingPlacements(bindings)
        self._tasks = AttemptTasks(
            Requeuer(queue, bindings, metrics, on_requeue=self._recording.requeued), metrics
        )

    async def run(self) -> None:
        """Schedule until cancelled; binding cycles under way then continue (see ``drain``)."""
        slice_start = self._clock()
        while True:
            key, waited = await self._queue.get()
            self._metrics.scheduling.queue_wait.observe(waited)
            attempt = await self._begin(key)
            start = self._clock()
            self._schedule_one(attempt)
            now = self._clock()
            if now - slice_start > _SLICE_SECONDS:
                blocked = now - start
                await asyncio.sleep(min(blocked, _MAX_PAUSE) if blocked > _BLOCKED_SECONDS else 0)
                slice_start = self._clock()

    @property
    def pending_attempts(self) -> int:
        """The number of attempts that have not ended."""
        return self._attempts.pending

    async def drain(self, *, timeout: float) -> None:
        """Wait for the binding cycles under way; cancel those that are left after ``timeout`` seconds."""
        self._queue.shut_down()
        self._waiting.abandon_all("the scheduler stops")
        await self._tasks.drain(timeout=timeout)

    async def _begin(self, key: BindingKey) -> Attempt:
        """Wait until an attempt may begin. If cancelled, return the key to the queue."""
        try:
            if self._counts_peers and self._has_peers(key):
                # The decision depends on the clusters of its peers, so their results must be stored.
                await self._attempts.wait_for_results()
            return await self._attempts.begin(key)
        except asyncio.CancelledError:
            self._queue.add(key)
            self._queue.done(key)
            raise

    def _has_peers(self, key: BindingKey) -> bool:
        binding = self._bindings.get(key)
        return binding is not None and binding.spec.workload_affinity_groups is not None

    def _schedule_one(self, attempt: Attempt) -> None:
        """Process a key; if it has to wait, in a task."""
        try:
            outcome = self._process(attempt)
        except Exception as error:
            log.exception("Cannot decide about %s", attempt.key.display)
            outcome = failed(error)
        if outcome is not None:
            self._tasks.finish(attempt, outcome)

    def _process(self, attempt: Attempt) -> Outcome | None:
        """Return the outcome for a key; None if a task continues to process it."""
        key = attempt.key
        binding = self._bindings.get(key)
        event = self._recording.take_event(key)
        is_activated = self._gate.reset(key)
        if binding is None:
            self._cycle.forget(key)
            self._missing_placements.forget(key)
            return DONE
        framework = self._profiles.of(binding)
        if framework is None or not requeue_rules.is_assigned_to(binding, self._profiles.names):
            return DONE
        if binding.deleting:
            self._cycle.record_deleting(binding)
            return DONE
        if binding.spec.placement is None:
            self._missing_placements.warn_once(binding)
            return DONE
        classification = self._classify(binding)
        self._metrics.scheduling.classified.labels(classification.type.value).inc()
        request = Request(binding, framework, classification, event=event)
        if framework.reconsider.is_used and self._reconsiderations is not None:
            proposal = self._reconsiderations.request(request, self._clusters.terminating)
            if proposal is not None:
                return self._try_proposal(attempt, proposal, request, is_activated=is_activated)
            self._reconsiderations.set_start_term(request)
        return self._process_request(attempt, request, is_activated=is_activated)

    def _process_request(self, attempt: Attempt, request: Request, *, is_activated: bool) -> Outcome | None:
        """Decide about a binding if that is necessary, and otherwise record that it is not."""
        if request.classification.type is ScheduleType.AVOID:
            return self._skip(attempt, request)
        if request.framework.needs_workload:
            workload = self._find_workload(request.binding)
            if isinstance(workload, NotSynced):
                if is_activated:
                    self._gate.stay_activated(attempt.key)
                log.log(logs.V3, "%s waits for the metadata of its workload", attempt.key.display)
                return Outcome(Action.CHECK_LATER, delay=workload.retry_after)
            request.workload = workload
        return self._schedule(attempt, request, is_activated=is_activated)

    def _try_proposal(
        self, attempt: Attempt, proposal: Request, request: Request, *, is_activated: bool
    ) -> Outcome | None:
        """Try the proposal of a Reconsider plugin; if nothing is written of it, continue with the request."""
        assert self._reconsiderations is not None  # it made the proposal
        decision: Decision | None = None
        workload = self._find_workload(request.binding) if request.framework.needs_workload else None
        if not isinstance(workload, NotSynced):
            proposal.workload = workload
            if is_activated or self._gate.admits(proposal):
                decision = self._decisions.run_now(proposal)
                if decision is None:
                    self._tasks.start(attempt, self._try_proposal_later(attempt, proposal, request))
                    return None
        if decision is None or not self._reconsiderations.tried(request.binding, decision):
            return self._process_request(attempt, request, is_activated=is_activated)
        return self._handle_decision(attempt, proposal, decision)

    async def _try_proposal_later(self, attempt: Attempt, proposal: Request, request: Request) -> Outcome:
        """Try a proposal whose decision has to wait; if nothing is written of it, enqueue the binding for its own one."""
        assert self._reconsiderations is not None  # it made the proposal
        async with self._decisions.lock_for(proposal):
            decision = await self._decisions.run(proposal, attempt)
            if not self._reconsiderations.tried(request.binding, decision):
                if request.classification.type is not ScheduleType.AVOID:
                    self._queue.add(attempt.key, request.binding.spec.priority)
                return DONE
            transaction = self._begin_transaction(attempt, proposal, decision)
        return DONE if transaction is None else await self._bind(attempt, proposal, transaction)

    def _classify(self, binding: Binding) -> Classification:
        return classify(binding, terminating=self._clusters.terminating, gates=self._gates)

    def _skip(self, attempt: Attempt, request: Request) -> Outcome | None:
        """Do not schedule a binding, and record in its status that no scheduling is needed."""
        classification = request.classification
        log.log(logs.V3, "%s", classification.reason, extra={"type": classification.type.value})
        if self._cycle.is_observed(request.binding):
            return DONE
        if request.framework.guard.observes and not may_observe(request.framework, request.binding):
            return DONE  # the next status of the workload, or the end of its eviction, adds it to the queue
        self._tasks.start(attempt, self._observed_generation.record(request.binding))
        return None

    def _schedule(self, attempt: Attempt, request: Request, *, is_activated: bool) -> Outcome | None:
        """Decide about a binding, unless it is gated, and write the decision."""
        try:
            delay = 0.0 if is_activated else self._gate.delay(request)
        except PluginError as error:
            return self._handle_decision(attempt, request, Decision(attempt.key, error=error))
        if delay > 0:
            return Outcome(Action.CHECK_LATER, delay=delay)
        classification = request.classification
        level = logs.V3 if classification.is_routine else logging.INFO
        log.log(level, "%s", classification.reason, extra={"type": classification.type.value})
        decision = self._decisions.run_now(request)
        if decision is None:
            self._tasks.start(attempt, self._decide_and_bind(attempt, request))
            return None
        return self._handle_decision(attempt, request, decision)

    def _handle_decision(self, attempt: Attempt, request: Request, decision: Decision) -> Outcome | None:
        """Start the binding cycle of a decision, unless there is nothing to write."""
        transaction = self._begin_transaction(attempt, request, decision)
        if transaction is None:
            return DONE
        self._tasks.start(attempt, self._bind(attempt, request, transaction))
        return None

    async def _decide_and_bind(self, attempt: Attempt, request: Request) -> Outcome:
        """Run a decision that has to wait, and write it."""
        async with self._decisions.lock_for(request):
            decision = await self._decisions.run(request, attempt)
            transaction = self._begin_transaction(attempt, request, decision)
        return DONE if transaction is None else await self._bind(attempt, request, transaction)

    def _begin_transaction(
        self, attempt: Attempt, request: Request, decision: Decision
    ) -> BindingTransaction | None:
        """Return the transaction that writes a decision, with everything reserved; None if nothing has to be written."""
        binding = request.binding
        if log.isEnabledFor(logs.V4):
            for line in decision_log.lines(decision):
                log.log(logs.V4, "%s", line, extra={"binding": str(binding.key)})
        framework = request.framework
        if framework.guard.observes:
            transaction = self._cycle.begin(
                binding, decision, framework.binding, may_observe=partial(may_observe, framework)
            )
        else:
            transaction = self._cycle.begin(binding, decision, framework.binding)
        self._recording.decided(attempt, request, decision)
        if decision.guarded is not None:
            count_answer(decision.guarded, decision.error, self._metrics.plugins)
        if transaction is None:
            self._recording.ended(attempt, None)
            attempt.count(request.classification.metric_type, None)
            return None
        if decision.fallbacks:
            log.info(
                "%s fell back to the resource summary of clusters: %s",
                binding.key.display,
                decision_log.fallbacks(decision),
                extra={"binding": str(binding.key), "count": len(decision.fallbacks)},
            )
        if transaction.reserve():
            self._cycle.record_failed_terms(binding, decision)
            self._reserve_clusters(attempt, transaction)
        return transaction

    def _reserve_clusters(self, attempt: Attempt, transaction: BindingTransaction) -> None:
        """Let the next decisions count the clusters of this one, until it is written."""
        if transaction.targets is None:
            return
        if transaction.runs_plugins and self._profiles.needs_in_flight:
            attempt.put_in_flight(transaction.binding, transaction.targets)
        attempt.assume(transaction.binding, transaction.targets)

    async def _bind(self, attempt: Attempt, request: Request, transaction: BindingTransaction) -> Outcome:
        """Write the result, then the status. An attempt with a result ends before its status is written."""
        permit = AttemptPermit(self._permit, attempt, transaction)
        result = await transaction.run(permit)
        self._recording.ended(attempt, result)
        if result.error is not None and request.proposed is not None and self._reconsiderations is not None:
            # The binding is scheduled as it is. It is not reported as failed, because another decision was only an offer.
            self._reconsiderations.failed(request.binding, transaction.decision, result.error)
            return DONE
        if result.was_written:
            attempt.end()
        outcome = outcome_of(await self._cycle.report(transaction, result))
        if outcome.action is not Action.DECIDE_AGAIN:
            attempt.count(request.classification.metric_type, outcome.error)
        if (
            isinstance(outcome.error, PluginError)
            and self._profiles.of(request.binding) is not request.framework
        ):
            # The delay was for the plugin that has been replaced since.
            return replace(outcome, delay=0.0)
        if isinstance(outcome.error, FitError) and outcome.action is Action.FORGET:
            observed = await self._observed_generation.record_cleared(request.binding)
            return observed if observed.action is Action.RETRY else outcome
        return outcome
