"""The tasks of attempts that wait, and their ends: whether and when the key is processed again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from functools import partial
from typing import Any, Final

from karmada_scheduler.api.binding import BindingKey
from karmada_scheduler.binding_cycle.result import Action, AttemptOutcome
from karmada_scheduler.core import requeue_rules
from karmada_scheduler.framework.diagnosis import KeptError, OverBudgetError, UnschedulableError
from karmada_scheduler.scheduler.attempt import Attempt
from karmada_scheduler.scheduler.recording import Recording
from karmada_scheduler.scheduler.state import SchedulerState

log = logging.getLogger(__name__)

_LOGGED_CONFLICTS: Final = 3
"""Conflicts of a binding in a row are logged from this number on."""

_FIRST_OVER_BUDGET_DELAY: Final = 10.0
_LAST_OVER_BUDGET_DELAY: Final = 640.0
"""Seconds before the retry of a decision that exceeded its budget, at first and at most; each one costs seconds."""


class AttemptTasks:
    """Runs attempts to their end, and returns their keys to the queue; counts conflicts and exceeded budgets in a row."""

    def __init__(self, state: SchedulerState, recording: Recording) -> None:
        """Return keys to the queue of ``state``; ``recording`` notes why a binding is tried again."""
        self._queue = state.queue
        self._bindings = state.bindings
        self._metrics = state.metrics.scheduling
        self._recording = recording
        self._tasks: set[asyncio.Task[AttemptOutcome]] = set()
        self._conflicts: dict[BindingKey, int] = {}
        self._over_budget_delays: dict[BindingKey, float] = {}

    def start(self, attempt: Attempt, work: Coroutine[Any, Any, AttemptOutcome]) -> None:
        """Start a task for the rest of an attempt; the attempt is finished with the outcome of the task."""
        self._metrics.in_flight.inc()
        task = asyncio.create_task(work, name=f"bind {attempt.key}")
        self._tasks.add(task)
        task.add_done_callback(partial(self._finish_task, attempt))

    def _finish_task(self, attempt: Attempt, task: asyncio.Task[AttemptOutcome]) -> None:
        self._tasks.discard(task)
        self._metrics.in_flight.dec()
        error = None if task.cancelled() else task.exception()
        if isinstance(error, Exception):
            log.error("Cannot write the decision about %s", attempt.key.display, exc_info=error)
            self.finish(attempt, AttemptOutcome(Action.RETRY, error))
        else:
            is_cancelled = task.cancelled() or error is not None
            self.finish(attempt, AttemptOutcome(Action.RETRY) if is_cancelled else task.result())

    async def drain(self, *, timeout: float) -> None:
        """Wait for all tasks; cancel those that are left after ``timeout`` seconds."""
        if not self._tasks:
            return
        _, left = await asyncio.wait(self._tasks, timeout=timeout)
        for task in left:
            task.cancel()
        if left:
            log.warning("Writes were still under way at the stop", extra={"count": len(left)})

    def finish(self, attempt: Attempt, outcome: AttemptOutcome) -> None:
        """End an attempt, unless it ended with its result, and apply its outcome to the queue."""
        if not attempt.has_ended:
            attempt.end()
        key = attempt.key
        conflicts = self._conflicts.pop(key, 0)
        delay = outcome.delay or self._over_budget_delay(key, outcome)
        match outcome.action:
            case Action.DECIDE_AGAIN:
                self._conflicts[key] = conflicts + 1
                self._decide_again(key, conflicts + 1)
            case Action.RETRY:
                unschedulable = isinstance(outcome.error, (UnschedulableError, KeptError))
                self._retry(key, delay, unschedulable=unschedulable)
            case Action.CHECK_LATER:
                self._queue.forget(key)
                self._queue.add_after(key, outcome.delay)
            case Action.FORGET:
                self._queue.forget(key)
        self._queue.done(key)

    def _decide_again(self, key: BindingKey, conflicts: int) -> None:
        self._recording.requeued(key, requeue_rules.CONFLICT)
        if conflicts == 1:
            binding = self._bindings.get(key)
            self._queue.add(key, binding.spec.priority if binding is not None else 0)
            return
        if conflicts >= _LOGGED_CONFLICTS:
            log.info(
                "The decision about %s conflicts again, another one follows after a pause",
                key.display,
                extra={"count": conflicts},
            )
        self._retry(key, 0.0, unschedulable=False)

    def _retry(self, key: BindingKey, delay: float, *, unschedulable: bool) -> None:
        self._metrics.queue_incoming.labels(requeue_rules.ATTEMPT_FAILED).inc()
        self._recording.requeued(key, requeue_rules.ATTEMPT_FAILED)
        if delay:
            self._queue.add_after(key, delay)
        else:
            self._queue.add_rate_limited(key, unschedulable=unschedulable)

    def _over_budget_delay(self, key: BindingKey, outcome: AttemptOutcome) -> float:
        """Return the delay after a decision that exceeded its budget, twice the one before; 0 after any other."""
        if not isinstance(outcome.error, OverBudgetError):
            self._over_budget_delays.pop(key, None)
            return 0.0
        before = self._over_budget_delays.get(key, _FIRST_OVER_BUDGET_DELAY / 2)
        delay = self._over_budget_delays[key] = min(2 * before, _LAST_OVER_BUDGET_DELAY)
        return delay
