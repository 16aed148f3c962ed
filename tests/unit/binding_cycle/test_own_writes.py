"""Waiting for the watch event of an own write."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine

from karmada_pyscheduler.binding_cycle.writer import OwnWrites
from karmada_scheduler.api.binding import BindingKey
from karmada_scheduler.testing import binding

WEB = BindingKey("ResourceBinding", "default", "web-deployment")
OTHER = BindingKey("ResourceBinding", "default", "other-deployment")
FOREVER = 3600.0


async def started(coroutine: Coroutine[object, object, None]) -> asyncio.Task[None]:
    task = asyncio.create_task(coroutine)
    for _ in range(5):
        await asyncio.sleep(0)
    return task


async def test_waiting_ends_when_the_watch_delivers_the_version() -> None:
    own_writes = OwnWrites(seconds=FOREVER)
    own_writes.expect(WEB)
    waiting = await started(own_writes.wait_observed(WEB, 7))
    for key, version in ((WEB, 6), (OTHER, 7)):
        own_writes.observe(key, version)
        await asyncio.sleep(0)
        assert not waiting.done()
    own_writes.observe(WEB, 7)
    await waiting


async def test_waiting_ends_when_the_watch_delivers_a_newer_version() -> None:
    own_writes = OwnWrites(seconds=FOREVER)
    own_writes.expect(WEB)
    waiting = await started(own_writes.wait_observed(WEB, 7))
    own_writes.observe(WEB, 9)
    own_writes.observe(WEB, 10)
    await waiting


async def test_an_event_before_the_response_ends_the_wait_at_once() -> None:
    own_writes = OwnWrites(seconds=FOREVER)
    own_writes.expect(WEB)
    own_writes.observe(WEB, 7)
    await asyncio.wait_for(own_writes.wait_observed(WEB, 7), timeout=5)


async def test_a_version_without_an_expected_write_is_not_tracked() -> None:
    own_writes = OwnWrites(seconds=FOREVER)
    own_writes.observe(WEB, 6)
    await asyncio.wait_for(own_writes.wait_observed(WEB, 7), timeout=5)
    own_writes.expect(WEB)
    own_writes.forget(WEB)
    assert len(own_writes) == 0
    await asyncio.wait_for(own_writes.wait_observed(WEB, 7), timeout=5)


async def test_waiting_for_a_silent_watch_is_limited() -> None:
    own_writes = OwnWrites(seconds=0.001)
    own_writes.expect(WEB)
    await asyncio.wait_for(own_writes.wait_observed(WEB, 7), timeout=5)
    await asyncio.wait_for(own_writes.wait_observed(WEB, 7), timeout=5)


async def test_a_cancelled_wait_leaves_no_state() -> None:
    own_writes = OwnWrites(seconds=FOREVER)
    own_writes.expect(WEB)
    waiting = await started(own_writes.wait_observed(WEB, 7))
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    own_writes.observe(WEB, 7)
    await asyncio.wait_for(own_writes.wait_observed(WEB, 7), timeout=5)


def test_the_conditions_of_a_status_are_known_until_its_write_has_ended() -> None:
    own_writes = OwnWrites()
    failure = {"type": "Scheduled", "status": "False", "reason": "SchedulerError"}
    failed = binding("web").condition(**failure).build()
    other = binding("web").condition(**{**failure, "reason": "NoClusterFit"}).build()
    assert not own_writes.has_conditions_of(failed)
    own_writes.begin_status(failed.key, [failure])
    assert own_writes.has_conditions_of(failed)
    assert not own_writes.has_conditions_of(other)
    own_writes.end_status(failed.key)
    own_writes.end_status(failed.key)
    assert not own_writes.has_conditions_of(failed)
