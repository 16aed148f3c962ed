"""Requests for lists: each is taken once, at once, and leaves no task behind."""

from __future__ import annotations

import asyncio

from karmada_pyscheduler.informer.list_requests import ListRequests


async def test_a_request_ends_the_wait_and_is_taken_once() -> None:
    requests, waits = ListRequests(), list[asyncio.Future[None]]()

    async def sleep(_: float) -> None:
        waits.append(asyncio.get_running_loop().create_future())
        await waits[-1]

    requests.soon(["Cluster"])
    requests.soon(["ResourceBinding"])
    assert await requests.take(60.0, sleep) == {"Cluster", "ResourceBinding"}
    taking = asyncio.create_task(requests.take(60.0, sleep))
    for _ in range(5):
        await asyncio.sleep(0)
    assert not taking.done()
    waits[-1].set_result(None)
    assert await taking == set()


async def test_no_task_is_left_of_a_wait() -> None:
    requests = ListRequests()
    before = asyncio.all_tasks()
    for _ in range(3):
        assert await requests.take(0.0, lambda _: asyncio.sleep(0)) == set()
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == before


async def test_a_request_for_later_ends_the_wait_then() -> None:
    requests = ListRequests()
    requests.after(0.01, ["Cluster"])
    assert await requests.take(60.0, asyncio.sleep) == {"Cluster"}
