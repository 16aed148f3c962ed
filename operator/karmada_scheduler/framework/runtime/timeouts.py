"""What keeps a broken plugin from costing more than its own binding.

Whatever a plugin raises becomes a PluginError that names it and the point. A plugin that does not return is
stopped: a coroutine by its deadline, plain Python code by an alarm signal that raises inside it. Code that
catches everything and goes on is stopped in its handler. Code of a C extension that never returns to the
interpreter, and code that catches everything at two levels, cannot be stopped by anything but the liveness
probe. A plugin that was stopped is not called for a while (``breaker``).
"""

from __future__ import annotations

import asyncio
import ctypes
import logging
import math
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Generator
from functools import partial
from types import FrameType, TracebackType
from typing import Any, Final, Generic, NoReturn, Protocol, Self, TypeVar

T = TypeVar("T")

DEFAULT_BUDGET: Final = 2.0
"""Seconds that the plain functions of a point may take for one binding, and one coroutine of a plugin."""

GRACE: Final = 1.0
"""Seconds that a coroutine gets to clean up after its time is up."""

_AGAIN: Final = 0.05
"""Seconds between alarms, once one has rung."""

_SHIELD: Final = "__timeout_shield__"
"""Set in modules that plugins call, and that must not be left half-way."""

_RUNNER: Final = "__plugin_runner__"
"""Set in modules that call plugins; what has called them is none of the plugin's code."""

__plugin_runner__ = True


class PluginTimeoutError(BaseException):
    """Raised inside a plugin that took too long; no Exception, so that ``except Exception`` there lets it through.

    Attributes:
        seconds: What it may take.
    """

    def __init__(self, seconds: float) -> None:
        super().__init__(f"took longer than {seconds:g}s")
        self.seconds: Final = seconds


FROM_OUTSIDE: Final = (asyncio.CancelledError, GeneratorExit)
"""What ends a coroutine from outside. ``in_time`` raises it only if it does come from there."""


class CallTimeout(Protocol):
    """Raises PluginTimeoutError in the code that runs under it for too long."""

    def __enter__(self) -> object: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class NoTimeout:
    """Lets plugins take as long as they like: for tests, and for threads other than the main one."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None


class SigalrmTimeout:
    """Watches by the process's interval timer; one per process, used in the main thread.

    Inside a watch another one begins nothing new: the time of the outer one counts. Code that has caught the
    alarm and returned is late all the same.
    """

    def __init__(self, seconds: float) -> None:
        """Take over SIGALRM. ``seconds`` is what the code under watch may take.

        Raises:
            ValueError: This is not the main thread, which alone gets signals.
        """
        if threading.current_thread() is not threading.main_thread():
            raise ValueError("only the main thread can be watched")
        self._seconds: Final = seconds
        self._depth = 0
        self._rings = 0
        self._number = 0
        self._before = signal.signal(signal.SIGALRM, self._ring)

    def close(self) -> None:
        """Give SIGALRM back."""
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self._before)

    def __enter__(self) -> Self:
        self._depth += 1
        if self._depth == 1:
            self._rings = 0
            self._number += 1
            signal.setitimer(signal.ITIMER_REAL, self._seconds, _AGAIN)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # As long as this runs the alarm does not raise (see _place), so what is begun here is ended.
        if self._depth == 1:
            signal.setitimer(signal.ITIMER_REAL, 0)
            if sys.gettrace() is _trace_no_more:
                sys.settrace(None)
        self._depth -= 1
        if self._rings and (kind is None or kind is StopIteration):
            raise PluginTimeoutError(self._seconds)

    def _ring(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        # A signal may be handled just after the timer was stopped; nobody is to blame then.
        if not self._depth:
            return
        place, is_protected = _place(frame)
        if is_protected:
            self._raise_at_next_line(place)
            return
        self._rings += 1
        if self._rings > 1:
            self._raise_at_next_line(place)
        raise PluginTimeoutError(self._seconds)

    def _raise_at_next_line(self, frame: FrameType | None) -> None:
        """Let the next line raise that runs in any of the plugin's functions.

        That is after the call that must not be left half-way, or in the handler that catches everything.
        """
        if frame is None or sys.gettrace() is not None:  # a debugger
            return
        number = self._number

        def raise_again(_frame: FrameType, event: str, _argument: object) -> object:
            if event == "line" and self._depth and self._number == number:
                self._rings += 1
                raise PluginTimeoutError(self._seconds)
            return raise_again

        while frame is not None and not _is_runner(frame):
            frame.f_trace = raise_again
            frame = frame.f_back
        sys.settrace(_trace_no_more)


_OWN: Final = frozenset({SigalrmTimeout.__enter__.__code__, SigalrmTimeout.__exit__.__code__})


def _place(frame: FrameType | None) -> tuple[FrameType | None, bool]:
    """Return where a plugin is, and whether it has called what must not be left half-way."""
    place, is_protected = frame, False
    while frame is not None:
        if frame.f_code in _OWN:
            return None, True
        if _is_shielded(frame):
            place, is_protected = frame.f_back, True
        elif _is_runner(frame):
            break
        frame = frame.f_back
    return place, is_protected


def _is_shielded(frame: FrameType) -> bool:
    return _SHIELD in frame.f_globals or frame.f_globals is logging.__dict__


def _is_runner(frame: FrameType) -> bool:
    return _RUNNER in frame.f_globals


def _trace_no_more(_frame: FrameType, _event: str, _argument: object) -> None:
    """Trace no function that is called from now on."""


class TimedCoroutine(Generic[T]):
    """An awaitable whose every step between two waits runs under a watch.

    What a step does to the task that runs it, and raises as if it came from outside, stays inside: a coroutine can end
    itself only.
    """

    def __init__(
        self, awaitable: Awaitable[T], watch: CallTimeout, *, is_over: Callable[[], bool] = lambda: False
    ) -> None:
        """Wait for ``awaitable``; if it waits for more when it ``is_over``, it is not waited for any longer."""
        self._awaitable = awaitable
        self._watch = watch
        self._is_over = is_over

    def __await__(self) -> Generator[Any, Any, T]:
        steps: Any = self._awaitable.__await__()
        step: Callable[[], Any] = partial(next, steps)
        is_closed = False
        while True:
            task = _task()
            cancelled = task.cancelling() if task is not None else 0
            try:
                with self._watch:
                    waits_for = step()
            except StopIteration as end:
                result: T = end.value
                yield from _revoke(task, cancelled)
                return result
            except GeneratorExit as raised:
                if is_closed:
                    raise
                yield from _revoke(task, cancelled)
                raise RuntimeError("it raised GeneratorExit") from raised
            except BaseException:
                yield from _revoke(task, cancelled)
                raise
            if task is not None:
                _uncancel(task, cancelled)  # what it waits for is cancelled, and nothing else
            if self._is_over():
                self._drop(steps)
            try:
                answer = yield waits_for
            except BaseException as error:  # noqa: BLE001 (handed on to where it belongs)
                is_closed = isinstance(error, GeneratorExit)
                step = partial(steps.throw, error)
            else:
                step = partial(steps.send, answer)

    def _drop(self, steps: Any) -> NoReturn:
        """Wait no longer for what goes on although it was cancelled."""
        try:
            with self._watch:
                steps.close()
        except BaseException:  # noqa: BLE001 (it will not even be closed)
            # Its end as garbage would run it again, at any time and unwatched, so it never becomes garbage.
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(steps))
        raise PluginTimeoutError(math.nan)


def _uncancel(task: asyncio.Task[Any], before: int) -> bool:
    """Take back the requests to cancel a task that were made since; tell whether there were any."""
    made = task.cancelling() > before
    while task.cancelling() > before:
        task.uncancel()
    return made


def _revoke(task: asyncio.Task[Any] | None, before: int) -> Generator[Any, Any, None]:
    """Take back requests to cancel the task that a step has made, and the CancelledError that they lead to."""
    if task is not None and _uncancel(task, before):
        try:
            yield
        except asyncio.CancelledError:
            if task.cancelling() > before:
                raise


async def in_time(awaitable: Awaitable[T], *, watch: CallTimeout, seconds: float | None) -> T:
    """Wait for a plugin's coroutine.

    Raises:
        PluginTimeoutError: It took longer than ``seconds``, or one step of it longer than the watch allows.
        RuntimeError: It was cancelled, and not by whoever waits for it.
    """
    if seconds is None or _task() is None:
        return await _uncancelled(TimedCoroutine(awaitable, watch))
    deadline, end = asyncio.timeout(seconds), asyncio.timeout(seconds + GRACE)
    late: BaseException | None = None
    try:
        async with end, deadline:
            result = await _uncancelled(TimedCoroutine(awaitable, watch, is_over=end.expired))
    except (TimeoutError, PluginTimeoutError) as error:
        if not deadline.expired():
            raise
        late = error  # tells where it was
    else:
        if not deadline.expired():
            return result
    raise PluginTimeoutError(seconds) from late


async def _uncancelled(watched: TimedCoroutine[T]) -> T:
    try:
        return await watched
    except asyncio.CancelledError as error:
        task = _task()
        if task is not None and task.cancelling():
            raise
        raise RuntimeError("what it waited for was cancelled") from error


def _task() -> asyncio.Task[Any] | None:
    """Return the task that runs this; none where a decision is taken at once, outside of an event loop."""
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None
