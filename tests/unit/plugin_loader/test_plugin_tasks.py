"""The ``run`` of a plugin: started, started again when it raises, cancelled when the plugin is replaced."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence

import pytest

from karmada_scheduler.framework import SUCCESS, FilterContext, Result
from karmada_scheduler.framework.plugin import Plugin
from karmada_scheduler.framework.runtime.timeouts import NoTimeout, SigalrmTimeout
from karmada_scheduler.plugin_loader import run_tasks
from karmada_scheduler.plugin_loader.run_tasks import PluginTasks

MESSAGE = "A plugin's run failed, it is started again"


class Filter:
    name = "Base"

    def __init__(self) -> None:
        self.events: list[str] = []

    def filter(self, context: FilterContext, /) -> Result:
        return SUCCESS


class Ticks(Filter):
    """Records its begin and its end."""

    name = "Ticks"

    async def run(self) -> None:
        self.events.append("begin")
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            self.events.append("end")


class Breaks(Filter):
    """Raises one exception at each start, and waits when none is left."""

    name = "Breaks"

    def __init__(self, *problems: BaseException) -> None:
        super().__init__()
        self.problems = list(problems)

    async def run(self) -> None:
        self.events.append("begin")
        await asyncio.sleep(0)
        if self.problems:
            raise self.problems.pop(0)
        await asyncio.Event().wait()


@pytest.fixture
def _no_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_tasks, "FIRST_DELAY", 0.0)


@pytest.fixture
async def tasks(_no_delay: None, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[PluginTasks]:
    monkeypatch.setattr(run_tasks, "CLEANUP_SECONDS", 60.0)
    made = PluginTasks(NoTimeout())
    yield made
    await made.close()


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0)


async def keep_until(tasks: PluginTasks, plugins: Sequence[Plugin], condition: Callable[[], object]) -> None:
    tasks.keep(plugins)
    await until(condition)


async def test_a_plugin_without_run_has_no_task(tasks: PluginTasks) -> None:
    tasks.keep([Filter()])
    assert tasks._tasks == {}


@pytest.mark.usefixtures("_no_delay")
async def test_each_failure_is_counted_and_a_cancellation_is_not() -> None:
    failures: list[str] = []
    tasks = PluginTasks(NoTimeout(), on_failure=failures.append)
    plugin = Breaks(OSError("one"), SystemExit("two"))
    await keep_until(tasks, [plugin, Ticks()], lambda: len(plugin.events) == 3)
    await tasks.close()
    assert failures == ["Breaks", "Breaks"]


async def test_a_plugin_that_stays_in_use_keeps_its_task(tasks: PluginTasks) -> None:
    plugin = Ticks()
    await keep_until(tasks, [plugin, plugin], lambda: plugin.events)
    tasks.keep([plugin])
    await asyncio.sleep(0)
    assert plugin.events == ["begin"]


async def test_the_task_of_a_replaced_plugin_is_cancelled_and_cleans_up(tasks: PluginTasks) -> None:
    old, new = Ticks(), Ticks()
    await keep_until(tasks, [old], lambda: old.events)
    await keep_until(tasks, [new], lambda: new.events and len(old.events) == 2)
    assert (old.events, new.events) == (["begin", "end"], ["begin"])


async def test_close_cancels_all_tasks_and_waits_for_their_end(tasks: PluginTasks) -> None:
    plugins: list[Ticks] = [Ticks(), Ticks()]
    await keep_until(tasks, plugins, lambda: all(each.events for each in plugins))
    await tasks.close()
    assert [each.events for each in plugins] == [["begin", "end"]] * 2
    tasks.keep(plugins)
    assert tasks._tasks == {}


class Returns(Filter):
    name = "Returns"

    async def run(self) -> None:
        self.events.append("begin")


async def test_a_run_that_returns_is_not_started_again(tasks: PluginTasks) -> None:
    plugin = Returns()
    tasks.keep([plugin])
    [task] = tasks._tasks.values()
    await task._task
    tasks.keep([plugin])
    assert plugin.events == ["begin"]


@pytest.mark.parametrize(
    "problem", [ValueError("boom"), SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError()]
)
async def test_a_run_that_raises_is_started_again(
    problem: BaseException, tasks: PluginTasks, caplog: pytest.LogCaptureFixture
) -> None:
    plugin = Breaks(problem)
    await keep_until(tasks, [plugin], lambda: len(plugin.events) == 2)
    [record] = caplog.records
    assert (record.getMessage(), record.levelno, record.__dict__["plugin"]) == (
        MESSAGE,
        logging.ERROR,
        "Breaks",
    )
    assert type(problem).__name__ in record.__dict__["error"]


async def test_a_traceback_is_logged_once_for_each_place_and_begins_in_the_plugin(
    tasks: PluginTasks, caplog: pytest.LogCaptureFixture
) -> None:
    plugin = Breaks(ValueError("1"), ValueError("2"), KeyError("x"), ValueError("3"))
    await keep_until(tasks, [plugin], lambda: len(plugin.events) == 5)
    assert [bool(record.exc_info) for record in caplog.records] == [True, False, True, False]
    info = caplog.records[0].exc_info
    assert info is not None
    assert info[2] is not None
    assert info[2].tb_frame.f_code.co_name == "run"


class _FakeSleep:
    """Replaces asyncio.sleep and records the requested seconds."""

    def __init__(self) -> None:
        self.requested: list[float] = []
        self._sleep = asyncio.sleep

    async def __call__(self, seconds: float) -> None:
        if seconds:
            self.requested.append(seconds)
        await self._sleep(0)


async def test_delays_grow_up_to_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses = _FakeSleep()
    monkeypatch.setattr(asyncio, "sleep", pauses)
    plugin = Breaks(*[ValueError("again") for _ in range(8)])
    tasks = PluginTasks(NoTimeout())
    await keep_until(tasks, [plugin], lambda: len(plugin.events) == 9)
    assert pauses.requested == [1, 2, 4, 8, 16, 32, 60, 60]
    await tasks.close()


async def test_after_a_long_run_the_delay_is_the_first_one_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pauses = _FakeSleep()
    monkeypatch.setattr(asyncio, "sleep", pauses)
    plugin = Breaks(*[ValueError("again") for _ in range(3)])
    monkeypatch.setattr(run_tasks, "LONGEST_DELAY", 1e-12)  # every run counts as long
    tasks = PluginTasks(NoTimeout())
    await keep_until(tasks, [plugin], lambda: len(plugin.events) == 4)
    assert pauses.requested == [1, 1, 1]
    await tasks.close()


class Stubborn(Filter):
    """Ignores its cancellation."""

    name = "Stubborn"

    async def run(self) -> None:
        while True:
            self.events.append("step")
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                continue


async def test_a_run_that_ignores_its_cancellation_is_abandoned(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_tasks, "CLEANUP_SECONDS", 0.01)
    plugin, tasks = Stubborn(), PluginTasks(NoTimeout())
    await keep_until(tasks, [plugin], lambda: plugin.events)
    async with asyncio.timeout(30):
        await tasks.close()
    assert "ignored its cancellation" in caplog.text
    plugin.events.clear()
    await asyncio.sleep(0)
    assert plugin.events == []


class FailsAtTheEnd(Filter):
    name = "FailsAtTheEnd"

    async def run(self) -> None:
        self.events.append("begin")
        try:
            await asyncio.Event().wait()
        finally:
            raise ValueError("cannot close")


async def test_a_run_that_raises_when_cancelled_is_logged_and_not_started_again(
    tasks: PluginTasks, caplog: pytest.LogCaptureFixture
) -> None:
    plugin = FailsAtTheEnd()
    await keep_until(tasks, [plugin], lambda: plugin.events)
    await tasks.close()
    assert plugin.events == ["begin"]
    assert [record.getMessage() for record in caplog.records] == [
        "A plugin's run failed when it was cancelled"
    ]


class Spins(Filter):
    """Does not wait at its first start."""

    name = "Spins"

    async def run(self) -> None:
        self.events.append("begin")
        while len(self.events) == 1:
            pass
        await asyncio.Event().wait()


@pytest.mark.usefixtures("_no_delay")
async def test_a_run_that_does_not_wait_is_stopped_by_the_timeout(caplog: pytest.LogCaptureFixture) -> None:
    timeout = SigalrmTimeout(0.05)
    try:
        plugin, tasks = Spins(), PluginTasks(timeout)
        await keep_until(tasks, [plugin], lambda: len(plugin.events) == 2)
        assert caplog.records[0].__dict__["error"] == "PluginTimeoutError: took longer than 0.05s"
        await tasks.close()
    finally:
        timeout.close()


class _UnprintableError(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


async def test_an_exception_of_run_whose_str_raises_is_logged(
    tasks: PluginTasks, caplog: pytest.LogCaptureFixture
) -> None:
    plugin = Breaks(_UnprintableError())
    await keep_until(tasks, [plugin], lambda: len(plugin.events) == 2)
    assert caplog.records[0].__dict__["error"] == "_UnprintableError"
