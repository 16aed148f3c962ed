"""Virtual time, and event loops that run in it without waiting.

Each simulated process has event loops of its own, so that a process can be frozen, stalled or killed without the
others. ``EventLoop.step`` runs what is due and returns; the simulation decides whose turn it is.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import math
import signal
import sys
import threading
import warnings
from asyncio import events
from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

T = TypeVar("T")

_MOST_STEPS_OF_DISPOSAL: Final = 100

_THREAD_SECONDS: Final = 0.01
"""How long a call in another thread takes."""

_RESOLUTION: Final = 1e-6
"""Seconds. A timer that is due within this time fires; sums of floats lose more than nothing."""


class MachineClock:
    """The monotonic clock of a machine: it stands still while the machine is suspended.

    Attributes:
        behind: Seconds by which it is behind virtual time, from the end of the last suspension on.
        wakes_at: When the last suspension ends, in virtual time.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        """Run with virtual time."""
        self._clock = clock
        self.behind = 0.0
        self.wakes_at = -math.inf

    def __call__(self) -> float:
        """Return seconds."""
        return max(self._clock(), self.wakes_at) - self.behind

    def reaches(self, when: float) -> float:
        """Return the virtual time at which it has reached ``when``; a little later, as sums of floats lose something."""
        return when + self.behind + _RESOLUTION / 2 if self.behind else when

    def suspend(self, seconds: float) -> None:
        """Stand still for some seconds from now on; to be called while it runs."""
        self.wakes_at = self._clock() + seconds
        self.behind += seconds


class _NoSelector:
    """A selector without files, which never waits."""

    def select(self, timeout: float | None) -> list[Any]:
        return []

    def close(self) -> None:
        return


class EventLoop(asyncio.BaseEventLoop):
    """An event loop that is stepped from outside. It has no files, no sockets and no threads."""

    def __init__(self, clock: MachineClock) -> None:
        """Use the clock of a machine."""
        super().__init__()
        self._virtual_clock = clock
        self._clock_resolution = _RESOLUTION
        self._selector = _NoSelector()

    def time(self) -> float:
        return self._virtual_clock()

    def due_at(self) -> float:
        """Return the virtual time at which the next callback is due, in the past if one is ready, infinity if there is none."""
        private = cast("Any", self)
        if private._ready:
            return -math.inf
        while private._scheduled and private._scheduled[0]._cancelled:
            # _run_once does the same; here it has to happen before, so that a cancelled timer wakes nobody.
            private._timer_cancelled_count -= 1
            heapq.heappop(private._scheduled)._scheduled = False
        if not private._scheduled:
            return math.inf
        return self._virtual_clock.reaches(private._scheduled[0].when())

    def step(self) -> None:
        """Run the callbacks that are due; an exception that ends a real loop is raised here."""
        private = cast("Any", self)
        hooks = sys.get_asyncgen_hooks()
        private._thread_id = threading.get_ident()
        sys.set_asyncgen_hooks(
            firstiter=private._asyncgen_firstiter_hook, finalizer=private._asyncgen_finalizer_hook
        )
        events._set_running_loop(self)
        try:
            private._run_once()
        finally:
            events._set_running_loop(None)
            private._thread_id = None
            sys.set_asyncgen_hooks(*hooks)

    def dispose(self) -> None:
        """Cancel all tasks, so that nothing of them runs later, when they are collected as garbage."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # of coroutines that have not started yet
            for _ in range(_MOST_STEPS_OF_DISPOSAL):
                tasks = asyncio.all_tasks(self)
                if not tasks:
                    break
                for task in tasks:
                    task.cancel()
                with contextlib.suppress(SystemExit):
                    self.step()
            for task in asyncio.all_tasks(self):
                task._log_destroy_pending = False  # type: ignore[attr-defined]
            self.close()

    def run_in_executor(self, executor: Any, func: Callable[..., T], *args: Any) -> asyncio.Future[T]:  # type: ignore[override]
        """Call a function later in this thread: another thread would need real time, of which the simulation knows nothing."""
        del executor
        future: asyncio.Future[T] = self.create_future()

        def run() -> None:
            if future.done():
                return
            try:
                future.set_result(func(*args))
            except Exception as error:  # noqa: BLE001 (raised by the await)
                future.set_exception(error)

        self.call_later(_THREAD_SECONDS, run)
        return future

    def remove_signal_handler(self, sig: signal.Signals | int) -> bool:
        return False

    def _process_events(self, event_list: list[Any]) -> None:
        return

    def _write_to_self(self) -> None:
        """Do nothing: the simulation sees a callback of another loop without a notification."""
