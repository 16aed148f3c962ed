"""A plugin that timed out is not called for a while. Other plugins are, and a probe closes its breaker again."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from karmada_pyscheduler.metrics.metrics import Metrics
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
from karmada_scheduler.framework.runtime.timeouts import (
    BlockTimeout,
    PluginTimeoutError,
    SigalrmTimeout,
)
from karmada_scheduler.testing import binding, cluster, decide, placed
from tests.unit.framework.plugins import IgnoringObserver, answering, coroutine, plugin, raising, with_in_tree

BUDGET = 0.2


class BreakerHarness:
    """A caller with breakers, a clock that a test sets, and a plugin that hangs as long as ``hangs`` is true."""

    def __init__(self) -> None:
        self.now = 100.0
        self.hangs = True
        self.calls: list[str] = []
        self.metrics = Metrics()
        self.alarm = SigalrmTimeout(BUDGET)
        self.breakers = CircuitBreakers(
            clock=lambda: self.now, exempt={"InTree"}, observer=self.metrics.plugins
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
def harness() -> Iterator[BreakerHarness]:
    made = BreakerHarness()
    yield made
    made.alarm.close()


@pytest.fixture
def slow(harness: BreakerHarness) -> Any:
    return plugin("Slow", reserve=harness.method("reserve"))


# --- opening, errors and log lines ---


def test_the_error_of_the_call_and_those_after_it_name_plugin_time_point_and_pause(
    harness: BreakerHarness, slow: Any
) -> None:
    cut_off = harness.call(slow)
    refused = harness.call(slow)
    expected = 'plugin "Slow" took longer than 0.2s at Reserve and is not called for 2s'
    assert [str(cut_off), str(refused)] == [expected, expected]
    assert harness.calls == ["reserve"]


def test_openings_and_closings_are_logged_with_the_line_of_the_plugin(
    harness: BreakerHarness, slow: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="karmada_scheduler")
    harness.call(slow)
    harness.call(slow)
    harness.hangs = False
    harness.now += FIRST_PAUSE
    harness.call(slow)
    opened, closed = caplog.records
    assert (opened.levelname, opened.getMessage()) == (
        "WARNING", "A plugin exceeded its timeout and is not called for a while",
    )  # fmt: skip
    assert opened.__dict__["plugin"] == "Slow"
    assert opened.__dict__["point"] == "Reserve"
    assert opened.__dict__["seconds"] == "2"
    assert str(opened.__dict__["error"]) == "took longer than 0.2s"
    line = next(
        number
        for number, text in enumerate(Path(__file__).read_text().splitlines(), 1)
        if "time.sleep(0.001)" in text
    )
    assert opened.__dict__["path"] in {f"{__file__}:{line}", f"{__file__}:{line - 1}"}
    assert closed.levelname == "INFO"
    assert closed.getMessage() == "A plugin responds in time again, its circuit breaker is closed"


def test_openings_and_open_breakers_are_in_the_metrics(harness: BreakerHarness, slow: Any) -> None:
    harness.call(slow)
    assert harness.sample("plugin_breaker_openings_total", "Slow") == 1
    assert harness.sample("plugin_breakers_open", "Slow") == 1
    harness.hangs = False
    harness.now += FIRST_PAUSE
    harness.call(slow)
    assert harness.sample("plugin_breaker_openings_total", "Slow") == 1
    assert harness.sample("plugin_breakers_open", "Slow") == 0


def test_an_exception_does_not_open_the_breaker(harness: BreakerHarness) -> None:
    broken = plugin("Broken", reserve=raising())
    for _ in range(3):
        assert "failed at Reserve" in str(harness.call(broken))
    assert not harness.breakers.open


def test_in_tree_plugins_have_no_breaker(harness: BreakerHarness) -> None:
    busy = plugin("InTree", reserve=harness.method("reserve"))
    assert str(harness.call(busy)) == 'plugin "InTree" took longer than 0.2s at Reserve'
    harness.hangs = False
    assert harness.call(busy) is None


def test_without_breakers_a_plugin_is_called_again_at_once(harness: BreakerHarness, slow: Any) -> None:
    caller = PluginCaller(timeout=harness.alarm, coroutine_seconds=BUDGET)
    for _ in range(2):
        with pytest.raises(PluginError, match=r'^plugin "Slow" took longer than 0.2s at Reserve$'):
            caller.call(slow, Point.RESERVE, slow.reserve, None)


# --- every extension point ---


async def _call_async(harness: BreakerHarness, called: Any, point: Point, method: str) -> None:
    await harness.caller.call_async(called, point, getattr(called, method), None)


METHODS = [(point, method) for point in AnyPoint for method in point.methods]


@pytest.mark.parametrize(("point", "method"), METHODS)
async def test_after_a_timeout_a_plugin_is_called_at_no_extension_point(
    point: Point, method: str, harness: BreakerHarness, slow: Any
) -> None:
    harness.call(slow)
    slow_everywhere = slow
    for made in (harness.method, harness.coroutine):
        setattr(slow_everywhere, method, made(method))
        with pytest.raises(PluginError, match="is not called for 2s"):
            await _call_async(harness, slow_everywhere, point, method)
        with pytest.raises(PluginError, match="is not called for 2s"):
            harness.caller.call(slow_everywhere, point, getattr(slow_everywhere, method), None)
    assert harness.calls == ["reserve"]


def plugin_in_framework(
    harness: BreakerHarness, *, observed: bool = False, **methods: Any
) -> tuple[Any, Framework]:
    if observed:
        harness.caller = PluginCaller(
            timeout=harness.alarm,
            coroutine_seconds=BUDGET,
            breakers=harness.breakers,
            observer=IgnoringObserver(),
        )
    made = plugin("P", **methods)
    return made, with_in_tree(made, caller=harness.caller)


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
    methods: tuple[str, ...], point: str, observed: bool, harness: BreakerHarness
) -> None:
    _, plugins = plugin_in_framework(
        harness, observed=observed, **{each: harness.method(each) for each in methods}
    )
    web = binding("web").replicas(1).on(m1=1)
    first = decide(web, cluster("m1"), plugins=plugins)
    assert f'plugin "P" took longer than 0.2s at {point} and is not called for 2s' in str(first.error)
    second = decide(web, cluster("m1"), plugins=plugins)
    assert first.targets is second.targets is None
    assert isinstance(second.error, PluginError)
    assert "and is not called for 2s" in str(second.error)
    assert harness.calls == [methods[0]]
    other = decide(web, cluster("m1"), plugins=with_in_tree(caller=harness.caller))
    assert placed(other) == {"m1": 1}


def test_an_open_breaker_of_a_filter_that_is_not_reached_has_no_effect(harness: BreakerHarness) -> None:
    _, plugins = plugin_in_framework(harness, filter=harness.method("filter"))
    decide(binding("web").replicas(1), cluster("m1"), plugins=plugins)
    nowhere = decide(binding("web").names("m9").replicas(1), cluster("m1"), plugins=plugins)
    assert str(nowhere.error).startswith("0/1 clusters are available")


def test_the_probe_of_a_filter_is_one_run_over_all_clusters(harness: BreakerHarness) -> None:
    _, plugins = plugin_in_framework(harness, filter=harness.method("filter"))
    clusters = [cluster("m1"), cluster("m2"), cluster("m3")]
    decide(binding("web").replicas(1), *clusters, plugins=plugins)
    harness.hangs = False
    harness.now += FIRST_PAUSE
    harness.calls.clear()
    assert placed(decide(binding("web").replicas(3).duplicated(), *clusters, plugins=plugins))
    assert harness.calls[:3] == ["filter"] * 3
    assert not harness.breakers.open


# --- the pause and the probe ---


def test_the_pause_doubles_with_every_probe_that_times_out_up_to_a_minute(
    harness: BreakerHarness, slow: Any
) -> None:
    pauses = []
    for _ in range(8):
        error = harness.call(slow)
        assert error is not None
        refused = harness.call(slow)
        assert refused is not None
        pauses.append(refused.retry_after)
        harness.now += refused.retry_after - 0.01
        assert harness.call(slow) is not None
        harness.now += 0.01
    assert pauses == pytest.approx([2, 4, 8, 16, 32, 60, 60, 60])
    assert len(harness.calls) == 8


def test_a_binding_whose_call_timed_out_waits_longer_than_those_that_were_not_called(
    harness: BreakerHarness, slow: Any
) -> None:
    """The next probe is then a call for another binding, as the plugin may hang for some bindings only."""
    cut_off, refused = harness.call(slow), harness.call(slow)
    assert cut_off is not None
    assert refused is not None
    assert cut_off.retry_after == 2 * FIRST_PAUSE
    assert refused.retry_after == FIRST_PAUSE
    assert refused.within("step").retry_after == FIRST_PAUSE


def test_a_probe_that_ends_in_time_closes_the_breaker_whether_it_raises_or_not(
    harness: BreakerHarness,
) -> None:
    for answer in (answering(SUCCESS), raising()):
        slow = plugin("Slow", reserve=harness.method("reserve"))
        harness.hangs = True
        harness.call(slow)
        slow.reserve = answer
        harness.now += FIRST_PAUSE
        harness.call(slow)
        assert not harness.breakers.open


def test_the_pause_grows_with_repeated_timeouts_and_is_reset_after_five_minutes(
    harness: BreakerHarness, slow: Any
) -> None:
    for expected in (2, 4, 8):
        harness.hangs = True
        assert f"not called for {expected}s" in str(harness.call(slow))
        harness.hangs = False
        harness.now += expected
        assert harness.call(slow) is None
    harness.now += RESET_SECONDS + 1
    harness.hangs = True
    assert "not called for 2s" in str(harness.call(slow))


def test_after_the_pause_calls_at_other_points_are_admitted_and_do_not_close_the_breaker(
    harness: BreakerHarness, slow: Any
) -> None:
    harness.call(slow)
    quick = answering(SUCCESS)
    with pytest.raises(PluginError):
        harness.caller.call(slow, Point.PRE_FILTER, quick, None)
    harness.now += FIRST_PAUSE
    for _ in range(3):
        assert harness.caller.call(slow, Point.PRE_FILTER, quick, None) is SUCCESS
    assert harness.breakers.open
    assert "not called for 4s" in str(harness.call(slow))


def test_calls_at_other_points_close_the_breaker_if_there_is_no_probe(
    harness: BreakerHarness, slow: Any
) -> None:
    harness.call(slow)
    harness.now += FIRST_PAUSE + LONGEST_PAUSE
    harness.caller.call(slow, Point.PRE_FILTER, answering(SUCCESS), None)
    assert not harness.breakers.open


async def test_there_is_one_probe_at_a_time_and_simultaneous_timeouts_count_once(
    harness: BreakerHarness,
) -> None:
    slow = plugin("Slow", pre_score=harness.coroutine("pre_score"))

    async def call() -> str:
        try:
            await harness.caller.call_async(slow, Point.PRE_SCORE, slow.pre_score, None)
        except PluginError as error:
            return str(error)
        return ""

    texts = await asyncio.gather(*(call() for _ in range(5)))
    assert harness.calls == ["pre_score"] * 5
    assert {text.rpartition(" ")[2] for text in texts} == {"2s"}
    assert harness.sample("plugin_breaker_openings_total", "Slow") == 1
    harness.now += FIRST_PAUSE
    texts = await asyncio.gather(*(call() for _ in range(5)))
    assert harness.calls == ["pre_score"] * 6
    assert sorted(text.rpartition(" ")[2] for text in texts) == ["2s", "2s", "2s", "2s", "4s"]


async def test_a_call_that_began_before_the_opening_does_not_close_the_breaker(
    harness: BreakerHarness, slow: Any
) -> None:
    goes_on = asyncio.Event()

    async def waits(_: object) -> Any:
        await goes_on.wait()
        return SUCCESS

    slow.timeout = None
    early = asyncio.create_task(harness.caller.call_async(slow, Point.RESERVE, waits, None))
    await asyncio.sleep(0)
    harness.call(slow)
    goes_on.set()
    assert await early is SUCCESS
    assert harness.breakers.open


async def test_a_coroutine_that_hangs_is_reported_with_the_line_at_which_it_waits(
    harness: BreakerHarness, caplog: pytest.LogCaptureFixture
) -> None:
    slow = plugin("Slow", pre_score=harness.coroutine("pre_score"))
    with pytest.raises(PluginError):
        await harness.caller.call_async(slow, Point.PRE_SCORE, slow.pre_score, None)
    assert caplog.records[0].__dict__["path"].startswith(f"{__file__}:")


# --- one breaker per object ---


def test_every_object_has_a_breaker_of_its_own(harness: BreakerHarness, slow: Any) -> None:
    harness.call(slow)
    again = plugin("Slow", reserve=answering(SUCCESS))
    assert harness.call(again) is None
    assert harness.call(slow) is not None


def test_breakers_of_plugins_that_are_no_longer_in_use_are_dropped(
    harness: BreakerHarness, slow: Any
) -> None:
    harness.call(slow)
    other = plugin("Other", reserve=harness.method("reserve"))
    harness.call(other)
    harness.breakers.keep([other])
    assert [breaker.plugin for breaker in harness.breakers.open.values()] == [other]
    assert harness.sample("plugin_breakers_open", "Slow") == 0
    assert harness.sample("plugin_breakers_open", "Other") == 1


def test_a_closed_breaker_costs_no_call_per_cluster(harness: BreakerHarness) -> None:
    """A closed breaker is not consulted at all."""
    calls: list[str] = []

    class RecordingBreakers(CircuitBreakers):
        def admit(self, *_: Any, **__: Any) -> None:
            calls.append("admit")

        def answered(self, *_: Any, **__: Any) -> None:
            calls.append("answered")

    caller = PluginCaller(breakers=RecordingBreakers(clock=lambda: 0.0))
    plugins = with_in_tree(
        plugin("P", filter=answering(SUCCESS), pre_score=coroutine(SUCCESS)), caller=caller
    )
    assert placed(decide(binding("web").replicas(1), cluster("m1"), plugins=plugins))
    assert calls == []


# --- shorter timeouts after the first one ---


class VirtualTimeout:
    """A timeout on the clock of a test; ``hang`` is what a plugin does until it is interrupted."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.now = self.blocked = 0.0
        self._limits: list[float] = []

    def __enter__(self) -> None:
        self._limits.append(self.seconds)

    def __exit__(self, *_: object) -> None:
        self._limits.clear()

    def part(self, share: float, *, adds_up: bool = False) -> BlockTimeout:
        self._limits.append(self.seconds * share)
        return self

    def hang(self, *_: object) -> None:
        limit = min(self._limits)
        self.now += limit
        self.blocked += limit
        raise PluginTimeoutError(limit)


def test_a_second_hang_costs_a_fraction_of_the_first_one_and_all_together_a_sixtieth_of_the_time() -> None:
    timeout = VirtualTimeout(2.0)
    breakers = CircuitBreakers(clock=lambda: timeout.now)
    caller = PluginCaller(timeout=timeout, breakers=breakers)
    hangs = plugin("Hangs", reserve=timeout.hang)
    costs: list[float] = []
    while timeout.now < 600:
        before = timeout.blocked
        with contextlib.suppress(PluginError):
            caller.call(hangs, Point.RESERVE, hangs.reserve, None)
        if timeout.blocked > before:
            costs.append(timeout.blocked - before)
            # Another binding, for which it does not hang, closes the breaker.
            timeout.now += breakers.open[id(hangs)].pause
            caller.call(hangs, Point.RESERVE, answering(SUCCESS), None)
            assert not breakers.open
        timeout.now += 0.1
    assert costs[0] == 2.0
    assert costs[1:6] == pytest.approx([2 * pause / LONGEST_PAUSE for pause in (2, 4, 8, 16, 32)])
    assert timeout.blocked - costs[0] <= 2 * timeout.now / LONGEST_PAUSE


def test_the_timeout_is_the_usual_one_after_five_minutes_without_a_hang() -> None:
    timeout = VirtualTimeout(2.0)
    breakers = CircuitBreakers(clock=lambda: timeout.now)
    caller = PluginCaller(timeout=timeout, breakers=breakers)
    hangs = plugin("Hangs", reserve=timeout.hang)
    with pytest.raises(PluginError):
        caller.call(hangs, Point.RESERVE, hangs.reserve, None)
    timeout.now += FIRST_PAUSE
    caller.call(hangs, Point.RESERVE, answering(SUCCESS), None)
    assert breakers.share_of(hangs) == FIRST_PAUSE / LONGEST_PAUSE
    timeout.now += RESET_SECONDS + 1
    assert breakers.share_of(hangs) == 1
    assert not caller.has_shorter_timeouts


def test_a_plugin_that_was_not_called_for_minutes_after_a_timeout_has_the_shorter_one() -> None:
    timeout = VirtualTimeout(2.0)
    breakers = CircuitBreakers(clock=lambda: timeout.now)
    hangs = plugin("Hangs", reserve=timeout.hang)
    with pytest.raises(PluginError):
        PluginCaller(timeout=timeout, breakers=breakers).call(hangs, Point.RESERVE, hangs.reserve, None)
    timeout.now += FIRST_PAUSE + RESET_SECONDS + 1
    assert breakers.share_of(hangs) == FIRST_PAUSE / LONGEST_PAUSE


class FilterHarness:
    """A caller with a timeout of two seconds, and breakers on a clock of its own."""

    def __init__(self) -> None:
        self.now = 0.0
        self.alarm = SigalrmTimeout(2.0)
        self.breakers = CircuitBreakers(clock=lambda: self.now)
        self.caller = PluginCaller(timeout=self.alarm, breakers=self.breakers)

    def suspect(self, found: Any) -> None:
        """Let a plugin have exceeded its timeout once."""
        with contextlib.suppress(PluginError):
            self.caller.raise_plugin_error(found, Point.FILTER, PluginTimeoutError(2.0), since=0)
        self.now += FIRST_PAUSE


@pytest.fixture
def filters() -> Iterator[FilterHarness]:
    made = FilterHarness()
    yield made
    made.alarm.close()


def test_the_shorter_timeout_of_a_filter_is_for_all_clusters_together(filters: FilterHarness) -> None:
    calls: list[str] = []

    def slow(context: Any) -> Any:
        calls.append(context.cluster.name)
        time.sleep(0.03)
        return SUCCESS

    found = plugin("Slow", filter=slow)
    framework = with_in_tree(found, caller=filters.caller)
    filters.suspect(found)
    names = [f"m{number}" for number in range(100)]
    decision = decide(binding("web"), *map(cluster, names), plugins=framework)
    assert 1 <= len(calls) <= 4
    assert 'plugin "Slow" took longer than 0.1s at Filter for cluster' in str(decision.error)


def test_the_shorter_timeout_of_one_plugin_does_not_end_another(filters: FilterHarness) -> None:
    def slow(_: Any) -> Any:
        time.sleep(0.15)
        return SUCCESS

    suspect = plugin("Suspect", filter=answering(SUCCESS))
    framework = with_in_tree(plugin("Slow", filter=slow), suspect, caller=filters.caller)
    filters.suspect(suspect)
    assert decide(binding("web"), cluster("m1"), cluster("m2"), plugins=framework).error is None


async def test_coroutines_that_were_under_way_at_a_hang_block_for_the_shortest_timeout_all_together(
    harness: BreakerHarness,
) -> None:
    """They were admitted before the breaker opened, and hang after a wait."""
    goes_on, ended = asyncio.Event(), []
    alarm = SigalrmTimeout(0.2)
    caller = PluginCaller(timeout=alarm, coroutine_seconds=None, breakers=harness.breakers)

    sleep = time.sleep

    async def hangs(_: object) -> Any:
        try:
            await goes_on.wait()
            sleep(10)
        finally:
            ended.append(time.monotonic())
        return SUCCESS

    slow = plugin("Slow", pre_score=hangs)
    calls = [asyncio.create_task(caller.call_async(slow, Point.PRE_SCORE, hangs, None)) for _ in range(30)]
    await asyncio.sleep(0)
    began = time.monotonic()
    goes_on.set()
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    alarm.close()
    assert all(isinstance(each, PluginError) for each in outcomes)
    assert harness.breakers.openings == 1
    assert len(ended) == 30  # in their own code, not when they are collected as garbage
    assert 0.2 <= ended[-1] - began < 10 * 0.2


def test_the_error_of_bindings_that_wait_names_the_one_that_made_the_plugin_hang(
    harness: BreakerHarness,
) -> None:
    slow = plugin("Slow", filter=harness.method("filter"))
    framework = with_in_tree(slow, caller=harness.caller)
    bad = decide(binding("bad"), cluster("m1"), plugins=framework)
    innocent = decide(binding("innocent"), cluster("m1"), plugins=framework)
    text = 'plugin "Slow" took longer than 0.2s at Filter for'
    assert f"{text} cluster m1 and is not called for 2s" in str(bad.error)
    assert f"{text} ResourceBinding(default/bad-deployment) and is not called for 2s" in str(innocent.error)
