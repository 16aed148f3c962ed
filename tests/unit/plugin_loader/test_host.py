"""Plugins of a running process: built at the start, and again when a file changes."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from karmada_pyscheduler.cache.bindings import BindingCache
from karmada_pyscheduler.cache.clusters import ClusterCache
from karmada_pyscheduler.metrics.metrics import Metrics
from karmada_pyscheduler.plugin_loader import manager
from karmada_pyscheduler.plugin_loader.handle import HandleBackend
from karmada_pyscheduler.plugin_loader.manager import PluginManager
from karmada_scheduler.config.options import LeaderElection, Options
from karmada_scheduler.config.problems import ConfigError
from karmada_scheduler.framework import PluginError
from karmada_scheduler.framework.extension_points import Point
from karmada_scheduler.framework.runtime.timeouts import PluginTimeoutError, SigalrmTimeout
from karmada_scheduler.framework.runtime.waiting_bindings import WaitingBindings
from tests.unit.plugin_loader.conftest import Write, source

Make = Callable[..., PluginManager]


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    monkeypatch.setattr(manager, "_SCAN_SECONDS", 0.0)
    made: list[PluginManager] = []

    def make(**options: Any) -> PluginManager:
        backend = HandleBackend(
            bindings=BindingCache(), clusters=ClusterCache(), waiting=WaitingBindings(), now=lambda: 0.0
        )
        host = PluginManager(Options(**options), backend, Metrics(), own_plugins=(), clock=lambda: 0.0)
        made.append(host)
        return host

    yield make
    for host in made:
        assert isinstance(host.caller.timeout, SigalrmTimeout)
        host.caller.timeout.close()


def _scorers(host: PluginManager) -> list[str]:
    [(_, framework)] = host.profiles.items()
    return [each.name for each in framework.plugins.at(Point.SCORE)]


async def test_extenders_read_the_manifests_of_the_event_handlers(make: Make, tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    kind = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    path.write_text(
        yaml.safe_dump({**kind, "extenders": [{"urlPrefix": "http://x", "filterVerb": "filter"}]})
    )
    host = make(config=path)
    [extender] = host.extenders
    assert host.manifests is not None
    assert extender.manifests is host.manifests


async def _until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.01)


async def test_a_saved_file_replaces_the_profiles_and_is_reported(
    make: Make, folder: Path, write: Write
) -> None:
    host, changes = make(plugin_dirs=(folder,)), []
    following = asyncio.create_task(host.follow_files(follows=True, on_change=lambda: changes.append(1)))
    write("a.py", source("Saved"))
    await _until(lambda: changes)
    assert "Saved" in _scorers(host)
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)


@pytest.mark.parametrize("error", [ValueError("boom"), SystemExit(3)])
async def test_files_are_scanned_after_any_exception(
    error: BaseException,
    make: Make,
    folder: Path,
    write: Write,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    host, changes = make(plugin_dirs=(folder,)), []
    reload, calls = host._setup.reload, []

    def breaks_once() -> Any:
        calls.append(threading.current_thread().daemon)
        if len(calls) == 1:
            raise error
        return reload()

    monkeypatch.setattr(host._setup, "reload", breaks_once)
    write("a.py", source("Saved"))
    with caplog.at_level(logging.ERROR):
        following = asyncio.create_task(host.follow_files(follows=True, on_change=lambda: changes.append(1)))
        await _until(lambda: changes)
    assert "Cannot scan the plugin directories" in caplog.text
    assert str(error) in caplog.text
    assert all(calls)  # daemon threads, which do not delay the end of the process
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)


def test_a_plugin_timeout_above_half_the_renew_deadline_is_refused(make: Make, tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    kind = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    path.write_text(yaml.safe_dump({**kind, "pluginTimeoutSeconds": 60}))
    with pytest.raises(ConfigError, match="pluginTimeoutSeconds: must be at most 5, half of"):
        make(config=path)
    assert make(config=path, leader_election=LeaderElection(enabled=False)).caller.coroutine_seconds == 60
    assert make().caller.coroutine_seconds == 2


async def test_a_saved_file_closes_the_breakers_of_its_plugins_only(
    make: Make, folder: Path, write: Write
) -> None:
    write("a.py", source("A"))
    write("b.py", source("B"))
    host = make(plugin_dirs=(folder,))

    def plugin(name: str) -> Any:
        [(_, framework)] = host.profiles.items()
        return next(each for each in framework.plugins.unique if each.name == name)

    for name in ("A", "B", "ClusterAffinity"):
        with pytest.raises(PluginError):
            host.caller.raise_plugin_error(
                plugin(name), Point.SCORE, PluginTimeoutError(2), since=host.caller.openings
            )
    changed = asyncio.Event()
    following = asyncio.create_task(host.follow_files(follows=True, on_change=changed.set))
    write("a.py", source("A") + "\n# repaired\n")
    await asyncio.wait_for(changed.wait(), 30)
    following.cancel()
    assert host.caller.admit(plugin("A"), Point.SCORE) >= 0
    with pytest.raises(PluginError, match="is not called for 2s"):
        host.caller.admit(plugin("B"), Point.SCORE)
    assert host.caller.admit(plugin("ClusterAffinity"), Point.SCORE) >= 0  # in-tree plugins are always called


RUNS = """
import asyncio


class {name}:
    name = "{name}"

    def score(self, context):
        return 1

    async def run(self):
        self.events = ["begin"]
        try:
            await asyncio.Event().wait()
        finally:
            self.events.append("end")
"""


async def test_run_tasks_change_with_files_and_end_with_the_manager(
    make: Make, folder: Path, write: Write
) -> None:
    write("a.py", RUNS.format(name="Stays"))
    write("b.py", RUNS.format(name="Changes"))
    host, changes = make(plugin_dirs=(folder,)), []

    def plugin(name: str) -> Any:
        [(_, framework)] = host.profiles.items()
        return next(each for each in framework.plugins.unique if each.name == name)

    stays, old = plugin("Stays"), plugin("Changes")
    running = asyncio.create_task(host.run_plugins())
    following = asyncio.create_task(host.follow_files(follows=True, on_change=lambda: changes.append(1)))
    await _until(lambda: hasattr(stays, "events") and hasattr(old, "events"))
    write("b.py", RUNS.format(name="Changes") + "# saved again\n")
    await _until(lambda: changes and hasattr(plugin("Changes"), "events") and old.events == ["begin", "end"])
    assert stays.events == ["begin"]
    assert plugin("Changes") is not old
    running.cancel()
    following.cancel()
    await asyncio.gather(running, following, return_exceptions=True)
    assert stays.events == plugin("Changes").events == ["begin", "end"]
