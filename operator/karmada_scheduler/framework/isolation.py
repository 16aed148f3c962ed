"""What keeps a broken plugin from costing more than its own binding.

Whatever a plugin raises becomes a PluginError that names it and the point. A plugin that does not return is
stopped: a coroutine by its deadline, plain Python code by an alarm signal that raises inside it. Code of a
C extension that never returns to the interpreter cannot be stopped by anything but the liveness probe.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Awaitable, Callable, Generator
from functools import partial
from types import FrameType, TracebackType
from typing import Any, Final, Generic, Protocol, Self, TypeVar

T = TypeVar("T")

DEFAULT_BUDGET: Final = 5.0
"""Seconds that the plain functions of a point may take for one binding, and one coroutine of a plugin."""


class PluginTimeoutError(BaseException):
    """Raised inside a plugin that took too long; no Exception, so that ``except Exception`` there lets it through."""


class Watch(Protocol):
    """Raises PluginTimeoutError in the code that runs under it for too long."""

    def __enter__(self) -> object: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Unwatched:
    """Lets plugins take as long as they like: for tests, ``simulate``, and threads other than the main one."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None


class Alarm:
    """Watches by the process's interval timer; one per process, used in the main thread.

    Inside a watch another one begins nothing new: the time of the outer one counts.
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
        signal.signal(signal.SIGALRM, self._ring)

    def __enter__(self) -> Self:
        self._depth += 1
        if self._depth == 1:
            # Repeated, for a plugin that catches everything and goes on.
            signal.setitimer(signal.ITIMER_REAL, self._seconds, self._seconds)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._depth -= 1
        if self._depth == 0:
            signal.setitimer(signal.ITIMER_REAL, 0)

    def _ring(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        # A signal may be handled just after the timer was stopped; nobody is to blame then.
        if self._depth:
            raise PluginTimeoutError


class Watched(Generic[T]):
    """An awaitable whose every step between two waits runs under a watch."""

    def __init__(self, awaitable: Awaitable[T], watch: Watch) -> None:
        self._awaitable = awaitable
        self._watch = watch

    def __await__(self) -> Generator[Any, Any, T]:
        steps = self._awaitable.__await__()
        step: Callable[[], Any] = partial(next, steps)
        while True:
            try:
                with self._watch:
                    waits_for = step()
            except StopIteration as end:
                result: T = end.value
                return result
            try:
                answer = yield waits_for
            except BaseException as error:  # noqa: BLE001 (handed on to where it belongs)
                step = partial(steps.throw, error)
            else:
                step = partial(steps.send, answer)


async def in_time(awaitable: Awaitable[T], *, watch: Watch, seconds: float | None) -> T:
    """Wait for a plugin's coroutine.

    Raises:
        PluginTimeoutError: It took longer than ``seconds``, or one step of it longer than the watch allows.
    """
    deadline = asyncio.timeout(seconds)
    try:
        async with deadline:
            return await Watched(awaitable, watch)
    except TimeoutError:
        if deadline.expired():
            raise PluginTimeoutError from None
        raise
