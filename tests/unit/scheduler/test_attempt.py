"""Attempts: slots, bindings in flight, assumed placements, and the one end of each attempt."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest

from karmada_pyscheduler.cache.assumed import AssumedPlacements
from karmada_pyscheduler.cache.bindings import BindingCache
from karmada_pyscheduler.metrics.metrics import Metrics
from karmada_pyscheduler.scheduler.attempt import Attempts
from karmada_scheduler.api.binding import Binding, BindingKey, TargetCluster
from karmada_scheduler.structs import replace
from karmada_scheduler.testing import binding

M1 = (TargetCluster("m1", 2),)


def attempts(limit: int = 1, *, assumed: AssumedPlacements | None = None) -> Attempts:
    return Attempts(limit, bindings=BindingCache(), assumed=assumed, metrics=Metrics(), clock=lambda: 0.0)


def workload() -> Binding:
    return binding("web").replicas(2, cpu=1).resource_version("1").build()


def key(name: str) -> BindingKey:
    return BindingKey("ResourceBinding", "default", name)


async def is_pending(task: asyncio.Task[object]) -> bool:
    for _ in range(5):
        await asyncio.sleep(0)
    return not task.done()


async def test_an_attempt_begins_when_another_has_ended() -> None:
    all_attempts = attempts()
    first = await all_attempts.begin(key("a"))
    second = asyncio.create_task(all_attempts.begin(key("b")))
    assert await is_pending(second)
    first.end()
    (await second).end()


async def test_an_attempt_ends_once() -> None:
    attempt = await attempts().begin(key("a"))
    attempt.end()
    with pytest.raises(AssertionError):
        attempt.end()


async def test_an_attempt_that_waits_at_permit_has_no_slot_until_it_gets_one_again() -> None:
    all_attempts = attempts()
    waiting = await all_attempts.begin(key("a"))
    async with waiting.without_slot():
        await all_attempts.wait_for_results()
        (await all_attempts.begin(key("b"))).end()
    other = asyncio.create_task(all_attempts.begin(key("c")))
    assert await is_pending(other)
    waiting.end()
    (await other).end()


async def test_an_undecided_attempt_that_is_cancelled_when_a_slot_is_free_again_keeps_nobody_waiting() -> (
    None
):
    all_attempts = attempts()
    undecided = await all_attempts.begin(key("a"))
    answered = asyncio.Event()

    async def decide() -> None:
        async with undecided.undecided_without_slot():
            await answered.wait()

    deciding = asyncio.create_task(decide())
    other = await all_attempts.begin(key("b"))
    answered.set()
    assert await is_pending(deciding)
    waiting = asyncio.create_task(all_attempts.wait_for_results())
    assert await is_pending(waiting)
    other.end()
    deciding.cancel()
    assert not await is_pending(waiting)


async def test_a_cancelled_wait_at_permit_releases_no_slot_twice() -> None:
    all_attempts = attempts()
    waiting = await all_attempts.begin(key("a"))

    async def wait() -> None:
        try:
            async with waiting.without_slot():
                await asyncio.Event().wait()
        finally:
            waiting.end()

    task = asyncio.create_task(wait())
    assert await is_pending(task)
    other = await all_attempts.begin(key("b"))
    task.cancel()
    assert await is_pending(task), "it waits for a slot"
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    third = asyncio.create_task(all_attempts.begin(key("c")))
    assert await is_pending(third)
    other.end()
    (await third).end()


async def test_a_binding_is_in_flight_with_its_new_clusters_until_its_attempt_ends() -> None:
    all_attempts = attempts()
    attempt = await all_attempts.begin(workload().key)
    attempt.put_in_flight(workload(), M1)
    assert [each.spec.clusters for each in all_attempts.in_flight.values()] == [M1]
    attempt.end()
    assert all_attempts.in_flight == {}


@pytest.mark.parametrize("is_stored", [True, False])
async def test_an_assumed_placement_is_kept_if_it_is_stored_at_the_end(is_stored: bool) -> None:
    assumed = AssumedPlacements(clock=lambda: 0.0, ttl=300.0)
    all_attempts = attempts(assumed=assumed)
    before = workload()
    attempt = await all_attempts.begin(before.key)
    attempt.assume(before, M1)
    assert list(assumed.by_cluster()) == ["m1"]
    if is_stored:
        all_attempts.bindings.put(replace(before, spec=replace(before.spec, clusters=M1)))
    assert assumed.pending == 1
    attempt.end()
    assert list(assumed.by_cluster()) == (["m1"] if is_stored else [])
    assert assumed.pending == 0


class TestWaitingForEstimators:
    async def test_other_attempts_begin_meanwhile(self) -> None:
        all_attempts = attempts()
        waiting = await all_attempts.begin(key("a"))
        async with waiting.undecided_without_slot():
            (await all_attempts.begin(key("b"))).end()
        other = asyncio.create_task(all_attempts.begin(key("c")))
        assert await is_pending(other)
        waiting.end()
        (await other).end()

    async def test_its_result_is_still_under_way(self) -> None:
        all_attempts = attempts()
        waiting = await all_attempts.begin(key("a"))
        async with waiting.undecided_without_slot():
            assert all_attempts.pending == 1
            results = asyncio.create_task(all_attempts.wait_for_results())
            assert await is_pending(results)
        assert await is_pending(results)
        waiting.end()
        await results
        assert all_attempts.pending == 0

    async def test_at_most_eight_per_slot_wait_without_one(self) -> None:
        all_attempts = attempts()
        async with AsyncExitStack() as stack:
            for number in range(8):
                attempt = await all_attempts.begin(key(str(number)))
                stack.callback(attempt.end)
                await stack.enter_async_context(attempt.undecided_without_slot())
            ninth = await all_attempts.begin(key("ninth"))
            other = asyncio.create_task(all_attempts.begin(key("other")))
            async with ninth.undecided_without_slot() as has_no_slot:
                assert not has_no_slot
                assert await is_pending(other)
            ninth.end()
            (await other).end()

    async def test_one_that_waits_for_its_slot_leaves_its_place_to_another(self) -> None:
        all_attempts = attempts()
        waits = [asyncio.Event() for _ in range(8)]

        async def wait(number: int) -> None:
            attempt = await all_attempts.begin(key(str(number)))
            async with attempt.undecided_without_slot():
                await waits[number].wait()
            attempt.end()

        tasks = [asyncio.create_task(wait(number)) for number in range(8)]
        assert await is_pending(tasks[-1])
        ninth = await all_attempts.begin(key("ninth"))
        waits[0].set()
        assert await is_pending(tasks[0])
        async with ninth.undecided_without_slot() as has_no_slot:
            assert has_no_slot
            await tasks[0]
        ninth.end()
        for each in waits:
            each.set()
        await asyncio.gather(*tasks)
        assert all_attempts.pending == 0

    async def test_a_cancelled_wait_counts_no_longer(self) -> None:
        all_attempts = attempts()
        waiting = await all_attempts.begin(key("a"))

        async def wait() -> None:
            try:
                async with waiting.undecided_without_slot():
                    await asyncio.Event().wait()
            finally:
                waiting.end()

        task = asyncio.create_task(wait())
        assert await is_pending(task)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert all_attempts.pending == 0
        (await all_attempts.begin(key("b"))).end()

    async def test_one_that_is_cancelled_when_it_gets_its_slot_is_noticed(self) -> None:
        all_attempts = attempts()
        waiting = await all_attempts.begin(key("a"))
        answered = asyncio.Event()

        async def wait() -> None:
            try:
                async with waiting.undecided_without_slot():
                    await answered.wait()
            finally:
                waiting.end()

        task = asyncio.create_task(wait())
        assert await is_pending(task)
        other = await all_attempts.begin(key("b"))
        answered.set()
        assert await is_pending(task), "it waits for a slot"
        results = asyncio.create_task(all_attempts.wait_for_results())
        assert await is_pending(results)
        other.end()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert not await is_pending(results)
