"""The list and the watch of one kind: versions, restarts, silence, known changes. Without kopf."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import orjson
import pytest

from karmada_pyscheduler.client.karmada import CLUSTERS
from karmada_pyscheduler.client.watch_requests import WatchRequests
from karmada_pyscheduler.informer import reflector as module
from karmada_pyscheduler.informer.reflector import Reflector
from tests.unit.informer.watch_harness import GONE, until


def line(version: int, event: str = "MODIFIED") -> bytes:
    return orjson.dumps(
        {"type": event, "object": {"metadata": {"name": "m1", "resourceVersion": str(version)}}}
    )


class ReflectorHarness:
    """The watch of clusters, its lists, and the lines of its connections; None ends a connection."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.newest = 10**9
        """The version that the API server is taken to have."""
        self.lists = 0
        self.known: set[str] = set()
        self.observed: list[str] = []
        self.since: list[str] = []
        self.closed = 0
        self.accepts = True
        self.lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.got: list[tuple[str, str]] = []
        requests = WatchRequests(self._connect, clock=lambda: self.now, sleep=lambda _: asyncio.sleep(0))
        self.reflector = Reflector(CLUSTERS, self, self, requests, clock=lambda: self.now)

    async def list_and_start_version(self, kind: str) -> str:
        assert kind == "Cluster"
        self.lists += 1
        return "7"

    async def must_relist(self, _: str, version: str) -> bool:
        return int(version) > self.newest

    def observe(self, _: str, manifest: Mapping[str, Any]) -> None:
        self.observed.append(manifest["metadata"]["resourceVersion"])

    def is_known(self, _: str, manifest: Mapping[str, Any]) -> bool:
        return manifest["metadata"]["resourceVersion"] in self.known

    async def _connect(self, target: str, accepted: Callable[[], None]) -> AsyncGenerator[bytes, None]:
        path, _, query = target.partition("?")
        assert path == CLUSTERS.path
        assert query.startswith("watch=true&allowWatchBookmarks=true&resourceVersion=")
        self.since.append(query.rpartition("=")[2])
        if self.accepts:
            accepted()
        try:
            while (found := await self.lines.get()) is not None:
                yield found
        finally:
            self.closed += 1

    async def _read(self) -> None:
        async for event in self.reflector.events():
            self.got.append((event["type"], event["object"]["metadata"]["resourceVersion"]))

    @asynccontextmanager
    async def reading(self, *lines: bytes | None) -> AsyncGenerator[None, None]:
        self.send(*lines)
        reading = asyncio.create_task(self._read())
        try:
            yield
            assert not reading.done()
            assert not reading.cancelling()
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

    def send(self, *lines: bytes | None) -> None:
        for each in lines:
            self.lines.put_nowait(each)


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_RELIST_PAUSE", 0.0)


async def test_a_connection_that_ends_is_followed_by_one_that_continues_at_the_last_version() -> None:
    harness = ReflectorHarness()
    async with harness.reading(line(8, "ADDED"), line(9), None, line(10, "DELETED")):
        await until(lambda: len(harness.got) == 3)
        assert harness.got == [("ADDED", "8"), ("MODIFIED", "9"), ("DELETED", "10")]
        assert harness.since == ["7", "9"]
        assert harness.lists == 1
    assert harness.closed == 2


async def test_a_bookmark_is_no_event_and_the_next_connection_continues_at_its_version() -> None:
    harness = ReflectorHarness()
    async with harness.reading(line(12, "BOOKMARK"), None):
        await until(lambda: harness.since == ["7", "12"])
    assert harness.got == []


async def test_a_version_that_is_gone_is_followed_by_a_list() -> None:
    harness = ReflectorHarness()
    async with harness.reading(line(8), GONE, line(9)):
        await until(lambda: len(harness.got) == 2)
    assert harness.lists == 2
    assert harness.since == ["7", "7"]


async def test_a_newer_version_than_the_server_s_is_followed_by_a_list() -> None:
    harness = ReflectorHarness()
    async with harness.reading(line(8)):
        await until(lambda: len(harness.got) == 1)
        harness.newest = 7
        harness.send(None)
        await until(lambda: harness.lists >= 2)
    # The server may have been restored between the list and its watch.
    harness.newest = 6
    connections = len(harness.since)
    async with harness.reading():
        await until(lambda: harness.lists >= 5)
        assert len(harness.since) == connections


async def test_a_restart_ends_a_connection_without_events() -> None:
    harness = ReflectorHarness()
    async with harness.reading(line(8)):
        await until(lambda: len(harness.got) == 1)
        harness.reflector.restart()
        await until(lambda: len(harness.since) == 2)
        assert harness.lists == 2
        assert harness.closed == 1


async def test_a_restart_while_an_event_is_handled_ends_the_connection_after_it() -> None:
    harness = ReflectorHarness()
    harness.send(line(8), line(9))
    events = harness.reflector.events()
    assert (await anext(events))["object"]["metadata"]["resourceVersion"] == "8"
    harness.reflector.restart()
    assert (await anext(events))["object"]["metadata"]["resourceVersion"] == "9"
    assert harness.since == ["7", "7"]
    assert harness.lists == 2
    await events.aclose()


async def test_a_restart_before_the_first_list_has_no_effect() -> None:
    harness = ReflectorHarness()
    harness.reflector.restart()
    async with harness.reading(line(8)):
        await until(lambda: len(harness.got) == 1)
    assert harness.lists == 1


async def test_a_cancelled_watch_ends_although_it_was_restarted() -> None:
    harness = ReflectorHarness()
    reading = asyncio.create_task(harness._read())
    await until(lambda: len(harness.since) == 1)
    await asyncio.sleep(0)
    harness.reflector.restart()
    reading.cancel()
    assert await asyncio.gather(reading, return_exceptions=True)
    assert reading.cancelled()


async def test_a_connection_that_is_not_accepted_is_replaced_and_the_server_s_version_read_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_REFUSED_SECONDS", 0.01)
    harness = ReflectorHarness()
    harness.reflector._accepted()  # resets the time limit
    harness.accepts = False
    began = asyncio.get_running_loop().time()
    async with harness.reading():
        await until(lambda: harness.closed >= 3)
        assert asyncio.get_running_loop().time() - began >= 0.01 + 0.02 + 0.04
        harness.newest = 6
        await until(lambda: harness.lists >= 2)


async def test_an_accepted_connection_has_no_time_limit_before_it_is_idle(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_REFUSED_SECONDS", 0.01)
    harness = ReflectorHarness()
    harness.reflector._accepted()
    async with harness.reading():
        await until(lambda: len(harness.since) == 1)
        await asyncio.sleep(0.05)
        assert harness.closed == 0
        harness.now += module.IDLE_SECONDS
        harness.reflector._check()
        await until(lambda: len(harness.since) == 2)
        assert harness.lists == 1


async def test_an_idle_connection_is_checked_again_when_it_has_delivered_nothing_for_its_time() -> None:
    harness = ReflectorHarness()
    async with harness.reading(line(8)):
        await until(lambda: len(harness.got) == 1)
        harness.now += 30
        harness.reflector._check()
        timer = harness.reflector._timer
        assert timer is not None
        left = timer.when() - asyncio.get_running_loop().time()
        assert left == pytest.approx(module.IDLE_SECONDS - 30, abs=1)
    assert harness.reflector._timer is None
    assert timer.cancelled()


async def test_the_age_counts_from_the_last_event_bookmark_or_acceptance() -> None:
    harness = ReflectorHarness()
    harness.now += 301
    assert harness.reflector.age == 301
    harness.reflector.reset_age()
    assert harness.reflector.age == 0
    async with harness.reading():
        harness.now += 5
        await until(lambda: len(harness.since) == 1)
        assert harness.reflector.age == 0
        harness.now += 5
        harness.send(line(9, "BOOKMARK"))
        await until(lambda: harness.reflector.age == 0)


@pytest.mark.parametrize("event", ["MODIFIED", "ADDED", "DELETED"])
async def test_only_known_changes_are_dropped(event: str) -> None:
    harness = ReflectorHarness()
    harness.known.add("8")
    async with harness.reading(line(8, event), line(9, event)):
        await until(lambda: (event, "9") in harness.got)
    assert ((event, "8") in harness.got) == (event != "MODIFIED")
    assert harness.observed == (["8", "9"] if event == "MODIFIED" else [])


async def test_an_exception_about_a_known_change_ends_no_watch(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def raises(*_: object) -> bool:
        raise RuntimeError("a defect")

    harness = ReflectorHarness()
    monkeypatch.setattr(harness, "is_known", raises)
    async with harness.reading(line(8), line(9)):
        await until(lambda: len(harness.got) == 2)
    assert harness.lists == 1
    assert "Cannot determine whether a change is known" in caplog.text
