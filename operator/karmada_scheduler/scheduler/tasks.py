"""The ends of attempts, and the tasks of attempts that wait."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from karmada_scheduler.metrics.metrics import Metrics
from karmada_scheduler.scheduler.attempt import Attempt
from karmada_scheduler.scheduler.retry import Outcome, Requeuer, failed

log = logging.getLogger(__name__)


class AttemptTasks:
    """Runs attempts to their end, and returns their keys to the queue."""

    def __init__(self, requeuer: Requeuer, metrics: Metrics) -> None:
        self._requeuer = requeuer
        self._metrics = metrics
        self._tasks: set[asyncio.Task[None]] = set()

    def finish(self, attempt: Attempt, outcome: Outcome) -> None:
        """End an attempt, unless it ended with its result, and return its key to the queue."""
        if not attempt.has_ended:
            attempt.end()
        self._requeuer.finish(attempt.key, outcome)

    def start(self, attempt: Attempt, work: Coroutine[Any, Any, Outcome]) -> None:
        """Start a task for the rest of an attempt; the attempt is finished with the outcome of the task."""
        self._metrics.scheduling.in_flight.inc()
        task = asyncio.create_task(self._run(attempt, work), name=f"bind {attempt.key}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def drain(self, *, timeout: float) -> None:
        """Wait for all tasks; cancel those that are left after ``timeout`` seconds."""
        if not self._tasks:
            return
        _, left = await asyncio.wait(self._tasks, timeout=timeout)
        for task in left:
            task.cancel()
        if left:
            log.warning("Writes were still under way at the stop", extra={"count": len(left)})

    async def _run(self, attempt: Attempt, work: Coroutine[Any, Any, Outcome]) -> None:
        outcome = failed(None)
        try:
            outcome = await work
        except Exception as error:
            log.exception("Cannot write the decision about %s", attempt.key.display)
            outcome = failed(error)
        finally:
            self._metrics.scheduling.in_flight.dec()
            self.finish(attempt, outcome)
