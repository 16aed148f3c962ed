"""Exceptions of plugins are logged with a traceback, once a minute for each place in the code."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from karmada_scheduler.core.budget import run_sync
from karmada_scheduler.framework import SUCCESS, PluginError, Result, SchedulingError, UnschedulableError
from karmada_scheduler.framework.extension_points import Point
from karmada_scheduler.framework.runtime.failure_log import INTERVAL_SECONDS, FailureLog, mark_scheduler_error
from karmada_scheduler.framework.runtime.plugin_call import PluginCaller
from karmada_scheduler.testing import binding, cluster, decide, framework, schedule
from tests.unit.framework.plugins import answering, coroutine, plugin, raising, with_in_tree


class CallerHarness:
    """A plugin caller with a clock that a test sets."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.caller = PluginCaller(clock=lambda: self.now)

    def call(self, called: Any, method: Any) -> str:
        with pytest.raises(PluginError) as caught:
            self.caller.call(called, Point.RESERVE, method, None)
        return str(caught.value)


@pytest.fixture
def harness() -> CallerHarness:
    return CallerHarness()


def looks_up(key: object = "x") -> Any:
    return {}[key]  # type: ignore[index]


def deep(number: int) -> Any:
    return looks_up() if number == 0 else deep(number - 1)


def tracebacks(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.exc_text or logging.Formatter().formatException(record.exc_info) for record in caplog.records if record.exc_info]  # fmt: skip


def test_the_traceback_begins_in_the_plugin(harness: CallerHarness, caplog: pytest.LogCaptureFixture) -> None:
    text = harness.call(plugin("P"), lambda _: looks_up())
    assert text == "plugin \"P\" failed at Reserve: KeyError: 'x'"
    [trace] = tracebacks(caplog)
    lines = trace.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert __file__ in lines[1]
    assert "in looks_up" in trace
    assert lines[-1] == "KeyError: 'x'"
    [record] = caplog.records
    assert (record.__dict__["plugin"], record.__dict__["point"]) == ("P", "Reserve")


def test_the_same_traceback_is_logged_once_a_minute(
    harness: CallerHarness, caplog: pytest.LogCaptureFixture
) -> None:
    called, method = plugin("P"), lambda _: looks_up()
    counts = []
    for pause in (0, 1, INTERVAL_SECONDS - 2, 1, 1):
        harness.now += pause
        harness.call(called, method)
        counts.append(len(tracebacks(caplog)))
    assert counts == [1, 1, 1, 2, 2]


def test_tracebacks_of_other_plugins_types_or_places_are_logged_separately(
    harness: CallerHarness, caplog: pytest.LogCaptureFixture
) -> None:
    def here(_: object) -> Any:
        raise KeyError("x")

    def there(_: object) -> Any:
        raise KeyError("x")

    other: list[type[Exception]] = [KeyError, ValueError]

    def either(_: object) -> Any:
        raise other.pop()("x")

    for method in (here, there, either, either, here):
        harness.call(plugin("P"), method)
    harness.call(plugin("Q"), here)
    assert len(tracebacks(caplog)) == 5


def test_exceptions_that_differ_only_in_text_are_logged_once(
    harness: CallerHarness, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(10):
        harness.call(plugin("P"), lambda _, number=number: looks_up(number))
    assert len(tracebacks(caplog)) == 1


def test_an_exception_object_that_is_raised_again_is_logged_once(
    harness: CallerHarness, caplog: pytest.LogCaptureFixture
) -> None:
    raises = raising(ValueError("kept"))
    for _ in range(5):
        harness.call(plugin("P"), raises)
    assert len(tracebacks(caplog)) == 1


def test_the_log_keeps_a_thousand_places() -> None:
    log = FailureLog(clock=lambda: 0.0)
    logging.getLogger(log.__module__).disabled = True
    try:
        for number in range(1100):
            code = compile("\n" * number + "raise ValueError", f"{number}.py", "exec")
            try:
                exec(code, {})
            except ValueError as error:
                log.log(plugin("P"), Point.RESERVE, error)
    finally:
        logging.getLogger(log.__module__).disabled = False
    assert len(log._logged_at) == 1000


@pytest.mark.parametrize(
    "methods",
    [
        {"pre_filter": raising()},
        {"pre_filter": coroutine(SUCCESS), "pre_score": raising()},
        {"filter": raising()},
        {"filter": answering(SUCCESS), "filter_key": raising()},
        {"post_filter": raising(), "filter": answering(Result.unschedulable("no"))},
        {"score": raising()},
        {"score": answering(1), "normalize_score": raising()},
        {"select": raising()},
        {"assign": raising()},
        {"reserve": raising(), "unreserve": answering(None)},
        {"permit": raising()},
        {"pre_bind": raising()},
        {"bind": raising()},
        {"post_bind": raising()},
    ],
    ids="+".join,
)
def test_a_traceback_is_logged_at_every_extension_point(
    methods: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    schedule(binding("web").replicas(1), cluster("m1"), plugins=with_in_tree(plugin("P", **methods)))
    assert [trace.splitlines()[-1] for trace in tracebacks(caplog)] == ["RuntimeError: boom"]


def test_the_traceback_of_a_coroutine_is_logged(
    harness: CallerHarness, caplog: pytest.LogCaptureFixture
) -> None:
    async def fails(_: object) -> None:
        await asyncio.sleep(0)
        looks_up()

    async def main() -> None:
        for _ in range(3):
            with pytest.raises(PluginError, match="KeyError: 'x'"):
                await harness.caller.call_async(plugin("P"), Point.PERMIT, fails, None)

    asyncio.run(main())
    assert len(tracebacks(caplog)) == 1
    assert "in looks_up" in tracebacks(caplog)[0]


@pytest.mark.parametrize("error", [SchedulingError("no"), UnschedulableError("too few")])
@pytest.mark.parametrize("method", ["select", "assign"])
def test_a_scheduling_error_at_select_or_assign_is_not_logged(
    method: str, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    plugins = with_in_tree(plugin("P", **{method: raising(error)}))
    decision = decide(binding("web").replicas(1), cluster("m1"), plugins=plugins)
    assert str(decision.error).endswith(str(error))
    assert type(decision.error) is type(error)
    assert tracebacks(caplog) == []


def test_refusals_of_in_tree_plugins_are_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    decision = decide(binding("web").replicas(9, cpu="1").dynamic_weight(), cluster("m1").capacity(cpu=1), plugins=framework())  # fmt: skip
    assert isinstance(decision.error, UnschedulableError)
    assert tracebacks(caplog) == []


def test_a_scheduler_error_that_passes_through_a_plugin_is_not_logged_as_the_plugins(
    harness: CallerHarness, caplog: pytest.LogCaptureFixture
) -> None:
    conflict = ValueError("conflict")
    mark_scheduler_error(conflict)
    harness.call(plugin("P"), raising(conflict))
    assert tracebacks(caplog) == []


def test_an_exception_whose_str_raises_is_logged(
    harness: CallerHarness, caplog: pytest.LogCaptureFixture
) -> None:
    class OddError(Exception):
        def __str__(self) -> str:
            raise RuntimeError("not even this")

    assert harness.call(plugin("P"), raising(OddError())) == 'plugin "P" failed at Reserve: OddError'
    assert len(tracebacks(caplog)) == 1


def test_an_exception_of_the_call_itself_is_logged_with_all_frames(
    harness: CallerHarness, caplog: pytest.LogCaptureFixture
) -> None:
    assert "TypeError" in harness.call(plugin("P"), lambda: None)
    [trace] = tracebacks(caplog)
    assert "plugin_call.py" in trace


def test_failures_are_logged_without_an_event_loop(
    harness: CallerHarness, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(PluginError):
        run_sync(harness.caller.call_async(plugin("P"), Point.PRE_FILTER, raising(), None))
    assert len(tracebacks(caplog)) == 1
