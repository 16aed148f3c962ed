"""A plugin that is cut off is not called for a while: everybody else goes on, and a probe finds out when it is well."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from karmada_scheduler.framework import SUCCESS, PluginError
from karmada_scheduler.framework.extension_points import Point
from karmada_scheduler.framework.extension_points import Point as AnyPoint
from karmada_scheduler.framework.runtime.circuit_breaker import (
    FIRST_PAUSE,
    LONGEST_PAUSE,
    RESET_SECONDS,
    CircuitBreakers,
)
from karmada_scheduler.framework.runtime.framework import Framework
from karmada_scheduler.framework.runtime.plugin_call import PluginCaller
from karmada_scheduler.framework.runtime.timeouts import SigalrmTimeout
from karmada_scheduler.metrics.metrics import Metrics
from karmada_scheduler.metrics.plugins import CircuitBreakerMetrics
from karmada_scheduler.testing import binding, cluster, decide, placed
from tests.unit.framework.plugins import answering, coroutine, plugin, raising, with_in_tree

BUDGET = 0.05


class World:
    """A caller with breakers, a clock that a test sets, and a plugin that hangs as long as ``hangs`` is true."""

    def __init__(self) -> None:
        self.now = 100.0
        self.hangs = True
        self.calls: list[str] = []
        self.metrics = Metrics()
        self.alarm = SigalrmTimeout(BUDGET)
        self.breakers = CircuitBreakers(
            clock=lambda: self.now, exempt={"InTree"}, observer=CircuitBreakerMetrics(self.metrics.plugins)
        )
        self.caller = PluginCaller(
            timeout=self.alarm, coroutine_seconds=BUDGET, breakers=self.breakers, clock=lambda: self.now
        )

    def method(self, name: str, answer: Any = SUCCESS) -> Callable[..., Any]:
        def called(*_: Any) -> Any:
            self.calls.append(name)
            while self.hangs:
                time.sleep(0.001)
            return answer

        return called

    def coroutine(self, name: str, answer: Any = SUCCESS) -> Callable[..., Any]:
        async def called(*_: Any) -> Any:
            self.calls.append(name)
            while self.hangs:
                await asyncio.sleep(0.001)
            return answer

        return called

    def call(self, called: Any, point: Point = Point.RESERVE) -> PluginError | None:
        try:
            self.caller.call(called, point, called.reserve, None)
        except PluginError as error:
            return error
        return None

    def sample(self, name: str, plugin: str) -> float | None:
        return self.metrics.registry.get_sample_value(f"karmada_scheduler_{name}", {"plugin": plugin})


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    yield made
    made.alarm.close()


@pytest.fixture
def slow(world: World) -> Any:
    return plugin("Slow", reserve=world.method("reserve"))


# --- opening, and what it says ---


def test_the_error_of_the_call_and_those_after_it_name_plugin_time_point_and_pause(
    world: World, slow: Any
) -> None:
    cut_off = world.call(slow)
    refused = world.call(slow)
    expected = 'plugin "Slow" took longer than 0.05s at Reserve and is not called for 2s'
    assert [str(cut_off), str(refused)] == [expected, expected]
    assert world.calls == ["reserve"]


def test_openings_and_closings_are_logged_with_the_line_of_the_plugin(
    world: World, slow: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="karmada_scheduler")
    world.call(slow)
    world.call(slow)
    world.hangs = False
    world.now += FIRST_PAUSE
    world.call(slow)
    opened, closed = caplog.records
    assert (opened.levelname, opened.getMessage()) == (
        "WARNING", "A plugin exceeded its timeout and is not called for a while",
    )  # fmt: skip
    assert opened.__dict__["plugin"] == "Slow"
    assert opened.__dict__["point"] == "Reserve"
    assert opened.__dict__["seconds"] == "2"
    assert str(opened.__dict__["error"]) == "took longer than 0.05s"
    line = next(
        number
        for number, text in enumerate(Path(__file__).read_text().splitlines(), 1)
        if "time.sleep(0.001)" in text
    )
    assert opened.__dict__["path"] in {f"{__file__}:{line}", f"{__file__}:{line - 1}"}
    assert closed.levelname == "INFO"
    assert closed.getMessage() == "A plugin responds in time again, its circuit breaker is closed"


def test_openings_and_open_breakers_are_in_the_metrics(world: World, slow: Any) -> None:
    world.call(slow)
    assert world.sample("plugin_breaker_openings_total", "Slow") == 1
    assert world.sample("plugin_breakers_open", "Slow") == 1
    world.hangs = False
    world.now += FIRST_PAUSE
    world.call(slow)
    assert world.sample("plugin_breaker_openings_total", "Slow") == 1
    assert world.sample("plugin_breakers_open", "Slow") == 0


def test_an_exception_does_not_open_the_breaker(world: World) -> None:
    broken = plugin("Broken", reserve=raising())
    for _ in range(3):
        assert "failed at Reserve" in str(world.call(broken))
    assert not world.breakers.open


def test_in_tree_plugins_have_no_breaker(world: World) -> None:
    busy = plugin("InTree", reserve=world.method("reserve"))
    assert str(world.call(busy)) == 'plugin "InTree" took longer than 0.05s at Reserve'
    world.hangs = False
    assert world.call(busy) is None


def test_without_breakers_a_plugin_is_called_again_at_once(world: World, slow: Any) -> None:
    caller = PluginCaller(timeout=world.alarm, coroutine_seconds=BUDGET)
    for _ in range(2):
        with pytest.raises(PluginError, match=r'^plugin "Slow" took longer than 0.05s at Reserve$'):
            caller.call(slow, Point.RESERVE, slow.reserve, None)


# --- at every point, plain or not ---


async def _asked(world: World, asked: Any, point: Point, method: str) -> None:
    await world.caller.call_async(asked, point, getattr(asked, method), None)


METHODS = [(point, method) for point in AnyPoint for method in point.methods]


@pytest.mark.parametrize(("point", "method"), METHODS)
async def test_after_a_timeout_a_plugin_is_called_at_no_extension_point(
    point: Point, method: str, world: World, slow: Any
) -> None:
    world.call(slow)
    slow_everywhere = slow
    for made in (world.method, world.coroutine):
        setattr(slow_everywhere, method, made(method))
        with pytest.raises(PluginError, match="is not called for 2s"):
            await _asked(world, slow_everywhere, point, method)
        with pytest.raises(PluginError, match="is not called for 2s"):
            world.caller.call(slow_everywhere, point, getattr(slow_everywhere, method), None)
    assert world.calls == ["reserve"]


def judged(world: World, *, observed: bool = False, **methods: Any) -> tuple[Any, Framework]:
    if observed:
        world.caller = PluginCaller(
            timeout=world.alarm, coroutine_seconds=BUDGET, breakers=world.breakers, observer=Unimpressed()
        )
    made = plugin("P", **methods)
    return made, with_in_tree(made, caller=world.caller)


class Unimpressed:
    def extension_point(self, *_: Any) -> None: ...

    def plugin(self, *_: Any) -> None: ...

    def step(self, *_: Any) -> None: ...


@pytest.mark.parametrize("observed", [False, True])
@pytest.mark.parametrize(
    ("methods", "point"),
    [
        (("filter",), "Filter for cluster m1"),
        (("filter_key", "filter"), "Filter"),
        (("score",), "Score"),
        (("score_key", "score"), "Score"),
        (("pre_filter",), "PreFilter"),
        (("pre_score",), "PreScore"),
        (("select",), "Select"),
        (("assign",), "Assign"),
    ],
)
def test_with_an_open_breaker_a_decision_fails_at_once_and_keeps_the_placement(
    methods: tuple[str, ...], point: str, observed: bool, world: World
) -> None:
    _, plugins = judged(world, observed=observed, **{each: world.method(each) for each in methods})
    web = binding("web").replicas(1).on(m1=1)
    first = decide(web, cluster("m1"), plugins=plugins)
    assert f'plugin "P" took longer than 0.05s at {point} and is not called for 2s' in str(first.error)
    second = decide(web, cluster("m1"), plugins=plugins)
    assert first.targets is second.targets is None
    assert isinstance(second.error, PluginError)
    assert "and is not called for 2s" in str(second.error)
    assert world.calls == [methods[0]]
    other = decide(web, cluster("m1"), plugins=with_in_tree(caller=world.caller))
    assert placed(other) == {"m1": 1}


def test_an_open_breaker_of_a_filter_that_is_not_reached_has_no_effect(world: World) -> None:
    _, plugins = judged(world, filter=world.method("filter"))
    decide(binding("web").replicas(1), cluster("m1"), plugins=plugins)
    nowhere = decide(binding("web").names("m9").replicas(1), cluster("m1"), plugins=plugins)
    assert str(nowhere.error).startswith("0/1 clusters are available")


def test_the_probe_of_a_filter_is_one_run_over_all_clusters(world: World) -> None:
    _, plugins = judged(world, filter=world.method("filter"))
    clusters = [cluster("m1"), cluster("m2"), cluster("m3")]
    decide(binding("web").replicas(1), *clusters, plugins=plugins)
    world.hangs = False
    world.now += FIRST_PAUSE
    world.calls.clear()
    assert placed(decide(binding("web").replicas(3).duplicated(), *clusters, plugins=plugins))
    assert world.calls[:3] == ["filter"] * 3
    assert not world.breakers.open


# --- the pause and the probe ---


def test_the_pause_doubles_with_every_probe_that_times_out_up_to_a_minute(world: World, slow: Any) -> None:
    pauses = []
    for _ in range(8):
        error = world.call(slow)
        assert error is not None
        refused = world.call(slow)
        assert refused is not None
        pauses.append(refused.retry_after)
        world.now += refused.retry_after - 0.01
        assert world.call(slow) is not None
        world.now += 0.01
    assert pauses == pytest.approx([2, 4, 8, 16, 32, 60, 60, 60])
    assert len(world.calls) == 8


def test_a_binding_whose_call_timed_out_waits_longer_than_those_that_were_not_called(
    world: World, slow: Any
) -> None:
    """So that the next probe is another binding's: only some may make the plugin hang."""
    cut_off, refused = world.call(slow), world.call(slow)
    assert cut_off is not None
    assert refused is not None
    assert cut_off.retry_after == 2 * FIRST_PAUSE
    assert refused.retry_after == FIRST_PAUSE
    assert refused.within("step").retry_after == FIRST_PAUSE


def test_a_probe_that_ends_in_time_closes_it_whether_it_raises_or_not(world: World) -> None:
    for answer in (answering(SUCCESS), raising()):
        slow = plugin("Slow", reserve=world.method("reserve"))
        world.hangs = True
        world.call(slow)
        slow.reserve = answer
        world.now += FIRST_PAUSE
        world.call(slow)
        assert not world.breakers.open


def test_the_pause_grows_with_repeated_timeouts_and_is_reset_after_five_minutes(
    world: World, slow: Any
) -> None:
    for expected in (2, 4, 8):
        world.hangs = True
        assert f"not called for {expected}s" in str(world.call(slow))
        world.hangs = False
        world.now += expected
        assert world.call(slow) is None
    world.now += RESET_SECONDS + 1
    world.hangs = True
    assert "not called for 2s" in str(world.call(slow))


def test_after_the_pause_calls_at_other_points_are_admitted_and_do_not_close_the_breaker(
    world: World, slow: Any
) -> None:
    world.call(slow)
    quick = answering(SUCCESS)
    with pytest.raises(PluginError):
        world.caller.call(slow, Point.PRE_FILTER, quick, None)
    world.now += FIRST_PAUSE
    for _ in range(3):
        assert world.caller.call(slow, Point.PRE_FILTER, quick, None) is SUCCESS
    assert world.breakers.open
    assert "not called for 4s" in str(world.call(slow))


def test_calls_at_other_points_close_the_breaker_if_there_is_no_probe(world: World, slow: Any) -> None:
    world.call(slow)
    world.now += FIRST_PAUSE + LONGEST_PAUSE
    world.caller.call(slow, Point.PRE_FILTER, answering(SUCCESS), None)
    assert not world.breakers.open


async def test_there_is_one_probe_at_a_time_and_simultaneous_timeouts_count_once(world: World) -> None:
    slow = plugin("Slow", pre_score=world.coroutine("pre_score"))

    async def ask() -> str:
        try:
            await world.caller.call_async(slow, Point.PRE_SCORE, slow.pre_score, None)
        except PluginError as error:
            return str(error)
        return ""

    texts = await asyncio.gather(*(ask() for _ in range(5)))
    assert world.calls == ["pre_score"] * 5
    assert {text.rpartition(" ")[2] for text in texts} == {"2s"}
    assert world.sample("plugin_breaker_openings_total", "Slow") == 1
    world.now += FIRST_PAUSE
    texts = await asyncio.gather(*(ask() for _ in range(5)))
    assert world.calls == ["pre_score"] * 6
    assert sorted(text.rpartition(" ")[2] for text in texts) == ["2s", "2s", "2s", "2s", "4s"]


async def test_a_call_that_began_before_the_opening_does_not_close_the_breaker(
    world: World, slow: Any
) -> None:
    goes_on = asyncio.Event()

    async def waits(_: object) -> Any:
        await goes_on.wait()
        return SUCCESS

    slow.timeout = None
    early = asyncio.create_task(world.caller.call_async(slow, Point.RESERVE, waits, None))
    await asyncio.sleep(0)
    world.call(slow)
    goes_on.set()
    assert await early is SUCCESS
    assert world.breakers.open


async def test_a_coroutine_that_hangs_is_reported_with_the_line_at_which_it_waits(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    slow = plugin("Slow", pre_score=world.coroutine("pre_score"))
    with pytest.raises(PluginError):
        await world.caller.call_async(slow, Point.PRE_SCORE, slow.pre_score, None)
    assert caplog.records[0].__dict__["path"].startswith(f"{__file__}:")


# --- which object ---


def test_every_object_has_a_breaker_of_its_own(world: World, slow: Any) -> None:
    world.call(slow)
    again = plugin("Slow", reserve=answering(SUCCESS))
    assert world.call(again) is None
    assert world.call(slow) is not None


def test_breakers_of_plugins_that_are_no_longer_in_use_are_dropped(world: World, slow: Any) -> None:
    world.call(slow)
    other = plugin("Other", reserve=world.method("reserve"))
    world.call(other)
    world.breakers.keep([other])
    assert [breaker.plugin for breaker in world.breakers.open.values()] == [other]
    assert world.sample("plugin_breakers_open", "Slow") == 0
    assert world.sample("plugin_breakers_open", "Other") == 1


def test_a_closed_breaker_costs_no_call_per_cluster(world: World) -> None:
    """Of a breaker that is closed nobody is asked."""
    asked: list[str] = []

    class Told(CircuitBreakers):
        def admit(self, *_: Any, **__: Any) -> None:
            asked.append("admit")

        def answered(self, *_: Any, **__: Any) -> None:
            asked.append("answered")

    caller = PluginCaller(breakers=Told(clock=lambda: 0.0))
    plugins = with_in_tree(
        plugin("P", filter=answering(SUCCESS), pre_score=coroutine(SUCCESS)), caller=caller
    )
    assert placed(decide(binding("web").replicas(1), cluster("m1"), plugins=plugins))
    assert asked == []
