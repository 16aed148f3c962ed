"""Waiting for the watch to bring what was just written."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine

from karmada_scheduler.api.binding import BindingKey
from karmada_scheduler.binding_cycle.own_writes import OwnWrites

WEB = BindingKey("ResourceBinding", "default", "web-deployment")
OTHER = BindingKey("ResourceBinding", "default", "other-deployment")
FOREVER = 3600.0


async def turns(coroutine: Coroutine[object, object, None]) -> asyncio.Task[None]:
    task = asyncio.create_task(coroutine)
    for _ in range(5):
        await asyncio.sleep(0)
    return task


async def test_a_write_waits_until_the_watch_has_brought_its_version() -> None:
    own_writes = OwnWrites(seconds=FOREVER)
    own_writes.expect(WEB)
    waiting = await turns(own_writes.wait_observed(WEB, 7))
    for key, version in ((WEB, 6), (OTHER, 7)):
        own_writes.observe(key, version)
        await asyncio.sleep(0)
        assert not waiting.done()
    own_writes.observe(WEB, 7)
    await waiting


async def test_a_newer_version_will_do() -> None:
    own_writes = OwnWrites(seconds=FOREVER)
    own_writes.expect(WEB)
    waiting = await turns(own_writes.wait_observed(WEB, 7))
    own_writes.observe(WEB, 9)
    own_writes.observe(WEB, 10)
    await waiting


async def test_an_echo_that_overtook_the_answer_is_not_waited_for() -> None:
    own_writes = OwnWrites(seconds=FOREVER)
    own_writes.expect(WEB)
    own_writes.observe(WEB, 7)
    await asyncio.wait_for(own_writes.wait_observed(WEB, 7), timeout=5)


async def test_what_nobody_expects_is_neither_waited_for_nor_remembered() -> None:
    own_writes = OwnWrites(seconds=FOREVER)
    own_writes.observe(WEB, 6)
    await asyncio.wait_for(own_writes.wait_observed(WEB, 7), timeout=5)
    own_writes.expect(WEB)
    own_writes.forget(WEB)
    assert len(own_writes) == 0
    await asyncio.wait_for(own_writes.wait_observed(WEB, 7), timeout=5)


async def test_a_watch_that_brings_nothing_holds_nobody_up_for_long() -> None:
    own_writes = OwnWrites(seconds=0.001)
    own_writes.expect(WEB)
    await asyncio.wait_for(own_writes.wait_observed(WEB, 7), timeout=5)
    await asyncio.wait_for(own_writes.wait_observed(WEB, 7), timeout=5)


async def test_whoever_gives_up_waiting_leaves_nothing_behind() -> None:
    own_writes = OwnWrites(seconds=FOREVER)
    own_writes.expect(WEB)
    waiting = await turns(own_writes.wait_observed(WEB, 7))
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    own_writes.observe(WEB, 7)
    await asyncio.wait_for(own_writes.wait_observed(WEB, 7), timeout=5)
