"""Tracebacks of what plugins raise, for the log: once a minute for each place.

Deciding goes on whatever a plugin raises, and a plugin that raises does so for thousands of bindings.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Final

from karmada_scheduler.framework.extension_points import Point
from karmada_scheduler.framework.scheduling_points import Plugin

log = logging.getLogger(__name__)

__timeout_shield__ = True

AGAIN_SECONDS: Final = 60.0
"""How long the same traceback is not told again."""

_FRAMES: Final = 4
"""How many of the innermost places tell tracebacks apart."""

_CAUSES: Final = 10
_MOST: Final = 1000
_OURS: Final = (__name__.removesuffix("runtime.failure_log"), "asyncio.")
"""Modules that stand between the scheduler and what a plugin does."""
_EXCUSED: Final = "_karmada_scheduler_excused"


class FailureLog:
    """Tells of what plugins raise."""

    def __init__(self, *, clock: Callable[[], float]) -> None:
        """Start with nothing told; ``clock`` is in seconds."""
        self._clock = clock
        self._told: dict[tuple[object, ...], float] = {}

    def tell(self, plugin: Plugin, point: Point, problem: BaseException) -> None:
        """Log the traceback of what a plugin raised, unless it was told of within the last minute."""
        if is_excused(problem):
            return
        trace = of_the_plugin(problem)
        # An exception that is kept and raised again has more frames each time, and the same places.
        places = dict.fromkeys(
            (frame.f_code.co_filename, line)
            for frame, line in traceback.walk_tb(trace)
            if not _is_framework(frame)
        )
        where = tuple(places)[-_FRAMES:]
        kind = type(problem)
        key = (plugin.name, kind.__module__, kind.__qualname__, where)
        now = self._clock()
        if now - self._told.get(key, -AGAIN_SECONDS) < AGAIN_SECONDS:
            return
        self._told.pop(key, None)
        self._told[key] = now
        while len(self._told) > _MOST:
            self._told.pop(next(iter(self._told)))
        log.error(
            "A plugin raised an exception",
            exc_info=(kind, problem, trace),
            extra={"plugin": plugin.name, "point": point.label},
        )


def of_the_plugin(problem: BaseException) -> TracebackType | None:
    """Return a traceback without the frames of the framework that called the plugin; all if there are no others."""
    trace = problem.__traceback__
    while trace is not None and _is_framework(trace.tb_frame):
        trace = trace.tb_next
    return trace or problem.__traceback__


def place_in(plugin: Plugin, problem: BaseException) -> str:
    """Return ``file:line`` of where a plugin was when something was raised in it, "" if that is not known.

    Code of the plugin's own module counts before what it has called.
    """
    module, elsewhere = type(plugin).__module__, ""
    seen: BaseException | None = problem
    for _ in range(_CAUSES):
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
    return str(frame.f_globals.get("__name__")).startswith(_OURS)


def excuse(problem: BaseException) -> None:
    """Note that an exception is not the plugin's through which it passes, but the scheduler's own."""
    problem.__dict__[_EXCUSED] = True


def is_excused(problem: BaseException) -> bool:
    """Tell whether an exception was excused."""
    return _EXCUSED in problem.__dict__
