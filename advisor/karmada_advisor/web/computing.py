"""Answers that need decisions: short ones one after the other in the main thread, long ones in processes of their own.

The main thread is the one in which the timeout of plugins works (a signal), and the only one whose work a signal can end:
a handler raises JobEndedError in it when the job has used its share of CPU time, or when nobody waits for the answer any
more. A job that has used its share begins again in a fork of the process, a plan begins there, so that no answer waits
long for another one. The HTTP server runs in a thread of its own and waits for the result. Requests wait for one another
up to a bound; further ones are refused, which a reader sees as "try again".
"""

from __future__ import annotations

import asyncio
import logging
import queue
import signal
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final, TypeVar
from weakref import WeakValueDictionary

from karmada_advisor.web.jobs import BusyError, Job, LongJobs, TooLongError

log = logging.getLogger(__name__)

T = TypeVar("T")

MAX_WAITING: Final = 8
"""Jobs that wait, those of different requesters together."""
CPU_SECONDS: Final = 6.0
"""The CPU time of one job. At 5,000 clusters, 99 of 100 questions take 3.2 s at most."""
PLAN_CPU_SECONDS: Final = 20.0
"""The CPU time of a plan. The largest ones take half of it (docs/plan.md)."""
_SHARE_SECONDS: Final = 1.0
"""The CPU time of one job in the main thread, for which others may have to wait."""
_IDLE_CPU_SECONDS: Final = 2.0
"""The CPU time of one piece of work in idle moments, for which a request may have to wait."""
_IDLE_PAUSE_SECONDS: Final = 10.0
"""Until work in idle moments is begun again that has failed or was ended."""
_IDLE_REST: Final = 4.0
"""Pauses between pieces of work in idle moments, in terms of their CPU time: lists need the interpreter, too."""
_MOST_REST_SECONDS: Final = 1.0
"""Such a pause at the longest; a signal to end waits for it."""
_SECONDS: Final = 30.0
"""How long a request waits for its answer."""
_TURN_SECONDS: Final = 2.0
"""How long a request waits for the one before it of the same requester, such as another tab of the browser."""
_KEPT: Final = 32
"""Results that are kept, for pages that are loaded again."""

_WAIT_SECONDS: Final = 0.2
_REPEAT_SECONDS: Final = 0.1
"""Until a job that has not ended is ended again: it may have been in code that ignores exceptions."""
_SIGNAL: Final = signal.SIGPROF


class JobEndedError(KeyboardInterrupt):
    """Ends a job. It is what a person's Ctrl-C is to a command, so no plugin and no event loop counts it as its own error."""


class Computer:
    """Runs jobs in the thread that calls ``serve`` and in forks; results are kept as long as the objects are the same."""

    def __init__(
        self,
        *,
        seconds: float = _SECONDS,
        cpu_seconds: float = CPU_SECONDS,
        share: float = _SHARE_SECONDS,
        computed: Callable[[Any], None] = lambda _: None,
        on_ended: Callable[[str], None] = lambda _: None,
        on_process: Callable[[], None] = lambda: None,
    ) -> None:
        """Start empty.

        Args:
            seconds: How long a request waits for its answer.
            cpu_seconds: The CPU time of a job.
            share: The part of it in the main thread.
            computed: Called with each result, in the thread of the requests.
            on_ended: Called with the reason for which an answer was ended: ``cpu``, ``memory``, or ``abandoned`` where nobody
                waits any more, because the reader has gone or has waited too long. In any thread.
            on_process: Called for each process that has begun.
        """
        self._seconds = seconds
        self._cpu_seconds = cpu_seconds
        self._share = share
        self._computed = computed
        self._on_ended = on_ended
        self._jobs: queue.SimpleQueue[Job] = queue.SimpleQueue()
        self._long = LongJobs(on_ended, on_process)
        self._kept: OrderedDict[Hashable, Any] = OrderedDict()
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._running: Job | None = None
        self._thread = threading.get_ident()
        self._stopped = threading.Event()
        self._logged = ""
        self._idle_at = 0.0

    @property
    def waiting(self) -> int:
        """How many answers wait to be computed, or for a process of their own."""
        return len(self._long) + self._jobs.qsize()

    async def answer(
        self, key: Hashable, work: Callable[[], T], *, requester: str = "", is_plan: bool = False
    ) -> T:
        """Return the result of a job, or the one that is kept under the same key.

        Of one requester, one job is computed or waits; a second one waits for it for a moment.

        Args:
            key: Of the question.
            work: Computes the result, which can be pickled.
            requester: Who asks.
            is_plan: Whether it may take longer than others, and begins in a process of its own.

        Raises:
            BusyError: Too many jobs wait, or it took too long.
            TooLongError: It took too much CPU time.
        """
        if key not in self._kept:
            turn = self._turns.setdefault(requester, asyncio.Lock())
            try:
                async with asyncio.timeout(_TURN_SECONDS):
                    await turn.acquire()
            except TimeoutError:
                raise BusyError(
                    "your question before this one is being answered; try again in a moment"
                ) from None
            try:
                if key not in self._kept:
                    self._keep(key, await self._result(work, is_plan=is_plan))
            finally:
                turn.release()
        found: T | TooLongError = self._kept[key]
        if isinstance(found, TooLongError):
            raise found
        return found

    def _keep(self, key: Hashable, result: object) -> None:
        self._computed(result)
        self._kept[key] = result
        while len(self._kept) > _KEPT:
            self._kept.popitem(last=False)

    async def _result(self, work: Callable[[], T], *, is_plan: bool) -> T | TooLongError:
        loop = asyncio.get_running_loop()
        cpu_seconds = PLAN_CPU_SECONDS if is_plan else self._cpu_seconds
        job = Job(work, cpu_seconds, 0.0 if is_plan else min(self._share, cpu_seconds), loop)
        if self.waiting >= MAX_WAITING:
            raise BusyError(f"{MAX_WAITING} answers are being computed; try again in a moment")
        self._jobs.put_nowait(job)
        try:
            async with asyncio.timeout(self._seconds):
                result: T = await asyncio.wrap_future(job.future)
        except TooLongError as too_long:
            return too_long
        except TimeoutError:
            raise BusyError(f"no answer within {self._seconds:g} s") from None
        finally:
            self._abandon(job)
            self._insist(job, loop)
        return result

    def _abandon(self, job: Job) -> None:
        """End a job for which nobody waits, if it has not ended."""
        job.is_abandoned = True
        job.future.cancel()
        if job.forked is not None:
            job.forked.kill()
        if self._running is job:
            signal.pthread_kill(self._thread, _SIGNAL)

    def _insist(self, job: Job, loop: asyncio.AbstractEventLoop) -> None:
        """End a job again and again until it has ended: the timer does not count the time in which it waits."""
        if self._running is job:
            signal.pthread_kill(self._thread, _SIGNAL)
            loop.call_later(_REPEAT_SECONDS, self._insist, job, loop)

    def serve(
        self, idle: Callable[[], bool] = lambda: False, *, ended: Callable[[], None] = lambda: None
    ) -> None:
        """Run jobs until ``stop`` is called; must be called in the main thread.

        Args:
            idle: Called when no job waits; returns whether it has more to do.
            ended: Called after a job was ended half-way, to drop what it may have left.
        """
        self._thread = threading.get_ident()
        more, pause = True, 0.0
        with self._ending_jobs():
            while not self._stopped.is_set():
                self._long.begin()
                try:
                    job = self._jobs.get(timeout=pause if more else _WAIT_SECONDS)
                except queue.Empty:
                    if time.monotonic() < self._idle_at:
                        more = False
                        continue
                    job = Job(idle, _IDLE_CPU_SECONDS, _IDLE_CPU_SECONDS)
                    began = time.thread_time()
                    self._run(job, ended)
                    pause = min(_MOST_REST_SECONDS, _IDLE_REST * (time.thread_time() - began))
                    more = self._has_more(job.future)
                else:
                    more = True
                    self._run(job, ended)

    def stop(self) -> None:
        """Let ``serve`` return, and end the job under way; from any thread."""
        self._stopped.set()
        job = self._running
        if job is not None:
            self._abandon(job)

    @contextmanager
    def _ending_jobs(self) -> Iterator[None]:
        before = signal.signal(_SIGNAL, self._on_signal)
        try:
            yield
        finally:
            self._long.kill()
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.signal(_SIGNAL, before)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        job = self._running
        if job is not None and (job.is_abandoned or time.thread_time() - job.began >= job.share):
            # The timer counts other threads, too, so it is only a reason to look. It goes on until the job has ended.
            signal.setitimer(signal.ITIMER_PROF, _REPEAT_SECONDS, _REPEAT_SECONDS)
            raise JobEndedError

    def _run(self, job: Job, ended: Callable[[], None]) -> None:
        if not job.future.set_running_or_notify_cancel():
            return
        if not job.share:
            self._long.add(job)
            return
        result: Any = None
        error: Exception | None = None
        job.began = time.thread_time()
        try:
            try:
                signal.setitimer(signal.ITIMER_PROF, job.share, _REPEAT_SECONDS)
                self._running = job
                result = job.work()
            finally:
                self._running = None
        except JobEndedError:
            self._running = None  # the signal may have come before the line above
            error = TooLongError(f"the answer takes more than {job.cpu_seconds:g} s of CPU time")
        except Exception as problem:  # noqa: BLE001 (the request gets it)
            error = problem
        signal.setitimer(signal.ITIMER_PROF, 0)
        if isinstance(error, TooLongError):
            if job.loop is not None and (job.is_abandoned or job.share >= job.cpu_seconds):
                self._on_ended("abandoned" if job.is_abandoned else "cpu")
            try:
                ended()
            except Exception:
                log.exception("Cannot clean up after an answer that was ended")
            if job.share < job.cpu_seconds:
                self._long.add(job)
                return
        job.finish(result, error)

    def _has_more(self, done: Future[Any]) -> bool:
        """Return whether idle work has more to do; an error of it is logged once, because it is begun again."""
        error = done.exception()
        if error is None:
            self._logged = ""
            return bool(done.result())
        self._idle_at = time.monotonic() + _IDLE_PAUSE_SECONDS
        if self._logged != repr(error):
            self._logged = repr(error)
            log.error("Work in idle moments has failed", exc_info=error)
        return False
