"""The write limiter: its window follows the latency of the API server."""

from __future__ import annotations

import asyncio

import pytest

from karmada_pyscheduler.binding_cycle.write_limiter import (
    GOOD_LATENCY_SECONDS,
    LOW_PRIORITY_SECONDS,
    MIN_WINDOW,
    WriteLimiter,
)
from karmada_scheduler.api_error import ApiError
from karmada_scheduler.rate_limit import TokenBucket


class LimiterHarness:
    """A write limiter on a clock of the test, and a fake API server that responds when the test lets it."""

    def __init__(self, *, most: int = 32, rate: float | None = None) -> None:
        self.now = 0.0
        self.slept: list[float] = []
        self.windows: list[int] = []
        bucket = None if rate is None else TokenBucket(rate, 1, self.clock())
        self.limiter = WriteLimiter(
            most=most, clock=self.clock, sleep=self.sleep, rate=bucket, on_window=self.windows.append
        )
        self.under_way = 0
        self.most_at_a_time = 0
        self.began: list[int] = []
        self._open = asyncio.Event()

    def clock(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        if seconds:
            self.slept.append(seconds)
            self.now += seconds

    async def write(
        self, number: int = 0, *, low_priority: bool = False, error: ApiError | None = None
    ) -> None:
        async with self.limiter.slot(low_priority=low_priority):
            self.began.append(number)
            self.under_way += 1
            self.most_at_a_time = max(self.most_at_a_time, self.under_way)
            try:
                await self._open.wait()
            finally:
                self.under_way -= 1
            if error is not None:
                raise error

    async def load(self, seconds: float, *, times: int = 20, writers: int = 100) -> None:
        """Run writers that write all the time, and respond to all pending writes after some seconds, several times."""

        async def write_on() -> None:
            while True:
                await self.write()

        tasks = [asyncio.create_task(write_on()) for _ in range(writers)]
        for _ in range(times):
            await _run_pending_tasks()
            self.now += seconds
            answered, self._open = self._open, asyncio.Event()
            answered.set()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def refuse(self, *errors: ApiError) -> None:
        """Start a write for each error, and respond with the errors at once."""
        self._open.clear()
        tasks = [asyncio.create_task(self.write(error=error)) for error in errors]
        await _run_pending_tasks()
        self._open.set()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._open.clear()


async def _run_pending_tasks() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.fixture
async def harness() -> LimiterHarness:
    return LimiterHarness()


async def test_the_window_grows_while_latency_is_good(harness: LimiterHarness) -> None:
    await harness.load(GOOD_LATENCY_SECONDS / 2)
    assert harness.limiter.window == 32
    assert harness.most_at_a_time == 32
    assert harness.windows == sorted(harness.windows)


async def test_the_window_shrinks_while_latency_is_bad(harness: LimiterHarness) -> None:
    await harness.load(GOOD_LATENCY_SECONDS * 3, times=40)
    assert harness.limiter.window == MIN_WINDOW


async def test_the_window_stays_while_latency_is_neither_good_nor_bad(harness: LimiterHarness) -> None:
    await harness.load(GOOD_LATENCY_SECONDS * 1.5)
    assert harness.windows == [8]


async def test_a_window_that_was_never_full_does_not_grow(harness: LimiterHarness) -> None:
    await harness.load(GOOD_LATENCY_SECONDS / 2, writers=3)
    assert harness.windows == [8]


async def test_a_high_uncontended_latency_does_not_shrink_the_window(harness: LimiterHarness) -> None:
    far = GOOD_LATENCY_SECONDS * 6
    await harness.load(far, times=3, writers=1)
    await harness.load(far)
    assert harness.limiter.window == 32


@pytest.mark.parametrize("code", [0, 429, 500, 503, 504])
async def test_refused_writes_halve_the_window_once_for_all_under_way(
    harness: LimiterHarness, code: int
) -> None:
    await harness.refuse(*(ApiError("no", code=code) for _ in range(6)))
    assert harness.windows == [8, 4]
    harness.now += 1
    await harness.refuse(ApiError("no", code=code))
    assert harness.windows == [8, 4, 2]


@pytest.mark.parametrize("code", [404, 409, 422])
async def test_an_error_about_one_binding_does_not_change_the_window(
    harness: LimiterHarness, code: int
) -> None:
    await harness.refuse(*(ApiError("no", code=code) for _ in range(6)))
    assert harness.windows == [8]


@pytest.mark.parametrize(("code", "asked", "slept"), [(429, 0.5, 0.5), (503, 3600.0, 30.0)])
async def test_a_short_pause_is_kept_and_one_lasts_30_seconds_at_most(
    code: int, asked: float, slept: float, harness: LimiterHarness
) -> None:
    await harness.refuse(ApiError("later", code=code, retry_after=asked))
    await harness.refuse(ApiError("gone", code=404))
    assert harness.slept == [slept]


async def test_all_writes_pause_for_the_longest_time_that_is_requested(harness: LimiterHarness) -> None:
    await harness.refuse(*(ApiError("later", code=429, retry_after=seconds) for seconds in (3.0, 0.5)))
    await harness.refuse(ApiError("gone", code=404))
    assert harness.slept == [3.0]


async def test_a_write_waits_for_a_pause_that_the_server_requests_meanwhile() -> None:
    harness = LimiterHarness()

    async def refused(seconds: float) -> None:
        with pytest.raises(ApiError):
            async with limiter.slot():
                raise ApiError("later", code=429, retry_after=seconds)

    async def sleep(seconds: float) -> None:
        await harness.sleep(seconds)
        if harness.slept == [3.0]:
            await refused(5.0)

    limiter = WriteLimiter(most=4, clock=harness.clock, sleep=sleep)
    await refused(3.0)
    async with limiter.slot():
        assert harness.slept == [3.0, 5.0]


async def test_an_error_about_one_binding_has_the_latency_of_its_answer(harness: LimiterHarness) -> None:
    harness.now = 1000.0
    await harness.refuse(*(ApiError("no", code=404) for _ in range(40)))
    assert harness.limiter.window > 8


async def test_the_window_is_judged_by_as_many_answers_as_it_has_slots(harness: LimiterHarness) -> None:
    answers = [asyncio.Event() for _ in range(40)]

    async def write(number: int) -> None:
        async with harness.limiter.slot():
            await answers[number].wait()

    tasks = [asyncio.create_task(write(number)) for number in range(40)]
    windows = []
    for answer in answers[:9]:
        await _run_pending_tasks()
        windows.append(harness.limiter.window)
        answer.set()
    assert windows == [8] * 8 + [10]
    for answer in answers:
        answer.set()
    await asyncio.gather(*tasks)


async def test_a_window_that_is_not_full_any_more_does_not_grow(harness: LimiterHarness) -> None:
    await harness.load(GOOD_LATENCY_SECONDS / 2, times=2)
    await harness.load(GOOD_LATENCY_SECONDS / 2, writers=3, times=20)
    before = harness.limiter.window
    await harness.load(GOOD_LATENCY_SECONDS / 2, writers=3, times=40)
    assert harness.limiter.window == before < 32


async def test_the_window_grows_for_writes_of_low_priority(harness: LimiterHarness) -> None:
    async def write() -> None:
        async with harness.limiter.slot(low_priority=True):
            await asyncio.sleep(0)

    await asyncio.gather(*(write() for _ in range(400)))
    assert harness.limiter.window == 32


async def test_the_uncontended_latency_rises_slowly_and_falls_at_once(harness: LimiterHarness) -> None:
    for seconds, known in ((1.0, 1.0), (2.0, 1.0625), (0.5, 0.5)):
        await harness.load(seconds, times=2, writers=1)
        assert harness.limiter._uncontended_latency == known


async def test_slots_are_granted_in_the_order_of_arrival(harness: LimiterHarness) -> None:
    tasks = [asyncio.create_task(harness.write(number)) for number in range(40)]
    await _run_pending_tasks()
    assert harness.began == list(range(8))
    harness._open.set()
    await asyncio.gather(*tasks)
    assert harness.began == list(range(40))


async def test_writes_of_low_priority_let_later_ones_go_first(harness: LimiterHarness) -> None:
    tasks = [
        asyncio.create_task(harness.write(number, low_priority=number in {8, 10})) for number in range(13)
    ]
    await _run_pending_tasks()
    harness._open.set()
    await asyncio.gather(*tasks)
    assert harness.began == [*range(8), 9, 11, 12, 8, 10]


async def test_a_write_of_low_priority_waits_for_a_limited_time(harness: LimiterHarness) -> None:
    tasks = [asyncio.create_task(harness.write(number, low_priority=number == 8)) for number in range(9)]
    await _run_pending_tasks()
    harness.now += LOW_PRIORITY_SECONDS
    tasks += [asyncio.create_task(harness.write(number, low_priority=number == 9)) for number in range(9, 12)]
    await _run_pending_tasks()
    harness._open.set()
    await asyncio.gather(*tasks)
    assert harness.began == [*range(9), 10, 11, 9]


async def test_a_write_of_low_priority_starts_at_once_if_no_other_waits(harness: LimiterHarness) -> None:
    writing = asyncio.create_task(harness.write(low_priority=True))
    await _run_pending_tasks()
    assert harness.began == [0]
    harness._open.set()
    await writing


@pytest.mark.parametrize("low_priority", [False, True])
async def test_a_cancelled_wait_takes_no_slot(harness: LimiterHarness, low_priority: bool) -> None:
    tasks = [asyncio.create_task(harness.write(number, low_priority=low_priority)) for number in range(10)]
    await _run_pending_tasks()
    tasks[8].cancel()
    await _run_pending_tasks()
    harness._open.set()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert harness.began == [*range(8), 9]
    assert harness.limiter._under_way == 0


async def test_a_slot_granted_to_a_cancelled_write_is_granted_again() -> None:
    harness = LimiterHarness(most=1)
    harness._open.set()
    async with harness.limiter.slot():
        tasks = [asyncio.create_task(harness.write(number)) for number in range(2)]
        await _run_pending_tasks()
    tasks[0].cancel()  # it has the slot, and has not gone on yet
    await asyncio.gather(*tasks, return_exceptions=True)
    assert harness.began == [1]
    assert harness.limiter._under_way == 0


async def test_a_configured_rate_is_kept() -> None:
    harness = LimiterHarness(rate=10.0)
    harness._open.set()
    for _ in range(3):
        await harness.write()
    assert harness.slept == pytest.approx([0.1, 0.1])


async def test_the_window_never_exceeds_its_maximum() -> None:
    harness = LimiterHarness(most=3)
    await harness.load(GOOD_LATENCY_SECONDS / 2)
    assert harness.most_at_a_time == 3
    assert harness.windows == [3]
