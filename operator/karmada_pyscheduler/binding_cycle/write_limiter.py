"""A concurrency limiter for writes that follows the latency of the API server (AIMD).

Upstream sends a fixed number of requests per second, 40 by default. Here the number of writes under way follows their
latency, as the window of a network sender does. ``--kube-api-qps`` is an additional limit. Results have priority over
statuses; Events and the Lease are not limited here. docs/decisions/0011-write-limiter.md and
0015-results-before-statuses.md have the reasons.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from math import inf
from statistics import median
from typing import Final

from karmada_scheduler.api_error import ApiError
from karmada_scheduler.config.options import Options
from karmada_scheduler.rate_limit import TokenBucket
from karmada_scheduler.structs import IdentityStruct, field

GOOD_LATENCY_SECONDS: Final = 0.15
"""A latency up to this is good."""

GOOD_LATENCY_FACTOR: Final = 4.0
"""A latency up to this multiple of the uncontended latency is good, too: the network may be slow."""

LOW_PRIORITY_SECONDS: Final = 5.0
"""How long a write of low priority lets others go first, at most."""

MIN_WINDOW: Final = 2
_FIRST_WINDOW: Final = 8
_MIN_SAMPLES: Final = 8
"""The window changes after this number of responses, or the number of its slots if that is greater."""
_INCREASE: Final = 1.25
_DECREASE_SLOW: Final = 0.75
"""The factor for the window after bad latencies."""
_DECREASE_REFUSED: Final = 0.5
"""The factor for the window after the server refused a write."""
_LATENCY_RISE: Final = 1 / 16
"""The weight of a higher sample in the uncontended latency; a lower sample replaces it."""


class WriteLimiter(IdentityStruct, kw_only=True):
    """Grants slots to writes in the order of arrival, within each of two priorities.

    Attributes:
        most: The largest window, at least 1.
        clock: Returns seconds, never running backwards.
        sleep: Waits for a number of seconds.
        rate: Limits the writes per second; None for no limit.
        on_window: Gets the window whenever it changes.
    """

    most: int
    clock: Callable[[], float]
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    rate: TokenBucket | None = None
    on_window: Callable[[int], None] = lambda _: None
    _under_way: int = 0
    _started: int = 0
    _waiting: deque[asyncio.Future[None]] = field(default_factory=deque)
    _low_priority: deque[tuple[float, asyncio.Future[None]]] = field(default_factory=deque)
    _refused_at: float = -inf
    _uncontended_latency: float = 0.0
    _latencies: list[float] = field(default_factory=list)
    _was_full: bool = False

    def __post_init__(self) -> None:
        self._window = float(min(_FIRST_WINDOW, self.most))
        self._paused_until = self.clock()
        self.on_window(self.window)

    @classmethod
    def from_options(
        cls, options: Options, *, clock: Callable[[], float], on_window: Callable[[int], None]
    ) -> WriteLimiter:
        """Return a limiter with ``--max-in-flight`` as its largest window, and ``--kube-api-qps`` as its rate."""
        rate = None
        if options.kube_api_qps is not None:
            rate = TokenBucket(options.kube_api_qps, options.kube_api_burst, clock())
        return cls(most=options.max_in_flight, clock=clock, rate=rate, on_window=on_window)

    @property
    def window(self) -> int:
        """The number of writes that may be under way at the same time."""
        return int(self._window)

    @asynccontextmanager
    async def slot(self, *, low_priority: bool = False) -> AsyncIterator[None]:
        """Wait for a slot and hold it for the block, which is one write.

        The latency of the block and the ApiErrors that it raises change the window. An ApiError with ``retry_after``
        pauses all writes for that time.

        Args:
            low_priority: Whether other writes go first, for ``LOW_PRIORITY_SECONDS`` at most.
        """
        if self.rate is not None:
            await self.sleep(self.rate.reserve(self.clock()))
        await self._acquire(low_priority=low_priority)
        try:
            while (pause := self._paused_until - self.clock()) > 0:
                await self.sleep(pause)
            self._started += 1
            start, number, is_first = self.clock(), self._started, self._under_way == 1
            try:
                yield
            except ApiError as error:
                if error.is_transient:
                    self._on_refusal(start, error.retry_after or 0.0)
                else:
                    self._on_answer(self.clock() - start, alone=is_first and number == self._started)
                raise
            self._on_answer(self.clock() - start, alone=is_first and number == self._started)
        finally:
            self._under_way -= 1
            self._grant()

    async def _acquire(self, *, low_priority: bool) -> None:
        if self._under_way < self.window:  # then nobody waits: a free slot is granted at once
            self._under_way += 1
            return
        self._was_full = True
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if low_priority:
            self._low_priority.append((self.clock(), granted))
        else:
            self._waiting.append(granted)
        try:
            await granted
        except asyncio.CancelledError:
            if not granted.cancelled():  # the slot was granted, and the task cancelled before it went on
                self._under_way -= 1
                self._grant()
            raise

    def _grant(self) -> None:
        while (self._waiting or self._low_priority) and self._under_way < self.window:
            granted = self._next()
            if not granted.done():
                self._under_way += 1
                granted.set_result(None)

    def _next(self) -> asyncio.Future[None]:
        is_overdue = self._low_priority and self.clock() - self._low_priority[0][0] >= LOW_PRIORITY_SECONDS
        if self._waiting and not is_overdue:
            return self._waiting.popleft()
        return self._low_priority.popleft()[1]

    def _on_answer(self, latency: float, *, alone: bool) -> None:
        if alone:
            known = self._uncontended_latency or latency
            self._uncontended_latency = min(latency, known + _LATENCY_RISE * (latency - known))
        self._latencies.append(latency)
        if len(self._latencies) < max(_MIN_SAMPLES, self.window):
            return
        typical = median(self._latencies)
        good = max(GOOD_LATENCY_SECONDS, GOOD_LATENCY_FACTOR * self._uncontended_latency)
        if typical > 2 * good:
            self._resize(self._window * _DECREASE_SLOW)
        elif typical <= good and self._was_full:
            self._resize(self._window * _INCREASE)
        self._latencies.clear()
        self._was_full = bool(self._waiting or self._low_priority)

    def _on_refusal(self, start: float, pause: float) -> None:
        """Halve the window, once for all writes that were under way at the last decrease."""
        self._paused_until = max(self._paused_until, self.clock() + pause)
        if start > self._refused_at:
            self._refused_at = self.clock()
            self._latencies.clear()
            self._resize(self._window * _DECREASE_REFUSED)

    def _resize(self, wanted: float) -> None:
        before = self.window
        self._window = min(float(self.most), max(float(min(MIN_WINDOW, self.most)), wanted))
        if self.window != before:
            self.on_window(self.window)
