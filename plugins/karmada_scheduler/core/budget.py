"""The time that one decision may use: a slice of the event loop at a time, and CPU seconds in total.

A decision without I/O is one run of Python code. Most take less than a millisecond. Some take seconds (many affinity terms
at 5,000 clusters), while the event loop has to answer probes and schedule other bindings.

A decision is a coroutine, because extenders, estimators and some plugins do I/O. Without them it never waits, and costs as
much as a function: it needs no event loop. A long one starts without an event loop, and continues as a task.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from functools import partial
from typing import Any, Final, Generic, TypeVar

from karmada_scheduler.framework.diagnosis import OverBudgetError

SECONDS: Final = 10.0
"""CPU seconds of a decision in total."""
SLICE_SECONDS: Final = 0.02
"""Seconds after which a decision has to yield to the event loop."""


class Budget:
    """The time of one decision; only running time counts.

    Attributes:
        used: Seconds of CPU time up to the last pause.
    """

    __slots__ = ("_began", "_clock", "_cpu_began", "_cpu_clock", "used")

    def __init__(self, clock: Callable[[], float], cpu_clock: Callable[[], float]) -> None:
        """Start unused.

        Args:
            clock: In seconds; measures slices.
            cpu_clock: CPU time of this thread, in seconds; a process that gets no CPU uses none.
        """
        self._clock = clock
        self._cpu_clock = cpu_clock
        self._began = 0.0
        self._cpu_began: float | None = None
        self.used = 0.0

    def start(self) -> None:
        """Start the first slice.

        It is measured by ``clock`` alone: reading the CPU time takes ten times as long, and most decisions take less
        than a slice.
        """
        self._began = self._clock()

    def resume(self) -> None:
        """Start another slice."""
        self._began = self._clock()
        self._cpu_began = self._cpu_clock()

    def pause(self) -> None:
        """End a slice."""
        self.used += self._slice_time()

    def slice_is_over(self) -> bool:
        """Return whether the decision has to yield to the event loop; see ``yield_if_due``."""
        return self._clock() - self._began >= SLICE_SECONDS

    async def yield_if_due(self) -> None:
        """Yield to the event loop if the slice is over.

        Raises:
            OverBudgetError: The decision has used its CPU time.
        """
        if not self.slice_is_over():
            return
        if self.used + self._slice_time() > SECONDS:
            raise OverBudgetError(f"the decision took longer than {SECONDS:g}s of CPU time")
        await _Yield()

    def _slice_time(self) -> float:
        if self._cpu_began is None:
            return self._clock() - self._began
        return self._cpu_clock() - self._cpu_began


class _Yield:
    """Awaitable that yields itself; ``run_sync.BudgetedCoroutine`` yields to the event loop in its place."""

    def __await__(self) -> Generator[_Yield, None, None]:
        yield self


def is_yield(awaited: object) -> bool:
    """Return whether a coroutine only yields to the event loop."""
    return isinstance(awaited, _Yield)


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
