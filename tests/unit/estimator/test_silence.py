"""When an estimator is silent: it owes a response, others respond, and this process is not busy."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from karmada_pyscheduler.estimator.silence import SilentEstimators


class Ticks:
    """Estimators whose ticks the test makes, on a manual clock."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._due = asyncio.Event()
        self.waiting = False
        self.estimators = SilentEstimators(lambda: self.seconds, self.pause)

    async def pause(self, seconds: float) -> None:
        self.waiting = True
        await self._due.wait()
        self._due.clear()
        self.waiting = False

    async def tick(self, count: int = 1, *, seconds: float = 0.05) -> None:
        """Make ticks that take some seconds each."""
        for _ in range(count):
            await self.settle()
            self.seconds += seconds
            self._due.set()
            await self.settle()

    async def settle(self) -> None:
        for _ in range(4):
            await asyncio.sleep(0)

    def respond(self, cluster: str) -> None:
        """Have an estimator respond to a request that is sent now."""
        number = self.estimators.sent(cluster)
        self.estimators.ended(cluster, number, responded=True)


@pytest.fixture
async def ticks() -> AsyncIterator[Ticks]:
    made = Ticks()
    yield made
    await made.estimators.close()


async def test_an_estimator_is_silent_half_a_second_after_the_others_have_responded(ticks: Ticks) -> None:
    ticks.estimators.sent("m1")
    ticks.respond("m2")
    await ticks.tick(9)
    assert ticks.estimators.clusters == frozenset()
    await ticks.tick()
    assert ticks.estimators.clusters == {"m1"}


async def test_no_estimator_is_silent_while_none_responds(ticks: Ticks) -> None:
    ticks.respond("m2")
    ticks.estimators.sent("m1")
    ticks.estimators.sent("m2")
    await ticks.tick(50)
    assert ticks.estimators.clusters == frozenset()


async def test_time_in_which_the_process_is_busy_does_not_count(ticks: Ticks) -> None:
    ticks.estimators.sent("m1")
    ticks.respond("m2")
    await ticks.tick(50, seconds=0.2)
    assert ticks.estimators.clusters == frozenset()
    await ticks.tick(10)
    assert ticks.estimators.clusters == {"m1"}


async def test_an_overloaded_estimator_that_responds_now_and_then_is_not_silent(ticks: Ticks) -> None:
    numbers = [ticks.estimators.sent("m1") for _ in range(20)]
    for number in numbers[:-1]:
        ticks.respond("m2")
        await ticks.tick(9)
        ticks.estimators.ended("m1", number, responded=True)
        assert ticks.estimators.clusters == frozenset()


async def test_a_response_ends_the_silence(ticks: Ticks) -> None:
    first = ticks.estimators.sent("m1")
    ticks.estimators.sent("m1")
    ticks.respond("m2")
    await ticks.tick(10)
    ticks.estimators.ended("m1", first, responded=True)
    assert ticks.estimators.clusters == frozenset()
    await ticks.tick(50)  # no other has responded to a request that was sent since
    assert ticks.estimators.clusters == frozenset()
    ticks.respond("m2")
    await ticks.tick(10)
    assert ticks.estimators.clusters == {"m1"}


async def test_a_missed_deadline_does_not_end_the_silence_while_other_requests_are_pending(
    ticks: Ticks,
) -> None:
    first, second = (ticks.estimators.sent("m1") for _ in range(2))
    ticks.respond("m2")
    await ticks.tick(10)
    ticks.estimators.ended("m1", first, responded=False)
    assert ticks.estimators.clusters == {"m1"}
    ticks.estimators.ended("m1", second, responded=False)
    assert ticks.estimators.clusters == frozenset()


async def test_a_decision_is_notified_when_only_silent_estimators_are_missing(ticks: Ticks) -> None:
    async def request(until: asyncio.Event) -> None:
        await until.wait()

    events = {name: asyncio.Event() for name in ("m1", "m2")}
    requests = {name: asyncio.create_task(request(event)) for name, event in events.items()}
    ticks.estimators.sent("m1")
    number = ticks.estimators.sent("m2")
    ticks.respond("m3")
    for _ in range(3):  # m2 is slow
        await ticks.tick(9)
        ticks.estimators.ended("m2", number, responded=True)
        number = ticks.estimators.sent("m2")
    with ticks.estimators.watching(requests) as watch:
        await ticks.tick()
        assert ticks.estimators.clusters == {"m1"}
        assert not watch.done()
        events["m2"].set()
        await ticks.tick()
        assert watch.done()
    events["m1"].set()
    await asyncio.gather(*requests.values())
    assert not ticks.estimators._watches


async def test_a_later_decision_is_notified_at_the_next_tick(ticks: Ticks) -> None:
    ticks.estimators.sent("m1")
    ticks.respond("m2")
    await ticks.tick(10)
    missing = asyncio.create_task(asyncio.Event().wait())
    with ticks.estimators.watching({"m1": missing}) as watch:
        await ticks.tick()
        assert watch.done()
    missing.cancel()


async def test_there_are_no_ticks_without_pending_requests(ticks: Ticks) -> None:
    ticks.respond("m1")
    await ticks.tick()
    await ticks.settle()
    assert not ticks.waiting
    ticks.estimators.sent("m1")
    await ticks.settle()
    assert ticks.waiting
