"""How many writes are under way at the same time: as many as the API server answers well.

Upstream sends a fixed number of requests a second, 40 by default, whatever the API server could take. Here the
number of writes in flight follows how long they take, as a sender's window follows a network; a rate that was asked
for (``--kube-api-qps``) is kept on top of it. Placements go before what is only told of them, the statuses; neither
Events nor the Lease take turns here. docs/decisions/0011-write-limiter.md and 0015-results-before-statuses.md have the
reasons and the measurements.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from math import inf
from statistics import median
from typing import Final

from karmada_scheduler.client.connection import ApiError
from karmada_scheduler.scheduling_queue.work_queue import TokenBucket

WELL_SECONDS: Final = 0.15
"""A write that takes no longer than this was answered well."""

WELL_FACTOR: Final = 4.0
"""So was one that took no longer than this many times an unhurried one: the server may be far away."""

PATIENCE_SECONDS: Final = 5.0
"""How long a write that lets others go first does so."""

FEWEST: Final = 2
_FIRST: Final = 8
_ROUND: Final = 8
_GROWTH: Final = 1.25
_BACK_OFF: Final = 0.75
_CUT: Final = 0.5
_RISE: Final = 1 / 16


class WriteLimiter:
    """Lets writes begin, in the order in which they came, but the patient ones after the others."""

    def __init__(
        self,
        *,
        most: int,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        rate: TokenBucket | None = None,
        on_window: Callable[[int], None] = lambda _: None,
    ) -> None:
        """Begin with a few writes at a time.

        Args:
            most: The most writes at a time, at least 1.
            clock: In seconds, never running backwards.
            sleep: Waits for so many seconds.
            rate: What writes per second are limited to, if to anything.
            on_window: Told the number of writes at a time whenever it changes.
        """
        self._most = most
        self._clock = clock
        self._sleep = sleep
        self._rate = rate
        self._on_window = on_window
        self._window = float(min(_FIRST, most))
        self._under_way = 0
        self._begun = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._patient: deque[tuple[float, asyncio.Future[None]]] = deque()
        self._held_until = clock()
        self._cut_at = -inf
        self._unhurried = 0.0
        self._round: list[float] = []
        self._was_full = False
        on_window(self.window)

    @property
    def window(self) -> int:
        """The number of writes that may be under way at the same time now."""
        return int(self._window)

    @asynccontextmanager
    async def turn(self, *, patient: bool = False) -> AsyncIterator[None]:
        """Wait for a turn; the block is to be one write, and what it raises tells how the server is.

        ApiErrors with a ``retry_after`` hold up every write for that long.

        Args:
            patient: Whether to let writes go first that are not, for ``PATIENCE_SECONDS`` at most.
        """
        if self._rate is not None:
            await self._sleep(self._rate.reserve())
        await self._enter(patient=patient)
        try:
            while (pause := self._held_until - self._clock()) > 0:
                await self._sleep(pause)
            self._begun += 1
            began, number, first = self._clock(), self._begun, self._under_way == 1
            try:
                yield
            except ApiError as error:
                if error.may_pass:
                    self._refused(began, error.retry_after or 0.0)
                else:
                    self._answered(self._clock() - began, alone=first and number == self._begun)
                raise
            self._answered(self._clock() - began, alone=first and number == self._begun)
        finally:
            self._under_way -= 1
            self._admit()

    async def _enter(self, *, patient: bool) -> None:
        if not self._waiting and not self._patient and self._under_way < self.window:
            self._under_way += 1
            return
        self._was_full = True
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if patient:
            self._patient.append((self._clock(), turn))
        else:
            self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._under_way -= 1
                self._admit()
            raise

    def _admit(self) -> None:
        while (self._waiting or self._patient) and self._under_way < self.window:
            turn = self._next()
            if not turn.done():
                self._under_way += 1
                turn.set_result(None)

    def _next(self) -> asyncio.Future[None]:
        overdue = self._patient and self._clock() - self._patient[0][0] >= PATIENCE_SECONDS
        if self._waiting and not overdue:
            return self._waiting.popleft()
        return self._patient.popleft()[1]

    def _answered(self, seconds: float, *, alone: bool) -> None:
        if alone:
            known = self._unhurried or seconds
            self._unhurried = min(seconds, known + _RISE * (seconds - known))
        self._round.append(seconds)
        if len(self._round) < max(_ROUND, self.window):
            return
        typical = median(self._round)
        well = max(WELL_SECONDS, WELL_FACTOR * self._unhurried)
        if typical > 2 * well:
            self._resize(self._window * _BACK_OFF)
        elif typical <= well and self._was_full:
            self._resize(self._window * _GROWTH)
        self._round.clear()
        self._was_full = bool(self._waiting or self._patient)

    def _refused(self, began: float, hold: float) -> None:
        """Halve the window, but once for all that was under way when it was halved."""
        self._held_until = max(self._held_until, self._clock() + hold)
        if began > self._cut_at:
            self._cut_at = self._clock()
            self._round.clear()
            self._resize(self._window * _CUT)

    def _resize(self, wanted: float) -> None:
        before = self.window
        self._window = min(float(self._most), max(float(min(FEWEST, self._most)), wanted))
        if self.window != before:
            self._on_window(self.window)
