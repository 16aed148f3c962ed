"""The connections of a watch: events, silence, restarts."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest
from kopf._core.reactor import inventory

from karmada_scheduler.client import watch_streams as streams_module
from karmada_scheduler.client.karmada import CLUSTERS, WATCHED
from karmada_scheduler.client.watch_streams import EXPIRED, WatchStreams
from karmada_scheduler.informer import kopf_settings
from karmada_scheduler.informer import kopf_watch as module
from tests.fake_apiserver import status
from tests.unit.informer.watch_harness import WatchHarness, api_server, to, touch, until

EVENT = {"type": "ADDED", "object": {}}


class StreamsHarness:
    """The watch of a kind, and the events of its connections."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.ahead = False
        self.connections = 0
        self.incoming: asyncio.Queue[Any] = asyncio.Queue()
        self.closed = 0
        self.streams = WatchStreams(
            ["Cluster", "Policy"], clock=lambda: self.now, must_relist=self._must_relist, silent_after=300
        )

    async def _must_relist(self, kind: str, version: str) -> bool:
        assert (kind, version) == ("Cluster", "7")
        return self.ahead

    async def _connect(self) -> AsyncIterator[Any]:
        self.connections += 1
        try:
            while (event := await self.incoming.get()) is not None:
                if isinstance(event, Exception):
                    raise event
                yield event
        finally:
            self.closed += 1

    async def connection(self, *events: Any) -> list[Any]:
        for event in events:
            self.incoming.put_nowait(event)
        return [event async for event in self.streams.connection("Cluster", "7", self._connect)]


async def test_a_connection_delivers_its_events_and_the_next_one_continues_where_it_ended() -> None:
    harness = StreamsHarness()
    assert await harness.connection(EVENT, EVENT, None) == [EVENT, EVENT]
    assert await harness.connection(EVENT, None) == [EVENT]
    assert harness.connections == harness.closed == 2


async def test_a_watch_with_a_newer_version_than_the_server_starts_from_scratch() -> None:
    harness = StreamsHarness()
    harness.ahead = True
    # The server may have been restored between the list and its watch.
    assert await harness.connection() == [EXPIRED]
    assert harness.connections == 0
    harness.ahead = False
    harness.streams.starts("Cluster")
    assert await harness.connection(EVENT, None) == [EVENT]


async def test_a_restart_ends_a_connection_without_events() -> None:
    harness = StreamsHarness()
    reading = asyncio.create_task(harness.connection(EVENT))
    while not harness.incoming.empty() or not harness.connections:
        await asyncio.sleep(0)
    await asyncio.sleep(0)
    harness.streams.restart("Policy")
    for _ in range(5):
        await asyncio.sleep(0)
    assert not reading.done()
    harness.streams.restart("Cluster")
    assert await asyncio.wait_for(reading, timeout=5) == [EVENT, EXPIRED]
    assert harness.closed == 1
    assert not reading.cancelling()


async def test_a_restart_while_an_event_is_handled_ends_the_connection_after_it() -> None:
    harness = StreamsHarness()
    harness.incoming.put_nowait(EVENT)
    found = []
    async for event in harness.streams.connection("Cluster", "7", harness._connect):
        found.append(event)
        harness.streams.restart("Cluster")
    assert found == [EVENT, EXPIRED]


async def test_a_restart_before_a_start_from_scratch_has_no_effect() -> None:
    harness = StreamsHarness()
    harness.streams.restart("Cluster")
    harness.streams.starts("Cluster")
    assert await harness.connection(EVENT, None) == [EVENT]


async def test_a_connection_that_is_not_accepted_is_replaced_and_the_server_s_version_read_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(streams_module, "_REFUSED_SECONDS", 0.01)
    harness = StreamsHarness()
    harness.streams.accepted("Cluster")  # resets the time limit
    began = asyncio.get_running_loop().time()
    for _ in range(3):
        assert await asyncio.wait_for(harness.connection(), timeout=5) == []
    assert asyncio.get_running_loop().time() - began >= 0.01 + 0.02 + 0.04
    harness.ahead = True
    assert await harness.connection() == [EXPIRED]
    assert harness.connections == harness.closed == 3


async def test_an_accepted_connection_without_events_has_no_time_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(streams_module, "_REFUSED_SECONDS", 0.01)
    harness = StreamsHarness()
    harness.streams.accepted("Cluster")
    reading = asyncio.create_task(harness.connection())
    await asyncio.sleep(0)
    harness.streams.accepted("Cluster")
    await asyncio.wait({reading}, timeout=0.05)
    assert not reading.done()
    harness.incoming.put_nowait(None)
    assert await reading == []


async def test_a_version_that_is_gone_restarts_the_watch_from_scratch() -> None:
    class GoneError(Exception):
        status = 410

    harness = StreamsHarness()
    assert await harness.connection(EVENT, GoneError()) == [EVENT, EXPIRED]
    harness.streams.starts("Cluster")
    with pytest.raises(ZeroDivisionError):
        await harness.connection(ZeroDivisionError())


async def test_a_watch_without_events_and_acceptance_is_silent() -> None:
    harness = StreamsHarness()
    await harness.connection(EVENT, None)
    harness.now += 301
    assert harness.streams.silent() == {"Cluster": 301, "Policy": 301}
    await harness.connection({"type": "BOOKMARK", "object": {}}, None)
    assert harness.streams.silent() == {"Policy": 301}
    harness.streams.accepted("Policy")
    assert harness.streams.silent() == {}
    assert harness.streams.ages() == {"Cluster": 0, "Policy": 0}


async def test_the_time_before_the_start_of_the_watches_does_not_count_as_silence() -> None:
    harness = StreamsHarness()
    harness.now += 1000
    harness.streams.start()
    assert harness.streams.silent() == {}


async def test_kopf_s_watch_of_a_kind_can_be_restarted() -> None:
    with api_server() as api:
        harness = WatchHarness(lambda: to(api))
        async with harness.running():
            await until(lambda: harness.versions == ["7"] and len(harness.begun) == len(WATCHED))
            harness.watch.restart(CLUSTERS.kind)
            await until(lambda: harness.begun[CLUSTERS.kind] == 2)
            touch(api)  # a connection that is closed may take it
            touch(api)
            await until(lambda: harness.versions[-1] == "9")
    assert harness.starts == 1
    assert sum(harness.begun.values()) == len(WATCHED) + 1


async def test_kopf_s_watch_can_be_restarted_while_it_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    with api_server() as api:
        refused = api.fault(method="WATCH", path=CLUSTERS.path, answer=status(504))
        harness = WatchHarness(lambda: to(api))
        async with harness.running():
            await until(lambda: api.count("WATCH", CLUSTERS.path) >= 2)
            harness.watch.restart(CLUSTERS.kind)
            await until(lambda: harness.begun[CLUSTERS.kind] == 2)
            api.heal(refused)
            await until(lambda: "7" in harness.versions)
    assert harness.starts == 1


async def test_kopf_s_watch_starts_from_scratch_after_a_rollback_of_the_server() -> None:
    with api_server() as api:
        harness = WatchHarness(lambda: to(api))
        async with harness.running():
            await until(lambda: harness.versions == ["7"])
            harness.version = 6
            api.end_watches("Cluster")
            await until(lambda: harness.begun[CLUSTERS.kind] == 2)
    assert harness.starts == 1


@pytest.mark.parametrize("code", [403, 500])
async def test_a_watch_that_is_refused_for_long_is_a_problem_that_names_the_kind(code: int) -> None:
    with api_server() as api:
        refused = api.fault(method="WATCH", path=CLUSTERS.path, answer=status(code))
        harness = WatchHarness(lambda: to(api), silent_after=0.3)
        async with harness.running():
            await until(lambda: harness.starts == 1 and harness.watch.problem is None)
            await until(lambda: harness.watch.problem is not None)
            for resource in WATCHED:
                if resource is not CLUSTERS:
                    harness.watch._streams.accepted(resource.kind)
            problem = harness.watch.problem
            assert problem is not None
            assert "Cluster (" in problem
            assert "Policy" not in problem
            assert harness.watch.age(CLUSTERS.kind) > 0.3
            api.heal(refused)
            await until(lambda: "7" in harness.versions)
            assert harness.watch.age(CLUSTERS.kind) < 0.3


async def test_the_problem_of_a_watch_is_logged_repeatedly(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "_REMINDER_SECONDS", 0.01)
    caplog.set_level(logging.WARNING, "karmada_scheduler")
    with api_server() as api:
        harness = WatchHarness(lambda: to(api), silent_after=-1)
        async with harness.running():
            await until(
                lambda: sum("Cluster (" in record.__dict__.get("reason", "") for record in caplog.records) > 1
            )


async def test_kopf_stores_no_object(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[inventory.ResourceMemories] = []
    create = kopf_settings.NoMemories.__init__

    def noted(self: Any) -> None:
        create(self)
        made.append(self)

    monkeypatch.setattr(kopf_settings.NoMemories, "__init__", noted)
    with api_server() as api:
        harness = WatchHarness(lambda: to(api))
        async with harness.running():
            for version in range(8, 40):
                touch(api, f"m{version}")
            await until(lambda: len(harness.versions) == 33)
    [memories] = made
    assert list(memories.iter_all_memories()) == []


async def test_an_exception_of_the_sink_is_logged_and_the_watch_continues(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with api_server() as api:
        harness = WatchHarness(lambda: to(api))
        harness.raising.add("8")
        async with harness.running():
            await until(lambda: harness.versions == ["7"])
            for _ in range(2):
                touch(api)
            await until(lambda: harness.versions[-1] == "9")
    assert harness.starts == 1
    assert "a defect" in caplog.text


async def test_an_exception_about_a_known_change_ends_no_watch(caplog: pytest.LogCaptureFixture) -> None:
    def raises(*_: object) -> bool:
        raise RuntimeError("a defect")

    with api_server() as api:
        harness = WatchHarness(lambda: to(api), is_known=raises)
        async with harness.running():
            touch(api)
            await until(lambda: harness.versions == ["7", "8"])
    assert harness.starts == 1
    assert "Cannot determine whether a change is known" in caplog.text
