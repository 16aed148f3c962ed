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
        used: Seconds up to the last time that it stopped running.
    """

    __slots__ = ("_began", "_clock", "_seconds", "_slice", "used")

    def __init__(
        self, clock: Callable[[], float], *, seconds: float = SECONDS, slice_seconds: float = SLICE_SECONDS
    ) -> None:
        """Start unused.

        Args:
            clock: In seconds; best one of CPU time, since a process that is held up has not decided meanwhile.
            seconds: How long the decision may run in all.
            slice_seconds: After how long it gives the loop a turn, as soon as it can.
        """
        self._clock = clock
        self._seconds = seconds
        self._slice = slice_seconds
        self._began = 0.0
        self.used = 0.0

    def begins(self) -> None:
        """Note that the decision runs from now on."""
        self._began = self._clock()

    def ends(self) -> None:
        """Note that it does not run any more."""
        self.used += self._clock() - self._began

    async def turn(self) -> None:
        """Let others have a turn if they have waited for a slice; to be called wherever a decision may grow long.

        Raises:
            OverBudgetError: The decision has taken too long.
        """
        running = self._clock() - self._began
        if running < self._slice:
            return
        if self.used + running > self._seconds:
            raise OverBudgetError(f"the decision took longer than {self._seconds:g}s of CPU time")
        await _Turn()


class _Turn:
    """Yields itself: ``at_once.Paced`` makes a turn of the event loop of it."""

    def __await__(self) -> Generator[_Turn, None, None]:
        yield self


def is_turn(waits_for: object) -> bool:
    """Tell whether a coroutine waits for nothing but others to have a turn."""
    return isinstance(waits_for, _Turn)
