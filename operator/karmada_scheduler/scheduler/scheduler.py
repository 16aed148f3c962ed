"""The scheduling loop: take a key, decide, hand the decision to the binding cycle.

Decisions are taken one after another, each on the state that the one before has left: its answer enters
the cache when it is written. Writes of different bindings overlap; two of one binding never do, because
its key stays in progress until its cycle has ended.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from karmada_scheduler import logs
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.workload import Workload, WorkloadAnswer
from karmada_scheduler.binding_cycle.cycle import BindingCycle, refused
from karmada_scheduler.binding_cycle.transaction import BindingTransaction
from karmada_scheduler.binding_cycle.writer import DONE, Outcome
from karmada_scheduler.cache.assumed import AssumedPlacements
from karmada_scheduler.cache.bindings import BindingCache
from karmada_scheduler.cache.clusters import ClusterCache
from karmada_scheduler.config.options import Options
from karmada_scheduler.core.available_replicas import LocalEstimator, ReplicaEstimator
from karmada_scheduler.core.budget import Budget
from karmada_scheduler.core.classify import Classification, ScheduleType, classify
from karmada_scheduler.core.decision import Decision
from karmada_scheduler.core.run_sync import Paced, WaitsError, begin
from karmada_scheduler.core.schedule import SchedulingAlgorithm
from karmada_scheduler.estimator.accurate import AccurateEstimator
from karmada_scheduler.framework.cycle import no_workload
from karmada_scheduler.framework.diagnosis import (
    FitError,
    OverBudgetError,
    PluginError,
    SchedulingError,
    UnschedulableError,
)
from karmada_scheduler.framework.profile.profiles import Profiles
from karmada_scheduler.framework.result import Result
from karmada_scheduler.framework.runtime.framework import Framework
from karmada_scheduler.framework.runtime.waiting_bindings import WaitingBindings
from karmada_scheduler.informer import requeue_rules
from karmada_scheduler.informer.workloads import NotSynced
from karmada_scheduler.metrics.metrics import Metrics
from karmada_scheduler.scheduler import decision_log
from karmada_scheduler.scheduling_queue.work_queue import WaitingQueue

log = logging.getLogger(__name__)

Work = Coroutine[Any, Any, Outcome]

PARKED_SECONDS: Final = 300.0
"""How long a PreEnqueue plugin is not asked again when nothing happens; kube-scheduler's time."""

_SLICE_SECONDS: Final = 0.005
"""How long the loop thinks before it lets watches, answers and the lease have a turn."""

_CONFLICTS_TOLD: Final = 3
"""From which conflict in a row on the log tells of a binding's conflicts."""

_STANDSTILL_SECONDS: Final = 0.25
"""A decision that holds the loop for longer, as one with a plugin that is cut off does, earns the others a rest."""

_REST_SECONDS: Final = 1.0
"""The longest rest."""

_FIRST_PAUSE: Final = 10.0
_LONGEST_PAUSE: Final = 640.0
"""How long a binding waits whose decision took too long, at first and at most: it costs seconds each time."""

_EVENT_PATIENCE_SECONDS: Final = 5.0
"""How long one Event waits for the queue to run dry."""


def _new_budget() -> Budget:
    return Budget(time.perf_counter, time.thread_time)


@dataclass(slots=True)
class _Attempt:
    """What belongs together while one binding is decided and written.

    Attributes:
        started: In seconds.
        workload: What is known of its workload; None where no plugin needs it.
        ended: When its result was stored, or given up; the status may still be to come.
    """

    binding: Binding
    framework: Framework
    cycle: BindingCycle
    verdict: Classification
    started: float
    workload: WorkloadAnswer | None = None
    ended: float | None = None


class Scheduler:
    """Turns keys of the queue into decisions and writes.

    Attributes:
        gated: The bindings that PreEnqueue plugins keep out.
    """

    def __init__(
        self,
        *,
        options: Options,
        queue: WaitingQueue[BindingKey],
        bindings: BindingCache,
        clusters: ClusterCache,
        profiles: Profiles,
        waiting: WaitingBindings,
        estimators: Sequence[LocalEstimator],
        metrics: Metrics,
        clock: Callable[[], float],
        accurate: AccurateEstimator | None = None,
        assumed: AssumedPlacements | None = None,
        new_budget: Callable[[], Budget] = _new_budget,
        look_up: Callable[[Binding], WorkloadAnswer | NotSynced],
        stored_workload: Callable[[BindingKey], Workload | None] = no_workload,
    ) -> None:
        """Take what deciding needs; ``clock`` is in seconds, ``new_budget`` makes the budget of one decision.

        ``look_up`` tells what is known of the workload of a binding; it is asked where a plugin needs it.
        ``stored_workload`` returns the workloads of other bindings for plugins, None where they are not known.

        Estimators in the member clusters (``accurate``) and assumed placements (``assumed``) are None where they
        are not asked for.
        """
        self._options = options
        self._queue = queue
        self._bindings = bindings
        self._clusters = clusters
        self._profiles = profiles
        self._waiting = waiting
        self._peers_count = options.feature_gates.enabled("WorkloadAffinity")
        self._algorithm = SchedulingAlgorithm(
            options.feature_gates,
            estimators,
            empty_workload_propagation=options.enable_empty_workload_propagation,
            peers=bindings if self._peers_count else None,
            stored=bindings.get,
            stored_workload=stored_workload,
        )
        self._accurate = accurate
        self._assumed = assumed
        self._new_budget = new_budget
        self._look_up = look_up
        self._turn = asyncio.Lock()
        self._long = asyncio.Lock()
        self._pauses: dict[BindingKey, float] = {}
        self._metrics = metrics
        self._clock = clock
        self._slots = asyncio.Semaphore(options.max_in_flight)
        self._cycles: set[asyncio.Task[None]] = set()
        self._writing: set[BindingKey] = set()
        self._arrived = asyncio.Event()
        self._in_flight: dict[BindingKey, Binding] = {}
        self._activated: set[BindingKey] = set()
        self.gated: Final[set[BindingKey]] = set()
        self._idle = asyncio.Event()
        self._idle.set()
        self._complained: dict[BindingKey, str] = {}
        self._conflicts: dict[BindingKey, int] = {}

    async def run(self, cycle: BindingCycle) -> None:
        """Schedule until cancelled; cycles that are under way then go on (see ``drain``)."""
        slice_began = self._clock()
        while True:
            if not self._queue:
                self._idle.set()
            key, waited = await self._queue.get()
            if self._queue:
                self._idle.clear()
            self._metrics.queue_wait.observe(waited)
            try:
                if self._peers_count and self._has_peers(key):
                    # Where peers go decides where this one may go, so what is under way must have arrived.
                    await self._nothing_under_way()
                await self._enter(key)
            except asyncio.CancelledError:
                self._queue.add(key)
                self._queue.done(key)
                raise
            began = self._clock()
            self._take(key, cycle)
            now = self._clock()
            if now - slice_began > _SLICE_SECONDS:
                stood = now - began
                await asyncio.sleep(min(stood, _REST_SECONDS) if stood > _STANDSTILL_SECONDS else 0)
                slice_began = self._clock()

    async def drain(self, *, timeout: float) -> None:
        """Wait for the cycles under way; cancel what is left after ``timeout`` seconds."""
        self._idle.set()
        self._waiting.abandon_all("the scheduler stops")
        if not self._cycles:
            return
        _, left = await asyncio.wait(self._cycles, timeout=timeout)
        for task in left:
            task.cancel()
        if left:
            log.warning("Writes were still under way at the stop", extra={"count": len(left)})

    async def spare_moment(self) -> None:
        """Return when no binding waits, or after a while all the same."""
        try:
            async with asyncio.timeout(_EVENT_PATIENCE_SECONDS):
                await self._idle.wait()
        except TimeoutError:
            return

    def _has_peers(self, key: BindingKey) -> bool:
        binding = self._bindings.get(key)
        return binding is not None and binding.spec.workload_affinity_groups is not None

    def activate(self, key: BindingKey) -> None:
        """Make a binding due at once, past the PreEnqueue plugins."""
        binding = self._bindings.get(key)
        if binding is not None:
            self._activated.add(key)
            self._queue.add(key, binding.spec.priority)

    async def _nothing_under_way(self) -> None:
        while self._writing:
            self._arrived.clear()
            await self._arrived.wait()

    async def _enter(self, key: BindingKey) -> None:
        """Wait for a place among the bindings that are written."""
        await self._slots.acquire()
        self._writing.add(key)

    def _leave(self, key: BindingKey) -> None:
        """Give a binding's place among those that are written to the next, unless it has left already."""
        if key in self._writing:
            self._writing.remove(key)
            self._slots.release()
            self._arrived.set()

    def _take(self, key: BindingKey, cycle: BindingCycle) -> None:
        """Do what a key needs; whatever has to be waited for goes on as a task that owns the key."""
        started = self._clock()
        try:
            work = self._work_for(key, cycle, started)
        except Exception as error:
            log.exception("Cannot decide about %s", key.display)
            self._finish(key, Outcome(error, retry=True))
            return
        if isinstance(work, Outcome):
            self._finish(key, work)
            return
        self._metrics.in_flight.inc()
        task = asyncio.create_task(self._write(key, work), name=f"bind {key}")
        self._cycles.add(task)
        task.add_done_callback(self._cycles.discard)

    def _work_for(self, key: BindingKey, cycle: BindingCycle, started: float) -> Outcome | Work:
        binding = self._bindings.get(key)
        activated = key in self._activated
        self._activated.discard(key)
        self.gated.discard(key)
        if binding is None:
            cycle.forget(key)
            self._complained.pop(key, None)
            return DONE
        if not requeue_rules.is_assigned_to(binding, self._profiles.names):
            return DONE
        framework = self._profiles.of(binding)
        assert framework is not None  # is_assigned_to has looked at the same names
        if binding.deleting:
            cycle.warn_deleting(binding)
            return DONE
        if binding.spec.placement is None:
            self._complain(binding)
            return DONE
        verdict = classify(binding, terminating=self._clusters.terminating, gates=self._options.feature_gates)
        self._metrics.classified.labels(verdict.type.value).inc()
        if verdict.type is ScheduleType.AVOID:
            log.log(logs.V3, "%s", verdict.reason, extra={"type": verdict.type.value})
            return DONE if cycle.is_observed(binding) else cycle.observe(binding)
        workload = None
        if framework.needs_workload:
            looked_up = self._look_up(binding)
            if isinstance(looked_up, NotSynced):
                if activated:
                    self._activated.add(key)
                log.log(logs.V3, "%s waits for the metadata of its workload", key.display)
                return Outcome(later=looked_up.retry_after)
            workload = looked_up
        attempt = _Attempt(binding, framework, cycle, verdict, started, workload)
        try:
            later = 0.0 if activated else self._parked_for(attempt)
        except PluginError as error:
            return self._follow(attempt, Decision(key, error=error))
        if later > 0:
            self.gated.add(key)
            return Outcome(later=later)
        # Upstream tells of what is always recomputed at V(3) only, and so do we.
        level = logs.V3 if verdict.reason.endswith("duplicated") else logging.INFO
        log.log(level, "%s", verdict.reason, extra={"type": verdict.type.value})
        return self._decide_at_once_or_later(attempt)

    def _decide_at_once_or_later(self, attempt: _Attempt) -> Outcome | Work:
        """Decide now if nothing has to be waited for; otherwise return what will."""
        framework = attempt.framework
        if not framework.talks and not self._asks_estimators(attempt.binding) and not self._turn.locked():
            budget = self._new_budget()
            try:
                decided = begin(self._decide(attempt, budget), budget)
            except WaitsError:
                framework.turns_out_to_talk()
            else:
                if not isinstance(decided, Paced):
                    return self._follow(attempt, decided)
                if self._assumed is None:
                    return self._go_on(attempt, decided)
                decided.close()  # others may assume something while it goes on, so it begins anew in its turn
        return self._decide_and_follow(attempt)

    async def _go_on(self, attempt: _Attempt, unfinished: Paced[Decision]) -> Outcome:
        """Finish a decision that takes long; one at a time, so that everybody else has every other turn."""
        async with self._long:
            work = self._follow(attempt, await unfinished)
        return work if isinstance(work, Outcome) else await work

    def _asks_estimators(self, binding: Binding) -> bool:
        return self._accurate is not None and binding.spec.is_workload

    def _parked_for(self, attempt: _Attempt) -> float:
        """Return for how many seconds PreEnqueue plugins keep a binding out, 0 if they let it in; or PluginError."""
        binding = attempt.binding
        result = attempt.framework.binding.admit(binding, attempt.workload)
        if result.is_success:
            return 0.0
        log.info(
            "%s is parked by %s: %s",
            binding.key.display,
            result.plugin,
            result.message,
            extra={"binding": str(binding.key), "plugin": result.plugin},
        )
        return result.retry_after or PARKED_SECONDS

    def _decide(
        self, attempt: _Attempt, budget: Budget, session: ReplicaEstimator | None = None
    ) -> Coroutine[Any, Any, Decision]:
        return self._algorithm.decide(
            attempt.binding,
            self._clusters.snapshot(),
            attempt.framework,
            session=session,
            assumed={} if self._assumed is None else self._assumed.by_cluster(),
            in_flight=tuple(self._in_flight.values()),
            until_stable=requeue_rules.is_claimed_and_assigned(attempt.binding, self._profiles.names),
            budget=budget,
            workload=attempt.workload,
        )

    async def _decide_and_follow(self, attempt: _Attempt) -> Outcome:
        if self._assumed is None:
            work = await self._decided(attempt)
        else:
            # What one takes is what the next does not have.
            async with self._turn:
                work = await self._decided(attempt)
        return work if isinstance(work, Outcome) else await work

    async def _decided(self, attempt: _Attempt) -> Outcome | Work:
        """Decide, asking estimators, and return what follows."""
        budget = self._new_budget()
        if self._accurate is None:
            return self._follow(attempt, await Paced(self._decide(attempt, budget), budget))
        inquiry = self._accurate.inquiry(attempt.binding)
        decision = await Paced(self._decide(attempt, budget, inquiry), budget)
        if inquiry.fallbacks:
            extent = "all" if inquiry.fallbacks.keys() >= inquiry.concerned else "some"
            self._metrics.estimate_fallbacks.labels(extent).inc()
            decision = replace(decision, fallbacks=inquiry.fallbacks)
        return self._follow(attempt, decision)

    def _follow(self, attempt: _Attempt, decision: Decision) -> Outcome | Work:
        """Return what follows from a decision: nothing, or a write. What it needs is reserved at once."""
        binding, cycle = attempt.binding, attempt.cycle
        if log.isEnabledFor(logs.V4):
            for line in decision_log.lines(decision):
                log.log(logs.V4, "%s", line, extra={"binding": str(binding.key)})
        if not cycle.has_work(binding, decision):
            self._count(attempt, None)
            return DONE
        if decision.fallbacks:
            log.info(
                "%s went by summaries where estimators were not heard: %s",
                binding.key.display,
                decision_log.fallbacks(decision),
                extra={"binding": str(binding.key), "count": len(decision.fallbacks)},
            )
        framework = attempt.framework
        wait = partial(self._wait_for_permit, attempt, decision)
        passage = cycle.passage(binding, decision, framework.binding, wait)
        if passage is not None:
            try:
                passage.reserve()
            except SchedulingError as refusal:
                decision, passage = refused(decision, refusal), None
        if passage is not None and self._profiles.counts_peers_in:
            spec = replace(binding.spec, clusters=decision.targets or ())
            self._in_flight[binding.key] = replace(binding, spec=spec)
        if (
            self._assumed is not None
            and decision.targets is not None
            and cycle.changes_result(binding, decision)
        ):
            self._assumed.assume(binding, decision.targets)
        return self._bind(attempt, decision, passage)

    async def _wait_for_permit(
        self, attempt: _Attempt, decision: Decision, waits: Mapping[str, Result]
    ) -> Result:
        """Let a binding wait at Permit; it holds up neither writes nor its peers meanwhile."""
        binding = attempt.binding
        targets = frozenset(target.name for target in decision.targets or ())
        attempt.cycle.tell_waiting(binding, waits)
        self._leave(binding.key)
        began, result = self._clock(), "abandoned"
        gauges = [self._metrics.permit_waiting.labels(plugin) for plugin in waits]
        for gauge in gauges:
            gauge.inc()
        try:
            look = partial(self._look_at_waiting, binding.key, targets)
            timeouts = {plugin: each.timeout for plugin, each in waits.items()}
            reasons = {plugin: each.message for plugin, each in waits.items()}
            answer = await self._waiting.wait(binding, targets, timeouts, reasons=reasons, look=look)
            result = "allowed" if answer.is_success else "rejected"
        finally:
            for gauge in gauges:
                gauge.dec()
            self._metrics.permit_wait.labels(result).observe(self._clock() - began)
            await self._enter(binding.key)
        return answer

    def _look_at_waiting(self, key: BindingKey, targets: frozenset[str]) -> None:
        """Tell what has changed while the plugins were asked: whatever changes later is told by the intake."""
        self._waiting.binding_changed(
            key,
            self._bindings.get(key),
            still_ours=lambda binding: requeue_rules.is_assigned_to(binding, self._profiles.names),
        )
        for name in targets:
            cluster = self._clusters.get(name)
            if cluster is None or cluster.deleting:
                self._waiting.cluster_leaves(name)

    async def _bind(
        self, attempt: _Attempt, decision: Decision, passage: BindingTransaction | None
    ) -> Outcome:
        def stored() -> None:
            self._end(attempt, decision)
            self._leave(attempt.binding.key)

        try:
            outcome = await attempt.cycle.bind(attempt.binding, decision, passage, stored=stored)
        finally:
            self._end(attempt, decision)
        if not outcome.again:
            self._count(attempt, outcome.error)
        if (
            isinstance(outcome.error, PluginError)
            and self._profiles.of(attempt.binding) is not attempt.framework
        ):
            return replace(
                outcome, pause=0.0
            )  # another version of the plugin need not wait for what that one did
        if isinstance(outcome.error, FitError) and not outcome.retry:
            observed = await self._look_back(attempt)
            return observed if observed.retry else outcome
        return outcome

    def _end(self, attempt: _Attempt, decision: Decision) -> None:
        if attempt.ended is None:
            attempt.ended = self._clock()
            self._in_flight.pop(attempt.binding.key, None)
            self._settle(attempt.binding.key, decision)

    def _settle(self, key: BindingKey, decision: Decision) -> None:
        """Confirm what was assumed of a decision, or take it back, by what is stored now."""
        if self._assumed is None or decision.targets is None:
            return
        stored = self._bindings.get(key)
        if stored is not None and stored.spec.clusters == decision.targets:
            self._assumed.confirm(key)
        else:
            self._assumed.forget(key)

    async def _look_back(self, attempt: _Attempt) -> Outcome:
        """Note that a binding which fits nowhere needs nothing, if that is so now that it has lost its clusters.

        A success is noted as it is written. Upstream sees its own write come back as a change; on a binding
        without replicas, which has none too many or too few then, it finds nothing to do and notes that.
        """
        before, cycle = attempt.binding, attempt.cycle
        after = self._bindings.get(before.key)
        if (
            after is None
            or after.generation == before.generation
            or after.deleting
            or after.spec.placement is None
            or not requeue_rules.is_claimed_and_assigned(after, self._profiles.names)
        ):
            return DONE
        verdict = classify(after, terminating=self._clusters.terminating, gates=self._options.feature_gates)
        if verdict.type is ScheduleType.AVOID and not cycle.is_observed(after):
            return await cycle.observe(after)
        return DONE

    def _count(self, attempt: _Attempt, error: Exception | None) -> None:
        """Count an attempt as upstream does, where finding no cluster is not an error."""
        result = "scheduled" if error is None or isinstance(error, FitError) else "error"
        labels = (result, attempt.verdict.metric_type)
        self._metrics.schedule_attempts.labels(*labels).inc()
        ended = self._clock() if attempt.ended is None else attempt.ended
        self._metrics.e2e_duration.labels(*labels).observe(ended - attempt.started)

    async def _write(self, key: BindingKey, work: Work) -> None:
        outcome = Outcome(retry=True)
        try:
            outcome = await work
        except Exception as error:
            log.exception("Cannot write the decision about %s", key.display)
            outcome = Outcome(error, retry=True)
        finally:
            self._metrics.in_flight.dec()
            self._finish(key, outcome)

    def _finish(self, key: BindingKey, outcome: Outcome) -> None:
        """Give a key back: for good, for another turn at once, or for one after a pause."""
        self._leave(key)
        conflicts = self._conflicts.pop(key, 0)
        pause = outcome.pause or self._pause_after(key, outcome)
        if outcome.again:
            conflicts = self._conflicts[key] = conflicts + 1
        if outcome.again and conflicts == 1:
            binding = self._bindings.get(key)
            self._queue.add(key, binding.spec.priority if binding is not None else 0)
        elif outcome.again or outcome.retry:
            if outcome.again and conflicts >= _CONFLICTS_TOLD:
                log.info(
                    "The decision about %s conflicts again, another one follows after a pause",
                    key.display,
                    extra={"count": conflicts},
                )
            self._metrics.queue_incoming.labels(requeue_rules.ATTEMPT_FAILED).inc()
            if pause:
                self._queue.add_after(key, pause)
            else:
                self._queue.retry(key, unschedulable=isinstance(outcome.error, UnschedulableError))
        else:
            self._queue.forget(key)
            if outcome.later:
                self._queue.add_after(key, outcome.later)
        self._queue.done(key)

    def _pause_after(self, key: BindingKey, outcome: Outcome) -> float:
        """Return for how many seconds a binding waits whose decision took too long: longer every time."""
        if not isinstance(outcome.error, OverBudgetError):
            self._pauses.pop(key, None)
            return 0.0
        pause = min(2 * self._pauses.get(key, _FIRST_PAUSE / 2), _LONGEST_PAUSE)
        self._pauses[key] = pause
        return pause

    def _complain(self, binding: Binding) -> None:
        """Say once that a claimed binding has no placement; an update of it brings it back."""
        key = binding.key
        if self._complained.get(key) == binding.uid:
            return
        if len(self._complained) > len(self._bindings):  # some are gone
            kept = ((each, self._bindings.get(each), uid) for each, uid in self._complained.items())
            self._complained = {each: uid for each, found, uid in kept if found and found.uid == uid}
        self._complained[key] = binding.uid
        log.warning("failed to get placement from %s%s(%s)", key.kind[0].lower(), key.kind[1:], key)
