"""Limits the time that coroutines of plugins may take.

A coroutine has a deadline, and each of its steps between two waits is interrupted like a plain function (``timeouts``).
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Generator
from functools import partial
from typing import Any, Final, Generic, TypeVar

from karmada_scheduler.framework.runtime.timeouts import BlockTimeout, PluginTimeoutError
from karmada_scheduler.structs import Struct

T = TypeVar("T")

CLEANUP_SECONDS: Final = 1.0
"""Time that a coroutine has for its cleanup after it was cancelled."""

__plugin_runner__ = True


_unclosed: Final[list[object]] = []
"""Coroutines that could not be closed. Their finalizer would resume them without a timeout, so they are kept."""

CANCELLATIONS: Final = (asyncio.CancelledError, GeneratorExit)
"""How a coroutine is ended by its caller. ``wait_for_plugin`` raises them only if the caller does end it."""


class TimedCoroutine(Struct, Generic[T]):
    """An awaitable that runs each step of a coroutine between two waits with a timeout.

    If a step cancels the task that runs it, or raises GeneratorExit, only the coroutine ends, and not its caller.

    Attributes:
        awaitable: What runs.
        timeout: Returns the timeout of the next step.
        is_over: Returns whether it is abandoned if it waits.
    """

    awaitable: Awaitable[T]
    timeout: Callable[[], BlockTimeout]
    is_over: Callable[[], bool] = lambda: False

    def __await__(self) -> Generator[Any, Any, T]:
        steps: Any = self.awaitable.__await__()
        step: Callable[[], Any] = partial(next, steps)
        is_closed = False
        while True:
            task = _current_task()
            cancelled = task.cancelling() if task is not None else 0
            try:
                with self.timeout():
                    awaited = step()
            except StopIteration as end:
                result: T = end.value
                if task is not None and task.cancelling() > cancelled:
                    yield from _revoke_cancellation(task, cancelled)
                return result
            except GeneratorExit as raised:
                if is_closed:
                    raise
                yield from _revoke_cancellation(task, cancelled)
                raise RuntimeError("it raised GeneratorExit") from raised
            except BaseException:
                yield from _revoke_cancellation(task, cancelled)
                raise
            if self.is_over():
                self._close(steps)
                yield from _revoke_cancellation(task, cancelled)
                raise PluginTimeoutError(math.nan)
            requested = task.cancelling() - cancelled if task is not None else 0
            try:
                value = yield awaited  # cancelled by the task if the step has cancelled the task
            except BaseException as error:  # noqa: BLE001 (raised in the coroutine)
                is_closed = isinstance(error, GeneratorExit)
                step = partial(steps.throw, error)
            else:
                step = partial(steps.send, value)
            if task is not None:
                # Not before the wait: from Python 3.13 on, uncancel also revokes what the task has yet to cancel.
                _uncancel(task, task.cancelling() - requested)

    def _close(self, steps: Any) -> None:
        """Close a coroutine that ignored its cancellation."""
        try:
            with self.timeout():
                steps.close()
        except BaseException:  # noqa: BLE001 (it ignored that as well)
            _unclosed.append(steps)


def _uncancel(task: asyncio.Task[Any], before: int) -> bool:
    """Undo the cancellations of a task beyond ``before``, and return whether there were any."""
    made = task.cancelling() > before
    while task.cancelling() > before:
        task.uncancel()
    return made


def _revoke_cancellation(task: asyncio.Task[Any] | None, before: int) -> Generator[Any, Any, None]:
    """Take back the cancellations of the task that a step has requested, and the CancelledError that they cause."""
    if task is not None and _uncancel(task, before):
        try:
            yield
        except asyncio.CancelledError:
            if task.cancelling() > before:
                raise


async def wait_for_plugin(
    awaitable: Awaitable[T], *, timeout: Callable[[], BlockTimeout], seconds: float | None
) -> T:
    """Return the result of a plugin's coroutine.

    Args:
        awaitable: The coroutine.
        timeout: Returns the limit of the next step between two waits.
        seconds: Limits the whole; None for no limit.

    Raises:
        PluginTimeoutError: A limit was exceeded.
        RuntimeError: The coroutine was cancelled, and not by the caller of this function.
    """
    task = _current_task()
    deadline: asyncio.Timeout | None = None
    late: BaseException | None = None
    try:
        if seconds is None or task is None:
            return await TimedCoroutine(awaitable, timeout)
        deadline, end = asyncio.timeout(seconds), asyncio.timeout(seconds + CLEANUP_SECONDS)
        async with end, deadline:
            result = await TimedCoroutine(awaitable, timeout, is_over=end.expired)
        if not deadline.expired():
            return result
    except asyncio.CancelledError as error:
        if task is not None and task.cancelling():
            raise
        raise RuntimeError("what it waited for was cancelled") from error
    except (TimeoutError, PluginTimeoutError) as error:
        if deadline is None or not deadline.expired():
            raise
        late = error  # its traceback has the line at which the coroutine was
    assert seconds is not None  # there was a deadline
    raise PluginTimeoutError(seconds) from late


def _current_task() -> asyncio.Task[Any] | None:
    """Return the current task; None if ``run_sync`` runs the decision without an event loop."""
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None
