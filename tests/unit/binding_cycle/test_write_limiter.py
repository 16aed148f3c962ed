"""How many writes are under way follows how the API server answers."""

from __future__ import annotations

import asyncio

import pytest

from karmada_scheduler.binding_cycle.write_limiter import (
    GOOD_LATENCY_SECONDS,
    LOW_PRIORITY_SECONDS,
    MIN_WINDOW,
    WriteLimiter,
)
from karmada_scheduler.client.connection import ApiError
from karmada_scheduler.scheduling_queue.rate_limit import TokenBucket


class World:
    """An API server that answers as it is told, on a clock that only the test moves."""

    def __init__(self, *, most: int = 32, rate: float | None = None) -> None:
        self.now = 0.0
        self.slept: list[float] = []
        self.windows: list[int] = []
        bucket = None if rate is None else TokenBucket(rate=rate, burst=1, clock=self.clock)
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
        """Have so many writers write all the time; whatever is under way is answered after so many seconds."""

        async def write_on() -> None:
            while True:
                await self.write()

        tasks = [asyncio.create_task(write_on()) for _ in range(writers)]
        for _ in range(times):
            await _settled()
            self.now += seconds
            answered, self._open = self._open, asyncio.Event()
            answered.set()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def refuse(self, *errors: ApiError) -> None:
        """Answer as many writes at once, with these errors."""
        self._open.clear()
        tasks = [asyncio.create_task(self.write(error=error)) for error in errors]
        await _settled()
        self._open.set()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._open.clear()


async def _settled() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.fixture
async def world() -> World:
    return World()


async def test_more_writes_go_at_a_time_while_they_are_answered_quickly(world: World) -> None:
    await world.load(GOOD_LATENCY_SECONDS / 2)
    assert world.limiter.window == 32
    assert world.most_at_a_time == 32
    assert world.windows == sorted(world.windows)


async def test_fewer_go_at_a_time_while_answers_take_long(world: World) -> None:
    await world.load(GOOD_LATENCY_SECONDS * 3, times=40)
    assert world.limiter.window == MIN_WINDOW


async def test_in_between_the_window_stays(world: World) -> None:
    await world.load(GOOD_LATENCY_SECONDS * 1.5)
    assert world.windows == [8]


async def test_writes_that_no_window_holds_back_do_not_widen_it(world: World) -> None:
    await world.load(GOOD_LATENCY_SECONDS / 2, writers=3)
    assert world.windows == [8]


async def test_a_server_that_is_far_away_is_not_taken_for_a_busy_one(world: World) -> None:
    far = GOOD_LATENCY_SECONDS * 6
    await world.load(far, times=3, writers=1)
    await world.load(far)
    assert world.limiter.window == 32


@pytest.mark.parametrize("code", [0, 429, 500, 503, 504])
async def test_a_server_that_cannot_take_a_write_gets_half_as_many_once_for_all_that_were_under_way(
    world: World, code: int
) -> None:
    await world.refuse(*(ApiError("no", code=code) for _ in range(6)))
    assert world.windows == [8, 4]
    world.now += 1
    await world.refuse(ApiError("no", code=code))
    assert world.windows == [8, 4, 2]


@pytest.mark.parametrize("code", [404, 409, 422])
async def test_a_refusal_that_concerns_one_binding_is_an_answer_like_any_other(
    world: World, code: int
) -> None:
    await world.refuse(*(ApiError("no", code=code) for _ in range(6)))
    assert world.windows == [8]


async def test_everybody_waits_as_long_as_the_server_asks(world: World) -> None:
    await world.refuse(ApiError("later", code=429, retry_after=3.0))
    await world.refuse(ApiError("gone", code=404))
    assert world.slept == [3.0]


async def test_nobody_waits_for_longer_than_half_a_minute(world: World) -> None:
    await world.refuse(ApiError("later", code=503, retry_after=3600.0))
    await world.refuse(ApiError("gone", code=404))
    assert world.slept == [30.0]


async def test_writes_begin_in_the_order_in_which_they_came(world: World) -> None:
    tasks = [asyncio.create_task(world.write(number)) for number in range(40)]
    await _settled()
    assert world.began == list(range(8))
    world._open.set()
    await asyncio.gather(*tasks)
    assert world.began == list(range(40))


async def test_patient_ones_let_those_that_came_later_go_first(world: World) -> None:
    tasks = [asyncio.create_task(world.write(number, low_priority=number in {8, 10})) for number in range(13)]
    await _settled()
    world._open.set()
    await asyncio.gather(*tasks)
    assert world.began == [*range(8), 9, 11, 12, 8, 10]


async def test_patience_ends(world: World) -> None:
    tasks = [asyncio.create_task(world.write(number, low_priority=number == 8)) for number in range(9)]
    await _settled()
    world.now += LOW_PRIORITY_SECONDS
    tasks += [asyncio.create_task(world.write(number, low_priority=number == 9)) for number in range(9, 12)]
    await _settled()
    world._open.set()
    await asyncio.gather(*tasks)
    assert world.began == [*range(9), 10, 11, 9]


async def test_a_patient_one_goes_at_once_where_nobody_waits(world: World) -> None:
    writing = asyncio.create_task(world.write(low_priority=True))
    await _settled()
    assert world.began == [0]
    world._open.set()
    await writing


@pytest.mark.parametrize("low_priority", [False, True])
async def test_one_that_gives_up_waiting_takes_no_turn(world: World, low_priority: bool) -> None:
    tasks = [asyncio.create_task(world.write(number, low_priority=low_priority)) for number in range(10)]
    await _settled()
    tasks[8].cancel()
    await _settled()
    world._open.set()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert world.began == [*range(8), 9]
    assert world.limiter._under_way == 0


async def test_one_that_gives_up_as_its_turn_comes_hands_it_on() -> None:
    world = World(most=1)
    tasks = [asyncio.create_task(world.write(number)) for number in range(3)]
    await _settled()
    world._open.set()
    tasks[0].add_done_callback(lambda _: tasks[1].cancel())
    await asyncio.gather(*tasks, return_exceptions=True)
    assert world.began in ([0, 1, 2], [0, 2])
    assert world.limiter._under_way == 0


async def test_a_rate_that_was_asked_for_is_kept() -> None:
    world = World(rate=10.0)
    world._open.set()
    for _ in range(3):
        await world.write()
    assert world.slept == pytest.approx([0.1, 0.1])


async def test_the_window_is_never_wider_than_the_most_at_a_time() -> None:
    world = World(most=3)
    await world.load(GOOD_LATENCY_SECONDS / 2)
    assert world.most_at_a_time == 3
    assert world.windows == [3]
