"""The scheduling loop: take a key, decide, and write the decision.

As in kube-scheduler, ``schedule_one`` has two halves. The scheduling cycle decides, one binding after another, and each
decision is based on the results of those before: the answer to a write enters the cache. The binding cycle writes in a
task. Writes of different bindings overlap. Writes of one binding do not, because its key stays in process until its
binding cycle has ended.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final

from karmada_scheduler import logs
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.workload import WorkloadAnswer
from karmada_scheduler.binding_cycle.cycle import BindingCycle
from karmada_scheduler.binding_cycle.result import DONE, Action, AttemptOutcome
from karmada_scheduler.binding_cycle.transaction import BindingTransaction
from karmada_scheduler.config.options import Options
from karmada_scheduler.core import requeue_rules
from karmada_scheduler.core.budget import Budget
from karmada_scheduler.core.classify import Classification, ScheduleType, classify
from karmada_scheduler.core.decision import Decision
from karmada_scheduler.core.guard_additions import may_observe
from karmada_scheduler.core.schedule import SchedulingAlgorithm
from karmada_scheduler.estimator.accurate import AccurateEstimator
from karmada_scheduler.framework.diagnosis import FitError, PluginError
from karmada_scheduler.informer.workloads import NotSynced
from karmada_scheduler.records.recorder import Recorder
from karmada_scheduler.scheduler import decision_log
from karmada_scheduler.scheduler.attempt import Attempt, Attempts
from karmada_scheduler.scheduler.decision_runner import DecisionRunner, Undecided, new_budget
from karmada_scheduler.scheduler.guarded import count_answer
from karmada_scheduler.scheduler.missing_placements import MissingPlacements
from karmada_scheduler.scheduler.permit import Permit
from karmada_scheduler.scheduler.recording import Recording
from karmada_scheduler.scheduler.request import Request
from karmada_scheduler.scheduler.state import SchedulerState
from karmada_scheduler.scheduler.tasks import AttemptTasks
from karmada_scheduler.structs import replace

log = logging.getLogger(__name__)

Rest = Coroutine[Any, Any, AttemptOutcome]
"""What is left of an attempt, to be run in a task."""

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
        options: Options,
        state: SchedulerState,
        *,
        algorithm: SchedulingAlgorithm,
        cycle: BindingCycle,
        find_workload: Callable[[Binding], WorkloadAnswer | NotSynced],
        new_budget: Callable[[], Budget] = new_budget,
        accurate: AccurateEstimator | None = None,
        recorder: Recorder | None = None,
    ) -> None:
        """Set the caches, the plugins, and the binding cycle.

        Args:
            options: Feature gates and ``--max-in-flight``.
            state: The caches, the queue and the plugins.
            algorithm: Decides.
            cycle: Writes decisions.
            find_workload: Returns the metadata of a binding's workload; called if a plugin of its profile needs it.
            new_budget: Returns the budget of one decision.
            accurate: Requests available replicas from the member clusters; None if that is off.
            recorder: Records decisions; None without records.
        """
        self._gates = options.feature_gates
        self._counts_peers = self._gates.enabled("WorkloadAffinity")
        self._state = state
        self._queue = state.queue
        self._gate = state.gate
        self._bindings = state.bindings
        self._clusters = state.clusters
        self._profiles = state.profiles
        self._cycle = cycle
        self._reconsiderations = state.reconsiderations
        self._find_workload = find_workload
        self._metrics = state.metrics
        self._clock = state.clock
        self._recording = Recording(recorder, clock=state.clock)
        self._attempts = Attempts(
            options.max_in_flight,
            bindings=state.bindings,
            assumed=state.assumed,
            metrics=state.metrics,
            clock=state.clock,
        )
        self._decisions = DecisionRunner(
            state,
            algorithm=algorithm,
            accurate=accurate,
            in_flight=self._attempts.in_flight,
            new_budget=new_budget,
        )
        self._permit = Permit(state, cycle)
        self._missing_placements = MissingPlacements(state.bindings)
        self._tasks = AttemptTasks(state, self._recording)

    @property
    def pending_attempts(self) -> int:
        """The number of attempts that have not ended."""
        return self._attempts.pending

    async def run(self) -> None:
        """Schedule until cancelled; binding cycles under way then continue (see ``drain``)."""
        slice_start = self._clock()
        while True:
            key, waited = await self._queue.get()
            self._metrics.scheduling.queue_wait.observe(waited)
            attempt = await self._begin(key)
            start = self._clock()
            self.schedule_one(attempt)
            now = self._clock()
            if now - slice_start > _SLICE_SECONDS:
                blocked = now - start
                await asyncio.sleep(min(blocked, _MAX_PAUSE) if blocked > _BLOCKED_SECONDS else 0)
                slice_start = self._clock()

    async def drain(self, *, timeout: float) -> None:
        """Wait for the binding cycles under way; cancel those that are left after ``timeout`` seconds."""
        self._queue.shut_down()
        self._state.waiting.abandon_all("the scheduler stops")
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

    def schedule_one(self, attempt: Attempt) -> None:
        """Decide about one binding, and write the decision in a task; so does a decision that has to wait."""
        try:
            step = self._scheduling_cycle(attempt)
        except Exception as error:
            log.exception("Cannot decide about %s", attempt.key.display)
            step = AttemptOutcome(Action.RETRY, error)
        if isinstance(step, AttemptOutcome):
            self._tasks.finish(attempt, step)
        else:
            self._tasks.start(attempt, step)

    def _scheduling_cycle(self, attempt: Attempt) -> AttemptOutcome | Rest:
        """Decide about one binding; return the outcome if there is nothing to wait for and nothing to write."""
        # 1. Look up the binding and its plugins, and classify it.
        request = self._request(attempt.key)
        if request is None:
            return DONE

        # 2. Try what a Reconsider plugin proposes instead.
        proposal = self._reconsiderations.proposal(request, self._clusters.terminating)
        if proposal is None:
            request = self._reconsiderations.with_start_term(request)
        elif (step := self._try_proposal(attempt, proposal, request)) is not None:
            return step

        # 3. If there is nothing to schedule, report that in the status.
        if request.classification.type is ScheduleType.AVOID:
            return self._skip(request)

        # 4. Wait for the workload, if a plugin needs it.
        workload = self._workload(request)
        if isinstance(workload, NotSynced):
            if request.is_activated:
                self._gate.stay_activated(attempt.key)
            log.log(logs.V3, "%s waits for the metadata of its workload", attempt.key.display)
            return AttemptOutcome(Action.CHECK_LATER, delay=workload.retry_after)
        if workload is not None:
            request = replace(request, workload=workload)

        # 5. Let PreEnqueue plugins hold it back.
        try:
            delay = 0.0 if request.is_activated else self._gate.delay(request)
        except PluginError as error:
            return self._write(attempt, request, Decision(attempt.key, error=error))
        if delay > 0:
            return AttemptOutcome(Action.CHECK_LATER, delay=delay)

        # 6. Decide. A decision that does I/O, or takes long, goes on in a task.
        self._log(request)
        decision = self._decisions.begin(request)
        if isinstance(decision, Undecided):
            return self._decide_later(attempt, decision, request)

        # 7. Reserve what it takes, and write it.
        return self._write(attempt, request, decision)

    def _request(self, key: BindingKey) -> Request | None:
        """Return what is to be decided about a binding that was taken from the queue; None if nothing is."""
        binding = self._bindings.get(key)
        event = self._recording.take_event(key)
        is_activated = self._gate.reset(key)
        if binding is None:
            self._cycle.forget(key)
            self._missing_placements.forget(key)
            return None
        framework = self._profiles.of(binding)
        if framework is None or not requeue_rules.is_assigned_to(binding, self._profiles.names):
            return None
        if binding.deleting:
            self._cycle.record_deleting(binding)
            return None
        if binding.spec.placement is None:
            self._missing_placements.warn_once(binding)
            return None
        classification = self._classify(binding)
        self._metrics.scheduling.classified.labels(classification.type.value).inc()
        return Request(binding, framework, classification, event, is_activated)

    def _classify(self, binding: Binding) -> Classification:
        return classify(binding, terminating=self._clusters.terminating, gates=self._gates)

    def _workload(self, request: Request) -> WorkloadAnswer | NotSynced | None:
        return self._find_workload(request.binding) if request.framework.needs_workload else None

    def _try_proposal(
        self, attempt: Attempt, proposal: Request, request: Request
    ) -> AttemptOutcome | Rest | None:
        """Try the proposal of a Reconsider plugin; None if nothing is written of it, and ``request`` is to be decided."""
        workload = self._workload(proposal)
        if isinstance(workload, NotSynced):
            return None
        proposal = replace(proposal, workload=workload)
        if not proposal.is_activated and not self._gate.admits(proposal):
            return None
        decision = self._decisions.begin(proposal)
        if isinstance(decision, Undecided):
            return self._decide_later(attempt, decision, request)
        if not self._reconsiderations.tried(request.binding, decision):
            return None
        return self._write(attempt, proposal, decision)

    def _skip(self, request: Request) -> AttemptOutcome | Rest:
        """Do not schedule a binding, and record in its status that no scheduling is needed."""
        self._log(request)
        if self._cycle.is_observed(request.binding):
            return DONE
        if not may_observe(request.framework, request.binding):
            return DONE  # the next status of the workload, or the end of its eviction, adds it to the queue
        return self._cycle.observe(request.binding)

    def _log(self, request: Request) -> None:
        classification = request.classification
        is_routine = classification.is_routine or classification.type is ScheduleType.AVOID
        level = logs.V3 if is_routine else logging.INFO
        log.log(level, "%s", classification.reason, extra={"type": classification.type.value})

    async def _decide_later(
        self, attempt: Attempt, undecided: Undecided, required: Request
    ) -> AttemptOutcome:
        """Finish a decision that has to wait, and write it.

        If nothing is written of a proposal, the binding is enqueued for the decision that is required without it.
        """
        request = undecided.request
        async with undecided.lock:
            decision = await self._decisions.finish(undecided, attempt)
            if request.proposed is not None and not self._reconsiderations.tried(request.binding, decision):
                if required.classification.type is not ScheduleType.AVOID:
                    self._queue.add(attempt.key, request.binding.spec.priority)
                return DONE
            step = self._write(attempt, request, decision)
        return step if isinstance(step, AttemptOutcome) else await step

    def _write(self, attempt: Attempt, request: Request, decision: Decision) -> AttemptOutcome | Rest:
        """Reserve what a decision takes, and return the binding cycle that writes it; DONE if nothing has to be written."""
        binding, framework = request.binding, request.framework
        if log.isEnabledFor(logs.V4):
            for line in decision_log.lines(decision):
                log.log(logs.V4, "%s", line, extra={"binding": str(binding.key)})
        transaction = self._cycle.begin(binding, decision, framework)
        self._recording.decided(attempt, request, decision)
        if decision.guarded is not None:
            count_answer(decision.guarded, decision.error, self._metrics.plugins)
        if transaction is None:
            self._recording.ended(attempt, None)
            attempt.count(request.classification.metric_type, None)
            return DONE
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
        return self._binding_cycle(attempt, request, transaction)

    def _reserve_clusters(self, attempt: Attempt, transaction: BindingTransaction) -> None:
        """Let the next decisions count the clusters of this one, until it is written."""
        if transaction.targets is None:
            return
        if transaction.runs_plugins and self._profiles.needs_in_flight:
            attempt.put_in_flight(transaction.binding, transaction.targets)
        attempt.assume(transaction.binding, transaction.targets)

    async def _binding_cycle(
        self, attempt: Attempt, request: Request, transaction: BindingTransaction
    ) -> AttemptOutcome:
        """Write a decision, first the result and then the status."""
        # 1. Permit, PreBind, Bind, PostBind.
        result = await transaction.run(partial(self._permit.wait, attempt, transaction))
        self._recording.ended(attempt, result)
        if result.error is not None and request.proposed is not None:
            # The binding is scheduled as it is. It is not reported as failed, because another decision was only an offer.
            self._reconsiderations.failed(request.binding, transaction.decision, result.error)
            return DONE

        # 2. An attempt with a result ends before its status is written.
        if result.was_written:
            attempt.end()

        # 3. Events and the status.
        outcome = await self._cycle.report(transaction, result, request.framework)
        if outcome.action is not Action.DECIDE_AGAIN:
            attempt.count(request.classification.metric_type, outcome.error)

        # 4. When it is tried again.
        if (
            isinstance(outcome.error, PluginError)
            and self._profiles.of(request.binding) is not request.framework
        ):
            return replace(outcome, delay=0.0)  # it was for the plugin that has been replaced since
        if isinstance(outcome.error, FitError) and outcome.action is Action.FORGET:
            observed = await self._observe_cleared(request.binding)
            return observed if observed.action is Action.RETRY else outcome
        return outcome

    async def _observe_cleared(self, before: Binding) -> AttemptOutcome:
        """After the clusters of a binding were cleared, record its new generation if nothing is left to schedule.

        The status of a success records it. Upstream's own write comes back as a change; for a binding without replicas,
        whose replicas are then correct, upstream finds nothing to schedule and records the generation.
        """
        after = self._bindings.get(before.key)
        if (
            after is None
            or after.generation == before.generation
            or after.deleting
            or after.spec.placement is None
            or not requeue_rules.is_claimed_and_assigned(after, self._profiles.names)
        ):
            return DONE
        if self._classify(after).type is not ScheduleType.AVOID:
            return DONE
        return await self._cycle.observe(after)
