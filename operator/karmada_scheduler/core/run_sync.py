"""Runs a coroutine that does no I/O, without an event loop.

A decision is a coroutine, because extenders, estimators and some plugins do I/O. Without them it never waits, and costs as
much as a function. A long decision yields to the event loop (``core.budget``): it starts without an event loop and
continues as a task.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from functools import partial
from typing import Any, Final, Generic, TypeVar

from karmada_scheduler.core.budget import Budget, is_yield

T = TypeVar("T")


class WaitsError(RuntimeError):
    """A coroutine does I/O, so it needs an event loop; it has been closed."""


def run_sync(coroutine: Coroutine[Any, Any, T]) -> T:
    """Return the result of a coroutine.

    Raises:
        WaitsError: The coroutine does I/O and needs an event loop.
    """
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    raise _closed(coroutine)


def begin(coroutine: Coroutine[Any, Any, T], budget: Budget) -> T | BudgetedCoroutine[T]:
    """Run the first slice of a coroutine; return its result, or an awaitable for the rest.

    Raises:
        WaitsError: The coroutine does I/O and needs an event loop.
    """
    budget.start()
    try:
        awaited = coroutine.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    budget.pause()
    if not is_yield(awaited):
        raise _closed(coroutine)
    return BudgetedCoroutine(coroutine, budget, begun=True)


class BudgetedCoroutine(Generic[T]):
    """A coroutine with a budget, to be awaited in a task; its running time counts, waiting time does not."""

    def __init__(self, coroutine: Coroutine[Any, Any, T], budget: Budget, *, begun: bool = False) -> None:
        """Take a coroutine; ``begun`` means that it has yielded to the event loop."""
        self._coroutine: Final = coroutine
        self._budget = budget
        self._begun = begun

    def close(self) -> None:
        """Close the coroutine."""
        self._coroutine.close()

    def __await__(self) -> Generator[Any, Any, T]:
        step: Callable[[], Any] = partial(self._coroutine.send, None)
        if self._begun:
            yield None
        while True:
            self._budget.resume()
            try:
                awaited = step()
            except StopIteration as end:
                result: T = end.value
                return result
            finally:
                self._budget.pause()
            try:
                answer = yield (None if is_yield(awaited) else awaited)
            except BaseException as error:  # noqa: BLE001 (raised in the coroutine)
                step = partial(self._coroutine.throw, error)
            else:
                step = partial(self._coroutine.send, answer)


def _closed(coroutine: Coroutine[Any, Any, Any]) -> WaitsError:
    coroutine.close()
    return WaitsError(f"{coroutine!r} waits for something and needs an event loop")
