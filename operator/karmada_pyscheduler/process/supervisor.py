"""A thread with an event loop for everything that must not depend on the main event loop.

The Lease is renewed and health checks are answered here. A plugin, a long decision or a garbage collection may block
the main loop. This thread still runs every few milliseconds, unless a C extension holds the interpreter lock.

Three events end the process from here, without the main loop: the Lease is lost (``end``), a leader's main loop was
blocked for ``STALL_SECONDS``, or a stop took longer than ``STOP_SECONDS``. If even this thread does not run for
``FROZEN_SECONDS``, the watchdog of faulthandler ends the process; it needs no interpreter lock.

docs/decisions/0016-supervisor.md has the reasons.
"""

from __future__ import annotations

import asyncio
import faulthandler
import logging
import sys
import threading
import traceback
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, Final, TypeVar

from karmada_scheduler.process import process_exit
from karmada_scheduler.structs import IdentityStruct, field

log = logging.getLogger(__name__)

T = TypeVar("T")

STALL_SECONDS: Final = 30.0
"""How long the main loop may be blocked before health checks fail, and before a leader ends."""

STOP_SECONDS: Final = 25.0
"""Limit for a stop, from the signal to the end; a Pod has 30 seconds."""

FROZEN_SECONDS: Final = 60.0

_GIVE_UP_SECONDS: Final = 2.0
"""Limit for ``on_stall``, and for the end of the thread."""

_BEAT_SECONDS: Final = 1.0
_REARM_BEATS: Final = 10


class Supervisor(IdentityStruct, kw_only=True):
    """The thread. The main thread makes, starts and closes it.

    Attributes:
        clock: In seconds, never running backwards.
        on_stall: Awaited in the thread, for 2 seconds at most, before a leader with a blocked main loop ends.
        end: Ends the process; see ``process_exit.end``.
        stall_seconds: See ``STALL_SECONDS``.
    """

    clock: Callable[[], float]
    on_stall: Callable[[], Awaitable[None]] | None = None
    end: Callable[..., None] = process_exit.end
    stall_seconds: float = STALL_SECONDS
    _loop: asyncio.AbstractEventLoop | None = None
    _started: threading.Event = field(default_factory=threading.Event)
    _closed: asyncio.Event | None = None
    _main: threading.Thread = field(default_factory=threading.current_thread)
    _last_beat: float | None = None
    _deadline: float | None = None
    leading: bool = False

    def __post_init__(self) -> None:
        self._thread = threading.Thread(target=self._run, name="supervisor", daemon=True)

    def start(self) -> None:
        """Start the thread and wait until its loop runs."""
        self._thread.start()
        self._started.wait()

    @property
    def is_running(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the thread's loop and await it in the main one; a cancellation cancels both."""
        assert self._loop is not None  # started
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    async def beat(self) -> None:
        """Record once a second that the main loop is not blocked, until cancelled; runs in the main loop."""
        while True:
            self._last_beat = self.clock()
            await asyncio.sleep(_BEAT_SECONDS)

    def silence(self) -> float:
        """Return the seconds since the last ``beat`` of the main loop; 0 before the first one."""
        return 0.0 if self._last_beat is None else self.clock() - self._last_beat

    @property
    def problem(self) -> str | None:
        """That the main loop is blocked, None if it is not."""
        silence = self.silence()
        return None if silence < self.stall_seconds else f"the event loop has not turned for {silence:.0f}s"

    def stop_within(self, seconds: float = STOP_SECONDS) -> None:
        """End the process after some seconds unless it ends before. May be called from a signal handler."""
        if self._deadline is None:
            self._deadline = self.clock() + seconds

    def close(self) -> None:
        """End the thread's loop and cancel its tasks."""
        if self._loop is not None and self._closed is not None:
            self._loop.call_soon_threadsafe(self._closed.set)
            self._thread.join(timeout=_GIVE_UP_SECONDS)
        faulthandler.cancel_dump_traceback_later()

    def _run(self) -> None:
        with asyncio.Runner() as runner:
            self._loop = runner.get_loop()
            runner.run(self._supervise())

    async def _supervise(self) -> None:
        self._closed = closed = asyncio.Event()
        self._started.set()
        beats = 0
        while not closed.is_set():
            if beats % _REARM_BEATS == 0:
                self._arm_watchdog()
            beats += 1
            await self._check()
            try:
                async with asyncio.timeout(_BEAT_SECONDS):
                    await closed.wait()
            except TimeoutError:
                continue

    def _arm_watchdog(self) -> None:
        """End the process in ``FROZEN_SECONDS`` unless this is called again before."""
        if (stream := _stderr()) is not None:
            faulthandler.dump_traceback_later(FROZEN_SECONDS, exit=True, file=stream)

    async def _check(self) -> None:
        if self._deadline is not None and self.clock() >= self._deadline:
            self.end(1, log_last=partial(log.error, "The scheduler did not stop in time and is ended"))
        problem = self.problem
        if problem is None or not self.leading:
            return
        stack = self._main_stack()
        if self.on_stall is not None:
            try:
                async with asyncio.timeout(_GIVE_UP_SECONDS):
                    await self.on_stall()
            except TimeoutError:
                pass
        text = "A leader ends because %s; the stack shows where it is"
        self.end(1, log_last=partial(log.error, text, problem, extra={"stack": stack}))

    def _main_stack(self) -> str:
        frame = sys._current_frames().get(self._main.ident or 0)  # noqa: SLF001 (as faulthandler does)
        return "".join(traceback.format_stack(frame)[-12:]) if frame is not None else ""


def _stderr() -> int | None:
    """Return the file descriptor of standard error, None if it has none."""
    try:
        return sys.stderr.fileno()
    except (AttributeError, OSError, ValueError):
        return None
