"""The order of everything in a simulation: virtual time, events, and whose turn it is."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from random import Random
from typing import Final, Protocol

from tools.simulation.loop import EventLoop

_MAX_STEPS_AT_ONE_TIME: Final = 50_000
"""More steps than this without a step of the clock are a loop that never rests."""


class HotLoopError(Exception):
    """Something runs without end and without waiting."""


class Process(Protocol):
    """A simulated process: event loops that run unless the process is frozen or has ended."""

    name: str

    def loops(self) -> Iterator[tuple[EventLoop, float]]:
        """Yield the loops that may run, each with the time before which it may not."""
        ...

    def step(self, loop: EventLoop) -> None:
        """Run what is due in a loop."""
        ...


class Simulation:
    """Virtual time in seconds, events at given times, and processes.

    Attributes:
        now: The current time.
        steps: The number of steps so far.
        processes: The processes, dead ones included.
        after_step: Called after each step of a loop.
    """

    def __init__(self, random: Random) -> None:
        """``random`` decides whose turn it is when several are due at the same time."""
        self.now = 0.0
        self.steps = 0
        self.processes: list[Process] = []
        self.after_step: Callable[[Process], None] = lambda _: None
        self._random = random
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()

    def clock(self) -> float:
        """Return the current time."""
        return self.now

    def at(self, when: float, callback: Callable[[], None]) -> None:
        """Call a function at a time, or now if that has passed; those of one time in the order of these calls."""
        heapq.heappush(self._events, (max(when, self.now), next(self._numbers), callback))

    def after(self, delay: float, callback: Callable[[], None]) -> None:
        """Call a function after a delay."""
        self.at(self.now + delay, callback)

    def run(self, until: float) -> None:
        """Run everything that is due before a time; the clock stands at that time then.

        Raises:
            HotLoopError: A loop never waits.
        """
        last, repeated = self.now, 0
        while True:
            due, turn = self._next()
            if due > until:
                self.now = until
                return
            if due > self.now:
                self.now = due
            if self.now > last:
                last, repeated = self.now, 0
            repeated += 1
            if repeated > _MAX_STEPS_AT_ONE_TIME:
                raise HotLoopError(f"{repeated} steps at {self.now:.6f} s")
            self.steps += 1
            turn()

    def _next(self) -> tuple[float, Callable[[], None]]:
        """Return the earliest due time and what is to run then."""
        earliest, found = (self._events[0][0], [self._run_event]) if self._events else (math.inf, [])
        for process in self.processes:
            for loop, not_before in process.loops():
                due = max(loop.due_at(), not_before, self.now)
                if due < earliest:
                    earliest, found = due, []
                if due == earliest:
                    found.append(partial(self._step, process, loop))
        if not found:
            return math.inf, lambda: None
        return earliest, found[0] if len(found) == 1 else self._random.choice(found)

    def _run_event(self) -> None:
        heapq.heappop(self._events)[2]()

    def _step(self, process: Process, loop: EventLoop) -> None:
        process.step(loop)
        self.after_step(process)
