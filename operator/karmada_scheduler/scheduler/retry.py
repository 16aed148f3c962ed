"""The end of an attempt for the queue: whether and when its key is processed again."""

from __future__ import annotations

import logging
from typing import Final

from karmada_scheduler.api.binding import BindingKey
from karmada_scheduler.binding_cycle.result import Action, AttemptOutcome
from karmada_scheduler.cache.bindings import BindingCache
from karmada_scheduler.core import requeue_rules
from karmada_scheduler.framework.diagnosis import KeptError, OverBudgetError, UnschedulableError
from karmada_scheduler.metrics.metrics import Metrics
from karmada_scheduler.scheduler.recording import Recording
from karmada_scheduler.scheduling_queue.queue import SchedulingQueue

log = logging.getLogger(__name__)

_LOGGED_CONFLICTS: Final = 3
"""Conflicts of a binding in a row are logged from this number on."""

_FIRST_OVER_BUDGET_DELAY: Final = 10.0
_LAST_OVER_BUDGET_DELAY: Final = 640.0
"""Seconds before the retry of a decision that exceeded its budget, at first and at most; each one costs seconds."""


def failed(error: Exception | None) -> AttemptOutcome:
    """Return the outcome of unexpected errors, and of a cancelled task."""
    return AttemptOutcome(Action.RETRY, error)


class FailureHandler:
    """Returns keys to the queue; counts conflicts and exceeded budgets in a row."""

    def __init__(
        self,
        queue: SchedulingQueue[BindingKey],
        bindings: BindingCache,
        metrics: Metrics,
        recording: Recording,
    ) -> None:
        """Return keys to this queue; ``recording`` notes why a binding is tried again."""
        self._queue = queue
        self._bindings = bindings
        self._metrics = metrics
        self._recording = recording
        self._conflicts: dict[BindingKey, int] = {}
        self._over_budget_delays: dict[BindingKey, float] = {}

    def finish(self, key: BindingKey, outcome: AttemptOutcome) -> None:
        """Apply an outcome to the queue, and mark the key as done."""
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
        self._metrics.scheduling.queue_incoming.labels(requeue_rules.ATTEMPT_FAILED).inc()
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
