"""The two ways in which a scheduler process ends: when it is told to, and when it must.

A process that has lost its Lease, or whose event loop stands, cannot rely on that loop, on the interpreter's orderly
end (which joins threads), or on the log being read. Everything here therefore ends in ``os._exit``.
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
"""How long an end waits for what reads the log."""


def end(status: int, *, log_last: Callable[[], object] = lambda: None) -> None:
    """End the process with a status within 2 seconds, from any thread; never returns.

    Args:
        status: The exit status.
        log_last: Writes the last words to the log. Whoever reads the log may have stopped reading, so the process
            ends even if this does not return.
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
    """SIGTERM and SIGINT from the first moment of the process on.

    The kernel gives a process with PID 1, as in a container, no signal that it has no handler for. Until somebody
    listens there is nothing to put in order, so a signal ends the process at once. Later ones only repeat the first.
    """

    def __init__(self) -> None:
        """Nobody listens, and no handler is installed."""
        self._listener: Callable[[], None] | None = None
        self._before: dict[signal.Signals, Any] = {}

    def install(self) -> None:
        """Install the handlers, again after somebody replaced them; must be called in the main thread."""
        for number in SIGNALS:
            before = signal.signal(number, self._handle)
            self._before.setdefault(number, before)

    def listen(self, listener: Callable[[], None]) -> None:
        """Call a function at each signal, between two steps of the main thread, even while its loop stands."""
        self._listener = listener

    def restore(self) -> None:
        """Put back the handlers of before, and forget who listened."""
        self._listener = None
        for number, before in self._before.items():
            signal.signal(number, before)
        self._before.clear()

    def _handle(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        if self._listener is None:
            os._exit(128 + number)
        self._listener()


TERMINATION: Final = TerminationSignals()
"""Those of this process."""
