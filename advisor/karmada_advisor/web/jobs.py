"""Jobs of the page: answers that are computed for requests. Those that take long run in processes of their own, a few at once."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, Final

from karmada_advisor.web.forked_job import ForkedJob, LimitError
from karmada_scheduler.structs import Struct, field

MAX_FORKED: Final = 2
"""Processes at once. Each may take as much memory as the page itself."""
_REST_SECONDS: Final = 5.0
"""How long the event loop of the server may take until it rests for a fork."""


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


class LongJobs:
    """Jobs that wait for a process, and those that have one."""

    def __init__(self, on_ended: Callable[[str], None], on_process: Callable[[], None]) -> None:
        """Start empty; the functions are those of ``Computer``."""
        self._on_ended = on_ended
        self._on_process = on_process
        self._waiting: deque[Job] = deque()
        self._forked: set[Job] = set()

    def __len__(self) -> int:
        """Return how many wait."""
        return len(self._waiting)

    def add(self, job: Job) -> None:
        """Let a job wait for a process."""
        self._waiting.append(job)

    def begin(self) -> None:
        """Begin as many as may run at once; called in the main thread, the only one in the copies."""
        while self._waiting and len(self._forked) < MAX_FORKED:
            job = self._waiting.popleft()
            is_wanted = not job.is_abandoned
            if not is_wanted or job.loop is None:
                continue
            try:
                with _resting(job.loop):
                    job.forked = ForkedJob(job.work, job.cpu_seconds)
            except (OSError, RuntimeError) as problem:
                job.finish(None, BusyError(f"no process can be started for the answer: {problem}"))
                continue
            self._on_process()
            self._forked.add(job)
            threading.Thread(target=self._finish, args=(job, job.forked), daemon=True).start()
            if job.is_abandoned:  # since it was looked at
                job.forked.kill()

    def kill(self) -> None:
        """End all processes."""
        for job in tuple(self._forked):
            if job.forked is not None:
                job.forked.kill()

    def _finish(self, job: Job, forked: ForkedJob) -> None:
        """Wait for the process of a job; runs in a thread of its own."""
        result: Any = None
        error: Exception | None = None
        try:
            result = forked.result()
        except LimitError as limit:
            self._on_ended(limit.reason)
            error = TooLongError(f"the answer takes more than {limit}")
        except Exception as problem:  # noqa: BLE001 (the request gets it)
            if job.is_abandoned:
                self._on_ended("abandoned")
            error = problem
        self._forked.discard(job)
        job.finish(result, error)


@contextmanager
def _resting(loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """Keep an event loop of another thread between two callbacks, so that it holds no lock and changes no object.

    Raises:
        RuntimeError: It has ended, or does not come to rest.
    """
    is_resting, go_on = threading.Event(), threading.Event()

    def rest() -> None:
        is_resting.set()
        go_on.wait()

    loop.call_soon_threadsafe(rest)
    try:
        if not is_resting.wait(_REST_SECONDS):
            raise RuntimeError(f"the server of the page is busy for {_REST_SECONDS:g} s")
        yield
    finally:
        go_on.set()
