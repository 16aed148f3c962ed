"""Limits the time that loading of plugin code takes: of a file, a package or a factory."""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")

LOAD_SECONDS: Final = 30.0
"""The timeout of a plugin file, a package, or the factory of a plugin."""


class LoadTimeoutError(Exception):
    """Code did not return in time; the text has the line at which it is."""


def call_in_thread(function: Callable[[], T], *, file: str = "") -> T:
    """Return what a function returns in a daemon thread.

    After ``LOAD_SECONDS`` SystemExit is raised in the thread, because a thread that continues to compute would slow down the main
    thread. Code that waits outside of Python continues; a daemon thread does not keep the process alive.

    Args:
        function: The function.
        file: The error has the innermost line in this file; without it, the innermost line of all.

    Raises:
        LoadTimeoutError: The function took longer.
        BaseException: The exception of the function.
    """
    results: list[T] = []
    problems: list[BaseException] = []

    def run() -> None:
        try:
            results.append(function())
        except BaseException as problem:  # noqa: BLE001 (raised in the thread that waits)
            problems.append(problem)

    thread = threading.Thread(target=run, name="plugin code", daemon=True)
    thread.start()
    thread.join(LOAD_SECONDS)
    if thread.is_alive():
        place = _place_of(thread, file)
        _stop(thread)
        raise LoadTimeoutError(f"did not end within {LOAD_SECONDS:g}s{place}")
    if problems:
        raise problems[0]
    return results[0]


def _place_of(thread: threading.Thread, file: str) -> str:
    frame = sys._current_frames().get(thread.ident or 0)  # noqa: SLF001 (what faulthandler shows)
    if frame is None:
        return ""
    stack = traceback.extract_stack(frame)
    where = next((level for level in reversed(stack) if level.filename == file), stack[-1])
    return f"; it is at line {where.lineno} of {where.filename}, in {where.name}"


def _stop(thread: threading.Thread) -> None:
    """Raise SystemExit in a thread as soon as it runs Python code again."""
    if thread.ident is not None:
        import ctypes  # a millisecond, for what hardly ever happens

        number, kind = ctypes.c_ulong(thread.ident), ctypes.py_object(SystemExit)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(number, kind)
