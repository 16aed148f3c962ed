"""Ends the scheduler process after a signal, or when it must not continue.

A process that has lost its Lease, or whose event loop is blocked, cannot rely on that loop, on the interpreter's regular
exit (which joins threads), or on a reader of the log. Every end therefore uses ``os._exit``.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any, Final

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)

_FLUSH_SECONDS: Final = 2.0
"""How long the end waits until the log is written."""


def end(status: int, *, log_last: Callable[[], object] = lambda: None) -> None:
    """End the process with a status within 2 seconds, from any thread; never returns.

    Args:
        status: The exit status.
        log_last: Writes the last log line. The log's reader may have stopped reading, so the process ends even if
            this does not return.
    """
    threading.Thread(target=_end_soon, args=(status,), name="end", daemon=True).start()
    with contextlib.suppress(Exception):
        log_last()
        for handler in logging.getLogger().handlers:
            handler.flush()
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(status)


def _end_soon(status: int) -> None:
    time.sleep(_FLUSH_SECONDS)
    os._exit(status)


class TerminationSignals:
    """Handlers of SIGTERM and SIGINT, from the start of the process.

    The kernel delivers no signal without a handler to a process with PID 1, as in a container. Without a
    listener no clean-up is needed, and a signal ends the process at once. Further signals call the listener again.
    """

    def __init__(self) -> None:
        """Start without a listener and without handlers."""
        self._listener: Callable[[], None] | None = None
        self._before: dict[signal.Signals, Any] = {}

    def install(self) -> None:
        """Install the handlers, also again after they were replaced; must be called in the main thread."""
        for number in SIGNALS:
            before = signal.signal(number, self._handle)
            self._before.setdefault(number, before)

    def listen(self, listener: Callable[[], None]) -> None:
        """Call a function at each signal, in the main thread, even while its event loop is blocked."""
        self._listener = listener

    def restore(self) -> None:
        """Restore the previous handlers, and remove the listener."""
        self._listener = None
        for number, before in self._before.items():
            signal.signal(number, before)
        self._before.clear()

    def _handle(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        if self._listener is None:
            os._exit(128 + number)
        self._listener()


TERMINATION: Final = TerminationSignals()
"""The handlers of this process."""
