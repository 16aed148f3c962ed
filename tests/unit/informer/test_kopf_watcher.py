"""The one function of kopf that is replaced leaves every other kopf operator of the process alone."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import kopf
import pytest
from kopf._cogs.clients import api as kopf_api
from kopf._cogs.clients import fetching as kopf_fetching
from kopf._cogs.clients import watching as kopf_watching
from kopf._core.reactor import orchestration as kopf_orchestration
from kopf._core.reactor import processing as kopf_processing
from kopf._core.reactor import queueing as kopf_queueing

from karmada_pyscheduler.client.karmada import CLUSTERS
from karmada_pyscheduler.informer import kopf_watcher
from tests.unit.informer.watch_harness import WatchHarness, api_server, to, touch, until


def test_no_other_function_of_kopf_is_replaced() -> None:
    """Every function of kopf that the watch depends on is kopf's own, but for ``watcher``."""
    replaced = {
        f"{module.__name__}.{name}"
        for module in (
            kopf_api,
            kopf_fetching,
            kopf_watching,
            kopf_queueing,
            kopf_processing,
            kopf_orchestration,
        )
        for name, value in vars(module).items()
        if getattr(value, "__module__", "").startswith("karmada_pyscheduler")
    }
    assert replaced == {"kopf._core.reactor.queueing.watcher"}


async def test_a_watcher_with_settings_of_another_operator_is_kopf_s_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[dict[str, Any]] = []

    async def kopf_s_own(**arguments: Any) -> None:
        calls.append(arguments)

    monkeypatch.setattr(kopf_watcher, "_watcher", kopf_s_own)
    given = {"settings": kopf.OperatorSettings(), "resource": "r", "namespace": None, "processor": None}
    given |= {"operator_paused": 1, "operator_indexed": 2, "resource_indexed": 3}
    await kopf_queueing.watcher(**given)  # type: ignore[arg-type]  # only passed on
    assert calls == [given]


async def test_a_second_operator_lists_and_gets_every_event_while_ours_runs(tmp_path: Path) -> None:
    """It is a plain kopf operator with a handler of its own, on the same API server and in the same event loop."""
    events: Counter[tuple[str, str]] = Counter()
    registry = kopf.OperatorRegistry()
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    settings.scanning.disabled = True
    settings.watching.client_timeout = 5

    @kopf.on.login(registry=registry)
    def login(**_: Any) -> kopf.ConnectionInfo:
        return kopf.ConnectionInfo(server=api.url)

    @kopf.on.event(CLUSTERS.group, CLUSTERS.version, CLUSTERS.plural, registry=registry)
    async def handle(event: kopf.RawEvent, **_: Any) -> None:
        events[str(event["type"]), event["object"]["metadata"]["resourceVersion"]] += 1

    with api_server() as api:
        ours = WatchHarness(lambda: to(api), is_known=lambda *_: True)
        async with ours.running():
            await until(lambda: ours.versions == ["7"])
            assert not api.count("LIST", CLUSTERS.path)
            tasks = await kopf.spawn_tasks(
                registry=registry,
                settings=settings,
                clusterwide=True,
                standalone=True,
                identity="second",  # type: ignore[arg-type]
            )
            try:
                await until(lambda: events["None", "7"] == 1)  # it lists, and gets the listed object
                assert api.count("LIST", CLUSTERS.path) == 1
                await until(lambda: api.count("WATCH", CLUSTERS.path) == 2)
                for _ in range(2):  # one for each watch
                    touch(api)
                await until(lambda: events["MODIFIED", "8"] == 1)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
    assert ours.versions == ["7"]  # everything counts as known there
