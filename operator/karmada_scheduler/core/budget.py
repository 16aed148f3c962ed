"""What one decision may take of the event loop: a slice at a time, and so many seconds in all.

A decision that nothing talks to is one run of Python code. Most take less than a millisecond; some take seconds (an
affinity term after the other at 5,000 clusters), and the loop has probes to answer and other bindings to place.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Final

from karmada_scheduler.framework.diagnosis import OverBudgetError

SECONDS: Final = 10.0
SLICE_SECONDS: Final = 0.02


class Budget:
    """The time of one decision; only that is counted during which it runs.

    Attributes:
        used: Seconds of CPU time up to the last time that it stopped running.
    """

    __slots__ = ("_began", "_clock", "_cpu_began", "_cpu_clock", "_seconds", "_slice", "used")

    def __init__(
        self,
        clock: Callable[[], float],
        cpu_clock: Callable[[], float],
        *,
        seconds: float = SECONDS,
        slice_seconds: float = SLICE_SECONDS,
    ) -> None:
        """Start unused.

        Args:
            clock: In seconds; tells how long the others wait.
            cpu_clock: In seconds that this thread has worked: a process that is held up has not decided meanwhile.
            seconds: How long the decision may work in all.
            slice_seconds: After how long it gives the loop a turn, as soon as it can.
        """
        self._clock = clock
        self._cpu_clock = cpu_clock
        self._seconds = seconds
        self._slice = slice_seconds
        self._began = 0.0
        self._cpu_began: float | None = None
        self.used = 0.0

    def starts(self) -> None:
        """Note that the decision runs from now on for the first time, and most likely for less than a slice.

        To ask for CPU time takes ten times as long as to ask for the time, so that has to do for the first slice.
        """
        self._began = self._clock()

    def begins(self) -> None:
        """Note that the decision runs from now on."""
        self._began = self._clock()
        self._cpu_began = self._cpu_clock()

    def ends(self) -> None:
        """Note that it does not run any more."""
        self.used += self._worked()

    def is_due(self) -> bool:
        """Tell whether the others have waited for a slice; ``turn`` is then to be awaited."""
        return self._clock() - self._began >= self._slice

    async def turn(self) -> None:
        """Let others have a turn if they have waited for a slice.

        Raises:
            OverBudgetError: The decision has taken too long.
        """
        if not self.is_due():
            return
        if self.used + self._worked() > self._seconds:
            raise OverBudgetError(f"the decision took longer than {self._seconds:g}s of CPU time")
        await _Turn()

    def _worked(self) -> float:
        if self._cpu_began is None:
            return self._clock() - self._began
        return self._cpu_clock() - self._cpu_began


class _Turn:
    """Yields itself: ``at_once.Paced`` makes a turn of the event loop of it."""

    def __await__(self) -> Generator[_Turn, None, None]:
        yield self


def is_turn(waits_for: object) -> bool:
    """Tell whether a coroutine waits for nothing but others to have a turn."""
    return isinstance(waits_for, _Turn)
