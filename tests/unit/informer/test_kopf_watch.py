"""kopf: its handlers, its settings, and its restart when it ends."""

import asyncio
import ssl
from collections.abc import AsyncGenerator, Callable
from typing import Any

import kopf
import pytest

from karmada_pyscheduler.client.identity import Identity
from karmada_pyscheduler.client.karmada import WATCHED
from karmada_pyscheduler.client.watch_requests import Event, WatchRequests
from karmada_pyscheduler.informer import kopf_watch as module
from karmada_pyscheduler.informer.kopf_watch import KopfWatch
from karmada_pyscheduler.informer.kopf_watcher import watch_settings
from karmada_scheduler.api.manifest import Manifest


async def _nothing(*_: object) -> AsyncGenerator[bytes, None]:
    """Yield no lines."""
    for line in list[bytes]():
        yield line


async def _events() -> AsyncGenerator[Event, None]:
    for event in list[Event]():
        yield event


class KopfHarness:
    """A watch without an API server."""

    def __init__(self, clock: Callable[[], float] = lambda: 0.0) -> None:
        self.events: list[tuple[str, str, str]] = []
        self.prepared = 0
        self.started = 0
        self.watch = KopfWatch(
            WATCHED,
            self,  # type: ignore[arg-type]
            self,  # type: ignore[arg-type]
            WatchRequests(_nothing),
            identity="tests",
            login=self._login,
            after_start=self._start,
            clock=clock,
        )

    async def _login(self) -> Identity:
        return Identity(
            server="https://127.0.0.1:1",
            authorization="Bearer t",
            tls=ssl.create_default_context(),
            tls_name=None,
            proxy_url=None,
            material=b"",
            files=(),
            loaded_at=0.0,
        )

    def on_event(self, kind: str, event: str, manifest: Manifest) -> None:
        self.events.append((kind, event, manifest["metadata"]["name"]))

    def observe(self, *_: object) -> None:
        pass

    def is_known(self, *_: object) -> bool:
        return False

    async def wait_until_served(self) -> None:
        self.prepared += 1

    async def list_and_start_version(self, _: str) -> str:
        return "7"

    async def must_relist(self, *_: str) -> bool:
        return False

    def _start(self) -> None:
        self.started += 1


async def _until(reached: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not reached():
            await asyncio.sleep(0)


def test_kopf_has_event_handlers_of_the_five_kinds_and_nothing_that_writes() -> None:
    registry = KopfHarness().watch._registry()
    kinds = {
        (handler.selector.group, handler.selector.version, handler.selector.any_name)
        for handler in registry._watching.get_all_handlers()
        if handler.selector is not None
    }
    assert kinds == {
        ("work.karmada.io", "v1alpha2", "resourcebindings"),
        ("work.karmada.io", "v1alpha2", "clusterresourcebindings"),
        ("policy.karmada.io", "v1alpha1", "propagationpolicies"),
        ("policy.karmada.io", "v1alpha1", "clusterpropagationpolicies"),
        ("cluster.karmada.io", "v1alpha1", "clusters"),
    }
    for writers in (registry._changing, registry._spawning, registry._indexing, registry._webhooks):
        assert list(writers.get_all_handlers()) == []


async def test_a_handler_hands_the_event_to_the_sink_and_returns_nothing() -> None:
    harness = KopfHarness()
    handler = harness.watch._handler("Cluster")
    event = {"type": "ADDED", "object": {"metadata": {"name": "m1"}}}
    assert await handler(event=event, body=None, logger=None) is None  # type: ignore[func-returns-value]
    assert harness.events == [("Cluster", "ADDED", "m1")]


def test_kopf_s_settings_switch_off_scanning_posting_and_state() -> None:
    settings = watch_settings(lambda _: _events())
    assert settings.scanning.disabled
    assert not settings.posting.enabled
    assert settings.persistence.diffbase_storage.build(body=kopf.Body({})) == {}
    assert settings.process.ultimate_exiting_timeout is None


@pytest.mark.parametrize(
    "failure",
    [None, OSError("gone"), asyncio.CancelledError()],
    ids=["it-ended", "it-failed", "it-cancelled-a-task"],
)
async def test_kopf_is_started_again_when_it_ends_and_other_tasks_are_not_cancelled(
    monkeypatch: pytest.MonkeyPatch, failure: BaseException | None
) -> None:
    monkeypatch.setattr(module, "_RESTART_SECONDS", (0.0,))
    forever: list[asyncio.Task[Any]] = []
    leftovers: list[asyncio.Task[Any]] = []
    started_with: list[dict[str, Any]] = []

    async def leftover() -> None:
        await asyncio.Event().wait()

    leftover.__code__ = leftover.__code__.replace(co_filename=kopf.__file__)

    async def end() -> None:
        await asyncio.sleep(0)
        if failure is not None:
            raise failure

    async def spawn(**options: Any) -> list[asyncio.Task[Any]]:
        started_with.append(options)
        forever.append(asyncio.create_task(asyncio.Event().wait()))
        leftovers.append(asyncio.create_task(leftover()))
        return [forever[-1], asyncio.create_task(end())]

    monkeypatch.setattr(kopf, "spawn_tasks", spawn)
    harness = KopfHarness()
    other_task = asyncio.create_task(asyncio.Event().wait())
    running = asyncio.create_task(harness.watch.run())
    await _until(lambda: harness.started >= 3)
    assert harness.prepared >= 3
    assert all(task.cancelled() for task in forever[:2])
    assert not other_task.done()
    running.cancel()
    other_task.cancel()
    await asyncio.gather(running, other_task, return_exceptions=True)
    assert forever[-1].cancelled()
    assert all(task.cancelled() or task.cancelling() for task in leftovers), "tasks that kopf left behind"
    assert all(options["clusterwide"] and options["standalone"] for options in started_with)


async def test_the_watch_has_a_problem_while_kopf_does_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = asyncio.Event()

    async def spawn(**_: Any) -> list[asyncio.Task[Any]]:
        return [asyncio.create_task(ended.wait())]

    monkeypatch.setattr(kopf, "spawn_tasks", spawn)
    harness = KopfHarness()
    assert harness.watch.problem is not None
    running = asyncio.create_task(harness.watch.run())
    await _until(lambda: harness.watch.problem is None)
    ended.set()
    await _until(lambda: harness.watch.problem is not None)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


@pytest.mark.parametrize(
    ("lasts", "pauses"),
    [pytest.param(1.0, [1, 2, 2, 2], id="it fails at once"), pytest.param(61.0, [0, 0, 0, 0], id="it ran")],
)
async def test_the_pauses_of_restarts_grow_until_kopf_runs_for_a_minute(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, lasts: float, pauses: list[int]
) -> None:
    monkeypatch.setattr(module, "_RESTART_SECONDS", (0, 1, 2))
    now, slept = 100.0, list[float]()
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: now)

    async def fail(_: object) -> None:
        nonlocal now
        now += lasts
        raise OSError("gone")

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == len(pauses):
            raise asyncio.CancelledError

    monkeypatch.setattr(KopfWatch, "_run_once", fail)
    monkeypatch.setattr(asyncio, "sleep", sleep)
    with pytest.raises(asyncio.CancelledError):
        await KopfHarness().watch._run_forever()
    assert slept == pauses
    assert caplog.records[0].__dict__["error"] == "OSError('gone')"


async def test_an_error_of_kopf_is_raised_and_silence_is_a_problem_only_after_its_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ending, now, problems = asyncio.Event(), 0.0, list[str | None]()

    async def end() -> None:
        await ending.wait()
        raise OSError("gone")

    async def spawn(**_: Any) -> list[asyncio.Task[Any]]:
        return [asyncio.create_task(end())]

    monkeypatch.setattr(kopf, "spawn_tasks", spawn)
    harness = KopfHarness(clock=lambda: now)
    running = asyncio.create_task(harness.watch._run_once())
    await _until(lambda: harness.started == 1)
    now = module.SILENT_SECONDS
    problems.append(harness.watch.problem)
    now += 1
    problems.append(harness.watch.problem)
    ending.set()
    with pytest.raises(OSError, match="gone"):
        await running
    assert problems[0] is None
    assert "no event, bookmark or accepted watch of Cluster (301s)" in str(problems[1])
