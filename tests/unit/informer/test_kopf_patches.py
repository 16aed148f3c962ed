"""kopf's patched functions leave every other kopf operator of the process alone."""

from __future__ import annotations

import asyncio
import inspect
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import kopf
import pytest
from kopf._cogs.clients import api as kopf_api
from kopf._cogs.clients import fetching as kopf_fetching
from kopf._cogs.clients import watching as kopf_watching
from kopf._core.reactor import queueing as kopf_queueing

from karmada_scheduler.client.karmada import CLUSTERS
from karmada_scheduler.informer import kopf_patches
from tests.unit.informer.watch_harness import WatchHarness, api_server, to, touch, until

PATCHED = {
    "_fetch_objs": (kopf_fetching, "fetch_objs"),
    "_infinite_watch": (kopf_watching, "infinite_watch"),
    "_watch_objs": (kopf_watching, "watch_objs"),
    "_stream": (kopf_api, "stream"),
    "_watcher": (kopf_queueing, "watcher"),
}
"""The patched functions of kopf, by the name under which ``kopf_patches`` keeps kopf's own."""


def _assignments() -> set[str]:
    """Return what ``kopf_patches`` assigns to in modules of kopf."""
    lines = inspect.getsource(kopf_patches).splitlines()
    return {line.split(" = ")[0] for line in lines if line.startswith("kopf_") and " = " in line}


def test_every_patched_function_is_in_this_test() -> None:
    modules = {
        "api": "kopf_api",
        "fetching": "kopf_fetching",
        "watching": "kopf_watching",
        "queueing": "kopf_queueing",
    }
    tested = {f"{modules[module.__name__.split('.')[-1]]}.{name}" for module, name in PATCHED.values()}
    assert _assignments() == tested


@pytest.mark.parametrize("own", [own for own in PATCHED if own != "_watcher"])
async def test_settings_of_another_operator_reach_kopf_s_own_function(
    own: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, name = PATCHED[own]
    calls: list[dict[str, Any]] = []

    async def kopf_s_own(*args: Any, **arguments: Any) -> AsyncIterator[str]:
        calls.append({"url": args[0], **arguments} if args else arguments)
        for each in ("first", "second"):
            yield each

    monkeypatch.setattr(kopf_patches, own, kopf_s_own)
    given: dict[str, Any] = {"settings": kopf.OperatorSettings(), "something": "else"}
    given |= {"url": "/x"} if name == "stream" else {"resource": "r"}
    assert [each async for each in getattr(module, name)(**given)] == ["first", "second"]
    [found] = calls
    assert {key: value for key, value in found.items() if (key, value) != ("since", None)} == given


async def test_a_watcher_with_settings_of_another_operator_is_kopf_s_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[dict[str, Any]] = []

    async def kopf_s_own(**arguments: Any) -> None:
        calls.append(arguments)

    monkeypatch.setattr(kopf_patches, "_watcher", kopf_s_own)
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
