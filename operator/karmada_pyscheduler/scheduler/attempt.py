"""Attempts to schedule a binding: what each decides about, the resources that it holds until it ends, and its record."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final

from karmada_pyscheduler.cache.assumed import AssumedPlacements
from karmada_pyscheduler.cache.bindings import BindingCache
from karmada_pyscheduler.metrics.metrics import Metrics
from karmada_pyscheduler.records.recorder import Recorder
from karmada_scheduler.api.binding import Binding, BindingKey, TargetCluster
from karmada_scheduler.api.workload import WorkloadAnswer
from karmada_scheduler.binding_cycle.result import (
    DONE,
    AttemptOutcome,
    AttemptStatus,
    TransactionResult,
    ending_of,
)
from karmada_scheduler.core.classify import Classification
from karmada_scheduler.core.decision import Decision, TermAttempt
from karmada_scheduler.framework.runtime.framework import Framework
from karmada_scheduler.framework.runtime.guarding import Proposed
from karmada_scheduler.records.record import UNCHANGED, WRITTEN, Decided
from karmada_scheduler.structs import IdentityStruct, Struct, field, replace


class DecisionRequest(Struct, frozen=True):
    """A binding to decide about.

    Attributes:
        binding: The binding as it is now.
        framework: The plugins of its profile.
        classification: The kind of scheduling, and the reason.
        event: The event that enqueued the binding, "" if it is not recorded.
        is_activated: Whether a plugin has activated it, so that PreEnqueue plugins are not called.
        workload: The metadata of its workload; None if no plugin of the profile needs it.
        proposed: The proposal of a Reconsider plugin to try; None for a decision that an event requires.
        term: The affinity term in use, if the status does not have it; "" for that of the status.
        start_term: The affinity term to begin with, by the choice of a plugin; "" for the one in use.
    """

    binding: Binding
    framework: Framework
    classification: Classification
    event: str = ""
    is_activated: bool = False
    workload: WorkloadAnswer | None = None
    proposed: Proposed | None = None
    term: str = ""
    start_term: str = ""


_WAITING_PER_SLOT: Final = 8
"""Attempts that may wait for estimators without a slot, for each slot. It bounds the memory, and the requests that an
estimator finds when it responds again."""

_NO_ERRORS: Final = frozenset({AttemptStatus.SCHEDULED, AttemptStatus.NO_FIT, AttemptStatus.KEPT})


class Attempts(IdentityStruct):
    """The attempts under way; ``limit`` of them have a slot at the same time (``--max-in-flight``).

    Attributes:
        in_flight: The bindings that are decided and not written yet, with the clusters that they will have.
    """

    limit: int
    bindings: BindingCache
    assumed: AssumedPlacements | None
    metrics: Metrics
    clock: Callable[[], float]
    _slots_in_use: int = 0
    _undecided: int = 0
    _waiting: int = 0
    _slot_released: asyncio.Event = field(default_factory=asyncio.Event)
    in_flight: dict[BindingKey, Binding] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._slots = asyncio.Semaphore(self.limit)
        self._most_waiting = self.limit * _WAITING_PER_SLOT

    async def begin(self, key: BindingKey) -> Attempt:
        """Wait for a slot, and return the attempt that holds it."""
        await self.acquire_slot()
        return Attempt(self, key)

    @property
    def pending(self) -> int:
        """The number of attempts that have a slot, or will have one again after their wait for estimators."""
        return self._slots_in_use + self._undecided

    async def wait_for_results(self) -> None:
        """Wait until every result under way is written, or waits at Permit."""
        while self.pending:
            self._slot_released.clear()
            await self._slot_released.wait()

    async def acquire_slot(self) -> None:
        """Wait for a slot."""
        await self._slots.acquire()
        self._slots_in_use += 1

    def release_slot(self) -> None:
        """Release a slot."""
        self._slots_in_use -= 1
        self._slots.release()
        self._slot_released.set()

    @asynccontextmanager
    async def undecided(self, attempt: Attempt) -> AsyncIterator[bool]:
        """Let an attempt wait for estimators without its slot; see ``Attempt.undecided_without_slot``."""
        if self._waiting >= self._most_waiting:
            yield False
            return
        self._undecided += 1
        try:
            async with attempt.without_slot():
                self._count_waiting(1)
                try:
                    yield True
                finally:
                    self._count_waiting(-1)
        finally:
            self._undecided -= 1
            self._slot_released.set()

    def _count_waiting(self, change: int) -> None:
        self._waiting += change
        self.metrics.estimators.undecided.set(self._waiting)


class Attempt:
    """One attempt to schedule one binding, from the time it has a slot until it ends.

    It holds the slot, the entry of its binding among those in flight, and its assumed placement.

    Attributes:
        key: The key of the binding.
        started: In seconds of the clock.
        ended: In seconds of the clock: when the result was stored, or when the attempt failed; None before.
        request: What was decided, None before.
        decided: The decision, to be recorded; None before it, and without records.
        outcome: How it ended; see ``failure_handler``.
    """

    def __init__(self, attempts: Attempts, key: BindingKey) -> None:
        """Take over a slot; see ``Attempts.begin``."""
        self.key = key
        self.started = attempts.clock()
        self.ended: float | None = None
        self.request: DecisionRequest | None = None
        self.decided: Decided | None = None
        self.outcome = DONE
        self._attempts = attempts
        self._has_slot = True
        self._assumed_targets: Sequence[TargetCluster] | None = None

    def assume(self, binding: Binding, targets: Sequence[TargetCluster]) -> None:
        """Count the clusters of the decision as taken until the attempt ends, where overcommit protection is on."""
        if self._attempts.assumed is not None:
            self._attempts.assumed.assume(binding, targets)
            self._assumed_targets = targets

    def put_in_flight(self, binding: Binding, targets: Sequence[TargetCluster]) -> None:
        """Show the binding to plugins that count peers, with its clusters, until the attempt ends."""
        spec = replace(binding.spec, clusters=tuple(targets))
        self._attempts.in_flight[self.key] = replace(binding, spec=spec)

    @asynccontextmanager
    async def without_slot(self) -> AsyncIterator[None]:
        """Release the slot for the block, and wait for one at its end."""
        self._release_slot()
        try:
            yield
        finally:
            await self._attempts.acquire_slot()
            self._has_slot = True

    def undecided_without_slot(self) -> AbstractAsyncContextManager[bool]:
        """Return a context in which the decision waits for estimators without a slot; it gets one again at the end.

        The context returns False, and the attempt keeps its slot, while too many attempts wait so.
        """
        return self._attempts.undecided(self)

    def end(self) -> None:
        """End the attempt, when its result is stored or it has failed. To be called once."""
        assert self.ended is None
        self.ended = self._attempts.clock()
        self._attempts.in_flight.pop(self.key, None)
        if self._attempts.assumed is not None and self._assumed_targets is not None:
            stored = self._attempts.bindings.get(self.key)
            if stored is not None and stored.spec.clusters == self._assumed_targets:
                self._attempts.assumed.confirm(self.key)
            else:
                self._attempts.assumed.forget(self.key)
        self._release_slot()

    def _release_slot(self) -> None:
        if self._has_slot:
            self._has_slot = False
            self._attempts.release_slot()

    def count(self, outcome: AttemptOutcome) -> None:
        """Count the attempt in upstream's metrics, in which an attempt that finds no cluster is no error."""
        assert self.request is not None  # it is counted after its decision
        schedule_type = self.request.classification.metric_type
        result = "scheduled" if outcome.status in _NO_ERRORS else "error"
        ended = self._attempts.clock() if self.ended is None else self.ended
        metrics = self._attempts.metrics
        metrics.scheduling.attempts.labels(result, schedule_type).inc()
        metrics.scheduling.e2e_duration.labels(result, schedule_type).observe(ended - self.started)


class Recording:
    """Passes decisions, and the ends of their attempts, to the recorder; does nothing without one."""

    def __init__(self, recorder: Recorder | None, *, clock: Callable[[], float]) -> None:
        """Use a recorder, None without records; ``clock`` is that of the attempts."""
        self._recorder = recorder
        self._clock = clock

    def take_event(self, key: BindingKey) -> str:
        """Return the event by which a binding was enqueued, and forget it."""
        return "" if self._recorder is None else self._recorder.take_event(key)

    def requeued(self, key: BindingKey, event: str) -> None:
        """Note why a binding is enqueued again."""
        if self._recorder is not None:
            self._recorder.requeued(key, event)

    def to_write(self, decision: Decision) -> Decision:
        """Return a decision without what only records and errors need: tens of bytes per cluster until it is written."""
        if self._recorder is not None or decision.error is not None:
            return decision
        kept = (
            TermAttempt(attempt.affinity_name, attempt.cycle, attempt.targets, attempt.error)
            for attempt in decision.attempts
        )
        return replace(decision, attempts=tuple(kept))

    def decided(self, attempt: Attempt, request: DecisionRequest, decision: Decision) -> None:
        """Record a decision."""
        if self._recorder is not None:
            attempt.decided = self._recorder.decided(
                request.binding,
                decision,
                schedule_class=request.classification.type.value,
                event=request.event,
                seconds=self._clock() - attempt.started,
            )

    def ended(self, attempt: Attempt, result: TransactionResult | None) -> None:
        """Record how an attempt ended; ``result`` is None if nothing had to be written."""
        if self._recorder is None or attempt.decided is None:
            return
        if result is not None and result.error is not None:
            self._recorder.ended(attempt.decided, ending_of(result.error), str(result.error))
        else:
            is_written = result is not None and result.was_written
            self._recorder.ended(attempt.decided, WRITTEN if is_written else UNCHANGED)
