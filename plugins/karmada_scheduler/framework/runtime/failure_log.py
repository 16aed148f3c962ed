"""Logs the tracebacks of exceptions that plugins raise, at most once a minute per place in the code.

A plugin that raises usually does so for thousands of bindings.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Final

from karmada_scheduler.framework.extension_points import Point
from karmada_scheduler.framework.plugin import Plugin

log = logging.getLogger(__name__)

__timeout_shield__ = True

INTERVAL_SECONDS: Final = 60.0
"""The same traceback is logged once in this time."""

_FRAMES: Final = 4
"""Number of the innermost places that identify a traceback."""

_MAX_CAUSES: Final = 10
_MAX_TRACEBACKS: Final = 1000
_FRAMEWORK_MODULES: Final = (__name__.removesuffix("runtime.failure_log"), "asyncio.")
"""Prefixes of the modules that call plugins."""
_SCHEDULER_ERROR: Final = "_karmada_scheduler_error"


class FailureLog:
    """Logs exceptions of plugins with a rate limit."""

    def __init__(self, *, clock: Callable[[], float]) -> None:
        """Start with nothing logged; ``clock`` returns seconds."""
        self._clock = clock
        self._logged_at: dict[tuple[object, ...], float] = {}

    def log(self, plugin: Plugin, point: Point, problem: BaseException) -> None:
        """Log the traceback of an exception, unless it was logged within the last minute."""
        if is_scheduler_error(problem):
            return
        trace = plugin_traceback(problem)
        # An exception object that is raised again has more frames each time, but the same places.
        places = dict.fromkeys(
            (frame.f_code.co_filename, line)
            for frame, line in traceback.walk_tb(trace)
            if not _is_framework(frame)
        )
        where = tuple(places)[-_FRAMES:]
        kind = type(problem)
        key = (plugin.name, kind.__module__, kind.__qualname__, where)
        now = self._clock()
        if now - self._logged_at.get(key, -INTERVAL_SECONDS) < INTERVAL_SECONDS:
            return
        self._logged_at.pop(key, None)
        self._logged_at[key] = now
        while len(self._logged_at) > _MAX_TRACEBACKS:
            self._logged_at.pop(next(iter(self._logged_at)))
        log.error(
            "A plugin raised an exception",
            exc_info=(kind, problem, trace),
            extra={"plugin": plugin.name, "point": point.label},
        )


def plugin_traceback(problem: BaseException) -> TracebackType | None:
    """Return a traceback without the frames of the framework that called the plugin, or all if there are no others."""
    trace = problem.__traceback__
    while trace is not None and _is_framework(trace.tb_frame):
        trace = trace.tb_next
    return trace or problem.__traceback__


def plugin_location(plugin: Plugin, problem: BaseException) -> str:
    """Return ``file:line`` where an exception was raised in a plugin, "" if unknown.

    It is the innermost line of the plugin's own module, if there is one.
    """
    module, elsewhere = type(plugin).__module__, ""
    seen: BaseException | None = problem
    for _ in range(_MAX_CAUSES):
        own = ""
        for frame, line in traceback.walk_tb(seen.__traceback__ if seen is not None else None):
            place = f"{frame.f_code.co_filename}:{line}"
            if frame.f_globals.get("__name__") == module:
                own = place
            elif not _is_framework(frame):
                elsewhere = elsewhere or place
        if own or seen is None:
            return own or elsewhere
        seen = seen.__cause__ or seen.__context__
    return elsewhere


def _is_framework(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__")).startswith(_FRAMEWORK_MODULES)


def mark_scheduler_error(problem: BaseException) -> None:
    """Mark an exception of the scheduler that passes through a plugin, so that it is not logged as the plugin's."""
    problem.__dict__[_SCHEDULER_ERROR] = True


def is_scheduler_error(problem: BaseException) -> bool:
    """Return whether an exception is marked as the scheduler's own."""
    return _SCHEDULER_ERROR in problem.__dict__
