"""The scheduler's timeout of plugins, in a test."""

from __future__ import annotations

import signal
import threading
import time
from types import TracebackType
from typing import Final, Self

from karmada_scheduler.framework.runtime.plugin_call import PluginCaller
from karmada_scheduler.framework.runtime.timeouts import CallTimeout, NoTimeout, SigalrmTimeout

__timeout_shield__ = True


class PerCallTimeout:
    """A SigalrmTimeout that takes SIGALRM and the timer of the process for each call only: test runners use them, too.

    In threads other than the main one there is no limit.
    """

    def __init__(self, seconds: float) -> None:
        """Set the timeout of each outermost block."""
        self._seconds: Final = seconds
        self._depth = 0
        self._alarm: SigalrmTimeout | None = None
        self._found = (0.0, 0.0)
        self._begin = 0.0

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._depth += 1
            if self._depth == 1:
                self._found, self._begin = signal.getitimer(signal.ITIMER_REAL), time.monotonic()
                self._alarm = SigalrmTimeout(self._seconds)
                self._alarm.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        self._depth -= 1
        if self._depth or self._alarm is None:
            return
        try:
            self._alarm.__exit__(kind, error, trace)
        finally:
            self._alarm.close()
            self._alarm = None
            left, interval = self._found
            if left:
                passed = time.monotonic() - self._begin
                signal.setitimer(signal.ITIMER_REAL, max(left - passed, _SOON), interval)

    def part(self, share: float, *, adds_up: bool = False) -> Self:  # noqa: ARG002 (as CallTimeout.part)
        """Return this one: without circuit breakers every call has the whole timeout."""
        return self


_SOON: Final = 0.001
"""Seconds until a timer of the test runner that ran out during the call."""


def caller_with(seconds: float | None) -> PluginCaller:
    """Return a caller of plugins with this timeout; None for no limit."""
    timeout: CallTimeout = NoTimeout() if seconds is None else PerCallTimeout(seconds)
    return PluginCaller(timeout=timeout, coroutine_seconds=seconds, interrupts=(KeyboardInterrupt,))
