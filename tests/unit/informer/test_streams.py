"""The connections of a watch: what they bring, when they are silent, how a watch begins anew."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

import kopf
import pytest
from kopf._cogs.clients import watching as kopf_watching
from kopf._core.reactor import inventory

from karmada_scheduler.client import watch_streams as streams_module
from karmada_scheduler.client.karmada import CLUSTERS, WATCHED
from karmada_scheduler.client.watch_streams import EXPIRED, WatchStreams
from karmada_scheduler.informer import kopf_watch as module
from tests.unit.informer.api_server import END, ApiServer, modified
from tests.unit.informer.watching import Watching, to, until

EVENT = {"type": "ADDED", "object": {}}


class World:
    """The watch of a kind, and what its connections bring."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.ahead = False
        self.connections = 0
        self.incoming: asyncio.Queue[Any] = asyncio.Queue()
        self.closed = 0
        self.streams = WatchStreams(
            ["Cluster", "Policy"], clock=lambda: self.now, is_ahead=self._is_ahead, silent_after=300
        )

    async def _is_ahead(self, kind: str, version: str) -> bool:
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


async def test_a_connection_brings_its_events_and_the_watch_goes_on_where_it_ended() -> None:
    world = World()
    assert await world.connection(EVENT, EVENT, None) == [EVENT, EVENT]
    assert await world.connection(EVENT, None) == [EVENT]
    assert world.connections == world.closed == 2


async def test_a_watch_that_is_ahead_of_the_server_begins_anew_instead_of_being_connected() -> None:
    world = World()
    world.ahead = True
    # The first connection begins where a list ended: nobody is asked.
    assert await world.connection(EVENT, None) == [EVENT]
    assert await world.connection() == [EXPIRED]
    assert world.connections == 1
    world.streams.begins("Cluster")
    assert await world.connection(EVENT, None) == [EVENT]


async def test_a_restart_ends_a_connection_that_brings_nothing() -> None:
    world = World()
    reading = asyncio.create_task(world.connection(EVENT))
    while not world.incoming.empty() or not world.connections:
        await asyncio.sleep(0)
    await asyncio.sleep(0)
    world.streams.restart("Policy")
    for _ in range(5):
        await asyncio.sleep(0)
    assert not reading.done()
    world.streams.restart("Cluster")
    assert await asyncio.wait_for(reading, timeout=5) == [EVENT, EXPIRED]
    assert world.closed == 1
    assert not reading.cancelling()


async def test_a_restart_while_an_event_is_handled_ends_the_connection_after_it() -> None:
    world = World()
    world.incoming.put_nowait(EVENT)
    found = []
    async for event in world.streams.connection("Cluster", "7", world._connect):
        found.append(event)
        world.streams.restart("Cluster")
    assert found == [EVENT, EXPIRED]


async def test_a_restart_before_the_watch_begins_anew_anyway_is_none() -> None:
    world = World()
    world.streams.restart("Cluster")
    world.streams.begins("Cluster")
    assert await world.connection(EVENT, None) == [EVENT]


async def test_a_connection_that_is_not_accepted_is_given_up_so_that_the_server_is_asked_for_its_version(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(streams_module, "_PATIENCE_SECONDS", 0.01)
    world = World()
    world.streams.accepted("Cluster")  # patience as at the beginning
    began = asyncio.get_running_loop().time()
    for _ in range(3):
        assert await asyncio.wait_for(world.connection(), timeout=5) == []
    assert asyncio.get_running_loop().time() - began >= 0.01 + 0.02 + 0.04
    world.ahead = True
    assert await world.connection() == [EXPIRED]
    assert world.connections == world.closed == 3


async def test_a_connection_that_is_accepted_may_be_silent_for_as_long_as_it_likes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(streams_module, "_PATIENCE_SECONDS", 0.01)
    world = World()
    world.streams.accepted("Cluster")
    reading = asyncio.create_task(world.connection())
    await asyncio.sleep(0)
    world.streams.accepted("Cluster")
    await asyncio.wait({reading}, timeout=0.05)
    assert not reading.done()
    world.incoming.put_nowait(None)
    assert await reading == []


async def test_a_version_that_the_server_calls_gone_begins_the_watch_anew() -> None:
    class GoneError(Exception):
        status = 410

    world = World()
    assert await world.connection(EVENT, GoneError()) == [EVENT, EXPIRED]
    world.streams.begins("Cluster")
    with pytest.raises(ZeroDivisionError):
        await world.connection(ZeroDivisionError())


async def test_a_kind_whose_watch_brings_nothing_and_is_not_accepted_is_silent() -> None:
    world = World()
    await world.connection(EVENT, None)
    world.now += 301
    assert world.streams.silent() == {"Cluster": 301, "Policy": 301}
    await world.connection({"type": "BOOKMARK", "object": {}}, None)
    assert world.streams.silent() == {"Policy": 301}
    world.streams.accepted("Policy")
    assert world.streams.silent() == {}
    assert world.streams.ages() == {"Cluster": 0, "Policy": 0}


async def test_the_time_before_the_watches_are_started_is_no_silence() -> None:
    world = World()
    world.now += 1000
    world.streams.start()
    assert world.streams.silent() == {}


async def test_kopf_s_watch_of_a_kind_begins_anew_when_it_is_told_to() -> None:
    async with ApiServer() as api:
        watching = Watching(lambda: to(api))
        async with watching.running():
            await until(lambda: watching.versions == ["7"] and len(watching.begun) == len(WATCHED))
            watching.watch.restart(CLUSTERS.kind)
            await until(lambda: watching.begun[CLUSTERS.kind] == 2)
            api.changes.put_nowait(modified(8))  # a connection that is closed may take it
            api.changes.put_nowait(modified(9))
            await until(lambda: watching.versions[-1] == "9")
    assert watching.starts == 1
    assert sum(watching.begun.values()) == len(WATCHED) + 1


async def test_kopf_s_watch_begins_anew_also_while_it_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    async with ApiServer() as api:
        api.status[CLUSTERS.plural] = 504
        watching = Watching(lambda: to(api))
        async with watching.running():
            await until(lambda: api.watches[CLUSTERS.plural] >= 2)
            watching.watch.restart(CLUSTERS.kind)
            await until(lambda: watching.begun[CLUSTERS.kind] == 2)
            del api.status[CLUSTERS.plural]
            await until(lambda: "7" in watching.versions)
    assert watching.starts == 1


async def test_kopf_s_watch_begins_anew_when_the_server_has_gone_back() -> None:
    async with ApiServer() as api:
        watching = Watching(lambda: to(api))
        async with watching.running():
            await until(lambda: watching.versions == ["7"])
            watching.version = 6
            api.changes.put_nowait(END)
            await until(lambda: watching.begun[CLUSTERS.kind] == 2)
    assert watching.starts == 1


@pytest.mark.parametrize("code", [403, 500])
async def test_a_watch_that_is_refused_for_long_is_a_problem_that_names_the_kind(code: int) -> None:
    async with ApiServer() as api:
        api.status[CLUSTERS.plural] = code
        watching = Watching(lambda: to(api), silent_after=0.3)
        async with watching.running():
            await until(lambda: watching.starts == 1 and watching.watch.problem is None)
            await until(lambda: watching.watch.problem is not None)
            for resource in WATCHED:
                if resource is not CLUSTERS:
                    watching.watch._streams.accepted(resource.kind)
            problem = watching.watch.problem
            assert problem is not None
            assert "Cluster (" in problem
            assert "Policy" not in problem
            assert watching.watch.age(CLUSTERS.kind) > 0.3
            del api.status[CLUSTERS.plural]
            await until(lambda: "7" in watching.versions)
            assert watching.watch.age(CLUSTERS.kind) < 0.3


async def test_what_keeps_events_from_arriving_is_told_of_again_and_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "_REMINDER_SECONDS", 0.01)
    caplog.set_level(logging.WARNING, "karmada_scheduler")
    async with ApiServer() as api:
        watching = Watching(lambda: to(api), silent_after=-1)
        async with watching.running():
            await until(
                lambda: sum("Cluster (" in record.__dict__.get("reason", "") for record in caplog.records) > 1
            )


async def test_kopf_remembers_no_object(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[inventory.ResourceMemories] = []
    create = module._NoMemories.__init__

    def noted(self: Any) -> None:
        create(self)
        made.append(self)

    monkeypatch.setattr(module._NoMemories, "__init__", noted)
    async with ApiServer() as api:
        watching = Watching(lambda: to(api))
        async with watching.running():
            for version in range(8, 40):
                api.changes.put_nowait(modified(version, f"m{version}"))
            await until(lambda: len(watching.versions) == 33)
    [memories] = made
    assert list(memories.iter_all_memories()) == []


async def test_a_sink_that_raises_is_told_of_and_the_watch_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    async with ApiServer() as api:
        watching = Watching(lambda: to(api))
        watching.raising.add("8")
        async with watching.running():
            await until(lambda: watching.versions == ["7"])
            for version in (8, 9):
                api.changes.put_nowait(modified(version))
            await until(lambda: watching.versions[-1] == "9")
    assert watching.starts == 1
    assert "a defect" in caplog.text


async def test_a_question_about_echoes_that_raises_ends_no_watch(caplog: pytest.LogCaptureFixture) -> None:
    def raises(*_: object) -> bool:
        raise RuntimeError("a defect")

    async with ApiServer() as api:
        watching = Watching(lambda: to(api), is_known=raises)
        async with watching.running():
            api.changes.put_nowait(modified(8))
            await until(lambda: watching.versions == ["7", "8"])
    assert watching.starts == 1
    assert "Cannot tell whether a change is known" in caplog.text


async def test_another_operator_s_watches_in_this_process_are_as_kopf_has_them() -> None:
    connection: Any = kopf_watching.watch_objs(
        settings=kopf.OperatorSettings(),
        resource=None,  # type: ignore[arg-type]  # not looked at before it begins
        namespace=None,
        operator_pause_waiter=asyncio.get_running_loop().create_future(),
    )
    assert connection.ag_code is module._any_connection.__code__
