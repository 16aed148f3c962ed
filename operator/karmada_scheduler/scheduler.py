"""The scheduling loop: take a key, decide, hand the decision to the binding cycle.

Decisions are taken one after another, each on the state that the one before has left: its answer enters
the cache when it is written. Writes of different bindings overlap; two of one binding never do, because
its key stays in progress until its cycle has ended.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final

from karmada_scheduler import logs, narration, triggers
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.binding_cycle import BindingCycle, Outcome
from karmada_scheduler.cache.bindings import BindingCache
from karmada_scheduler.cache.clusters import ClusterCache
from karmada_scheduler.config.options import Options
from karmada_scheduler.core.available_replicas import ReplicaEstimator
from karmada_scheduler.core.classify import Classification, ScheduleType, classify
from karmada_scheduler.core.decision import Decision
from karmada_scheduler.core.schedule import decide
from karmada_scheduler.framework.diagnosis import FitError, UnschedulableError
from karmada_scheduler.framework.runtime import Framework
from karmada_scheduler.metrics import Metrics
from karmada_scheduler.scheduling_queue import WaitingQueue

log = logging.getLogger(__name__)

_SLICE_SECONDS: Final = 0.005
"""How long the loop thinks before it lets watches, answers and the lease have a turn."""

_EVENT_PATIENCE_SECONDS: Final = 5.0
"""How long one Event waits for the queue to run dry."""


class Scheduler:
    """Turns keys of the queue into decisions and writes."""

    def __init__(
        self,
        *,
        options: Options,
        queue: WaitingQueue[BindingKey],
        bindings: BindingCache,
        clusters: ClusterCache,
        framework: Framework,
        estimators: Sequence[ReplicaEstimator],
        metrics: Metrics,
        clock: Callable[[], float],
    ) -> None:
        """Take what deciding needs; ``clock`` is in seconds. ``use`` gives it the way to write."""
        self._options = options
        self._queue = queue
        self._bindings = bindings
        self._clusters = clusters
        self._framework = framework
        self._estimators = tuple(estimators)
        self._metrics = metrics
        self._clock = clock
        self._slots = asyncio.Semaphore(options.max_in_flight)
        self._cycles: set[asyncio.Task[None]] = set()
        self._idle = asyncio.Event()
        self._idle.set()
        self._names = frozenset({options.scheduler_name})
        self._peers_count = options.feature_gates.enabled("WorkloadAffinity")
        self._complained: set[BindingKey] = set()

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
            if self._peers_count and self._cycles and self._has_peers(key):
                # Where peers go decides where this one may go, so what is under way must have arrived.
                await asyncio.wait(self._cycles)
            try:
                await self._slots.acquire()
            except asyncio.CancelledError:
                self._queue.add(key)
                self._queue.done(key)
                raise
            self._take(key, cycle)
            if self._clock() - slice_began > _SLICE_SECONDS:
                await asyncio.sleep(0)
                slice_began = self._clock()

    async def drain(self, *, timeout: float) -> None:
        """Wait for the cycles under way; cancel what is left after ``timeout`` seconds."""
        self._idle.set()
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

    def _take(self, key: BindingKey, cycle: BindingCycle) -> None:
        """Do what a key needs; whatever has to be written goes on as a task that owns the key."""
        started = self._clock()
        try:
            work = self._work_for(key, cycle, started)
        except Exception as error:
            log.exception("Cannot decide about %s", key.display)
            self._finish(key, Outcome(error, retry=True))
            return
        if work is None:
            self._finish(key, Outcome())
            return
        self._metrics.in_flight.inc()
        task = asyncio.create_task(self._write(key, work), name=f"bind {key}")
        self._cycles.add(task)
        task.add_done_callback(self._cycles.discard)

    def _work_for(
        self, key: BindingKey, cycle: BindingCycle, started: float
    ) -> Coroutine[Any, Any, Outcome] | None:
        binding = self._bindings.get(key)
        if binding is None or not triggers.is_ours(binding, self._names):
            return None
        if binding.deleting:
            cycle.warn_deleting(binding)
            return None
        if binding.spec.placement is None:
            self._complain(key)
            return None
        verdict = classify(binding, terminating=self._clusters.terminating, gates=self._options.feature_gates)
        self._metrics.classified.labels(verdict.type.value).inc()
        if verdict.type is ScheduleType.AVOID:
            log.log(logs.V3, "%s", verdict.reason, extra={"type": verdict.type.value})
            return None if cycle.is_observed(binding) else cycle.observe(binding)
        # Upstream tells of what is always recomputed at V(3) only, and so do we.
        level = logs.V3 if verdict.reason.endswith("duplicated") else logging.INFO
        log.log(level, "%s", verdict.reason, extra={"type": verdict.type.value})
        decision = self._decide(binding)
        if log.isEnabledFor(logs.V4):
            for line in narration.lines(decision):
                log.log(logs.V4, "%s", line, extra={"binding": str(key)})
        if not cycle.has_work(binding, decision):
            self._count(verdict, started, None)
            return None
        return self._bind(cycle, binding, decision, verdict, started)

    def _decide(self, binding: Binding) -> Decision:
        return decide(
            binding,
            self._clusters.snapshot(),
            framework=self._framework,
            estimators=self._estimators,
            gates=self._options.feature_gates,
            empty_workload_propagation=self._options.enable_empty_workload_propagation,
            peers=self._bindings if self._peers_count else None,
        )

    async def _bind(
        self,
        cycle: BindingCycle,
        binding: Binding,
        decision: Decision,
        verdict: Classification,
        started: float,
    ) -> Outcome:
        outcome = await cycle.bind(binding, decision)
        if not outcome.again:
            self._count(verdict, started, outcome.error)
        if isinstance(outcome.error, FitError) and not outcome.retry:
            await self._look_back(cycle, binding)
        return outcome

    async def _look_back(self, cycle: BindingCycle, before: Binding) -> None:
        """Note that a binding which fits nowhere needs nothing, if that is so now that it has lost its clusters.

        A success is noted as it is written. Upstream sees its own write come back as a change; on a binding
        without replicas, which has none too many or too few then, it finds nothing to do and notes that.
        """
        after = self._bindings.get(before.key)
        if (
            after is None
            or after.generation == before.generation
            or after.deleting
            or after.spec.placement is None
            or not triggers.is_responsible(after, self._names)
        ):
            return
        verdict = classify(after, terminating=self._clusters.terminating, gates=self._options.feature_gates)
        if verdict.type is ScheduleType.AVOID and not cycle.is_observed(after):
            await cycle.observe(after)

    def _count(self, verdict: Classification, started: float, error: Exception | None) -> None:
        """Count an attempt as upstream does, where finding no cluster is not an error."""
        result = "scheduled" if error is None or isinstance(error, FitError) else "error"
        self._metrics.schedule_attempts.labels(result, verdict.metric_type).inc()
        self._metrics.e2e_duration.labels(result, verdict.metric_type).observe(self._clock() - started)

    async def _write(self, key: BindingKey, work: Coroutine[Any, Any, Outcome]) -> None:
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
        self._slots.release()
        if outcome.again:
            binding = self._bindings.get(key)
            self._queue.add(key, binding.spec.priority if binding is not None else 0)
        elif outcome.retry:
            self._metrics.queue_incoming.labels(triggers.ATTEMPT_FAILED).inc()
            if outcome.pause:
                self._queue.add_after(key, outcome.pause)
            else:
                self._queue.retry(key, unschedulable=isinstance(outcome.error, UnschedulableError))
        else:
            self._queue.forget(key)
        self._queue.done(key)

    def _complain(self, key: BindingKey) -> None:
        """Say once that a claimed binding has no placement; an update of it brings it back."""
        if key not in self._complained:
            self._complained.add(key)
            log.warning("failed to get placement from %s%s(%s)", key.kind[0].lower(), key.kind[1:], key)
