"""Limits the time that calls of plugins may take.

A plain function is interrupted by SIGALRM: the signal handler raises PluginTimeoutError inside the function. Coroutines are
in ``coroutine_timeouts``.

Code of a C extension that never returns to the interpreter is not interrupted. Neither is a loop that catches every
BaseException and continues at once. The supervisor ends the process then (docs/decisions/0007-plugins.md).
"""

from __future__ import annotations

import logging
import signal
import threading
import time
from contextlib import AbstractContextManager, nullcontext
from types import FrameType, TracebackType
from typing import Final, Protocol, Self

from karmada_scheduler.config.profiles import LONGEST_PLAIN_SECONDS

SHORTEST_SECONDS: Final = 0.1
"""The shortest part of a timeout: a busy machine may stop the process for some hundredths of a second."""

_REPEAT_SECONDS: Final = 0.05
"""Delay of the next alarm after one that was raised, so that a slow exception handler is interrupted as well."""

_SHIELDED_REPEAT_SECONDS: Final = 0.001
"""Delay of the next alarm after one that came in shielded code, and the shortest one."""

_SHIELD: Final = "__timeout_shield__"
"""Marks a module that plugins call and that must not be interrupted half-way."""

_RUNNER: Final = "__plugin_runner__"
"""Marks a module that calls plugins. The callers of its frames are not the plugin's code."""

__plugin_runner__ = True


class PluginTimeoutError(BaseException):
    """Raised inside a plugin at its timeout. It is no Exception, so ``except Exception`` in the plugin does not catch it.

    Attributes:
        seconds: The timeout.
    """

    def __init__(self, seconds: float) -> None:
        super().__init__(f"took longer than {round(seconds, 2):g}s")
        self.seconds: Final = seconds


BlockTimeout = AbstractContextManager[object, None]
"""A context manager that raises PluginTimeoutError in its block at the timeout."""


class CallTimeout(BlockTimeout, Protocol):
    """The timeout of plugins."""

    def part(self, share: float, *, adds_up: bool = False) -> BlockTimeout:
        """Return a timeout of a share of this one, from 0 to 1, and of ``SHORTEST_SECONDS`` at least.

        Args:
            share: The share.
            adds_up: Whether all blocks of the result have this time together.
        """


class NoTimeout(nullcontext[None]):
    """Lets plugins run without a limit: for tests, and for threads other than the main one."""

    def part(self, share: float, *, adds_up: bool = False) -> Self:  # noqa: ARG002 (there is no limit)
        """Return this one."""
        return self


class SigalrmTimeout:
    """A timeout by the interval timer of the process: one per process, used in the main thread.

    A nested block has no timeout of its own; that of the outermost block holds. If the code of a block catches the
    PluginTimeoutError and returns, the block raises it at its end.

    The timer runs on after a block, so that most blocks need no system call: an alarm that comes too early for the block
    under way sets the timer again, and one outside of a block does nothing.
    """

    def __init__(self, seconds: float) -> None:
        """Install the handler of SIGALRM.

        Each outermost block may take ``seconds``, and ``LONGEST_PLAIN_SECONDS`` at most.

        Raises:
            ValueError: This is not the main thread, the only one that handles signals.
        """
        if threading.current_thread() is not threading.main_thread():
            raise ValueError("only the main thread can have this timeout")
        self._seconds: Final = min(seconds, LONGEST_PLAIN_SECONDS)
        self._limit = self._seconds
        self._depth = 0
        self._end = 0.0
        self._is_set = False
        self._expired = False
        self._previous_handler = signal.signal(signal.SIGALRM, self._on_alarm)

    def close(self) -> None:
        """Stop the timer and restore the previous handler of SIGALRM."""
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self._previous_handler)

    def __enter__(self) -> Self:
        self._depth += 1
        if self._depth == 1:
            self._expired = False
            self._end = time.perf_counter() + self._seconds
            if not self._is_set:
                self._set(self._seconds)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Alarms do not raise in this function (see _is_interruptible), so it always runs to its end.
        self._depth -= 1
        if self._expired and (kind is None or kind is StopIteration):
            raise PluginTimeoutError(self._limit)

    def part(self, share: float, *, adds_up: bool = False) -> BlockTimeout:
        """Return a shorter timeout, also for blocks within one of this timeout."""
        return _ShorterTimeout(self, max(SHORTEST_SECONDS, self._seconds * share), adds_up=adds_up)

    def shorten(self, seconds: float, shown: float) -> float:
        """End the present block after some seconds; return when it would have ended otherwise, 0 if that is earlier.

        ``shown`` is the timeout of the error.
        """
        now, end = time.perf_counter(), self._end
        if now + seconds >= end:
            return 0.0
        self._limit = shown
        self._end = now + seconds
        self._set(seconds)
        return end

    def restore(self, end: float) -> None:
        """Undo ``shorten``; ``end`` is its result."""
        self._limit = self._seconds
        self._end = end

    def _set(self, seconds: float) -> None:
        self._is_set = True
        signal.setitimer(signal.ITIMER_REAL, seconds)

    def _on_alarm(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        self._is_set = False
        if not self._depth:
            return
        rest = self._end - time.perf_counter()
        if rest > 0 or not _is_interruptible(frame):
            self._set(max(rest, _SHIELDED_REPEAT_SECONDS))
            return
        self._set(_REPEAT_SECONDS)
        self._expired = True
        raise PluginTimeoutError(self._limit)


class _ShorterTimeout:
    """A timeout that is shorter than that of the blocks around it."""

    def __init__(self, timeout: SigalrmTimeout, seconds: float, *, adds_up: bool) -> None:
        self._timeout = timeout
        self._seconds = self._left = seconds
        self._adds_up = adds_up
        self._began = self._end = 0.0

    def __enter__(self) -> Self:
        # With nothing left, a coroutine is interrupted at once, in its own code, so that it ends.
        self._left = max(self._left, _SHIELDED_REPEAT_SECONDS)
        self._timeout.__enter__()
        self._began = time.perf_counter()
        self._end = self._timeout.shorten(self._left, self._seconds)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        took = time.perf_counter() - self._began
        is_late = bool(self._end) and took > self._left and (kind is None or kind is StopIteration)
        if self._end:
            self._timeout.restore(self._end)
        if self._adds_up:
            self._left -= took
        self._timeout.__exit__(PluginTimeoutError if is_late else kind, error, trace)
        if is_late:
            raise PluginTimeoutError(self._seconds)


def _is_interruptible(frame: FrameType | None) -> bool:
    """Return whether the plugin runs its own code, rather than shielded code that it has called."""
    while frame is not None:
        module = frame.f_globals
        if frame.f_code in _OWN_CODE or _SHIELD in module or module is logging.__dict__:
            return False
        if _RUNNER in module:
            return True
        frame = frame.f_back
    return True


_OWN_CODE: Final = frozenset(
    function.__code__
    for function in (
        SigalrmTimeout.__enter__,
        SigalrmTimeout.__exit__,
        SigalrmTimeout._on_alarm,  # noqa: SLF001
        SigalrmTimeout.shorten,
        SigalrmTimeout.restore,
        SigalrmTimeout._set,  # noqa: SLF001
        _ShorterTimeout.__enter__,
        _ShorterTimeout.__exit__,
        _is_interruptible,
    )
)
"""An alarm in these functions must not raise: it would interrupt the accounting, or shielded code below them."""
