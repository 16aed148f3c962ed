"""Reads of clusters by name: in parallel, limited in rate, and nothing waits for one of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import pytest

from karmada_pyscheduler.informer.cluster_reads import BURST, READS_PER_SECOND, SOON_SECONDS, ClusterReads
from karmada_scheduler.api_error import ApiError


class Clock:
    """Simulated time: it goes on when every task waits for it."""

    def __init__(self) -> None:
        self.now = 0.0
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []

    async def sleep(self, seconds: float) -> None:
        sleeper = asyncio.get_running_loop().create_future()
        self._sleepers.append((self.now + seconds, sleeper))
        await sleeper

    async def pass_until(self, reached: Callable[[], bool]) -> None:
        async with asyncio.timeout(10):
            while not reached():
                for _ in range(30):  # the steps of tasks that go on after a sleep
                    await asyncio.sleep(0)
                self._sleepers = [entry for entry in self._sleepers if not entry[1].done()]
                if reached() or not self._sleepers:
                    continue
                entry = min(self._sleepers, key=lambda entry: entry[0])
                self.now = max(self.now, entry[0])
                entry[1].set_result(None)


class Reads:
    """Reads with answers that take ``seconds`` each."""

    def __init__(self, *, seconds: float = 0.02) -> None:
        self.clock = Clock()
        self.seconds = seconds
        self.sent: list[tuple[float, str]] = []
        self.in_parallel = self.most_in_parallel = 0
        self.answers: dict[str, Any] = {}
        self.found: list[Any] = []
        self.absent: list[str] = []
        self.reports: list[float] = []
        self.reads = ClusterReads(
            on_found=lambda found, _: self.found.append(found),
            on_absent=self._on_absent,
            clock=lambda: self.clock.now,
        )

    def _on_absent(self, names: Iterable[str], as_of: int) -> None:
        assert as_of == self.reads.as_of
        self.reports.append(self.clock.now)
        self.absent += sorted(names)

    async def _read(self, name: str) -> Any:
        self.sent.append((self.clock.now, name))
        self.in_parallel += 1
        self.most_in_parallel = max(self.most_in_parallel, self.in_parallel)
        try:
            await self.clock.sleep(self.seconds)
        finally:
            self.in_parallel -= 1
        answer = self.answers.get(name)
        if isinstance(answer, Exception):
            raise answer
        return answer

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.reads.run(self._read, self.clock.sleep))
        try:
            yield
            assert not task.done()
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def soon(self, names: list[str]) -> set[str]:
        task = asyncio.create_task(self.reads.soon(names, self.clock.sleep))
        await self.clock.pass_until(task.done)
        return task.result()


def names_of(number: int) -> list[str]:
    return [f"c{index:05}" for index in range(number)]


async def test_thousands_of_names_delay_nothing_for_longer_than_two_seconds_and_are_read_slowly() -> None:
    made = Reads()
    async with made.running():
        absent = await made.soon(names_of(15_000))
        assert made.clock.now == SOON_SECONDS
        assert BURST <= len(absent) <= BURST + SOON_SECONDS * READS_PER_SECOND
        before, begun = len(made.sent), made.clock.now
        await made.clock.pass_until(lambda: made.clock.now >= begun + 60)
        assert len(made.sent) - before <= 60 * READS_PER_SECOND + 1
    assert made.most_in_parallel == 8
    assert len(made.absent) > 250
    assert len(made.reports) <= 60 / 5 + 1, "bindings on thousands of names are not decided after each answer"


async def test_no_second_has_more_reads_than_the_rate_after_the_burst() -> None:
    made = Reads()
    async with made.running():
        await made.soon(names_of(1_000))
        await made.clock.pass_until(lambda: made.clock.now >= 30)
    times = [at for at, _ in made.sent if at > SOON_SECONDS]
    assert times
    assert max(sum(begin <= at < begin + 1 for at in times) for begin in times) <= READS_PER_SECOND + 1


async def test_answers_that_take_long_are_awaited_for_two_seconds_only() -> None:
    made = Reads(seconds=9.0)
    async with made.running():
        assert await made.soon(["m1", "m2"]) == set()
        assert made.clock.now == SOON_SECONDS
        await made.clock.pass_until(lambda: made.absent == ["m1", "m2"])
        assert made.clock.now == 9.0


async def test_a_wait_ends_when_each_cluster_was_read_once() -> None:
    made = Reads()
    made.answers = {"m1": {"name": "m1"}, "m2": ApiError("forbidden", code=403)}
    async with made.running():
        assert await made.soon(["m1", "m2", "m3"]) == {"m3"}
        assert made.clock.now < 0.1
        assert (made.found, made.absent) == ([{"name": "m1"}], [])


async def test_a_cluster_that_cannot_be_read_is_read_again_with_growing_pauses(
    caplog: pytest.LogCaptureFixture,
) -> None:
    made = Reads(seconds=0.0)
    made.answers = {"m1": ApiError("m1 is forbidden", code=403)}
    async with made.running():
        made.reads.request(["m1"])
        await made.clock.pass_until(lambda: len(made.sent) == 8)
        times = [at for at, _ in made.sent]
        assert [round(later - at) for at, later in pairwise(times)] == [1, 2, 5, 10, 30, 30, 30]
        made.answers = {}
        await made.clock.pass_until(lambda: made.absent == ["m1"])
    assert sum("cannot be read" in record.message for record in caplog.records) == 2, (
        "at once, and after a minute"
    )


async def test_an_unexpected_error_ends_neither_the_loop_nor_the_wait(
    caplog: pytest.LogCaptureFixture,
) -> None:
    made = Reads()
    made.answers = {"m1": RuntimeError("a defect")}
    async with made.running():
        assert await made.soon(["m1", "m2"]) == {"m2"}
    assert "a defect" in caplog.text


async def test_a_cluster_that_an_event_has_delivered_is_not_read_and_an_older_answer_does_not_count() -> None:
    made = Reads()
    async with made.running():
        made.reads.request(["m1"])
        await made.clock.pass_until(lambda: made.in_parallel == 1)
        made.reads.forget("m1")
        await made.clock.pass_until(lambda: made.in_parallel == 0)
        made.reads.request(["m2"])
        made.reads.forget("m2")
        made.reads.request(["m3"])
        await made.clock.pass_until(lambda: made.absent == ["m3"])
    assert [name for _, name in made.sent] == ["m1", "m3"]


async def test_an_answer_that_is_older_than_a_second_request_does_not_count() -> None:
    made = Reads(seconds=1.0)
    async with made.running():
        made.reads.request(["m1"])
        await made.clock.pass_until(lambda: made.in_parallel == 1)
        made.reads.forget("m1")
        made.answers = {"m1": {"name": "m1"}}
        made.reads.request(["m1"])
        await made.clock.pass_until(lambda: made.in_parallel == 2)
        made.reads.forget("m1")
        await made.clock.pass_until(lambda: made.in_parallel == 0)
    assert (made.found, made.absent) == ([], [])


async def test_a_cluster_that_appears_during_a_wait_is_not_reported_as_absent() -> None:
    made = Reads()
    async with made.running():
        task = asyncio.create_task(made.reads.soon(["m1", "m2"], made.clock.sleep))
        made.answers = {"m2": ApiError("no response")}
        await made.clock.pass_until(lambda: made.in_parallel == 2)
        made.reads.forget("m1")
        await made.clock.pass_until(task.done)
    assert task.result() == set()


async def test_a_wait_ends_when_events_have_delivered_the_clusters_meanwhile() -> None:
    made = Reads(seconds=9.0)
    async with made.running():
        task = asyncio.create_task(made.reads.soon(["m1", "m2"], made.clock.sleep))
        await made.clock.pass_until(lambda: made.in_parallel == 2)
        for name in ("m1", "m2"):
            made.reads.forget(name)
        await made.clock.pass_until(task.done)
    assert (task.result(), made.clock.now) == (set(), 0.0)


async def test_absent_clusters_are_reported_when_the_last_read_has_ended() -> None:
    made = Reads()
    async with made.running():
        made.reads.request(["m1", "m2"])
        await made.clock.pass_until(lambda: made.absent == ["m1", "m2"])
    assert made.clock.now < 0.1


@pytest.mark.parametrize("name", ["", "a/b", "m1/status", "../x", "a?b", "a%2Fb", "A B", "a" * 254])
async def test_a_name_that_no_cluster_can_have_costs_no_request(name: str) -> None:
    made = Reads()
    async with made.running():
        assert await made.soon([name, "m1"]) == {name, "m1"}
    assert [sent for _, sent in made.sent] == ["m1"]
