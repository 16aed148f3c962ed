"""The scheduling loop: take a key, decide, and write the decision.

As in kube-scheduler, ``schedule_one`` has two halves. The scheduling cycle decides, one binding after another, and each
decision is based on the results of those before: the answer to a write enters the cache. The binding cycle writes in a
task. Writes of different bindings overlap. Writes of one binding do not, because its key stays in process until its
binding cycle has ended.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import Final

from karmada_pyscheduler.binding_cycle.cycle import BindingCycle
from karmada_pyscheduler.estimator.accurate import AccurateEstimator
from karmada_pyscheduler.informer.workloads import NotSynced
from karmada_pyscheduler.records.recorder import Recorder
from karmada_pyscheduler.scheduler import decision_log
from karmada_pyscheduler.scheduler.attempt import Attempt, Attempts, DecisionRequest, Recording
from karmada_pyscheduler.scheduler.decision_runner import DecisionRunner, Undecided, new_budget
from karmada_pyscheduler.scheduler.failure_handler import AttemptTasks, FailureHandler, PendingAttempt
from karmada_pyscheduler.scheduler.state import Permit, SchedulerState
from karmada_pyscheduler.scheduler.unplaced import MissingPlacements, count_answer
from karmada_scheduler import logs
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.workload import WorkloadAnswer
from karmada_scheduler.binding_cycle.result import DONE, Action, AttemptOutcome
from karmada_scheduler.binding_cycle.transaction import BindingTransaction
from karmada_scheduler.config.options import Options
from karmada_scheduler.core import requeue_rules
from karmada_scheduler.core.budget import Budget
from karmada_scheduler.core.classify import (
    RECONCILE_SCHEDULE,
    SCALE_SCHEDULE,
    Classification,
    ScheduleType,
    classify,
)
from karmada_scheduler.core.decision import Decision, each_once
from karmada_scheduler.core.guard_additions import may_observe
from karmada_scheduler.core.schedule import SchedulingAlgorithm
from karmada_scheduler.core.unreported import is_undecided_result, unreported_term
from karmada_scheduler.framework.diagnosis import HeldError, PluginError
from karmada_scheduler.structs import IdentityStruct, replace

log = logging.getLogger(__name__)

_SLICE_SECONDS: Final = 0.005
"""Seconds after which the loop yields to watches, responses and the Lease."""

_BLOCKED_SECONDS: Final = 0.25
"""A decision that blocks the event loop for longer, as one with a plugin that hangs does, is followed by a pause."""

_MAX_PAUSE: Final = 0.25
"""The longest such pause in seconds."""


class Scheduler(IdentityStruct):
    """Turns keys of the queue into decisions and writes.

    Attributes:
        options: Feature gates and ``--max-in-flight``.
        state: The caches, the queue and the plugins.
        algorithm: Decides.
        cycle: Writes decisions.
        find_workload: Returns the metadata of a binding's workload; called if a plugin of its profile needs it.
        new_budget: Returns the budget of one decision.
        accurate: Requests available replicas from the member clusters; None if that is off.
        recorder: Records decisions; None without records.
    """

    options: Options
    state: SchedulerState
    algorithm: SchedulingAlgorithm
    cycle: BindingCycle
    find_workload: Callable[[Binding], WorkloadAnswer | NotSynced]
    new_budget: Callable[[], Budget] = new_budget
    accurate: AccurateEstimator | None = None
    recorder: Recorder | None = None

    def __post_init__(self) -> None:
        self._counts_peers = self.options.feature_gates.enabled("WorkloadAffinity")
        self._recording = Recording(self.recorder, clock=self.state.clock)
        self._attempts = Attempts(
            self.options.max_in_flight,
            bindings=self.state.bindings,
            assumed=self.state.assumed,
            metrics=self.state.metrics,
            clock=self.state.clock,
        )
        self._decisions = DecisionRunner(
            self.state,
            algorithm=self.algorithm,
            accurate=self.accurate,
            in_flight=self._attempts.in_flight,
            new_budget=self.new_budget,
        )
        self._permit = Permit(self.state, self.cycle)
        self._missing_placements = MissingPlacements(self.state.bindings)
        self._failure_handler = FailureHandler(self.state, self._recording)
        self._tasks = AttemptTasks(self._failure_handler, self.state.metrics.scheduling)

    @property
    def pending_attempts(self) -> int:
        """The number of attempts that have not ended."""
        return self._attempts.pending

    async def run(self) -> None:
        """Schedule until cancelled; binding cycles under way then continue (see ``drain``)."""
        slice_start = self.state.clock()
        while True:
            key, waited = await self.state.queue.get()
            self.state.metrics.scheduling.queue_wait.observe(waited)
            attempt = await self._begin(key)
            start = self.state.clock()
            self.schedule_one(attempt)
            now = self.state.clock()
            if now - slice_start > _SLICE_SECONDS:
                blocked = now - start
                await asyncio.sleep(min(blocked, _MAX_PAUSE) if blocked > _BLOCKED_SECONDS else 0)
                slice_start = self.state.clock()

    async def drain(self, *, timeout: float) -> None:
        """Wait for the binding cycles under way; cancel those that are left after ``timeout`` seconds."""
        self.state.queue.shut_down()
        self.state.waiting.abandon_all("the scheduler stops")
        await self._tasks.drain(timeout=timeout)

    async def _begin(self, key: BindingKey) -> Attempt:
        """Wait until an attempt may begin. If cancelled, return the key to the queue."""
        try:
            if self._counts_peers and self._has_peers(key):
                # The decision depends on the clusters of its peers, so their results must be stored.
                await self._attempts.wait_for_results()
            return await self._attempts.begin(key)
        except asyncio.CancelledError:
            self.state.queue.add(key)
            self.state.queue.done(key)
            raise

    def _has_peers(self, key: BindingKey) -> bool:
        binding = self.state.bindings.get(key)
        return binding is not None and binding.spec.workload_affinity_groups is not None

    def schedule_one(self, attempt: Attempt) -> None:
        """Decide about one binding, and write the decision in a task; so does a decision that has to wait."""
        pending = None
        try:
            pending = self._scheduling_cycle(attempt)
        except Exception as error:
            log.exception("Cannot decide about %s", attempt.key.display)
            attempt.outcome = AttemptOutcome(Action.RETRY, error)
        if pending is None:
            self._failure_handler.finish(attempt)
        else:
            self._tasks.start(attempt, pending)

    def _scheduling_cycle(self, attempt: Attempt) -> PendingAttempt | None:
        """Decide about one binding; return None if there is nothing to wait for and nothing to write."""
        # 1. Look up the binding and its plugins, and classify it.
        request = self._request(attempt.key)
        if request is None:
            return None

        # 2. Try what a Reconsider plugin proposes instead.
        proposal = self.state.reconsiderations.proposal(request, self.state.clusters.is_gone)
        if proposal is None:
            request = self.state.reconsiderations.with_start_term(request)
        elif (offered := self._try_proposal(proposal)) is not None:
            return self._proceed(attempt, proposal, offered, request)

        # 3. If there is nothing to schedule, report that in the status.
        if request.classification.type is ScheduleType.AVOID:
            return self._skip(attempt, request)

        # 4. Wait for the workload, if a plugin needs it.
        workload = self._workload(request)
        if isinstance(workload, NotSynced):
            if request.is_activated:
                self.state.gate.stay_activated(attempt.key)
            log.log(logs.V3, "%s waits for the metadata of its workload", attempt.key.display)
            attempt.outcome = AttemptOutcome(Action.CHECK_LATER, delay=workload.retry_after)
            return None
        if workload is not None:
            request = replace(request, workload=workload)

        # 5. Let PreEnqueue plugins hold it back.
        try:
            delay = 0.0 if request.is_activated else self.state.gate.delay(request)
        except PluginError as error:
            return self._write(attempt, request, Decision(attempt.key, error=error))
        if delay > 0:
            attempt.outcome = AttemptOutcome(Action.CHECK_LATER, delay=delay)
            return None

        # 6. Decide.
        self._log(request)
        decision = self._decisions.begin(request)

        # 7. Reserve what it takes, and write it. A decision that does I/O, or takes long, goes on in a task.
        return self._proceed(attempt, request, decision, request)

    def _proceed(
        self,
        attempt: Attempt,
        request: DecisionRequest,
        found: Decision | Undecided,
        required: DecisionRequest,
    ) -> PendingAttempt | None:
        if isinstance(found, Undecided):
            return self._decide_later(attempt, found, required)
        return self._write(attempt, request, found)

    def _request(self, key: BindingKey) -> DecisionRequest | None:
        """Return what is to be decided about a binding that was taken from the queue; None if nothing is."""
        binding = self.state.bindings.get(key)
        event = self._recording.take_event(key)
        is_activated = self.state.gate.reset(key)
        if binding is None:
            self.cycle.forget(key)
            self._missing_placements.forget(key)
            return None
        framework = self.state.profiles.of(binding)
        if framework is None or not requeue_rules.is_assigned_to(binding, self.state.profiles.names):
            return None
        if binding.deleting:
            self.cycle.record_deleting(binding)
            return None
        if binding.spec.placement is None:
            self._missing_placements.warn_once(binding)
            return None
        classification = classify(
            binding, is_gone=self.state.clusters.is_gone, gates=self.options.feature_gates
        )
        if classification.type is ScheduleType.AVOID and is_undecided_result(binding):
            reason = f"Start to schedule {key.display} as its status does not say why it has no clusters"
            classification = Classification(ScheduleType.RECONCILE, reason, RECONCILE_SCHEDULE)
        self.state.metrics.scheduling.classified.labels(classification.type.value).inc()
        term = unreported_term(
            binding, classification, self.state.clusters.snapshot(), self.options.feature_gates.rules
        )
        return DecisionRequest(binding, framework, classification, event, is_activated, term=term)

    def _workload(self, request: DecisionRequest) -> WorkloadAnswer | NotSynced | None:
        return self.find_workload(request.binding) if request.framework.needs_workload else None

    def _try_proposal(self, proposal: DecisionRequest) -> Decision | Undecided | None:
        """Try the proposal of a Reconsider plugin; None if nothing is written of it."""
        workload = self._workload(proposal)
        if isinstance(workload, NotSynced):
            return None
        proposal = replace(proposal, workload=workload)
        if not proposal.is_activated and not self.state.gate.admits(proposal):
            return None
        found = self._decisions.begin(proposal)
        if isinstance(found, Undecided) or self.state.reconsiderations.tried(proposal.binding, found):
            return found
        return None

    def _skip(self, attempt: Attempt, request: DecisionRequest) -> PendingAttempt | None:
        """Do not schedule a binding, and record in its status that no scheduling is needed."""
        binding = request.binding
        if (once := each_once(binding.spec.clusters)) != binding.spec.clusters:
            reason = f"Write {binding.key.display} as a cluster is listed twice"
            classification = Classification(ScheduleType.SCALE, reason, SCALE_SCHEDULE)
            decision = Decision(binding.key, once, binding.applied_placement_json)
            return self._write(attempt, replace(request, classification=classification), decision)
        self._log(request)
        is_due = binding.generation != binding.status.scheduler_observed_generation
        # If it may not, the next status of the workload, or the end of its eviction, adds it to the queue.
        observes = is_due and may_observe(request.framework, binding)
        if clusters := self.state.resyncs.due(binding):
            return self.cycle.resync(binding, clusters, request.framework)
        if not request.term and self.cycle.is_observed(binding, observes=observes):
            return None
        return self.cycle.observe(binding, term=request.term, observes=observes)

    def _log(self, request: DecisionRequest) -> None:
        classification = request.classification
        is_routine = classification.is_routine or classification.type is ScheduleType.AVOID
        level = logs.V3 if is_routine else logging.INFO
        log.log(level, "%s", classification.reason, extra={"type": classification.type.value})

    async def _decide_later(
        self, attempt: Attempt, undecided: Undecided, required: DecisionRequest
    ) -> AttemptOutcome:
        """Finish a decision that has to wait, and write it.

        If nothing is written of a proposal, the binding is enqueued for the decision that is required without it.
        """
        request = undecided.request
        async with undecided.lock:
            decision = await self._decisions.finish(undecided, attempt)
            if request.proposed is not None and not self.state.reconsiderations.tried(
                request.binding, decision
            ):
                if required.classification.type is not ScheduleType.AVOID:
                    newest = self.state.bindings.get(attempt.key) or request.binding
                    self.state.queue.add(attempt.key, newest.spec.priority)
                return DONE
            pending = self._write(attempt, request, decision)
        return attempt.outcome if pending is None else await pending

    def _write(self, attempt: Attempt, request: DecisionRequest, decision: Decision) -> PendingAttempt | None:
        """Reserve what a decision takes, and return the binding cycle that writes it; None if nothing has to be written."""
        binding, framework = request.binding, request.framework
        if delay := self.state.reduced.seconds_until_settled(binding, decision.targets or ()):
            log.log(logs.V3, "%s waits until Karmada has seen its last change", binding.key.display)
            if request.proposed is not None:
                self.state.reconsiderations.postponed(binding.key)
            attempt.outcome = AttemptOutcome(Action.CHECK_LATER, delay=delay)
            return None
        attempt.request = request
        if log.isEnabledFor(logs.V4):
            for line in decision_log.lines(decision):
                log.log(logs.V4, "%s", line, extra={"binding": str(binding.key)})
        refusals = [term.diagnosis for term in decision.attempts] if decision.error is not None else ()
        self.state.refused.decided(binding.key, refusals, framework.requeue_events)
        decision = self._recording.to_write(decision)
        transaction = self.cycle.begin(binding, decision, framework)
        self._recording.decided(attempt, request, decision)
        if decision.guarded is not None:
            count_answer(decision.guarded, decision.error, self.state.metrics.plugins)
        if transaction is None:
            self._recording.ended(attempt, None)
            attempt.count(DONE)
            if clusters := self.state.resyncs.due(binding):
                return self.cycle.resync(binding, clusters, framework)
            return None
        if decision.fallbacks:
            log.info(
                "%s fell back to the resource summary of clusters: %s",
                binding.key.display,
                decision_log.fallbacks(decision),
                extra={"binding": str(binding.key), "count": len(decision.fallbacks)},
            )
        if transaction.reserve():
            self.cycle.record_failed_terms(binding, decision)
            self._reserve_clusters(attempt, transaction)
        if not isinstance(decision.error, HeldError):
            self.state.queue.release(attempt.key)  # what is held behind it need not wait for its write
        return self._binding_cycle(attempt, request, transaction)

    def _reserve_clusters(self, attempt: Attempt, transaction: BindingTransaction) -> None:
        """Let the next decisions count the clusters of this one, until it is written."""
        if transaction.targets is None:
            return
        if transaction.runs_plugins and self.state.profiles.needs_in_flight:
            attempt.put_in_flight(transaction.binding, transaction.targets)
        attempt.assume(transaction.binding, transaction.targets)

    async def _binding_cycle(
        self, attempt: Attempt, request: DecisionRequest, transaction: BindingTransaction
    ) -> AttemptOutcome:
        """Write a decision, first the result and then the status."""
        # 1. Permit, PreBind, Bind, PostBind.
        result = await transaction.run(partial(self._permit.wait, attempt, transaction))
        self._recording.ended(attempt, result)
        if result.error is not None and request.proposed is not None:
            # The binding is scheduled as it is. It is not reported as failed, because another decision was only an offer.
            self.state.reconsiderations.failed(request.binding, transaction.decision, result.error)
            return DONE

        # 2. An attempt with a result ends before its status is written.
        if result.was_written:
            attempt.end()
            if any(self.state.clusters.is_gone(target.name) for target in result.stored.spec.clusters):
                self.state.queue.add(attempt.key, result.stored.spec.priority)  # deleted during the write

        # 3. Events and the status.
        outcome = await self.cycle.report(transaction, result, request.framework)
        if outcome.action is not Action.DECIDE_AGAIN:
            attempt.count(outcome)
        return outcome
