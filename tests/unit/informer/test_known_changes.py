"""Watch events of own writes, in a real kopf."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from kopf._core.reactor import processing

from tests.unit.informer.watch_harness import WatchHarness, api_server, to, touch, until


async def test_a_known_change_is_dropped_and_the_next_one_is_delivered() -> None:
    with api_server() as api:
        harness = WatchHarness(
            lambda: to(api), is_known=lambda _, manifest: manifest["metadata"]["resourceVersion"] == "8"
        )
        async with harness.running():
            await until(lambda: harness.versions == ["7"])
            for _ in range(2):
                touch(api)
            await until(lambda: len(harness.versions) == 2)
    assert harness.versions == ["7", "9"]
    assert harness.events[1] == ("Cluster", "MODIFIED", "m1")


async def test_known_changes_end_before_kopf_processes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    processed: list[str] = []
    process = processing.process_resource_event

    async def counted(*, raw_event: Any, **rest: Any) -> str | None:
        processed.append(raw_event["object"]["metadata"]["resourceVersion"])
        return await process(raw_event=raw_event, **rest)

    monkeypatch.setattr(processing, "process_resource_event", counted)
    with api_server() as api:
        harness = WatchHarness(
            lambda: to(api), is_known=lambda _, manifest: int(manifest["metadata"]["resourceVersion"]) < 20
        )
        async with harness.running():
            for _ in range(13):
                touch(api)
            await until(lambda: harness.versions == ["7", "20"])
    assert processed == ["7", "20"]


async def test_a_busy_event_loop_takes_in_many_events_per_iteration() -> None:
    """kopf alone takes two to three iterations for each new object."""
    iterations = 0

    async def keep_busy() -> None:
        nonlocal iterations
        while True:
            iterations += bool(harness.versions)
            time.sleep(0.002)  # noqa: ASYNC251 (it stands for decisions)
            await asyncio.sleep(0)

    with api_server() as api:
        for version in range(8, 308):
            touch(api, f"m{version}")
        harness = WatchHarness(lambda: to(api))
        busy = asyncio.create_task(keep_busy())
        async with harness.running():
            await until(lambda: len(harness.versions) == 301)
        busy.cancel()
    assert harness.versions == [str(version) for version in range(7, 308)]
    assert iterations < 100


async def test_no_task_of_kopf_stays_for_an_object() -> None:
    with api_server() as api:
        harness = WatchHarness(lambda: to(api))
        async with harness.running():
            await until(lambda: bool(harness.versions))
            for version in range(8, 308):
                touch(api, f"m{version}")
            await until(lambda: len(harness.versions) == 301)
            await until(lambda: len(asyncio.all_tasks()) < 100)
