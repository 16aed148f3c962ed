"""What happens next with the binding of an attempt that has ended: whether, when and why it is processed again.

As kube-scheduler's failure handler, it is the only place that decides that. An attempt has its outcome as data. The
tasks of attempts that wait end here, too.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from functools import partial
from typing import Any, Final

from karmada_pyscheduler.metrics.scheduling import SchedulingMetrics
from karmada_pyscheduler.scheduler.attempt import Attempt, Recording
from karmada_pyscheduler.scheduler.state import SchedulerState
from karmada_scheduler.api.binding import BindingKey
from karmada_scheduler.binding_cycle.result import Action, AttemptOutcome, AttemptStatus
from karmada_scheduler.core import requeue_rules
from karmada_scheduler.structs import Struct, field

log = logging.getLogger(__name__)


_LOGGED_CONFLICTS: Final = 3
"""Conflicts of a binding in a row are logged from this number on."""

_FIRST_OVER_BUDGET_DELAY: Final = 10.0
_LAST_OVER_BUDGET_DELAY: Final = 640.0
"""Seconds before the retry of a decision that exceeded its budget, at first and at most; each one costs seconds."""

_UNSCHEDULABLE: Final = frozenset({AttemptStatus.HELD, AttemptStatus.UNSCHEDULABLE, AttemptStatus.KEPT})
"""With the longer backoff of the priority queue: an event is more likely to help than a repetition."""


class FailureHandler(Struct):
    """Returns keys to the queue; counts conflicts and exceeded budgets in a row."""

    state: SchedulerState
    recording: Recording
    _conflicts: dict[BindingKey, int] = field(default_factory=dict)
    _over_budget_delays: dict[BindingKey, float] = field(default_factory=dict)

    def finish(self, attempt: Attempt) -> None:
        """End an attempt, unless it ended with its result, and apply its outcome to the queue."""
        if attempt.ended is None:
            attempt.end()
        key, outcome = attempt.key, attempt.outcome
        if outcome.status is not AttemptStatus.HELD:
            self.state.queue.release(key)
        conflicts = self._conflicts.pop(key, 0)
        delay = self._delay(attempt)
        match outcome.action:
            case Action.DECIDE_AGAIN:
                self._decide_again(key, conflicts + 1)
            case Action.RETRY:
                self._retry(key, outcome, delay)
            case Action.CHECK_LATER:
                self.state.queue.forget(key)
                self.state.queue.add_after(key, delay)
            case Action.FORGET:
                self.state.queue.forget(key)
        attempt.request = None  # the loop keeps its last attempt, which must not keep replaced plugins
        self.state.queue.done(key)

    def _decide_again(self, key: BindingKey, conflicts: int) -> None:
        self._conflicts[key] = conflicts
        self.recording.requeued(key, requeue_rules.CONFLICT)
        if conflicts == 1:
            self.state.queue.add(key, self._priority_of(key))
            return
        if conflicts >= _LOGGED_CONFLICTS:
            log.info(
                "The decision about %s conflicts again, another one follows after a pause",
                key.display,
                extra={"count": conflicts},
            )
        self._retry(key, AttemptOutcome(Action.RETRY), 0.0)

    def _retry(self, key: BindingKey, outcome: AttemptOutcome, delay: float) -> None:
        self.state.metrics.scheduling.queue_incoming.labels(requeue_rules.ATTEMPT_FAILED).inc()
        self.recording.requeued(key, requeue_rules.ATTEMPT_FAILED)
        if not delay:
            self.state.queue.add_rate_limited(key, unschedulable=outcome.status in _UNSCHEDULABLE)
        elif outcome.status is AttemptStatus.HELD:
            self.state.queue.hold(key, delay, line=outcome.line, priority=self._priority_of(key))
        else:
            self.state.queue.add_after(key, delay)

    def _priority_of(self, key: BindingKey) -> int:
        binding = self.state.bindings.get(key)
        return binding.spec.priority if binding is not None else 0

    def _delay(self, attempt: Attempt) -> float:
        """Return the seconds until a key is added again, 0 for its backoff."""
        key, outcome, request = attempt.key, attempt.outcome, attempt.request
        if outcome.status is not AttemptStatus.OVER_BUDGET:
            self._over_budget_delays.pop(key, None)
        elif not outcome.delay:
            before = self._over_budget_delays.get(key, _FIRST_OVER_BUDGET_DELAY / 2)
            self._over_budget_delays[key] = min(2 * before, _LAST_OVER_BUDGET_DELAY)
            return self._over_budget_delays[key]
        if (
            outcome.status is AttemptStatus.PLUGIN_FAILED
            and request is not None
            and self.state.profiles.of(request.binding) is not request.framework
        ):
            return 0.0  # it was for the plugin that has been replaced since
        return outcome.delay


PendingAttempt = Coroutine[Any, Any, AttemptOutcome]
"""What is left of an attempt, to be run in a task."""


class AttemptTasks:
    """Runs attempts to their end."""

    def __init__(self, handler: FailureHandler, metrics: SchedulingMetrics) -> None:
        """Start without a task; ``handler`` gets the attempts that have ended."""
        self._handler = handler
        self._metrics = metrics
        self._tasks: set[asyncio.Task[AttemptOutcome]] = set()

    def start(self, attempt: Attempt, pending: PendingAttempt) -> None:
        """Start a task for the rest of an attempt, whose result is the outcome of the attempt."""
        self._metrics.in_flight.inc()
        task = asyncio.create_task(pending, name=f"bind {attempt.key}")
        self._tasks.add(task)
        task.add_done_callback(partial(self._finish_task, attempt))

    def _finish_task(self, attempt: Attempt, task: asyncio.Task[AttemptOutcome]) -> None:
        self._tasks.discard(task)
        self._metrics.in_flight.dec()
        error = None if task.cancelled() else task.exception()
        if isinstance(error, Exception):
            log.error("Cannot write the decision about %s", attempt.key.display, exc_info=error)
            attempt.outcome = AttemptOutcome(Action.RETRY, error)
        else:
            is_cancelled = task.cancelled() or error is not None
            attempt.outcome = AttemptOutcome(Action.RETRY) if is_cancelled else task.result()
        self._handler.finish(attempt)

    async def drain(self, *, timeout: float) -> None:
        """Wait for all tasks; cancel those that are left after ``timeout`` seconds."""
        if not self._tasks:
            return
        _, left = await asyncio.wait(self._tasks, timeout=timeout)
        for task in left:
            task.cancel()
        if left:
            log.warning("Writes were still under way at the stop", extra={"count": len(left)})
