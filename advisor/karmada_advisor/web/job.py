"""A job of the page: an answer that is computed for a request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from karmada_advisor.web.forked_job import ForkedJob
from karmada_scheduler.structs import Struct, field


class BusyError(Exception):
    """Too many answers are being waited for; the same question may have an answer later."""


class TooLongError(Exception):
    """The answer takes more CPU time or memory than a request may; the same question has none later either."""


class Job(Struct, eq=False):
    """A job.

    Attributes:
        cpu_seconds: The CPU time that it may take.
        share: The CPU time that it may take in the main thread; without any, it begins in a process of its own.
        loop: The event loop of the request; None for work in idle moments.
        began: CPU time of the main thread when it began.
        is_abandoned: Whether nobody waits for it any more.
        forked: Its process.
    """

    work: Callable[[], Any]
    cpu_seconds: float
    share: float
    loop: asyncio.AbstractEventLoop | None = None
    future: Future[Any] = field(default_factory=Future)
    began: float = 0.0
    is_abandoned: bool = False
    forked: ForkedJob | None = None

    def finish(self, result: object, error: Exception | None = None) -> None:
        """Give the request its result or its error."""
        if isinstance(error, StopIteration):
            # A future of asyncio refuses it, and the request would wait until its time is over.
            refused, error = error, RuntimeError(repr(error))
            error.__cause__ = refused
        if error is not None:
            self.future.set_exception(error)
        else:
            self.future.set_result(result)
