"""The ends of attempts, and the tasks of attempts that wait."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from functools import partial
from typing import Any

from karmada_scheduler.binding_cycle.result import AttemptOutcome
from karmada_scheduler.metrics.metrics import Metrics
from karmada_scheduler.scheduler.attempt import Attempt
from karmada_scheduler.scheduler.retry import FailureHandler, failed

log = logging.getLogger(__name__)


class AttemptTasks:
    """Runs attempts to their end, and returns their keys to the queue."""

    def __init__(self, failures: FailureHandler, metrics: Metrics) -> None:
        self._failures = failures
        self._metrics = metrics
        self._tasks: set[asyncio.Task[AttemptOutcome]] = set()

    def finish(self, attempt: Attempt, outcome: AttemptOutcome) -> None:
        """End an attempt, unless it ended with its result, and return its key to the queue."""
        if not attempt.has_ended:
            attempt.end()
        self._failures.finish(attempt.key, outcome)

    def start(self, attempt: Attempt, work: Coroutine[Any, Any, AttemptOutcome]) -> None:
        """Start a task for the rest of an attempt; the attempt is finished with the outcome of the task."""
        self._metrics.scheduling.in_flight.inc()
        task = asyncio.create_task(work, name=f"bind {attempt.key}")
        self._tasks.add(task)
        task.add_done_callback(partial(self._finish_task, attempt))

    def _finish_task(self, attempt: Attempt, task: asyncio.Task[AttemptOutcome]) -> None:
        self._tasks.discard(task)
        self._metrics.scheduling.in_flight.dec()
        error = None if task.cancelled() else task.exception()
        if isinstance(error, Exception):
            log.error("Cannot write the decision about %s", attempt.key.display, exc_info=error)
            self.finish(attempt, failed(error))
        else:
            self.finish(attempt, failed(None) if task.cancelled() or error else task.result())

    async def drain(self, *, timeout: float) -> None:
        """Wait for all tasks; cancel those that are left after ``timeout`` seconds."""
        if not self._tasks:
            return
        _, left = await asyncio.wait(self._tasks, timeout=timeout)
        for task in left:
            task.cancel()
        if left:
            log.warning("Writes were still under way at the stop", extra={"count": len(left)})
