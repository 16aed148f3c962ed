"""Restarts, silence and exceptions of watches, in a real kopf."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from kopf._core.reactor import inventory

from karmada_pyscheduler.client.karmada import CLUSTERS, WATCHED
from karmada_pyscheduler.informer import kopf_watch as module
from karmada_pyscheduler.informer import kopf_watcher
from tests.fake_apiserver import status
from tests.unit.informer.watch_harness import WatchHarness, api_server, to, touch, until


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
            await until(lambda: "Cluster (" in _problem_of_one(harness))
            assert harness.watch.age(CLUSTERS.kind) > 0.3
            api.heal(refused)
            await until(lambda: "7" in harness.versions)
            await until(lambda: harness.watch.age(CLUSTERS.kind) < 0.3)


def _problem_of_one(harness: WatchHarness) -> str:
    """Return the problem of the watches if all but that of clusters have just been heard of, "" if it names another."""
    for resource in WATCHED:
        if resource is not CLUSTERS:
            harness.watch._reflectors[resource.kind].reset_age()
    problem = harness.watch.problem or ""
    return "" if "Policy" in problem else problem


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
    create = kopf_watcher.NoMemories.__init__

    def noted(self: Any) -> None:
        create(self)
        made.append(self)

    monkeypatch.setattr(kopf_watcher.NoMemories, "__init__", noted)
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
