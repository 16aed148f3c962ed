"""The end of an attempt for the queue: whether and when its key is processed again."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final

from karmada_scheduler.api.binding import BindingKey
from karmada_scheduler.binding_cycle.result import CycleResult
from karmada_scheduler.cache.bindings import BindingCache
from karmada_scheduler.core import requeue_rules
from karmada_scheduler.framework.diagnosis import KeptError, OverBudgetError, UnschedulableError
from karmada_scheduler.metrics.metrics import Metrics
from karmada_scheduler.scheduling_queue.async_queue import AsyncQueue

log = logging.getLogger(__name__)

_LOGGED_CONFLICTS: Final = 3
"""Conflicts of a binding in a row are logged from this number on."""

_FIRST_OVER_BUDGET_DELAY: Final = 10.0
_LAST_OVER_BUDGET_DELAY: Final = 640.0
"""Seconds before the retry of a decision that exceeded its budget, at first and at most; each one costs seconds."""


class Action(Enum):
    """What the queue does with a key."""

    FORGET = "forget"
    """Nothing; its backoff is reset."""
    CHECK_LATER = "check later"
    """As FORGET, and the key is added after a delay: its binding cannot be scheduled yet."""
    DECIDE_AGAIN = "decide again"
    """The binding changed after the decision: the key is added at once, after further conflicts with a backoff."""
    RETRY = "retry"
    """The key is added after its backoff, or after the delay that was requested."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of processing a key.

    Attributes:
        action: What the queue does with the key.
        error: The error that ended an attempt, None for a success.
        delay: Seconds, for CHECK_LATER and RETRY; a RETRY with 0 gets its backoff.
    """

    action: Action
    error: Exception | None = None
    delay: float = 0.0


DONE: Final = Outcome(Action.FORGET)


def failed(error: Exception | None) -> Outcome:
    """Return the outcome of unexpected errors, and of a cancelled task."""
    return Outcome(Action.RETRY, error)


def outcome_of(result: CycleResult) -> Outcome:
    """Return the outcome that follows from a binding cycle."""
    if result.is_outdated:
        return Outcome(Action.DECIDE_AGAIN)
    if result.retry:
        return Outcome(Action.RETRY, result.error, result.retry_after)
    return Outcome(Action.FORGET, result.error)


class Requeuer:
    """Returns keys to the queue; counts conflicts and exceeded budgets in a row."""

    def __init__(
        self,
        queue: AsyncQueue[BindingKey],
        bindings: BindingCache,
        metrics: Metrics,
        *,
        on_requeue: Callable[[BindingKey, str], None] = lambda *_: None,
    ) -> None:
        """Return keys to this queue; ``on_requeue`` gets the key of each binding that is tried again, and why."""
        self._queue = queue
        self._bindings = bindings
        self._metrics = metrics
        self._on_requeue = on_requeue
        self._conflicts: dict[BindingKey, int] = {}
        self._over_budget_delays: dict[BindingKey, float] = {}

    def finish(self, key: BindingKey, outcome: Outcome) -> None:
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
        self._on_requeue(key, requeue_rules.CONFLICT)
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
        self._on_requeue(key, requeue_rules.ATTEMPT_FAILED)
        if delay:
            self._queue.add_after(key, delay)
        else:
            self._queue.add_rate_limited(key, unschedulable=unschedulable)

    def _over_budget_delay(self, key: BindingKey, outcome: Outcome) -> float:
        """Return the delay after a decision that exceeded its budget, twice the one before; 0 after any other."""
        if not isinstance(outcome.error, OverBudgetError):
            self._over_budget_delays.pop(key, None)
            return 0.0
        before = self._over_budget_delays.get(key, _FIRST_OVER_BUDGET_DELAY / 2)
        delay = self._over_budget_delays[key] = min(2 * before, _LAST_OVER_BUDGET_DELAY)
        return delay
