"""Runs a coroutine that waits for nothing, without an event loop.

Deciding is written as a coroutine, because extenders, estimators and some plugins are asked over the
network. Where there are none it never waits, and costs what a function costs. One that runs for long waits only to give
others a turn (``core.budget``); what has begun without an event loop then goes on as a task.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from functools import partial
from typing import Any, Final, Generic, TypeVar

from karmada_scheduler.core.budget import Budget, is_turn

T = TypeVar("T")


class WaitsError(RuntimeError):
    """A coroutine waits for something, so it needs an event loop; it has been closed."""


def run_sync(coroutine: Coroutine[Any, Any, T]) -> T:
    """Return what a coroutine returns.

    Raises:
        WaitsError: It waits for something, so it needs an event loop.
    """
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    raise _closed(coroutine)


def begin(coroutine: Coroutine[Any, Any, T], budget: Budget) -> T | Paced[T]:
    """Return what a coroutine returns within a slice, else what is to be awaited for the rest.

    Raises:
        WaitsError: It waits for something else than its turn.
    """
    budget.starts()
    try:
        waits_for = coroutine.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    budget.ends()
    if not is_turn(waits_for):
        raise _closed(coroutine)
    return Paced(coroutine, budget, begun=True)


class Paced(Generic[T]):
    """A coroutine with a budget, to be awaited in a task; its time counts, what it waits for does not."""

    def __init__(self, coroutine: Coroutine[Any, Any, T], budget: Budget, *, begun: bool = False) -> None:
        """Take a coroutine; one that has begun waits for its turn."""
        self._coroutine: Final = coroutine
        self._budget = budget
        self._begun = begun

    def close(self) -> None:
        """Give the coroutine up."""
        self._coroutine.close()

    def __await__(self) -> Generator[Any, Any, T]:
        step: Callable[[], Any] = partial(self._coroutine.send, None)
        if self._begun:
            yield None
        while True:
            self._budget.begins()
            try:
                waits_for = step()
            except StopIteration as end:
                result: T = end.value
                return result
            finally:
                self._budget.ends()
            try:
                answer = yield (None if is_turn(waits_for) else waits_for)
            except BaseException as error:  # noqa: BLE001 (handed on to where it belongs)
                step = partial(self._coroutine.throw, error)
            else:
                step = partial(self._coroutine.send, answer)


def _closed(coroutine: Coroutine[Any, Any, Any]) -> WaitsError:
    coroutine.close()
    return WaitsError(f"{coroutine!r} waits for something and needs an event loop")
