"""Answers that need decisions: computed one after the other, in the main thread.

The main thread is the one in which the timeout of plugins works (a signal). The HTTP server runs in a thread of its own and
waits for the result. Waiting requests are bounded; further ones are refused, which a reader sees as "try again".
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Any, Final, TypeVar

T = TypeVar("T")

MAX_WAITING: Final = 8
_KEPT: Final = 32
"""Results that are kept, for pages that are loaded again."""

_WAIT_SECONDS: Final = 0.2


class BusyError(Exception):
    """Too many answers are being waited for, or one takes too long."""


class Computer:
    """Runs jobs in the thread that calls ``serve``; results are kept as long as the objects are the same."""

    def __init__(self, *, seconds: float = 30.0) -> None:
        """Start empty; ``seconds`` is how long a request waits for its answer."""
        self._seconds = seconds
        self._jobs: queue.Queue[tuple[Callable[[], Any], Future[Any]]] = queue.Queue(MAX_WAITING)
        self._kept: OrderedDict[Hashable, Any] = OrderedDict()
        self._stopped = threading.Event()

    async def answer(self, key: Hashable, job: Callable[[], T]) -> T:
        """Return the result of a job, or the one that is kept under the same key.

        Raises:
            BusyError: Too many jobs wait, or it took too long.
        """
        if key in self._kept:
            found: T = self._kept[key]
            return found
        future: Future[T] = Future()
        try:
            self._jobs.put_nowait((job, future))
        except queue.Full:
            raise BusyError(f"{MAX_WAITING} answers are being computed; try again in a moment") from None
        try:
            async with asyncio.timeout(self._seconds):
                result = await asyncio.wrap_future(future)
        except TimeoutError:
            raise BusyError(f"no answer within {self._seconds:g} s") from None
        self._kept[key] = result
        while len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        return result

    def serve(self, idle: Callable[[], bool] = lambda: False) -> None:
        """Run jobs until ``stop`` is called.

        Args:
            idle: Called when no job waits; returns whether it has more to do.
        """
        more = True
        while not self._stopped.is_set():
            try:
                job, future = self._jobs.get(timeout=0 if more else _WAIT_SECONDS)
            except queue.Empty:
                more = idle()
                continue
            more = True
            if future.set_running_or_notify_cancel():
                _run(job, future)

    def stop(self) -> None:
        """Let ``serve`` return after the job under way."""
        self._stopped.set()


def _run(job: Callable[[], Any], future: Future[Any]) -> None:
    try:
        future.set_result(job())
    except Exception as error:  # noqa: BLE001 (the request gets it)
        future.set_exception(error)
